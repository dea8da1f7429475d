"""Searches with a stand-in for the process that trains."""

import json
import re

import numpy as np
import pytest

from tests.trainers.tune.conftest import BOTH, rows, runs, values
from trainers.choices import TUNERS
from trainers.files import locked
from trainers.tune import search as tune_search

# The Gaussian process takes its time.
SLOW_BAYESIAN = [
    pytest.param(name, marks=pytest.mark.slow if name == "bayesian" else ())
    for name in TUNERS
]


@pytest.mark.parametrize("tuner", SLOW_BAYESIAN)
def test_a_search_ends_and_best_json_is_the_least_error(
    tuner, searching, tmp_path
):
    trials = None if tuner == "hyperband" else 12
    assert searching(tuner=tuner, max_trials=trials, epochs=4) == 0
    table = rows(tmp_path)
    # Hyperband: brackets of 5 and 2, and of 3.
    assert len(table) == (10 if tuner == "hyperband" else 12)
    assert {row["status"] for row in table} == {"completed"}
    assert len(runs(tmp_path)) == len(set(runs(tmp_path))) == len(table)
    best = min(table, key=lambda row: float(row["error"]))
    stored = json.loads((tmp_path / "tune" / "best.json").read_text())
    for name in BOTH:
        assert stored[name] == float(best[name])
    assert stored["epochs"] == int(best["epochs"])
    if tuner != "hyperband":
        assert len(set(values(tmp_path))) == 12
    if tuner == "grid":
        assert stored["agreement_weight"] == 1
    else:
        assert values(tmp_path)[0] == ("10.0", "0.1")


@pytest.mark.slow
def test_hyperband_trains_every_trial_anew_for_its_own_epochs(
    searching, tmp_path, capsys
):
    searching(tuner="hyperband", max_trials=None, epochs=4)
    table = rows(tmp_path)
    assert [int(row["epochs"]) for row in table] == [2] * 5 + [4] * 5
    best = sorted(table[:5], key=lambda row: float(row["error"]))[:2]
    promoted = values(tmp_path)[5:7]
    assert promoted == [tuple(row[name] for name in BOTH) for row in best]
    assert re.search("  trial .* epochs ", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("tuner", TUNERS)
def test_an_interrupted_search_goes_on_and_repeats_nothing(
    tuner, searching, tmp_path, recipe
):
    settings = {"tuner": tuner, "epochs": 4}
    settings["max_trials"] = None if tuner == "hyperband" else 8
    with pytest.raises(KeyboardInterrupt):
        searching("stop3", **settings)
    first = values(tmp_path)
    assert len(first) == 3
    assert len(runs(tmp_path)) == 4
    assert searching(**settings) == 0
    # The fourth was under way, so it alone was begun twice.
    again = runs(tmp_path)[3:]
    assert len(again) == len(set(again)) + 1
    assert again[0] == again[1]
    assert values(tmp_path)[:3] == first
    interrupted = values(tmp_path)
    assert searching(overwrite=True, **settings) == 0
    if tuner != "bayesian":  # whose optimiser starts at other points
        assert interrupted == values(tmp_path)
    assert len(interrupted) == len(values(tmp_path))


def test_a_kill_between_result_and_notice_repeats_nothing(searching, tmp_path):
    searching(max_trials=3)
    path = tmp_path / "tune" / "oracle.json"
    state = json.loads(path.read_text())
    # As a kill leaves it: the last trial's result is there, nobody knows.
    last = state["end_order"].pop()
    state["ongoing_trials"] = {"tuner0": last}
    state["trials"][last]["status"] = "RUNNING"
    path.write_text(json.dumps(state))
    assert searching(max_trials=3) == 0
    assert len(runs(tmp_path)) == 3
    assert [row["status"] for row in rows(tmp_path)] == ["completed"] * 3


def test_a_finished_search_says_so_and_trains_nothing(
    searching, tmp_path, capsys
):
    searching()
    first = capsys.readouterr().out
    table = (tmp_path / "tune" / "trials.csv").read_text()
    assert searching("diverge_all") == 0
    again = capsys.readouterr().out
    assert "This search is finished" in again
    assert first[first.index("  trial") :] == again[again.index("  trial") :]
    assert len(runs(tmp_path)) == 6
    assert (tmp_path / "tune" / "trials.csv").read_text() == table


def test_other_flags_are_refused_but_more_trials_are_welcome(
    searching, tmp_path
):
    searching()
    for settings, message in (
        ({"learning_rate": 0.5}, "learning_rate was 0.003, now 0.5"),
        ({"tuner": "bayesian"}, "tuner was 'random', now 'bayesian'"),
        ({"executions": 2}, "executions_per_trial was 1, now 2"),
        ({"names": ["cost"]}, "search was .*now .'cost cosine"),
    ):
        with pytest.raises(ValueError, match=f"{message}.*--overwrite"):
            searching(**settings)
    assert searching(max_trials=8) == 0
    assert len(runs(tmp_path)) == 8
    searching(tuner="grid", overwrite=True)
    with pytest.raises(ValueError, match="max_trials was 6, now 8"):
        searching(tuner="grid", max_trials=8)


def test_overwrite_removes_the_search_and_nothing_else(searching, tmp_path):
    searching()
    (tmp_path / "tune" / "mine.txt").write_text("mine")
    searching(overwrite=True, max_trials=2)
    assert len(rows(tmp_path)) == 2
    assert len(list((tmp_path / "tune" / "trials").iterdir())) == 2
    assert (tmp_path / "tune" / "mine.txt").exists()


def test_two_searches_in_one_folder_are_refused(searching, tmp_path):
    with (
        locked(tmp_path / "tune", "taken"),
        pytest.raises(ValueError, match="Another process.*Received: --tune_"),
    ):
        searching()


def test_executions_have_seeds_of_their_own_and_their_mean_counts(
    searching, tmp_path, capsys
):
    searching(executions=3, max_trials=2, seed=4)
    assert runs(tmp_path) == [
        f"{trial}/seed{seed}" for trial in (0, 1) for seed in (4, 5, 6)
    ]
    for row in rows(tmp_path):
        errors = [float(row[f"error_seed{seed}"]) for seed in (4, 5, 6)]
        assert float(row["error"]) == pytest.approx(np.mean(errors))
        assert float(row["spread"]) == pytest.approx(0.001)
        assert float(row["seconds"]) == 6
        assert float(row["agreement_loss"]) == 0.25
    stored = json.loads((tmp_path / "tune" / "best.json").read_text())
    assert stored["seed"] == 4
    out = capsys.readouterr().out
    assert "3 runs of 2 epochs" in out
    assert "± 0.10%" in out


def test_half_of_keras_tuner_s_variables_are_refused(monkeypatch):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    with pytest.raises(ValueError, match="need.*Received: only KERASTUNER_O"):
        tune_search.role()
