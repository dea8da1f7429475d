import json
import os
import shutil
import subprocess
import sys
import textwrap
from datetime import UTC, datetime

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from encapnet_tf.data import load, split_validation
from export.opened import OpenedSavedModel, Prediction, open_model
from export.version import writer
from export.version.card_classes import classes_section
from export.version.from_run import export_run
from export.version.parity import check_parity, scores_of
from export.version.samples import Samples
from tests import forked
from trainers.files import write_json
from trainers.recipe import read_recipe
from trainers.runs.finished import load_run
from trainers.runs.folder import RunFolder
from trainers.scoring import error_rate

FILES = ("saved_model.pb", "model.tflite", "model_float16.tflite",
         "model_int8.tflite", "model.onnx")  # fmt: skip
LITE = FILES[1:4]


@pytest.fixture(scope="session")
def test_images(trained):
    data = load(read_recipe(trained.config)["dataset"])
    pairs = list(data.test.examples((32, 32)).as_numpy_iterator())
    images, labels = zip(*pairs, strict=True)
    return np.stack(images), np.array(labels)


def test_all_formats_are_written_and_compared(exported, trained):
    assert exported.folder.name == "1"
    assert [each.parity.name for each in exported.written] == list(FILES)
    assert exported.refused == []
    saved, lite, half, eighth, onnx = exported.written
    assert saved.parity.difference <= 1e-5
    assert lite.parity.difference <= 1e-5
    assert onnx.parity.difference <= 1e-5
    assert 0 < half.parity.difference <= 1e-2
    assert eighth.parity.agreement >= 0.98
    for each in exported.written:
        assert set(each.milliseconds) == {1, 64}
        path = exported.folder / each.parity.name
        assert each.num_bytes >= path.stat().st_size > 1000
    assert half.num_bytes < lite.num_bytes
    labels = (exported.folder / "labels.txt").read_text().splitlines()
    assert labels == list(load_run(trained.path).class_names)


def test_every_format_answers_as_the_run_does(exported, trained, test_images):
    images, labels = test_images
    expected = scores_of(open_model(trained.path), images)
    assert (expected.argmax(axis=1) == labels).mean() > 0.5
    tolerances = dict(zip(FILES, (1e-5, 1e-5, 1e-2, 0.1, 1e-5), strict=True))
    for name, tolerance in tolerances.items():
        path = exported.folder
        path = path if name == FILES[0] else path / name
        found = scores_of(open_model(path), images)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_the_error_that_fit_reports_first_is_that_of_every_format(
    exported, trained, test_images
):
    images, labels = test_images
    summary = json.loads(trained.summary.read_text())
    assert summary["test_images"] == len(labels)
    assert read_recipe(trained.config)["augmentation"] == "mild"
    for name in FILES:
        if "int8" in name:
            continue
        path = exported.folder / (name if name != FILES[0] else "")
        found = error_rate(scores_of(open_model(path), images), labels)
        assert found == summary["test_error"]


def test_the_exported_graph_looks_at_the_centre_of_the_enlarged_image(
    exported, trained, test_images
):
    images, _ = test_images
    model = load_run(trained.path).model
    centre = tf.image.resize(images / 255, (34, 34))[:, 1:33, 1:33]
    found = scores_of(open_model(exported.folder), images)
    np.testing.assert_allclose(found, model(centre), rtol=0, atol=1e-5)
    whole = model(images / 255).numpy()
    assert np.abs(found - whole).max() > 1e-3


def test_nothing_of_the_training_branch_is_exported(exported, trained):
    assert agreement_variables(trained)
    checkpoint = str(exported.folder / "variables" / "variables")
    names = {name for name, _ in tf.train.list_variables(checkpoint)}
    assert names == {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    loaded = tf.saved_model.load(str(exported.folder))
    operations = [
        operation
        for signature in loaded.signatures.values()
        for graph in inner_graphs(signature.graph)
        for operation in graph
    ]
    kinds = {node.op for node in operations}
    assert "Conv2D" in kinds
    assert not kinds & {
        "Conv2DBackpropInput", "VarHandleOp", "ReadVariableOp"
    }  # fmt: skip
    for word in ("agreement", "generator", "extractor", "sinkhorn"):
        assert not [n for n in operations if word in n.name.lower()]
        assert word.encode() not in (
            (exported.folder / "model.tflite").read_bytes().lower()
        )


def inner_graphs(graph):
    definition = graph.as_graph_def()
    yield definition.node
    for function in definition.library.function:
        yield function.node_def


def agreement_variables(trained):
    model = load_run(trained.path).model
    return [v.path for v in model.variables if "agreement" in v.path]


def test_lite_files_have_builtin_operations_only(exported):
    for name in LITE:
        model = open_model(exported.folder / name)
        details = model._interpreter._get_ops_details()
        names = {each["op_name"] for each in details} - {"DELEGATE"}
        assert not [n for n in names if "Flex" in n or "CUSTOM" in n.upper()]
        assert "TRANSPOSE_CONV" not in names
        assert "CONV_2D" in names


def test_the_card_says_what_it_is(exported, trained):
    card = (exported.folder / "README.md").read_text()
    for text in ("encapnet_tiny", "test error", "parameters: ",
                 "multiply-adds", "| `model_int8.tflite` |", "Intended use",
                 "serving_bytes", "ms at batch 64"):  # fmt: skip
        assert text in card
    today = datetime.now(UTC).date()
    assert f"- version: 1, exported {today}" in card
    assert "- licence: MIT" in card
    data = load(read_recipe(trained.config)["dataset"])
    # Validation has its tenth.
    train, _ = split_validation(data.train, 0.1)
    counts = np.bincount(train.labels)
    assert f"Trained on {counts.sum():,} images, {counts[0]:,} of eac" in card
    assert "until it just covers 32×32 pixels (height×width)" in card
    assert "ImageOps.exif_transpose" in card
    assert "`python -m trainers.fit --config=config.json` trains it" in card


def test_the_card_counts_the_errors_of_each_class(
    exported, trained, test_images
):
    images, labels = test_images
    card = (exported.folder / "README.md").read_text()
    found = scores_of(open_model(trained.path), images).argmax(axis=1)
    rows = [line.split(" | ") for line in card.splitlines()]
    rows = {row[0]: row for row in rows if len(row) == 5}
    for label in range(3):
        of_class = found[labels == label]
        _, trained_on, tested_on, error, _ = rows[f"| {label}"]
        assert int(trained_on.replace(",", "")) > 0
        assert int(tested_on) == len(of_class)
        assert error == f"{(of_class != label).mean():.1%}"


def test_unlike_numbers_of_images_are_named():
    names = ("cat", "dog", "a|b")
    labels = np.array([0, 1, 1, 2])
    scores = np.eye(3)[[0, 1, 0, 2]]
    counts = np.array([900, 500, 100])
    samples = Samples(None, labels, None, "", counts)
    text = classes_section(samples, scores, names)
    assert "Trained on 1,500 images: from 100 of a|b to 900 of cat." in text
    assert "The classes are unbalanced" in text
    assert "| dog | 500 | 2 | 50.0% | cat (1) |" in text
    assert "| a\\|b | 100 | 1 | 0.0% | – |" in text
    unknown = samples._replace(labels=None, trained_on=None)
    text = classes_section(unknown, scores, names)
    assert text.startswith("Training images: not counted.")


def test_warm_up_requests_are_answered(exported):
    path = exported.folder / "assets.extra" / "tf_serving_warmup_requests"
    loaded = tf.saved_model.load(str(exported.folder))
    asked = []
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        inputs = {
            name: tf.constant(tf.make_ndarray(value))
            for name, value in request.inputs.items()
        }
        name = request.model_spec.signature_name
        asked.append((name, loaded.signatures[name](**inputs)["scores"]))
    assert {name for name, _ in asked} == set(loaded.signatures)
    for _, scores in asked[1:]:
        np.testing.assert_allclose(scores, asked[0][1], atol=1e-5)


def test_samples_show_one_image_of_each_class(exported):
    names = {p.name for p in exported.folder.glob("assets.extra/samples/*")}
    assert names == {"0_0.png", "1_1.png", "2_2.png"}


def run_python(code, **kwargs):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=300, **kwargs,
    )  # fmt: skip


@pytest.mark.slow
def test_saved_model_answers_where_this_project_is_not(exported, tmp_path):
    done = run_python(
        f"""
        import sys
        import tensorflow as tf
        model = tf.saved_model.load({str(exported.folder)!r})
        images = tf.zeros((2, 32, 32, 3), tf.uint8)
        answer = model.signatures["serving_default"](images=images)
        assert answer["scores"].shape == (2, 3)
        ours = ("encapnet_tf", "trainers", "export", "keras")
        assert not [m for m in sys.modules if m.split(".")[0] in ours[:3]]
        """,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_lite_answers_with_litert_and_numpy_alone(exported, tmp_path):
    done = run_python(
        f"""
        import sys
        for name in ("tensorflow", "keras", "encapnet_tf", "trainers",
                     "export", "PIL", "absl"):
            sys.modules[name] = None  # an import of it fails
        import numpy as np
        from ai_edge_litert.interpreter import Interpreter
        model = Interpreter({str(exported.folder / "model.tflite")!r})
        ask = model.get_signature_runner("serving_default")
        answer = ask(images=np.zeros((2, 32, 32, 3), np.uint8))
        assert answer["scores"].shape == (2, 3)
        assert answer["class_ids"].shape == (2,)
        assert answer["capsules"].ndim == 3
        """,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_program_writes_version_after_version(trained, tmp_path):
    flags = (f"--run_dir={trained.path}", f"--out={tmp_path / 'model'}")
    done = forked.run("export", *flags, "--formats=saved_model,onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert "saved_model.pb" in done.stdout
    done = forked.run("export", *flags, "--quantize=none,int8")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(tmp_path / "model" / "2") in done.stdout
    assert sorted(os.listdir(tmp_path / "model")) == ["1", "2"]
    assert not (tmp_path / "model" / "1" / "model.tflite").exists()
    assert (tmp_path / "model" / "2" / "model_int8.tflite").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formats", "limit"), [("saved_model", 60_000), ("tflite", 30_000)]
)
def test_a_full_disk_is_one_line_and_leaves_nothing(
    trained, tmp_path, formats, limit
):
    """A limit on the size of files stops writing as a full disk does."""
    done = forked.run(
        "tests.export.on_a_full_disk", str(limit), f"--run_dir={trained.path}",
        f"--out={tmp_path / 'model'}", f"--formats={formats}",
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_refused(trained, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        export_run(str(trained.path), str(tmp_path / "file" / "model"))


def test_a_run_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: run_dir="):
        export_run(str(tmp_path / "none"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["missing", "cut", "text"])
def test_a_damaged_model_is_refused(run_dir, tmp_path, damage):
    path = RunFolder(run_dir).model
    if damage == "missing":
        path.unlink()
    else:
        content = path.read_bytes()[:1000] if damage == "cut" else b"text"
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.keras"):
        export_run(str(run_dir), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_unknown_choices_are_refused(trained, tmp_path):
    for choice in ({"formats": ("onxx",)}, {"quantize": ("int4",)}):
        with pytest.raises(ValueError, match="Received"):
            export_run(str(trained.path), str(tmp_path / "out"), **choice)
    with pytest.raises(ValueError, match="at least one"):
        export_run(str(trained.path), str(tmp_path / "out"), formats=())


def forget_data(run_dir):
    folder = RunFolder(run_dir)
    recipe = read_recipe(folder.config) | {"dataset": "npz:/gone.npz"}
    folder.config.write_text(json.dumps(recipe))


def test_without_the_data_noise_decides_and_int8_is_refused(run_dir, tmp_path):
    forget_data(run_dir)
    export = export_run(str(run_dir), str(tmp_path / "out"), quantize=("int8",))
    assert "gone.npz" in export.absence
    assert [each.parity.name for each in export.written] == [FILES[0]]
    assert "training images" in export.refused[0]
    assert export.written[0].parity.error is None
    assert not list(export.folder.glob("assets.extra/samples/*"))
    with pytest.raises(ValueError, match="Received"):
        export_run(str(run_dir), str(tmp_path / "out"), dataset="npz:/no.npz")


def test_data_with_other_classes_are_refused(run_dir, tmp_path, npz_path):
    arrays = dict(np.load(npz_path))
    arrays["class_names"] = np.array(["a", "b", "c"])
    other = tmp_path / "other.npz"
    np.savez(other, **arrays)
    with pytest.raises(ValueError, match="classes of the run.*Received"):
        export_run(str(run_dir), str(tmp_path / "out"), dataset=f"npz:{other}")


def test_a_saved_model_that_differs_is_not_written(
    trained, tmp_path, monkeypatch
):
    class Off(OpenedSavedModel):
        def __call__(self, images):
            scores, capsules = super().__call__(images)
            return Prediction(scores + 1e-3, capsules)

    monkeypatch.setattr(writer, "OpenedSavedModel", Off)
    arguments = str(trained.path), str(tmp_path / "out")
    with pytest.raises(ValueError, match="needs a difference of at most 1e-05"):
        export_run(*arguments, formats=("saved_model",))
    assert not (tmp_path / "out").exists()
    export_run(*arguments, formats=("saved_model",), tolerance=1e-2)


def test_nan_and_other_classes_never_pass():
    images = np.zeros((4, 2, 2, 1), np.uint8)
    labels, good = np.arange(4), np.eye(4, dtype=np.float32)

    def verdict(scores, quantization):
        return check_parity(
            "x", quantization, lambda _: Prediction(scores, None), images,
            labels, good,
        )  # fmt: skip

    bad = good.copy()
    bad[0, 1] = np.nan
    for quantization in ("none", "float16", "int8"):
        assert verdict(good, quantization).passes
        assert not verdict(bad, quantization).passes
    turned = verdict(good[:, ::-1], "int8")
    assert not turned.passes
    assert (turned.agreement, turned.error_change) == (0.0, 1.0)
    assert "Received: a difference of 1.0e+00" in turned.objection


def test_a_run_in_mixed_precision_is_exported_in_float32(trained, tmp_path):
    run_dir = tmp_path / "mixed"
    shutil.copytree(trained.path, run_dir)
    folder = RunFolder(run_dir)
    recipe = read_recipe(folder.config) | {"dtype_policy": "mixed_bfloat16"}
    folder.config.write_text(json.dumps(recipe))
    run = load_run(trained.path)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = run.recipe.build(3, (32, 32, 3))
    finally:
        keras.config.set_dtype_policy("float32")
    model.set_weights(run.model.get_weights())
    model.save(folder.model)
    images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    mixed, full = open_model(run_dir)(images), open_model(trained.path)(images)
    np.testing.assert_array_equal(mixed.scores, full.scores)


def test_networks_without_capsules_give_probabilities(tmp_path, npz_path):
    from tests.export.conftest import untrained_run

    run = untrained_run(tmp_path / "r", "cnn_same_shape", 3, stem=((4, 2),))
    assert run.scores == "logits"
    folder = run.folder
    folder.path.mkdir()
    fields = {"variant": "cnn_same_shape", "override": run.recipe.override}
    folder.config.write_text(
        json.dumps(fields | {"dataset": f"npz:{npz_path}"})
    )
    run.model.save(folder.model)
    summary = {
        "class_names": ["0", "1", "2"],
        "test_error": 0.5,
        "test_error_interval": [0.4, 0.6],
        "test_images": 60,
    }
    write_json(folder.summary, summary)
    export = export_run(
        str(folder.path), str(tmp_path / "out"), formats=("saved_model",)
    )
    answer = open_model(export.folder)(np.zeros((2, 32, 32, 3), np.uint8))
    assert answer.capsules is None
    np.testing.assert_allclose(answer.scores.sum(axis=1), 1.0, rtol=1e-5)
