import json
import os

import pytest
from absl import flags

from trainers.files import write_json
from trainers.recipe import make_recipe
from trainers.runs.__main__ import define, main
from trainers.runs.folder import RunFolder
from trainers.runs.listing import list_runs

SUMMARY = {
    "test_error": 0.013,
    "test_error_interval": [0.0099, 0.017],
    "validation_error": 0.02,
    "epochs": 4,
    "train_seconds": 204.0,
}


def begin(path, changed, epochs=0, **fields):
    """A run that has some epochs behind it, last touched at some time."""
    folder = RunFolder(path)
    make_recipe({"dataset": "svhn", "epochs": 9} | fields).save(folder.config)
    if epochs:
        folder.write_metrics(
            [
                {"epoch": n, "val_error": 0.5 / n, "seconds": 30.0}
                for n in range(1, epochs + 1)
            ]
        )
    for file in folder.path.iterdir():
        os.utime(file, (changed, changed))
    return folder


@pytest.fixture
def root(tmp_path):
    """A run of each kind, a search, damaged files and what is no run."""
    runs = tmp_path / "runs"
    finished = begin(runs / "finished", 1_000, 4)
    write_json(finished.summary, SUMMARY)
    os.utime(finished.summary, (5_000, 5_000))
    begin(runs / "deep" / "stopped", 3_000, 2, variant="encapnet_tiny")
    begin(runs / "begun", 2_000)
    failed = begin(runs / "failed", 4_000, 1)
    write_json(failed.result, {"failed": "diverged", "reason": "The loss …"})
    os.utime(failed.result, (4_000, 4_000))
    search = runs / "search"
    write_json(search / "search.json", {})
    for trial, error in (("0", 0.3), ("1", 0.1)):
        run = begin(search / "trials" / trial / "seed0", 2_500, 1)
        result = {"validation_error": error, "epochs": 3, "seconds": 60.0}
        write_json(run.result, result)
        os.utime(run.result, (2_500, 2_500))
    begin(search / "trials" / "2" / "seed0", 2_600, 1)
    (runs / "latest").symlink_to("finished")
    (runs / "benchmark").mkdir()
    write_json(runs / "benchmark" / "benchmark.json", {})
    return runs


@pytest.fixture
def listed(capsys):
    """What the program prints for some arguments: lines, warnings."""

    def run(*arguments):
        values = flags.FlagValues()
        define(values)
        assert main(values(["runs", *map(str, arguments)])[1:], values) == 0
        said = capsys.readouterr()
        return said.out.splitlines(), said.err.splitlines()

    return run


def folders(lines, root):
    return [line.split()[0].removeprefix(f"{root}/") for line in lines[1:]]


def test_each_run_has_a_line_the_newest_first(root, listed):
    with RunFolder(root / "begun").locked():
        lines, warnings = listed(root)
    assert warnings == []
    assert folders(lines, root) == [
        "finished", "failed", "deep/stopped", "search", "begun",
    ]  # fmt: skip
    words = [line.split() for line in lines[1:]]
    finished, failed, stopped, search, begun = words
    assert finished[1:-2] == [
        "encapnet_small", "svhn", "4", "finished", "1.30%", "(0.99%", "to",
        "1.70%)", "2.00%", "3:24",
    ]  # fmt: skip
    assert failed[3:-2] == ["1/9", "failed", "–", "50.00%", "0:30"]
    assert stopped[1] == "encapnet_tiny"
    assert stopped[3:-2] == ["2/9", "stopped", "–", "25.00%", "1:00"]
    assert begun[3:-2] == ["0/9", "running", "–", "–", "–"]
    assert " ".join(search[3:-2]) == "– 2 finished, 1 stopped – 10.00% 2:30"


def test_runs_of_a_search_stand_alone_on_request(root, listed):
    names = {f"search/trials/{trial}/seed0" for trial in range(3)}
    assert names < set(folders(listed(root, "--all")[0], root))
    assert set(folders(listed(root / "search")[0], root)) == names


def test_the_order_may_be_another_and_what_is_unknown_comes_last(root, listed):
    lines, _ = listed(root, "--sort=validation_error")
    assert folders(lines, root) == [
        "finished", "search", "deep/stopped", "failed", "begun",
    ]  # fmt: skip
    lines, _ = listed(root, "--sort=folder")
    assert folders(lines, root) == sorted(folders(lines, root))
    lines, _ = listed(root, "--sort=test_error")
    assert folders(lines, root)[0] == "finished"


def test_json_has_the_numbers_unrounded(root, listed):
    lines, _ = listed(root, "--json")
    rows = {row["folder"]: row for row in map(json.loads, lines)}
    row = rows[str(root / "finished")]
    assert row["test_error_interval"] == SUMMARY["test_error_interval"]
    assert row["seconds"] == SUMMARY["train_seconds"]
    states = rows[str(root / "search")]["states"]
    assert states == {"finished": 2, "stopped": 1}


DAMAGES = {
    "config.json": ["{", "[]", "{}", "\udc80"],
    "summary.json": [
        "{",
        "[]",
        '{"epochs": 3}',
        "3",
        '{"epochs": 3, "validation_error": "x", "train_seconds": 3}',
    ],
    "metrics.csv": ["epoch,val_error,seconds\n1,x,2\n", "epoch\n1\n"],
    "result.json": ["[1]", "x"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(n, t) for n, texts in DAMAGES.items() for t in texts]
)
def test_damaged_files_are_said_and_passed_over(root, listed, name, text):
    path = begin(root / "damaged", 9_000, 1).path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    lines, warnings = listed(root)
    assert "damaged" not in folders(lines, root)
    assert len(lines) == 6
    (warning,) = warnings
    assert warning.startswith(f"warning: Passed over: {root}/damaged")


def test_nothing_there_is_one_line(tmp_path, monkeypatch, listed):
    monkeypatch.chdir(tmp_path)
    line = "No runs in {}. `python -m trainers.fit` makes one."
    assert listed() == ([line.format("runs")], [])
    (tmp_path / "empty").mkdir()
    assert listed("empty") == ([line.format("empty")], [])
    assert listed("empty", "--json") == ([], [])


def test_a_run_that_is_named_is_listed(root, listed):
    assert folders(listed(root / "finished")[0], root) == ["finished"]


def test_looking_keeps_nobody_from_training(root):
    folder = RunFolder(root / "begun")
    with folder.locked():
        pass
    list_runs(root)
    with folder.locked():
        pass
