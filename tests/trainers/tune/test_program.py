"""The search as a user meets it: real processes, kill −9, several workers."""

import contextlib
import csv
import json
import os
import signal
import time

import pytest
from absl import flags

from tests import forked
from tests.trainers.test_fit import rows as metrics
from trainers import launch

LEAST = [
    "--variant=encapnet_tiny",
    "--override=stem=((4, 2),),num_capsules=2,type2_layers=(0,),strides=(2,)",
    "--override=aide=none,agreement_options={'num_iterations':2}",
    "--agreement=one",
    "--batch_size=24",
    "--epochs=1",
]


def results(folder):
    """When each run ended, by its place."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in folder.glob("trials/*/*/result.json")
    }


def kill_after(count, program, folder, pick):
    """Waits for so many results, and kills what `pick` names."""
    deadline = time.monotonic() + 600
    while len(results(folder)) < count:
        assert program.poll() is None, program.finish(1).stderr
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(pick(), signal.SIGKILL)
    return program.finish(timeout=90)


def is_running(pid):
    """Whether there is such a process; one that waits for its parent is not."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def ongoing_trials(folder):
    return json.loads((folder / "oracle.json").read_text())["ongoing_trials"]


def rows(folder):
    with (folder / "trials.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_kill_nine_repeats_no_trial_and_leaves_no_orphan(npz_path, tmp_path):
    folder = tmp_path / "tune"
    command = [
        "trainers.tune", *LEAST, f"--dataset=npz:{npz_path}",
        f"--tune_dir={folder}", "--max_trials=4", "--tuner=grid",
        "--search=agreement_weight",
    ]  # fmt: skip
    search, trainers = forked.Program(*command), []

    def note_trainers():
        trainers.extend(search.children())
        return search.pid

    killed = kill_after(2, search, folder, note_trainers)
    assert killed.returncode == -signal.SIGKILL
    before = results(folder)
    (trainer,) = trainers
    deadline = time.monotonic() + 30
    while is_running(trainer):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    done = forked.run(*command)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    after = results(folder)
    assert {place: after[place] for place in before} == before
    assert len(after) == 4
    weights = [float(row["agreement_weight"]) for row in rows(folder)]
    assert weights == [0.1, 1, 10, 100]
    picture = (folder / "landscape.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


@pytest.mark.slow
def test_twelve_trials_by_two_workers_one_of_them_killed(npz_path, tmp_path):
    """None lost, none doubled; then fit repeats the best to the last digit."""
    folder = tmp_path / "tune"
    command = [
        "trainers.launch", "--tuner_workers=2", "--", *LEAST,
        f"--tune_dir={folder}", "--max_trials=12", "--tuner=random",
        f"--dataset=npz:{npz_path}",
    ]  # fmt: skip
    launcher = forked.Program(*command)

    def second_worker():
        # Killed in the middle of a trial, not before its first one.
        while set(ongoing_trials(folder)) != {"worker0", "worker1"}:
            assert launcher.poll() is None
            time.sleep(0.05)
        _, _, worker = launcher.children()
        return worker

    killed = kill_after(4, launcher, folder, second_worker)
    assert killed.returncode == 1
    assert "Worker 2 ended with code -9" in killed.stderr
    assert set(ongoing_trials(folder)) == {"worker0", "worker1"}
    before = results(folder)
    assert 4 <= len(before) < 12

    done = forked.run(*command)
    assert done.returncode == 0, done.stderr
    after = results(folder)
    assert {place: after[place] for place in before} == before
    table = rows(folder)
    assert [int(row["trial"]) for row in table] == list(range(12))
    assert {row["status"] for row in table} == {"completed"}
    assert len(after) == 12
    assert len({row["agreement_weight"] for row in table}) == 12

    best = min(table, key=lambda row: float(row["error"]))
    fit = forked.run(
        "trainers.fit", f"--config={folder / 'best.json'}",
        f"--run_dir={tmp_path / 'run'}",
    )  # fmt: skip
    assert fit.returncode == 0, fit.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["validation_error"] == float(best["error"])
    trial = folder / "trials" / best["trial"] / "seed0"
    assert metrics(tmp_path / "run") == metrics(trial)


@pytest.mark.slow
def test_ctrl_c_saves_the_trial_under_way(npz_path, tmp_path):
    folder = tmp_path / "tune"
    process = forked.Program(
        "trainers.tune", *LEAST, f"--dataset=npz:{npz_path}",
        f"--tune_dir={folder}", "--epochs=2000",
    )  # fmt: skip
    metrics = folder / "trials" / "00" / "seed0" / "metrics.csv"
    deadline = time.monotonic() + 600
    while not metrics.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    done = process.finish(timeout=60)
    assert done.returncode == 130
    assert "Stopped; the same command goes on" in done.stdout
    assert list(folder.glob("trials/00/seed0/checkpoints/*.npz"))
    assert not results(folder)


@pytest.mark.parametrize("flag", ["tuner_workers", "workers"])
def test_workers_without_a_folder_are_refused(flag):
    values = flags.FlagValues()
    launch.define(values)
    values(["launch", f"--{flag}=2"])
    folder = {"tuner_workers": "tune_dir", "workers": "run_dir"}[flag]
    with pytest.raises(ValueError, match=f"one --{folder}. Received: --x"):
        launch.main(["--x=1"], values)


class Ended:
    def __init__(self, returncode, words="error: `epochs` is out."):
        self.returncode, self.words = returncode, words

    def last_words(self):
        return self.words


def test_the_launcher_says_only_what_nobody_said(capsys):
    """The first worker's words were passed on, the others' were not."""
    stopped, refused, killed = Ended(0), Ended(2), Ended(-9, "")
    for workers, worker, tuning, code, message in (
        ([refused, refused], refused, False, 2, ""),
        ([stopped, refused], refused, True, 2, "error: `epochs` is out.\n"),
        ([Ended(1), stopped], None, True, 1, ""),
        ([stopped, killed], killed, True, 1, "Worker 1 ended with code -9"),
        ([stopped, killed], killed, False, 1, "it goes on from the last"),
        ([Ended(130), Ended(130)], None, False, 130, ""),
    ):
        worker = worker or workers[0]
        assert launch._blame(workers, worker, tuning) == code
        said = capsys.readouterr().err
        assert message in said
        assert bool(message) == bool(said)
