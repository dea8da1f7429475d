"""MLflow and Weights & Biases, with what they keep on this machine."""

import dataclasses
import importlib.util
import json
import shutil
import signal
import struct
import time

import pytest
from absl import flags
from mlflow import MlflowClient
from wandb.proto import wandb_internal_pb2 as protocol

from tests import forked
from tests.trainers.test_fit import LEAST, rows
from trainers import cli
from trainers.runs.child import Child
from trainers.runs.folder import RunFolder
from trainers.study.trainer import Trainer
from trainers.training.logs.trackers import Trackers, opened

ROW = {"epoch": 1, "loss": 0.5, "val_error": 0.25}
BLOCK = 1 << 15
FULL, LAST = 1, 4
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_ERROR_REPORTING": "false"}


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """The environment in which neither needs a server."""
    environment = QUIET | {
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_TRACKING_URI": f"file://{tmp_path / 'mlruns'}",
        "WANDB_MODE": "offline",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


def mlflow_run(run_id):
    """The run and, by name, the steps and values of its metrics."""
    client = MlflowClient()
    run = client.get_run(run_id)
    return run, {
        name: [
            (m.step, m.value) for m in client.get_metric_history(run_id, name)
        ]
        for name in run.data.metrics
    }


def wandb_records(folder, run_id):
    """All records of a run's files, in their order."""
    found = []
    for path in sorted(folder.glob(f"wandb/offline-run-*/run-{run_id}.wandb")):
        records = []
        end = time.monotonic() + 30
        # A process of its own writes it.
        while not any(record.HasField("exit") for record in records):
            assert time.monotonic() < end, f"{path} has no end"
            records = list(map(parsed, log_records(path.read_bytes())))
        found += records
    return found


def parsed(content):
    record = protocol.Record()
    record.ParseFromString(content)
    return record


def log_records(content):
    """Yields what a file in LevelDB's log format holds."""
    place, parts = 7, []  # after W&B's own head
    while place < len(content):
        left = BLOCK - place % BLOCK
        if left < 7:  # no room for a head: the block is filled up
            place += left
            continue
        if place + 7 > len(content):
            return  # half-written so far
        _, size, kind = struct.unpack_from("<IHB", content, place)
        if place + 7 + size > len(content):
            return
        parts.append(content[place + 7 : place + 7 + size])
        place += 7 + size
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts = []


def wandb_rows(records):
    return [
        {item.key or ".".join(item.nested_key): json.loads(item.value_json)
         for item in record.history.item}
        for record in records
        if record.HasField("history")
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_in_the_same_runs(
    npz_path, tmp_path, offline
):
    folder = RunFolder(tmp_path / "run")
    command = [
        "trainers.fit", *LEAST, f"--dataset=npz:{npz_path}", "--epochs=8",
        f"--run_dir={folder.path}", "--log=mlflow,wandb",
    ]  # fmt: skip
    process = forked.Program(*command, **offline)
    for line in process.stdout:
        if line.startswith("epoch 2/8"):
            break
    process.send_signal(signal.SIGINT)
    assert process.finish(timeout=60).returncode == 130
    ids = json.loads(folder.logs.read_text())
    assert mlflow_run(ids["mlflow"])[0].info.status == "KILLED"

    done = forked.run(*command, **offline)
    assert done.returncode == 0, done.stderr
    assert json.loads(folder.logs.read_text()) == ids
    summary = json.loads(folder.summary.read_text())
    errors = [
        (int(row["epoch"]), float(row["val_error"]))
        for row in rows(folder.path)
    ]
    run, metrics = mlflow_run(ids["mlflow"])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == str(folder.path)
    assert run.data.params["learning_rate"] == "0.003"
    assert json.loads(run.data.params["override"])["num_capsules"] == 2
    assert metrics["val_error"] == errors
    assert metrics["test_error"] == [(8, summary["test_error"])]
    files = {file.path for file in MlflowClient().list_artifacts(ids["mlflow"])}
    assert files == {file.name for file in folder.files()}

    records = wandb_records(folder.path, ids["wandb"])
    found = wandb_rows(records)
    assert [(row["epoch"], row["val_error"]) for row in found] == errors
    saved = {f.path for r in records for f in r.files.files}
    assert saved >= files
    config = {
        item.key: json.loads(item.value_json)
        for record in records
        for item in record.run.config.update
    }
    assert config["learning_rate"] == 0.003


def test_what_fails_is_left_behind_and_the_run_goes_on(
    recipe, tmp_path, offline, caplog
):
    folder = RunFolder(tmp_path)
    with opened(["mlflow", "wandb"], recipe(), folder) as trackers:
        trackers.write(ROW)
        shutil.rmtree(tmp_path / "mlruns")
        trackers.write(ROW | {"epoch": 2})
        trackers.write(ROW | {"epoch": 3})
    (warning,) = [r.message for r in caplog.records if r.name == "absl"]
    assert warning.startswith("The run goes on without --log=mlflow: ")
    run_id = json.loads(folder.logs.read_text())["wandb"]
    found = wandb_rows(wandb_records(folder.path, run_id))
    assert [row["epoch"] for row in found] == [1, 2, 3]


def test_what_cannot_start_is_refused(recipe, tmp_path, offline, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing://here")
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match="`--log=mlflow` must.*Received"):
        Trackers(["mlflow"], recipe(), folder)
    assert not folder.logs.exists()


def test_without_logs_nothing_is_written(recipe, tmp_path):
    folder = RunFolder(tmp_path / "run")
    with opened([], recipe(), folder) as trackers:
        trackers.write(ROW)
    assert not folder.path.exists()


def test_a_log_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    values = flags.FlagValues()
    cli.define_log(values)
    values(["fit", "--log=mlflow"])
    message = "`--log=mlflow` needs.*Received: none.*pip install mlflow-skinny"
    with pytest.raises(ValueError, match=message):
        cli.log_from_flags(values)


def test_runs_of_a_study_are_followed_too(recipe, tmp_path, offline):
    folder = RunFolder(tmp_path / "run")
    task = {
        "recipe": dataclasses.asdict(recipe(epochs=2)),
        "run_dir": str(folder.path),
        "log": ["mlflow"],
    }
    result = Trainer().answer(task)
    run_id = json.loads(folder.logs.read_text())["mlflow"]
    run, metrics = mlflow_run(run_id)
    assert run.info.status == "FINISHED"
    assert len(metrics["val_error"]) == 2
    assert metrics["validation_error"] == [(2, result["validation_error"])]


def test_a_study_whose_log_cannot_start_says_so_and_fails_no_run(
    recipe, tmp_path, offline, monkeypatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing://here")
    folder = RunFolder(tmp_path / "run")
    child = Child((), ["mlflow"])
    monkeypatch.setattr(child, "ask", Trainer().answer)
    with pytest.raises(ValueError, match="`--log=mlflow` must.*Received"):
        child.run(recipe(), folder)
    assert not folder.result.exists()


def test_csv_is_written_in_any_case():
    values = flags.FlagValues()
    cli.define_log(values)
    values(["fit", "--log=csv,wandb"])
    assert cli.log_from_flags(values) == ["wandb"]
