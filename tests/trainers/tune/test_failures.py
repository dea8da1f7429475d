"""Trials that fail, with a stand-in for the process that trains."""

import json
import re

import numpy as np
import pytest

from tests.trainers.conftest import UNITS
from tests.trainers.tune.conftest import BOTH, rows, runs
from trainers.tune.axes import parse_axes
from trainers.tune.keras_tuner_oracles import make_oracle


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("die", "killed, most likely because memory ran out (SIGKILL)"),
        ("crash", "crashed with SIGSEGV"),
        ("diverge", "The loss is nan."),
    ],
)
def test_a_failed_trial_has_its_reason_and_the_search_goes_on(
    mode, reason, searching, tmp_path, capsys
):
    assert searching(mode, max_trials=12) == 0
    table = rows(tmp_path)
    assert len(table) == 12
    for row in table:
        large = float(row["agreement_weight"]) > 5
        assert row["status"] == ("failed" if large else "completed")
        assert row["reason"] == (reason if large else "")
        assert bool(row["error"]) is not large
    stored = json.loads((tmp_path / "tune" / "best.json").read_text())
    assert stored["agreement_weight"] <= 5
    assert f"failed: {reason}" in capsys.readouterr().out


def test_a_process_that_was_not_fresh_gets_a_second_chance(searching, tmp_path):
    """The memory may have gone to the runs before."""
    searching("die", tuner="grid", max_trials=4, names=["agreement_weight"])
    assert runs(tmp_path) == [
        f"{trial}/seed0" for trial in ("0", "1", "2", "2", "3")
    ]


@pytest.mark.slow
def test_the_bayesian_search_shuns_where_trials_failed(recipe, tmp_path):
    """keras-tuner's own forgets failures: where errors fall up to the edge
    of what can be trained, most of its proposals lie beyond."""
    oracle = make_oracle(
        "bayesian", recipe(**UNITS), parse_axes(BOTH[:1]), 14,
        path=tmp_path / "oracle.json", is_hopeless=lambda oracle: False,
        after_trial=lambda oracle: None,
    )  # fmt: skip
    for _ in range(14):
        trial = oracle.create_trial("tuner0")
        weight = trial.hyperparameters.values["agreement_weight"]
        trial.status = "FAILED" if weight > 5 else "COMPLETED"
        if weight <= 5:
            error = 0.5 - 0.1 * np.log10(weight)
            oracle.update_trial(trial.trial_id, {"validation_error": error})
        oracle.end_trial(trial)
    proposed = [oracle.trials[name].status for name in oracle.end_order[5:]]
    assert 1 <= proposed.count("FAILED") <= 3


def test_a_hopeless_search_stops_after_three_failures(
    searching, tmp_path, capsys
):
    for _ in range(2):  # and says so again
        assert searching("diverge_all") == 1
        assert len(rows(tmp_path)) == len(runs(tmp_path)) == 3
        assert re.fullmatch(
            "error: The first 3 trials all failed alike, so the search stops: "
            "The loss is nan. Try other flags, with --overwrite.\n",
            capsys.readouterr().err,
        )
    assert not (tmp_path / "tune" / "best.json").exists()


def test_failures_of_different_kinds_do_not_end_a_search(
    searching, tmp_path, capsys
):
    assert searching("fail_variously") == 1
    assert len(rows(tmp_path)) == 6
    assert capsys.readouterr().err == "error: No trial was completed.\n"


def test_a_setup_that_cannot_work_is_refused_before_any_trial(
    searching, tmp_path
):
    with pytest.raises(ValueError, match="No such data. Received: none."):
        searching("refuse")
    assert list(tmp_path.iterdir()) == []
