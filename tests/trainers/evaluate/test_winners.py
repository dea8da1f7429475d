import keras
import numpy as np
import pytest

from encapnet_tf import create_model
from encapnet_tf.data import one_view
from encapnet_tf.layers import Lengths
from tests.trainers.conftest import LEAST
from trainers.evaluate import winner_plots, winner_report
from trainers.evaluate.winners import (
    STEPS,
    Winners,
    decoder_of,
    draw,
    entries_by_class,
    entries_in_use,
    moved,
    nearest,
    read_winners,
)
from trainers.recipe import make_recipe
from trainers.runs.finished import Run
from trainers.runs.folder import RunFolder
from trainers.scoring import images_at


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return create_model("encapnet_tiny", 3, **LEAST | {"decoder": "conv"})


@pytest.fixture(scope="module")
def run(model, tmp_path_factory):
    recipe = make_recipe({"variant": "encapnet_tiny", "decoder": "conv"})
    names = {"class_names": ["cat", "dog", "owl"]}
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    return Run(folder, recipe, model, names)


def test_winners_are_the_longest_capsules_and_their_errors(model, stripes):
    split = stripes.test
    found = read_winners(model, split, "mild")
    images = one_view(images_at(model, split, np.arange(60)), "mild")
    (lengths,) = (n for n in model.layers if isinstance(n, Lengths))
    capsules = keras.Model(model.inputs, lengths.input)(images).numpy()
    longest = np.linalg.norm(capsules, axis=-1).argmax(axis=-1)
    np.testing.assert_array_equal(found.classes, longest)
    winning = capsules[np.arange(len(longest)), longest]
    np.testing.assert_allclose(found.capsules, winning, atol=1e-5)
    drawn = decoder_of(model).reconstruct(capsules, longest)
    errors = np.square(drawn - images).mean(axis=(1, 2, 3))
    np.testing.assert_allclose(found.errors, errors, rtol=1e-3)
    np.testing.assert_allclose(
        draw(decoder_of(model), winning, longest), drawn, atol=1e-5
    )


def test_without_a_decoder_there_are_no_errors(stripes):
    plain = create_model("encapnet_tiny", 3, **LEAST)
    assert decoder_of(plain) is None
    assert read_winners(plain, stripes.test, "none").errors is None


def test_entries_in_use_count_equal_shares():
    rng = np.random.default_rng(0)
    signs = rng.permuted(np.tile([[-1.0], [1.0]], (25, 6)), axis=0)
    for count in range(1, 7):
        capsules = np.where(np.arange(6) < count, signs, 0)
        assert entries_in_use(capsules) == pytest.approx(count)
        assert entries_in_use(7 * capsules) == pytest.approx(count)
        # What all capsules of a class have in common says the class alone.
        assert entries_in_use(capsules + rng.normal(size=6)) == pytest.approx(
            count
        )


def test_a_class_without_two_different_capsules_has_no_entries_in_use():
    classes = np.array([0, 1, 1, 2, 2])
    capsules = np.array([[1.0, 0], [1, 0], [1, 0], [1, 0], [2, 0]])
    winners = Winners(classes, capsules, None)
    assert entries_by_class(winners, 4) == [None, None, 1.0, None]


def test_the_nearest_are_of_the_same_class_and_in_order():
    rng = np.random.default_rng(0)
    capsules = rng.normal(size=(40, 5))
    classes = np.arange(40) % 3
    winners = Winners(classes, capsules, None)
    found = nearest(winners, 4, 6)
    distances = [np.linalg.norm(c - capsules[4]) for c in capsules]
    own = [n for n in range(40) if n % 3 == 1 and n != 4]
    assert list(found) == sorted(own, key=lambda n: distances[n])[:6]


def test_one_entry_is_moved_at_a_time(model):
    decoder = decoder_of(model)
    capsule = np.random.default_rng(1).normal(size=4).astype("float32")
    images = moved(decoder, capsule, 2)
    assert images.shape == (4, 11, 32, 32, 3)
    (as_it_is,) = draw(decoder, capsule[None], [2])
    for entry in range(4):
        np.testing.assert_allclose(images[entry, 5], as_it_is, atol=1e-6)
        for step, offset in ((0, -0.25), (10, 0.25)):
            other = capsule.copy()
            other[entry] += offset
            (expected,) = draw(decoder, other[None], [2])
            np.testing.assert_allclose(images[entry, step], expected, atol=1e-6)


def test_an_image_changes_the_more_the_further_an_entry_is_moved(model):
    """As a decoder should: no jump, and no way back."""
    capsule = np.random.default_rng(1).normal(size=4).astype("float32")
    images = moved(decoder_of(model), capsule, 0)
    changes = np.linalg.norm(
        (images - images[:, 5:6]).reshape(4, 11, -1), axis=-1
    )
    rises = np.diff(changes, axis=1) * np.sign(STEPS[:-1] + STEPS[1:]) > 0
    assert rises.all(axis=1).mean() > 0.5
    assert np.abs(np.diff(changes, axis=1)).max() < 0.3 * changes.max()


def test_the_pictures_show_the_images_and_say_which(run, stripes, drawn):
    summary = winner_report.report_winners(run, stripes.test, run.folder.path)
    assert set(summary["entries_in_use"]) == {"cat", "dog", "owl"}
    assert 0 < summary["reconstruction_error"] < 1
    neighbours, recalled, entries = drawn
    assert [axis.get_title("left")[:5] for axis in recalled.axes] == [
        "Best:", "Media", "Worst"
    ]  # fmt: skip
    sheet = recalled.axes[0].images[0].get_array()
    best = np.argmin(read_winners(run.model, stripes.test, "mild").errors)
    image = images_at(run.model, stripes.test, np.array([best]))
    image = one_view(image, "mild")
    np.testing.assert_allclose(sheet[:32, :32], image[0], atol=0.01)
    assert len(entries.axes) == len(np.unique(
        read_winners(run.model, stripes.test, "mild").classes
    ))  # fmt: skip
    assert [t.get_text() for t in entries.axes[0].get_xticklabels()] == [
        "-0.25", "as it is", "+0.25"
    ]  # fmt: skip
    (axis,) = neighbours.axes
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert set(names) <= {"cat", "dog", "owl"}


def test_grey_tiles_stand_where_they_belong(drawn, tmp_path):
    tiles = np.random.default_rng(0).uniform(size=(2, 3, 5, 4, 1))
    winner_plots.neighbours(tiles, ["a", "b"], tmp_path / "x.png")
    sheet = drawn[0].axes[0].images[0].get_array()
    assert sheet.shape == (12, 16, 3)
    np.testing.assert_array_equal(sheet[7:, 6:10, 1], tiles[1, 1, ..., 0])
