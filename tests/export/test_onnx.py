"""ONNX: what is in the file, and who can run it."""

import subprocess
import sys
import textwrap

import numpy as np
import onnx
import pytest
from absl import flags

from export.opened import open_model
from export.predict import __main__ as program
from export.version.from_run import export_run


def test_the_file_has_the_names_and_any_batch(exported):
    model = onnx.load(exported.folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    found = {
        value.name: (
            onnx.helper.tensor_dtype_to_np_dtype(
                value.type.tensor_type.elem_type
            ),
            [
                side.dim_param or side.dim_value
                for side in value.type.tensor_type.shape.dim
            ],
        )
        for value in (*model.graph.input, *model.graph.output)
    }
    assert found == {
        "images": (np.uint8, ["batch", 32, 32, 3]),
        "scores": (np.float32, ["batch", 3]),
        "class_ids": (np.int32, ["batch"]),
        "capsules": (np.float32, ["batch", 3, 4]),
    }


def test_it_has_standard_operations_only_and_nothing_that_trains(exported):
    path = exported.folder / "model.onnx"
    model = onnx.load(path)
    assert 15 in {n.version for n in model.opset_import if n.domain == ""}
    graph = model.graph
    assert {node.domain for node in graph.node} == {""}
    kinds = {node.op_type for node in graph.node}
    assert "Conv" in kinds
    assert not kinds & {"BatchNormalization", "ConvTranspose"}
    for word in ("agreement", "generator", "extractor", "sinkhorn"):
        assert word.encode() not in path.read_bytes().lower()


@pytest.mark.slow
def test_it_answers_with_its_runtime_and_numpy_alone(exported, tmp_path):
    code = f"""
        import sys
        for name in ("tensorflow", "keras", "tf2onnx", "encapnet_tf",
                     "trainers", "export", "PIL", "absl"):
            sys.modules[name] = None  # an import of it fails
        import numpy as np
        import onnxruntime
        model = onnxruntime.InferenceSession(
            {str(exported.folder / "model.onnx")!r}
        )
        images = np.zeros((2, 32, 32, 3), np.uint8)
        scores, ids = model.run(["scores", "class_ids"], {{"images": images}})
        assert scores.shape == (2, 3)
        assert ids.tolist() == scores.argmax(axis=1).tolist()
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_file_of_another_project_is_refused(tmp_path):
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])
        for name in ("x", "y")
    ]
    relu = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([relu], "g", *([v] for v in values))
    opset = onnx.helper.make_opsetid("", 15)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(ValueError, match="not written by.*Received: it has x"):
        open_model(tmp_path / "other.onnx")


@pytest.mark.parametrize("missing", ["tf2onnx", "onnxruntime"])
def test_what_is_not_installed_is_asked_for(
    trained, tmp_path, monkeypatch, missing
):
    monkeypatch.setitem(sys.modules, missing, None)
    refusal = rf"without {missing}. Try `pip install '.\[onnx\]'`"
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=refusal):
        export_run(str(trained.path), str(out), formats=("onnx",))
    assert not out.exists()


def test_predict_asks_for_the_runtime_before_tensorflow(tmp_path, monkeypatch):
    def start():
        pytest.fail("TensorFlow was started.")

    path = tmp_path / "model.onnx"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(program, "start_tensorflow", start)
    values = flags.FlagValues()
    program.define(values)
    values(["predict", f"--model={path}"])
    with pytest.raises(ValueError, match="without onnxruntime. Try"):
        program.main(["a.png"], values)
    with pytest.raises(ValueError, match="without onnxruntime. Try"):
        open_model(path)
