"""Searches with a stand-in for the process that trains, then the real one."""

import csv
import json
import pathlib
import re
import sys

import numpy as np
import pytest

from encapnet_tf.data import Dataset
from tests.trainers.conftest import LEAST
from trainers.files import locked
from trainers.runs import child as run_child
from trainers.runs.child import Child
from trainers.runs.folder import RunFolder
from trainers.training.loop import Diverged, Loop
from trainers.tune import plots, report, space
from trainers.tune import search as tune_search
from trainers.tune.oracles import TUNERS, make_oracle
from trainers.tune.trials import Outcome, Search

# The Gaussian process takes its time.
SLOW_BAYESIAN = [
    pytest.param(name, marks=pytest.mark.slow if name == "bayesian" else ())
    for name in TUNERS
]
UNITS = {"override": LEAST | {"agreement": "one"}}
BOTH = ("agreement_weight", "agreement_epsilon")
FAKE = pathlib.Path(__file__).with_name("fake_child.py")


@pytest.fixture
def searching(recipe, tmp_path, monkeypatch):
    """Runs a search with the stand-in; returns its exit code."""
    # Most of the time would go into the picture.
    monkeypatch.setattr(plots, "draw", lambda *_: None)

    def run(mode="", names=BOTH, overwrite=False, **settings):
        fields = {"tuner": "random", "max_trials": 6, "executions": 1}
        given = {n: settings.pop(n, v) for n, v in fields.items()}
        search = Search(
            tmp_path / "tune",
            recipe(**UNITS | settings),
            space.parse_axes(names),
            **given,
        )
        log = str(tmp_path / "log")
        child = Child((sys.executable, str(FAKE), log, mode))
        try:
            return tune_search.run(search, child, overwrite=overwrite)
        finally:
            child.close()

    return run


def rows(folder):
    with (folder / "tune" / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def runs(folder):
    return (folder / "log").read_text().splitlines()


def values(folder):
    return [tuple(row[name] for name in BOTH) for row in rows(folder)]


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
        "bayesian", recipe(**UNITS), space.parse_axes(BOTH[:1]), 14,
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


def test_a_network_that_dies_when_built_is_refused(recipe):
    child = Child((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(ValueError, match="memory. Received.*SIGKILL"):
        child.check(recipe())
    child.close()


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


def outcome(recipe, trial, error, images=1000, **values):
    result = {"validation_error": error, "validation_images": images}
    return Outcome(trial, "completed", values, recipe(), [result])


def test_the_verdict_says_what_the_noise_allows(recipe):
    best, near, far = (
        outcome(recipe, trial, error)
        for trial, error in (("0", 0.10), ("1", 0.12), ("2", 0.2))
    )
    # 2 √(p·(1 − p)/1000 + q·(1 − q)/1000), p = 101/1002, q = 121/1002.
    sentence = report.verdict([far, near, best])
    assert "trial 0 with 10.00%, but trial 1 is within the noise" in sentence
    assert "difference, 2.81%" in sentence
    assert "20.00%, is farther" in report.verdict([far, best])
    assert "the only one" in report.verdict([best])
    many = [outcome(recipe, str(i), 0.1) for i in range(3)]
    assert "trials 1 and 2 are" in report.verdict(many)
    many = [outcome(recipe, str(i), 0.1) for i in range(9)]
    assert "8 others are" in report.verdict(many)


def test_the_spread_over_seeds_is_noise_too(recipe):
    def trial(name, errors):
        results = [
            {"validation_error": e, "validation_images": 10**9} for e in errors
        ]
        return Outcome(name, "completed", {}, recipe(), results)

    calm = [trial("0", [0.10, 0.10]), trial("1", [0.12, 0.12])]
    assert "farther" in report.verdict(calm)
    wild = [trial("0", [0.05, 0.15]), trial("1", [0.07, 0.17])]
    assert "within the noise" in report.verdict(wild)


def test_long_tables_are_cut(recipe):
    table = report.table(
        [outcome(recipe, str(i), 0.1, cost="l2") for i in range(25)]
    )
    assert len(table.splitlines()) == 22
    assert table.endswith("and 5 more in trials.csv")


@pytest.mark.parametrize(
    ("names", "background"),
    [(["cost", "type2_layers", "iterations"], 0), (BOTH, 1)],
)
@pytest.mark.parametrize("points", [7, 12])
def test_what_was_searched_is_drawn(
    names, background, points, recipe, tmp_path, monkeypatch
):
    """A background only where there are points enough."""
    drawn = []
    monkeypatch.setattr(
        plots.plt.Axes, "contourf", lambda *_, **__: drawn.append(1)
    )
    axes = space.parse_axes(names)
    grid = space.grid(axes, 24)
    outcomes = [
        outcome(recipe, str(i), 0.1 + 0.01 * i, **grid[-i])
        for i in range(points)
    ]
    failure = {"failed": "diverged", "reason": "The loss is nan."}
    outcomes.append(Outcome("13", "failed", grid[-13], recipe(), [failure]))
    outcomes.append(Outcome("14", "running", grid[-14], recipe(), []))
    path = tmp_path / "landscape.png"
    plots.draw(axes, outcomes, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(drawn) == (background if points > 7 else 0)


def test_points_on_one_line_are_drawn_without_a_background(recipe, tmp_path):
    axes = space.parse_axes(BOTH)
    outcomes = [
        outcome(
            recipe, str(i), 0.1, agreement_weight=1.0 + i, agreement_epsilon=0.1
        )
        for i in range(9)
    ]
    plots.draw(axes, outcomes, tmp_path / "landscape.png")
    assert (tmp_path / "landscape.png").stat().st_size > 10_000


def test_every_axis_reaches_the_network(recipe):
    axes = space.parse_axes(list(space.AXES))
    chosen = {
        "agreement_weight": 3.0, "agreement_epsilon": 0.5, "iterations": 7,
        "cost": "l2", "type2_layers": 2, "coefficients": "own",
        "learning_rate": 0.25,
    }  # fmt: skip
    applied = space.apply(recipe(**UNITS), axes, chosen)
    network = applied.network()
    options = network.agreement_options
    assert (options.weight, options.epsilon) == (3.0, 0.5)
    assert (options.num_iterations, options.cost) == (7, "l2")
    assert network.type2_layers == (2,)
    assert network.coefficients == ("own",)
    assert applied.learning_rate == 0.25
    assert space.defaults(axes, applied) == chosen


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lambda"], "`search` must be one of.*Received"),
        ([], "one or more.*Received"),
        (["cost", "cost"], "different names.*Received: --search=cost,cost"),
        (["learning_rate:1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:1:0.1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:0:1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:a:b"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:1:inf"], "NAME:LOW:HIGH.*Received"),
        (["iterations:0:9"], "NAME:LOW:HIGH.*Received"),
        (["cost:1:2"], "NAME:LOW:HIGH.*Received"),
    ],
)
def test_bad_names_and_ranges_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        space.parse_axes(texts)


def test_ranges_may_be_given():
    (axis,) = space.parse_axes(["type2_layers:1:2"])
    assert axis.values(2) == [1, 2]
    assert [type(v) for v in axis.values(2)] == [int, int]


def test_what_a_network_does_not_have_is_refused(recipe):
    def defaults(name, **fields):
        return space.defaults(space.parse_axes([name]), recipe(**fields))

    with pytest.raises(ValueError, match="no agreement units.*--agreement"):
        defaults("agreement_weight")
    plain = {"variant": "cnn_same_shape", "override": {}}
    with pytest.raises(ValueError, match="Received.*no agreement units"):
        defaults("cost", **plain)
    with pytest.raises(ValueError, match="Received.*it has no coefficients"):
        defaults("coefficients", **plain)


def test_a_grid_is_even_within_its_trials():
    def points(texts, trials):
        grid = space.grid(space.parse_axes(texts), trials)
        names = grid[0].keys()
        return [sorted({p[n] for p in grid}) for n in names], len(grid)

    (weights, epsilons), count = points(BOTH, 12)
    assert weights == [0.1, 1, 10, 100]
    assert epsilons == [0.01, 0.1, 1]
    assert count == 12
    assert points(["type2_layers"], 12) == ([[0, 1, 2, 3, 4]], 5)
    with pytest.raises(ValueError, match="at least 9 trials. Received.*=8"):
        points(["cost", "coefficients"], 8)


def test_half_of_keras_tuner_s_variables_are_refused(monkeypatch):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    with pytest.raises(ValueError, match="need.*Received: only KERASTUNER_O"):
        tune_search.role()


@pytest.mark.slow
class TestTheProcessThatTrains:
    """In this process; `python -m trainers.runs.child` has a pipe before it."""

    @pytest.fixture
    def answer(self, recipe, tmp_path):
        import dataclasses

        def ask(run_dir=None, **fields):
            task = {"recipe": dataclasses.asdict(recipe(**fields))}
            if run_dir:
                task["run_dir"] = str(tmp_path / run_dir)
            return run_child.Trainer().answer(task)

        return ask

    def test_trains_as_the_loop_does_and_reads_no_test_data(
        self, answer, recipe, stripes, tmp_path, monkeypatch
    ):
        blind = Dataset(
            stripes.name, stripes.train, None, stripes.class_names,
            stripes.image_shape, stripes.flip,
        )  # fmt: skip
        monkeypatch.setattr(run_child, "load", lambda *_, **__: blind)
        result = answer("run", epochs=1, **UNITS)
        loop = Loop(recipe(epochs=1, **UNITS), stripes, None, quiet=True)
        loop.run()
        (row,) = loop.state.history
        assert result["validation_error"] == row["val_error"]
        unit = row["module1_agreement_input_loss"]
        assert result["agreement_loss"] == unit
        assert result["validation_images"] == 24
        folder = RunFolder(tmp_path / "run")
        assert run_child.read_result(folder) == result
        assert not list(folder.checkpoints.iterdir())

    def test_a_diverging_run_fails_with_its_reason(self, answer):
        result = answer("run", learning_rate=1e30, optimizer="sgd")
        assert result["failed"] == "diverged"
        assert re.match("The loss is .* at step .* Culprit", result["reason"])

    def test_weights_that_are_no_numbers_fail(self, recipe, stripes):
        """Labels alone could make such a network look good."""
        loop = Loop(recipe(), stripes, None, quiet=True)
        loop.model.weights[0].assign(np.nan * loop.model.weights[0])
        with pytest.raises(Diverged, match="no numbers"):
            run_child.validation_result(loop)

    @pytest.mark.parametrize(
        "trouble", [MemoryError(), RuntimeError("out of memory\nat byte 3")]
    )
    def test_any_exception_is_a_reason(self, answer, monkeypatch, trouble):
        def run(loop):
            raise trouble

        monkeypatch.setattr(Loop, "run", run)
        result = answer("run")
        assert result["failed"] == type(trouble).__name__
        first = str(trouble).partition("\n")[0] or "no message"
        assert result["reason"] == f"{type(trouble).__name__}: {first}"

    def test_a_check_names_what_is_wrong(self, answer):
        assert answer() == {}
        assert "batch_size=999" in answer(batch_size=999)["refusal"]
        assert "missing" in answer(dataset="npz:missing.npz")["refusal"]
