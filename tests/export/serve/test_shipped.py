"""What is served where nothing was trained."""

import io
import json
import shutil
import urllib.request

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import encapnet_tf
from encapnet_tf.data import one_view
from encapnet_tf.weights import sample_images
from encapnet_tf.weights.archive import shipped_path
from export.choices import CARD
from export.serve.model.drawn_samples import style_of
from export.version.from_archive import exported_archive
from tests import forked
from tests.export.serve import served


@pytest.fixture
def started():
    """Starts the program; what it says until it serves, and its port."""
    programs = []

    def start(folder, cache, *arguments):
        program = forked.Program(
            "export.serve", "--port=0", *arguments, cwd=str(folder),
            ENCAPNET_CACHE=str(cache),
        )  # fmt: skip
        programs.append(program)
        lines = [program.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("serving "):
            lines.append(program.stdout.readline())
        port = int(lines[-1].split(":")[2].split("/")[0])
        assert ask(port, "healthz")["status"] == "ok"
        return lines, port

    yield start
    for program in programs:
        program.send_signal(15)
    for program in programs:
        assert program.wait(60) == 0


def ask(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    url = f"http://127.0.0.1:{port}/{path}"
    with urllib.request.urlopen(url, data) as answer:
        return json.load(answer)


def test_without_a_model_the_shipped_one_is_served(shipped, started, tmp_path):
    """At once: it was exported before."""
    lines, port = started(tmp_path, shipped[1])
    assert len(lines) == 1
    assert lines[0].startswith("serving mnist version 1 at http")
    about = ask(port, "page.json")
    assert about["classes"] == [str(digit) for digit in range(10)]
    assert about["reconstruct"] is True
    assert about["samples"] == [f"{n}_{n}.png" for n in range(10)]
    images, labels = sample_images("mnist")
    files = [served.b64(served.png(image[..., 0])) for image in images[:40]]
    body = {"signature_name": "serving_bytes", "instances": files}
    answers = ask(port, "v1/models/mnist:predict", body)["predictions"]
    found = np.array([int(answer["class_names"]) for answer in answers])
    assert np.mean(found == labels[:40]) > 0.95
    assert list(tmp_path.iterdir()) == []


def test_one_s_own_export_goes_first(shipped, started, exported, tmp_path):
    shutil.copytree(exported / "1", tmp_path / "exported" / "encapnet" / "1")
    lines, _ = started(tmp_path, shipped[1])
    assert lines[0].startswith("serving encapnet version 1 at")
    shutil.copytree(exported / "1", tmp_path / "mnist" / "3")
    lines, _ = started(tmp_path, shipped[1], "--model=mnist", "--name=mine")
    assert lines[0].startswith("serving mine version 3 at")


def test_it_is_exported_once_for_each_content(shipped, capsys, tmp_path):
    folder, cache = shipped
    path = shipped_path("mnist")
    before = capsys.readouterr() and exported_archive(path)
    assert before == folder
    assert folder.is_relative_to(cache / "exported")
    assert folder.name == "mnist"
    assert [each.name for each in folder.iterdir()] == ["1"]
    assert capsys.readouterr().out == ""
    other = tmp_path / "mnist.npz"
    other.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"mnist\.npz is damaged"):
        exported_archive(other)
    assert str(folder) not in capsys.readouterr().out


def test_it_answers_and_draws_as_the_network_does(shipped):
    folder, _ = shipped
    images = sample_images("mnist").images[:10]
    network = encapnet_tf.create_model(
        "encapnet_small", weights="mnist", decoder="conv"
    )
    decoder = network.get_layer("decoder")
    both = keras.Model(network.inputs, [decoder.output, network.output])
    seen = one_view(images / np.float32(255), "mild")
    capsules, scores = both.predict_on_batch(seen)
    answer = served.offline(folder / "1", images=images)
    np.testing.assert_allclose(answer["scores"], scores, atol=1e-5)
    drawn = served.offline(folder / "1", "reconstruct", capsules=capsules)
    np.testing.assert_allclose(
        drawn["images"], decoder.reconstruct(tf.constant(capsules)), atol=1e-5
    )
    card = (folder / "1" / CARD).read_text()
    assert "- licence: Apache-2.0" in card


def test_a_cache_that_cannot_be_written_is_refused(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENCAPNET_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match="Cannot write to.*ENCAPNET_CACHE names"):
        exported_archive(shipped_path("mnist"))


def files_of(images):
    return [served.png(image) for image in images]


def test_how_samples_are_drawn_is_read_off_them():
    digits = sample_images("mnist").images[..., 0]
    light = style_of(files_of(digits))
    assert light == {"paper": 0, "ink": 255, "size": 20 / 28}
    dark = style_of(files_of(255 - digits))
    assert dark == {"paper": 255, "ink": 0, "size": 20 / 28}


@pytest.mark.parametrize("kind", ["none", "noise", "blank", "colours"])
def test_what_is_not_drawn_has_no_style(kind):
    noise = np.random.default_rng(0).integers(0, 256, (3, 28, 28), np.uint8)
    files = {
        "none": [],
        "noise": files_of(noise),
        "blank": files_of(np.zeros_like(noise)),
        "colours": files_of(sample_images("house_numbers").images),
    }[kind]
    assert style_of(files) is None


def test_a_sample_is_its_own_image_back(shipped):
    """As it lies in the version, it is what the archive has."""
    samples = sorted((shipped[0] / "1/assets.extra/samples").iterdir())
    images, labels = sample_images("mnist")
    for path in samples:
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            pixels = np.asarray(image)
        alike = (images[..., 0] == pixels).all(axis=(1, 2))
        assert labels[alike] == [int(path.stem[0])]
