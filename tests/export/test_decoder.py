"""The decoder: left behind unless asked for, and then as good as Keras'."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import strip
from export import opened_onnx
from export.choices import CARD, DEFAULT, FORMATS, QUANTIZATIONS
from export.graph.inference import inference, reconstruction
from export.graph.servable import Servable
from export.opened import OpenedRun, Prediction, open_model
from export.opened_onnx import OpenedOnnx
from export.progress import StageProgress
from export.version import from_run
from export.version.from_run import export_run
from export.version.parity import Drawn, check_parity
from export.version.report import report
from export.version.stages import Wanted, stages
from tests.export.conftest import untrained_run
from tests.trainers.conftest import LEAST
from trainers.files import write_json

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory, npz_path):
    """A finished run, but for its training."""
    path = tmp_path_factory.mktemp("runs") / "drawn"
    run = untrained_run(path, "encapnet_tiny", 3, **LEAST | {"decoder": "conv"})
    path.mkdir()
    recipe = {"variant": "encapnet_tiny", "override": run.recipe.override}
    run.folder.config.write_text(
        json.dumps(recipe | {"dataset": f"npz:{npz_path}"})
    )
    run.model.save(run.folder.model)
    errors = {"test_error": 0.5, "test_error_interval": [0.4, 0.6]}
    names = {"test_images": 60, "class_names": ["0", "1", "2"]}
    write_json(run.folder.summary, errors | names)
    return run


@pytest.fixture(scope="module")
def exported_with_decoder(run, tmp_path_factory):
    out = str(tmp_path_factory.mktemp("exported") / "drawn")
    return export_run(
        str(run.folder.path), out, formats=FORMATS, quantize=QUANTIZATIONS,
        with_decoder=True,
    )  # fmt: skip


def graph_of(run):
    """The graph that classifies uint8 images, as it is exported."""
    servable = Servable(inference(run), (32, 32, 3), run.class_names)
    function = servable.without_text[DEFAULT]
    return function, function.get_concrete_function().graph


def all_nodes(graph):
    definition = graph.as_graph_def()
    nodes = list(definition.node)
    for function in definition.library.function:
        nodes += function.node_def
    return nodes


def test_without_it_the_export_is_that_of_the_stripped_network(run):
    """The same numbers, operations and constants, bit for bit."""
    ours, graph = graph_of(run)
    model = untrained_run(run.folder.path, "encapnet_tiny", 3, **LEAST).model
    model.set_weights(strip(run.model).get_weights())
    theirs, plain = graph_of(dataclasses.replace(run, model=model))
    for name, value in ours(tf.constant(IMAGES)).items():
        np.testing.assert_array_equal(value, theirs(IMAGES)[name])
    assert [n.op for n in all_nodes(graph)] == [n.op for n in all_nodes(plain)]
    assert not [n.name for n in all_nodes(graph) if "decoder" in n.name]
    sizes = [
        np.prod(weight.shape)
        for weight in run.model.get_layer("decoder").weights
    ]
    constants = {
        tf.make_ndarray(node.attr["value"].tensor).size
        for node in all_nodes(graph)
        if node.op == "Const"
    }
    assert max(sizes) not in constants


@pytest.mark.slow
def test_every_format_draws_as_keras_does(run, exported_with_decoder):
    capsules = OpenedRun(run)(IMAGES).capsules
    longest = np.linalg.norm(capsules, axis=-1).argmax(axis=-1)
    decoder = run.model.get_layer("decoder")
    expected = decoder.reconstruct(capsules, longest).numpy()
    folder = exported_with_decoder.folder
    for path, tolerance in (
        (folder, 1e-6),
        (folder / "model.tflite", 1e-6),
        (folder / "model_float16.tflite", 1e-2),
        (folder / "model_int8.tflite", 0.25),
        (folder / "model.onnx", 1e-6),
    ):
        drawn = open_model(path).reconstruct(capsules)
        np.testing.assert_allclose(drawn, expected, atol=tolerance)
        one = open_model(path).reconstruct(capsules[:1])
        np.testing.assert_allclose(one, expected[:1], atol=tolerance)


@pytest.mark.slow
def test_the_card_and_the_report_tell_of_it(exported_with_decoder):
    for each in exported_with_decoder.written:
        assert 0 <= each.parity.drawn_difference < 0.25
    assert "of a drawn pixel" in report(exported_with_decoder)
    card = (exported_with_decoder.folder / CARD).read_text()
    assert "`reconstruct` takes `capsules`, float32 (B, M, D)" in card
    assert "| of a drawn pixel |" in card
    assert "ONNX has a file, `reconstruct.onnx`" in card


@pytest.mark.slow
def test_an_onnx_file_that_differs_goes_with_its_decoder(
    run, tmp_path, monkeypatch
):
    class Off(OpenedOnnx):
        def reconstruct(self, capsules):
            return super().reconstruct(capsules) + 0.1

    monkeypatch.setattr(opened_onnx, "OpenedOnnx", Off)
    begun = []

    class Recorded(StageProgress):
        def begin(self, stage):
            begun.append(stage)
            super().begin(stage)
            assert self.seconds_left() > 0

    monkeypatch.setattr(from_run, "StageProgress", Recorded)
    export = from_run.export_run(
        str(run.folder.path), str(tmp_path / "out"), with_decoder=True,
        formats=("saved_model", "onnx"),
    )  # fmt: skip
    assert "model.onnx needs a difference of at most" in export.refused[0]
    assert [each.parity.name for each in export.written] == ["saved_model.pb"]
    assert not list(export.folder.glob("*.onnx"))
    wanted = Wanted(True, [], True, 1e-5, None, True)
    assert begun == list(stages(wanted))


def test_a_run_without_a_decoder_has_none_to_give(tmp_path):
    run = untrained_run(tmp_path, "encapnet_tiny", 3, **LEAST)
    with pytest.raises(ValueError, match="--decoder=conv. Received: .*without"):
        reconstruction(run)


@pytest.mark.parametrize(
    ("quantization", "limit"),
    [("none", 1e-5), ("float16", 1e-2), ("int8", 0.25)],
)
def test_a_drawing_that_differs_is_refused(quantization, limit):
    scores = np.eye(2, dtype=np.float32)

    def verdict(difference):
        class Model:
            def __call__(self, images):
                return Prediction(scores, None)

            def reconstruct(self, capsules):
                return np.full((2, 4, 4, 1), difference)

        return check_parity(
            "x", quantization, Model(), np.zeros((2, 4, 4, 1), np.uint8), None,
            scores, drawn=Drawn(np.ones((2, 2, 3)), np.zeros((2, 4, 4, 1))),
        )  # fmt: skip

    assert verdict(0.9 * limit).passes
    assert not verdict(np.nan).passes
    assert not verdict(1.1 * limit).passes
    assert "of a reconstructed pixel" in verdict(1.1 * limit).objection
