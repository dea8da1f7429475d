import dataclasses
import re
import sys

import pytest
from absl import flags

from tests.trainers.benchmark.conftest import measurement, results, run
from trainers.benchmark import measuring, tasks
from trainers.benchmark.measurer import Measurer
from trainers.benchmark.results import (
    read_results,
    write_results,
)
from trainers.cost.machine_memory import Memory


def answering(*seconds, failed=()):
    """Stands in for the process that measures."""

    def ask(task):
        if task["part"] == "products":
            return {"products": {64: [0.5]}}
        if task["part"] in failed:
            return {"failed": "died", "reason": "killed (SIGKILL)"}
        found = measurement(
            "none", "read", part=task["part"], seconds=seconds, images=8
        )
        return {"measurements": [dataclasses.asdict(found)]}

    return ask


@pytest.mark.parametrize(
    ("seconds", "code", "word"),
    [(1.0, 0, "1 of 1 the same"), (2.0, 1, "slower"), (0.5, 0, "faster")],
)
def test_only_what_is_slower_ends_with_exit_code_1(
    tmp_path, capsys, seconds, code, word
):
    stored = tmp_path / "stored.json"
    found = measurement("none", "read", part="pipeline", images=8)
    write_results(results(found), stored)
    answer = run(
        "--parts=pipeline", f"--compare={stored}", f"--out={tmp_path}",
        ask=answering(seconds),
    )  # fmt: skip
    assert answer == code
    assert word in capsys.readouterr().out


def test_a_failure_is_named_and_the_rest_is_measured(tmp_path, capsys):
    code = run(
        "--parts=pipeline,solver", f"--out={tmp_path}",
        ask=answering(1.0, failed=["pipeline"]),
    )  # fmt: skip
    assert code == 1
    error = capsys.readouterr().err
    assert error == "error: Not measured: pipeline. killed (SIGKILL)\n"
    (found,) = read_results(tmp_path / "benchmark.json").measurements
    assert found.part == "solver"


def test_a_stopped_benchmark_keeps_what_it_has(tmp_path, capsys):
    answer = answering(1.0)

    def ask(task):
        if task["part"] == "solver":
            raise KeyboardInterrupt
        return answer(task)

    assert run("--parts=pipeline,solver", f"--out={tmp_path}", ask=ask) == 130
    assert f"Stopped; what was measured is in {tmp_path}" in (
        capsys.readouterr().out
    )
    (found,) = read_results(tmp_path / "benchmark.json").measurements
    assert found.part == "pipeline"


def test_without_a_matrix_product_nothing_is_measured(tmp_path):
    ask = answering(1.0, failed=["pipeline"])
    with pytest.raises(ValueError, match=r"Received: killed \(SIGKILL\)"):
        run(
            "--parts=pipeline", f"--out={tmp_path}",
            ask=lambda task: ask(task | {"part": "pipeline"}),
        )  # fmt: skip


def test_a_process_that_dies_is_a_failure(monkeypatch):
    dying = (sys.executable, "-c", "raise SystemExit(3)")
    monkeypatch.setattr(measuring, "COMMAND", dying)
    answer = measuring.ask_process({"part": "solver"})
    assert answer["reason"] == "its process ended with code 3"


def test_trouble_while_measuring_is_an_answer():
    answer = Measurer().answer({"part": "solver", "batches": [0]})
    assert answer["failed"] == "TypeError"
    assert "seconds" in answer["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "{}",
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [1]}, "measurements": [{"part": "solver"}]}',
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [-1]}, "measurements": []}',
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [1]}, "measurements": [{"part": "solver",'
        ' "seconds": [1, 2], "product_seconds": [1]}]}',
    ],
)
def test_a_damaged_file_is_refused_before_anything_is_measured(tmp_path, text):
    path = tmp_path / "stored.json"
    path.write_text(text)
    message = f"benchmark.json of an earlier run. Received: {path}"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(f"--compare={path}", ask=pytest.fail)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--compare=nowhere.json", "Received: nowhere.json (FileNotFound"),
        ("--parts=speed", "Received: parts='speed'"),
        ("--parts=", "Received: parts=[]"),
        ("--variants=", "variants=[]"),
        ("--variants=encapnet_smal", "Did you mean 'encapnet_small'?"),
        ("--batch=0", "batch=0"),
        ("--seconds=-1", "seconds=-1"),
        ("parts", "Received: parts"),
    ],
)
def test_mistakes_are_refused_by_name(tmp_path, flag, message):
    with pytest.raises((ValueError, flags.Error), match=re.escape(message)):
        run(flag, f"--out={tmp_path}", ask=pytest.fail)


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        ("--variants=cnn_same_shape", "cnn_same_shape at batch 64"),
        ("--parts=growth", "encapnet_small at batch 1024"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(
    tmp_path, monkeypatch, flag, what
):
    little = Memory(2**20, "on this machine")
    monkeypatch.setattr(tasks, "available_memory", lambda: little)
    with pytest.raises(ValueError, match=f"Received: {what}. It does not fit"):
        run(flag, f"--out={tmp_path / 'new'}", ask=pytest.fail)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_each_task_is_measured_in_a_process_of_its_own(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(tasks, "_PRODUCTS", (64, 128))
    code = run(
        "--variants=encapnet_tiny", "--parts=variants", "--batch=8",
        "--seconds=0.1", f"--out={tmp_path}",
    )  # fmt: skip
    output, error = capfd.readouterr()
    assert (code, error) == (0, "")
    assert re.search(r"encapnet_tiny +train +8 ", output)
    train, _ = read_results(tmp_path / "benchmark.json").measurements
    # So small a network takes little beside the graph of its step.
    assert 0.4 < train.memory_bytes / train.counted_bytes < 2.5
