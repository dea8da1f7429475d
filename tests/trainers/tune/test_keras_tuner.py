"""What is borrowed from inside keras-tuner is still there.

See trainers/tune/keras_tuner_oracles.py and keras_tuner_loop.py.
"""

import inspect

import keras_tuner as kt
import pytest

BAYESIAN = kt.oracles.BayesianOptimizationOracle
TUNER = kt.engine.base_tuner.BaseTuner


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (kt.Oracle, "populate_space", "self trial_id"),
        (kt.Oracle, "_random_values", "self"),
        (kt.Oracle, "_duplicate", "self values"),
        (kt.Oracle, "_save_trial", "self trial"),
        (kt.Oracle, "end_trial", "trial"),
        (kt.Oracle, "get_state", "self"),
        (kt.Oracle, "set_state", "self state"),
        (kt.Oracle, "reload", "self"),
        (BAYESIAN, "_vectorize_trials", "self"),
        (BAYESIAN, "_nonfixed_space", "self"),
        (TUNER, "pre_create_trial", "self"),
        (TUNER, "_try_run_and_update_trial", "self trial fit_args fit_kwargs"),
        (TUNER, "_run_and_update_trial", "self trial fit_args fit_kwargs"),
    ],
)
def test_keras_tuner_still_has_what_is_borrowed(owner, name, parameters):
    found = getattr(owner, name, None)
    assert found is not None, f"{owner.__name__}.{name} is gone"
    names = [*inspect.signature(found).parameters]
    assert [n for n in names if n != "args" and n != "kwargs"][
        -len(parameters.split()) :
    ] == parameters.split() or names == ["args", "kwargs"]


def test_an_oracle_has_the_lists_that_are_taken_up():
    oracle = kt.oracles.RandomSearchOracle(kt.Objective("loss", "min"), 3)
    for name in ("_retry_queue", "start_order", "end_order"):
        assert getattr(oracle, name) == [], name
    assert oracle.ongoing_trials == {}
