"""The process that trains, in this process; the real one has a pipe."""

import dataclasses
import re
import sys

import numpy as np
import pytest

from encapnet_tf.data import Dataset
from tests.trainers.conftest import UNITS
from trainers.runs.child import Child
from trainers.runs.folder import RunFolder, read_result
from trainers.study import trainer
from trainers.training.divergence import Diverged
from trainers.training.loop import Loop


def test_a_network_that_dies_when_built_is_refused(recipe):
    child = Child((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(ValueError, match="memory. Received.*SIGKILL"):
        child.check(recipe())
    child.close()


@pytest.fixture
def answer(recipe, tmp_path):
    def ask(run_dir=None, **fields):
        task = {"recipe": dataclasses.asdict(recipe(**fields))}
        if run_dir:
            task["run_dir"] = str(tmp_path / run_dir)
        return trainer.Trainer().answer(task)

    return ask


@pytest.mark.slow
def test_trains_as_the_loop_does_and_reads_no_test_data(
    answer, recipe, stripes, tmp_path, monkeypatch
):
    blind = Dataset(
        stripes.name, stripes.train, None, stripes.class_names,
        stripes.image_shape, stripes.flip,
    )  # fmt: skip
    monkeypatch.setattr(trainer, "load", lambda *_, **__: blind)
    result = answer("run", epochs=1, **UNITS)
    loop = Loop(recipe(epochs=1, **UNITS), stripes, None, quiet=True)
    loop.run()
    (row,) = loop.state.history
    assert result["validation_error"] == row["val_error"]
    unit = row["module1_agreement_input_loss"]
    assert result["agreement_loss"] == unit
    assert result["validation_images"] == 24
    folder = RunFolder(tmp_path / "run")
    assert read_result(folder) == result
    assert not list(folder.checkpoints.iterdir())


@pytest.mark.slow
def test_a_diverging_run_fails_with_its_reason(answer):
    result = answer("run", learning_rate=1e30, optimizer="sgd")
    assert result["failed"] == "diverged"
    assert re.match("The loss is .* at step .* Culprit", result["reason"])


@pytest.mark.slow
def test_weights_that_are_no_numbers_fail(recipe, stripes):
    """Labels alone could make such a network look good."""
    loop = Loop(recipe(), stripes, None, quiet=True)
    loop.model.weights[0].assign(np.nan * loop.model.weights[0])
    with pytest.raises(Diverged, match="no numbers"):
        trainer.validation_result(loop)


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble", [MemoryError(), RuntimeError("out of memory\nat byte 3")]
)
def test_any_exception_is_a_reason(answer, monkeypatch, trouble):
    def run(loop):
        raise trouble

    monkeypatch.setattr(Loop, "run", run)
    result = answer("run")
    assert result["failed"] == type(trouble).__name__
    first = str(trouble).partition("\n")[0] or "no message"
    assert result["reason"] == f"{type(trouble).__name__}: {first}"


@pytest.mark.slow
def test_a_check_names_what_is_wrong(answer):
    assert answer() == {}
    assert "batch_size=999" in answer(batch_size=999)["refusal"]
    assert "missing" in answer(dataset="npz:missing.npz")["refusal"]
