import json
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
from absl import flags
from PIL import Image

from encapnet_tf import create_model, layers
from encapnet_tf.data import load
from encapnet_tf.weights import sample_images
from export.opened import open_model
from export.predict import __main__ as program
from tests.conformance import VARIANT_OVERRIDES
from trainers.runs.finished import load_run
from trainers.stored_recipe import read_recipe


@pytest.fixture(scope="module")
def models(trained, exported):
    return {
        "run": trained.path,
        "versions": exported.folder.parent,
        "SavedModel": exported.folder,
        "LiteRT": exported.folder / "model.tflite",
        "ONNX": exported.folder / "model.onnx",
        "Keras": trained.path / "model.keras",
    }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, trained):
    """Test images as files, named after their class."""
    folder = tmp_path_factory.mktemp("pictures")
    data = load(read_recipe(trained.config)["dataset"])
    examples = data.test.examples((32, 32)).take(6).as_numpy_iterator()
    for number, (image, label) in enumerate(examples):
        name = (
            folder / ("deep" if number % 2 else ".") / f"{number}_{label}.png"
        )
        name.parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(name)
    (folder / "notes.txt").write_text("no image")
    return folder


def run(*arguments):
    values = flags.FlagValues()
    program.define(values)
    rest = values(["predict", *map(str, arguments)])
    return program.main(rest[1:], values)


def test_every_kind_of_model_gives_the_same_table(models, pictures, capsys):
    tables = []
    for path in models.values():
        assert run(f"--model={path}", pictures) == 0
        tables.append(capsys.readouterr().out)
    assert len(set(tables)) == 1
    heads, *rows = tables[0].splitlines()
    assert heads.split() == ["image", "class", "score", "2.", "score", "3.",
                             "score"]  # fmt: skip
    assert len(rows) == 6
    files = sorted(pictures.rglob("*.png"))
    assert [row.split()[0] for row in rows] == [str(f) for f in files]


def test_a_shipped_network_is_asked_by_its_name(tmp_path, capsys):
    images, labels = sample_images("mnist")
    for number in range(8):
        name = tmp_path / f"{number}_{labels[number]}.png"
        Image.fromarray(images[number, ..., 0]).save(name)
    assert run("--model=mnist", tmp_path) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    for row in rows:
        name, found, *_ = row.split()
        assert name.endswith(f"_{found}.png")


def test_json_has_one_object_per_image(models, pictures, capsys):
    file = next(pictures.glob("*.png"))
    assert run(f"--model={models['versions']}", "--json", "--top=2", file) == 0
    found = json.loads(capsys.readouterr().out)
    image = np.asarray(Image.open(file))[None]
    scores = open_model(models["SavedModel"])(image).scores[0]
    assert found["image"] == str(file)
    assert found["class"] == str(scores.argmax())
    assert found["score"] == pytest.approx(scores.max(), abs=1e-6)
    assert len(found["best"]) == 2


def test_class_capsules_are_saved_as_features(models, pictures, tmp_path):
    path = tmp_path / "features.npz"
    assert run(f"--model={models['run']}", f"--capsules={path}", pictures) == 0
    saved = np.load(path)
    lengths = np.linalg.norm(saved["capsules"], axis=-1)
    np.testing.assert_allclose(lengths, saved["scores"], atol=1e-5)
    assert len(saved["images"]) == 6
    assert saved["class_names"].tolist() == ["0", "1", "2"]


def test_a_broken_image_is_one_line_and_the_rest_go_on(
    models, pictures, tmp_path, capsys
):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    good = next(pictures.glob("*.png"))
    (tmp_path / "empty").mkdir()
    code = run(
        f"--model={models['LiteRT']}", bad, good, "gone.png", tmp_path / "empty"
    )
    printed = capsys.readouterr()
    assert code == 1
    assert str(good) in printed.out
    assert len(printed.out.splitlines()) == 2
    lines = sorted(printed.err.splitlines())
    assert len(lines) == 3
    assert all(line.startswith("error: ") for line in lines)
    for line, part in zip(lines, ("bad.png", "gone.png", "empty"), strict=True):
        assert part in line


def test_photographs_of_any_size_and_kind_are_taken(models, tmp_path):
    grey = Image.fromarray(np.arange(90 * 61).reshape(90, 61).astype(np.uint8))
    grey.save(tmp_path / "a.jpg")
    grey.convert("RGBA").save(tmp_path / "b.png")
    assert run(f"--model={models['LiteRT']}", tmp_path) == 0


def test_what_is_no_model_is_refused(tmp_path, models):
    (tmp_path / "model.tflite").write_bytes(b"no model")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    broken = tmp_path / "saved"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"no model")
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ValueError, match="`model` must be.*Received"):
            open_model(path)
    for path in (tmp_path / "model.tflite", tmp_path / "model.onnx", broken):
        with pytest.raises(ValueError, match="is damaged.*Received"):
            open_model(path)
    with pytest.raises(ValueError, match="Received: none"):
        run(f"--model={models['run']}")


def test_a_keras_file_away_from_its_run_has_numbers_for_names(
    trained, tmp_path
):
    path = shutil.copy(trained.path / "model.keras", tmp_path / "mine.keras")
    model = open_model(path)
    assert model.class_names == ("0", "1", "2")
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    assert open_model(path).class_names == ("a", "b", "c")
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    run = load_run(trained.path)
    np.testing.assert_allclose(
        model(images).scores, run.model(images / 255.0), atol=1e-6
    )
    (tmp_path / "bad.keras").write_bytes(b"no model")
    with pytest.raises(ValueError, match="bad.keras is damaged.*Received"):
        open_model(tmp_path / "bad.keras")


def test_a_network_without_capsules_away_from_its_run_gives_probabilities(
    tmp_path, capsys
):
    model = create_model(
        "cnn_same_shape", 3, **VARIANT_OVERRIDES["cnn_same_shape"]
    )
    model.save(tmp_path / "mine.keras")
    images = np.zeros((2, *model.input_shape[1:]), np.uint8)
    answer = open_model(tmp_path / "mine.keras")(images)
    assert answer.capsules is None
    logits = model(images / np.float32(255))
    np.testing.assert_allclose(
        answer.scores, keras.ops.softmax(logits), atol=1e-6
    )
    Image.fromarray(images[0]).save(tmp_path / "a.png")
    assert run(f"--model={tmp_path / 'mine.keras'}", tmp_path / "a.png") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_class_capsules_are_found_under_any_name(tmp_path):
    inputs = keras.Input((8, 8, 4))
    capsules = layers.CapFC(3, 2, name="mine")(inputs)
    model = keras.Model(inputs, layers.Lengths()(capsules))
    model.save(tmp_path / "mine.keras")
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 4), np.uint8)
    answer = open_model(tmp_path / "mine.keras")(images)
    np.testing.assert_allclose(
        answer.scores, model(images / np.float32(255)), atol=1e-6
    )
    np.testing.assert_allclose(
        np.linalg.norm(answer.capsules, axis=-1), answer.scores, atol=1e-6
    )


def test_labels_that_do_not_fit_are_refused(models, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(models["LiteRT"].read_bytes())
    assert open_model(path).class_names == ("0", "1", "2")
    (tmp_path / "labels.txt").write_text("only\ntwo\n")
    with pytest.raises(ValueError, match="3 classes.*Received: 2 lines"):
        open_model(path)


@pytest.mark.slow
def test_program_runs_from_the_shell(models, pictures):
    done = subprocess.run(
        [sys.executable, "-m", "export.predict", f"--model={models['LiteRT']}",
         str(pictures)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 7
