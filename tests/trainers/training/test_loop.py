import dataclasses
import math

import keras
import numpy as np
import pytest

from encapnet_tf.agreement import agreement_units
from tests.trainers.conftest import LEAST, UNIT
from trainers.runs.folder import RunFolder
from trainers.training import checkpoints
from trainers.training import loop as training_loop
from trainers.training.divergence import Diverged
from trainers.training.finishing import finish_run
from trainers.training.loop import Loop
from trainers.training.step import learning_rate

pytestmark = pytest.mark.slow

WITH_UNIT = LEAST | UNIT | {"stem": ((8, 1),)}


def train(recipe, data, folder=None, **options):
    loop = Loop(recipe, data, folder, quiet=True, **options)
    finished = loop.run()
    return loop, finished


def weights(loop):
    return [np.asarray(v) for v in loop.model.weights]


def timeless(history):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def assert_same(ours, theirs):
    for one, other in zip(weights(ours), weights(theirs), strict=True):
        np.testing.assert_array_equal(one, other)
    assert timeless(ours.state.history) == timeless(theirs.state.history)


def test_learns_an_easy_task(recipe, stripes):
    loop, finished = train(recipe(epochs=6, learning_rate=1e-2), stripes)
    assert finished
    assert loop.state.history[-1]["val_error"] == 0
    assert loop.state.history[-1]["loss"] < loop.state.history[0]["loss"]


def test_one_seed_is_bit_equal_and_another_differs(recipe, stripes):
    first, _ = train(recipe(augmentation="strong"), stripes)
    again, _ = train(recipe(augmentation="strong"), stripes)
    other, _ = train(recipe(augmentation="strong", seed=1), stripes)
    assert_same(first, again)
    assert not np.array_equal(weights(first)[0], weights(other)[0])


@pytest.mark.parametrize(
    ("stop", "loss"), [(1, "margin"), (9, "margin"), (12, "spread")]
)
def test_stopped_and_resumed_is_the_undisturbed_run(
    recipe, stripes, tmp_path, stop, loss, monkeypatch
):
    fields = {"override": WITH_UNIT, "agreement_ramp": 0.5, "loss": loss}
    whole, _ = train(recipe(**fields), stripes)
    loop = Loop(recipe(**fields), stripes, RunFolder(tmp_path), quiet=True)
    step = loop._train_step
    calls = []

    def counted(*batch):
        calls.append(1)
        loop.stopping = len(calls) == stop
        return step(*batch)

    counted.names = step.names
    counted.set_progress = step.set_progress
    monkeypatch.setattr(loop, "_train_step", counted)
    assert not loop.run()
    resumed, finished = train(recipe(**fields), stripes, RunFolder(tmp_path))
    assert finished
    assert_same(whole, resumed)
    assert float(agreement_units(resumed.model)[0].ramp) == 1.0


def test_a_validation_that_is_stopped_is_made_when_the_run_goes_on(
    recipe, stripes, tmp_path, monkeypatch
):
    whole, _ = train(recipe(ema=0.9), stripes)
    stopped = Loop(recipe(ema=0.9), stripes, RunFolder(tmp_path), quiet=True)
    score = training_loop.scores_and_labels

    def score_and_stop(*arguments, **options):
        stopped.stopping = True
        return score(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "scores_and_labels", score_and_stop)
        assert not stopped.run()
    assert stopped.state.history == []
    resumed, _ = train(recipe(ema=0.9), stripes, RunFolder(tmp_path))
    assert_same(whole, resumed)


def test_a_damaged_newest_checkpoint_falls_back(
    recipe, stripes, tmp_path, caplog
):
    folder = RunFolder(tmp_path)
    whole, _ = train(recipe(epochs=2), stripes, folder)
    newest, before = sorted(folder.checkpoints.glob("*.npz"), reverse=True)
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    resumed, _ = train(recipe(epochs=2), stripes, folder)
    assert "is damaged" in caplog.text
    assert_same(whole, resumed)


def test_a_checkpoint_of_another_network_is_refused(recipe, stripes, tmp_path):
    train(recipe(), stripes, RunFolder(tmp_path))
    with pytest.raises(ValueError, match="does not fit.*Received"):
        train(recipe(override=WITH_UNIT), stripes, RunFolder(tmp_path))


def two_layers(*names):
    """A network whose variables differ by name and order only."""
    layers = [keras.layers.Dense(2, name=name) for name in names]
    model = keras.Sequential([keras.Input((2,)), *layers], name="model")
    optimizer = keras.optimizers.SGD(momentum=0.9, name="sgd")
    optimizer.build(model.trainable_variables)
    return model, optimizer


def test_a_checkpoint_goes_by_names_not_by_places(tmp_path):
    model, optimizer = two_layers("one", "other")
    optimizer.apply([np.full(v.shape, i, "float32") for i, v in
                     enumerate(model.trainable_variables)])  # fmt: skip
    state = checkpoints.State(
        best_weights={v.path: v.numpy() for v in model.weights}
    )
    checkpoints.save(RunFolder(tmp_path), state, 1, model, optimizer)
    turned, turned_optimizer = two_layers("other", "one")
    found = checkpoints.restore(RunFolder(tmp_path), turned, turned_optimizer)
    for ours, theirs in (
        (turned.weights, model.weights),
        (turned_optimizer.variables, optimizer.variables),
    ):
        expected = {v.path: np.asarray(v) for v in theirs}
        for variable in ours:
            np.testing.assert_array_equal(variable, expected[variable.path])
    np.testing.assert_array_equal(
        found.best_weights["model/other/kernel"], model.layers[1].kernel
    )


def test_a_checkpoint_that_numbers_its_variables_is_refused(tmp_path):
    model, optimizer = two_layers("one")
    RunFolder(tmp_path).save_checkpoint(
        1, {"model/0000": model.layers[0].kernel.numpy()}, {}
    )
    with pytest.raises(ValueError, match="must name its.*Received.*earlier"):
        checkpoints.restore(RunFolder(tmp_path), model, optimizer)


def test_divergence_names_step_and_culprit_and_keeps_the_checkpoint(
    recipe, stripes, tmp_path, monkeypatch
):
    folder = RunFolder(tmp_path)
    train(recipe(epochs=1), stripes, folder)
    (kept,) = folder.checkpoints.glob("*.npz")
    before = kept.read_bytes()
    loop = Loop(recipe(epochs=2), stripes, folder, quiet=True)
    restore = checkpoints.restore

    def restore_badly(folder, model, optimizer):
        state = restore(folder, model, optimizer)
        kernel = model.trainable_variables[0]
        kernel.assign(np.full(kernel.shape, np.nan))
        return state

    monkeypatch.setattr(checkpoints, "restore", restore_badly)
    message = r"step 1 of epoch 2.*Culprit: .*stem1/conv/kernel"
    with pytest.raises(Diverged, match=message):
        loop.run()
    assert kept.read_bytes() == before


def test_ramp_rises_linearly_and_is_applied(recipe, stripes):
    loop = Loop(
        recipe(override=WITH_UNIT, agreement_ramp=0.5), stripes, None,
        quiet=True,
    )  # fmt: skip
    seen = []
    step = loop._train_step

    def record(*batch):
        seen.append(float(agreement_units(loop.model)[0].ramp))
        return step(*batch)

    record.names, record.set_progress = step.names, step.set_progress
    loop._train_step = record
    loop.run()
    np.testing.assert_allclose(
        seen, np.minimum(1, np.arange(18) / 9), rtol=1e-6
    )
    assert "module1_agreement_input_marginal_error" in loop.state.history[0]


def test_the_summary_says_what_the_units_did(recipe, stripes, tmp_path):
    options = {"gradient_share": 0.1, "extractor": "frozen"}
    loop, _ = train(
        recipe(override=WITH_UNIT | {"agreement_options": options}), stripes
    )
    row = loop.state.history[-1]
    assert finish_run(loop, RunFolder(tmp_path))["agreement"] == {
        "module1_agreement_input": {
            name: row[f"module1_agreement_input_{name}"]
            for name in ("loss", "spread", "zero_vectors", "gradient_share")
        }
        | {"collapsed_in_epoch": None}
    }
    share = row["module1_agreement_input_gradient_share"]
    assert share == pytest.approx(0.1, rel=1e-3)
    assert 0.5 < row["module1_agreement_input_spread"] < 2


def test_patience_stops_and_hands_over_the_best_weights(recipe, stripes):
    loop, finished = train(
        recipe(epochs=40, patience=2, learning_rate=1e-2), stripes
    )
    assert finished
    best = loop.state.best_epoch
    assert loop.state.epoch == best + 3 < 40
    assert loop.validation_error == loop.state.history[best]["val_error"]


def test_a_target_stops_the_run_where_it_is_reached(recipe, stripes):
    fields = {"epochs": 40, "learning_rate": 1e-2}
    plain, _ = train(recipe(**fields, target_error=1e-6), stripes)
    # Every later epoch, to 40, would have been trained without the target.
    errors = [row["val_error"] for row in plain.state.history]
    assert min(errors[:-1], default=1) > errors[-1] == 0
    assert plain.state.epoch < 40


def test_averaged_weights_are_what_counts(recipe, stripes):
    plain, _ = train(recipe(), stripes)
    averaged, _ = train(recipe(ema=0.9), stripes)
    kernel = averaged.model.trainable_variables[0].numpy()
    assert not np.array_equal(kernel, plain.model.trainable_variables[0])
    expected = averaged.optimizer._model_variables_moving_average[0]
    np.testing.assert_array_equal(kernel, expected)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_trains_in_mixed_precision(recipe, stripes, policy):
    try:
        loop, _ = train(
            recipe(
                dtype_policy=policy, epochs=4, learning_rate=1e-2, clip_norm=5.0
            ),
            stripes,
        )
    finally:
        keras.config.set_dtype_policy("float32")
    losses = [row["loss"] for row in loop.state.history]
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]


def test_more_than_twenty_classes_report_the_top_five(recipe, stripes):
    many = dataclasses.replace(
        stripes, class_names=tuple(f"class {i}" for i in range(24))
    )
    loop, _ = train(recipe(epochs=1), many)
    row = loop.state.history[0]
    assert 0 <= row["top5_error"] <= row["error"] <= 1
    assert row["val_top5_error"] <= row["val_error"]


def test_keras_callbacks_get_the_rows_and_may_stop_the_run(recipe, stripes):
    rows = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rows.append(logs)
            self.model.stop_training = True

    loop, finished = train(recipe(epochs=5), stripes, callbacks=[Watch()])
    assert len(rows) == 1
    assert rows[0]["val_error"] == loop.state.history[0]["val_error"]
    assert not finished


def test_the_learning_rate_drops_at_the_paper_s_fractions(recipe, stripes):
    loop, _ = train(
        recipe(epochs=6, schedule="steps", learning_rate=1e-3), stripes
    )
    rates = [row["learning_rate"] for row in loop.state.history]
    np.testing.assert_allclose(
        rates, [1e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-6], rtol=1e-5
    )
    assert learning_rate(loop.optimizer) == pytest.approx(1e-6)


def test_a_batch_larger_than_the_data_is_refused(recipe, stripes):
    message = "`batch_size` must not exceed.* Received: .* Try --batch_size="
    with pytest.raises(ValueError, match=message):
        Loop(recipe(batch_size=1000), stripes, None, quiet=True)


def test_short_epochs_see_other_images_and_end_the_schedule(recipe, stripes):
    """Nine steps make a whole epoch; the images of four differ each time."""
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(batch)

    short = recipe(epochs=3, steps_per_epoch=4, schedule="cosine")
    loop, finished = train(short, stripes, callbacks=[Watch()])
    assert finished
    assert seen == [0, 1, 2, 3] * 3
    assert loop.state.history[-1]["learning_rate"] == pytest.approx(0, abs=1e-9)
    orders = []
    for epoch in range(2):
        loop.state.epoch = epoch
        labels = [
            labels.numpy() for _, labels in loop._train_batches(0, loop.steps)
        ]
        orders.append(np.concatenate(labels))
    assert len(orders[0]) == 4 * 24
    assert not np.array_equal(*orders)
    whole, _ = train(recipe(epochs=1, steps_per_epoch=100), stripes)
    assert whole.steps == 9


def test_a_limited_test_keeps_the_proportions_of_the_classes(
    recipe, stripes, tmp_path
):
    loop, _ = train(recipe(limit_test=30), stripes)
    folder = RunFolder(tmp_path)
    assert finish_run(loop, folder)["test_images"] == 30
    _, counts = np.unique(loop.test.labels, return_counts=True)
    assert counts.tolist() == [10, 10, 10]
    assert Loop(recipe(limit_test=99), stripes, None).test.num_examples == 60


def test_data_with_a_validation_part_give_none_of_the_training_part(
    recipe, stripes
):
    data = dataclasses.replace(stripes, validation=stripes.test.take(30))
    loop = Loop(recipe(), data, None, quiet=True)
    assert loop.validation is data.validation
    assert loop.train.num_examples == stripes.train.num_examples
