import csv
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model
from tests.trainers.conftest import LEAST
from tests.trainers.evaluate.test_evaluate import CNN, contents, save_run
from trainers.evaluate.close_test import evaluate
from trainers.evaluate.disturbances import Adversary, rotate, scale, shift
from trainers.evaluate.robustness import UNITS, measure_robustness
from trainers.scoring import error_rate, scores_and_labels


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    return create_model("encapnet_tiny", num_classes=3, **LEAST)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    # Some pixels at the ends of [0, 1], where the ball is cut.
    return tf.constant(
        rng.uniform(-0.2, 1.2, (8, 32, 32, 3)).clip(0, 1), tf.float32
    )


LABELS = tf.constant([0, 1, 2, 0, 1, 2, 0, 1])


@pytest.mark.parametrize("attack", ["fgsm", "pgd"])
@pytest.mark.parametrize("level", [1, 4])
def test_attack_stays_in_the_ball_and_raises_the_loss(
    model, images, attack, level
):
    adversary = Adversary(model)
    strength = level / 255
    seed = [(0, 0)] if attack == "pgd" else []
    attacked = getattr(adversary, attack)(images, LABELS, strength, *seed)
    assert float(tf.reduce_max(tf.abs(attacked - images))) <= strength + 1e-6
    assert float(tf.reduce_min(attacked)) >= 0
    assert float(tf.reduce_max(attacked)) <= 1
    before = adversary.losses(images, LABELS).numpy()
    after = adversary.losses(attacked, LABELS).numpy()
    assert (after > before).all()


def test_attack_without_strength_changes_nothing(model, images):
    adversary = Adversary(model)
    np.testing.assert_array_equal(adversary.fgsm(images, LABELS, 0.0), images)
    np.testing.assert_array_equal(
        adversary.pgd(images, LABELS, 0.0, (0, 0)), images
    )


def test_fgsm_on_a_linear_network_goes_along_its_weights(images):
    inputs = keras.Input((32, 32, 3))
    dense = keras.layers.Dense(2, use_bias=False)
    linear = keras.Model(inputs, dense(keras.layers.Flatten()(inputs)))
    labels = tf.zeros(8, tf.int32)
    attacked = Adversary(linear).fgsm(images, labels, 0.1)
    weights = dense.kernel.numpy().reshape(32, 32, 3, 2)
    direction = np.sign(weights[..., 1] - weights[..., 0])
    expected = np.clip(images + 0.1 * direction, 0, 1)
    np.testing.assert_allclose(attacked, expected, atol=1e-6)


def test_pgd_is_a_function_of_its_seed(model, images):
    adversary = Adversary(model)
    first, again, other = (
        adversary.pgd(images, LABELS, 0.01, seed).numpy()
        for seed in ((0, 1), (0, 1), (0, 2))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_moves_without_strength_change_nothing(images):
    for moved in (rotate(images, 0), scale(images, 1.0), shift(images, 0, 0)):
        np.testing.assert_array_equal(moved, images)


def test_rotation_by_a_right_angle_turns_the_pixels(images):
    turned = rotate(images, 90).numpy()
    expected = np.rot90(images.numpy(), axes=(1, 2))
    np.testing.assert_allclose(turned, expected, atol=1e-4)


def test_shift_moves_pixels_and_repeats_the_border(images):
    moved, pixels = shift(images, 3, -2).numpy(), images.numpy()
    np.testing.assert_array_equal(moved[:, :-2, 3:], pixels[:, 2:, :-3])
    np.testing.assert_array_equal(moved[:, :-2, 0], pixels[:, 2:, 0])


def test_scale_enlarges_about_the_centre():
    image = np.zeros((1, 32, 32, 1), np.float32)
    image[:, 12:20, 12:20] = 1
    side = np.sqrt(scale(image, 2.0).numpy().sum())
    assert side == pytest.approx(16, abs=0.5)
    assert np.sqrt(scale(image, 0.5).numpy().sum()) == pytest.approx(4, abs=0.5)


@pytest.mark.slow
def test_errors_start_at_the_plain_error_and_grow_under_attack(model, stripes):
    split = stripes.test.take(24)
    plain = error_rate(*scores_and_labels(model, split, augmentation="mild"))
    shares = []
    measured = measure_robustness(model, split, "mild", report=shares.append)
    assert {row.disturbance for row in measured} == set(UNITS)
    for row in measured:
        assert 0 <= row.low <= row.error + 1e-9
        assert row.error - 1e-9 <= row.high <= 1
        if row.strength == (1.0 if row.disturbance == "scale" else 0.0):
            assert row.error == pytest.approx(plain)
    assert shares == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] == pytest.approx(1)
    attacked = [row.error for row in measured if row.disturbance == "PGD"]
    assert attacked == sorted(attacked)
    assert measure_robustness(model, split, "mild") == measured


@pytest.mark.slow
def test_both_runs_are_in_the_table_and_the_files(tmp_path, recipe, capsys):
    folder = save_run(tmp_path / "capsules", recipe())
    save_run(tmp_path / "plain", recipe(variant="cnn_same_shape", override=CNN))
    evaluate(
        folder.path, robustness=True, limit_test=12, compare=tmp_path / "plain"
    )
    printed = capsys.readouterr().out
    assert "Robustness on 12 test images" in printed
    assert "4/255" in printed
    with (folder.path / "evaluation" / "robustness.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {"capsules", "plain"}
    assert {row["unit"] for row in rows} == {
        "degrees", "times", "pixels", "/255",
    }  # fmt: skip
    assert "robustness.png" in contents(folder)
    kept = json.loads(contents(folder)["evaluation.json"])["robustness"]
    assert [
        {name: str(value) for name, value in row.items()} for row in kept
    ] == rows
