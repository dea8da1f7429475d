import csv
import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model
from encapnet_tf.data import one_view
from tests.trainers.conftest import LEAST
from trainers import scoring
from trainers.evaluate import close_test, plots
from trainers.evaluate.capsules import capsule_statistics
from trainers.evaluate.close_test import evaluate
from trainers.files import write_json
from trainers.recipe import make_recipe
from trainers.runs.finished import load_run
from trainers.runs.folder import RunFolder

CNN = {"stem": ((4, 2), (8, 2))}


def save_run(path, recipe, class_names=("0", "1", "2")):
    """Leaves what a finished run leaves, with an untrained network."""
    keras.utils.set_random_seed(3)
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    recipe.save(folder.config)
    model = create_model(
        recipe.variant, num_classes=len(class_names), **recipe.override
    )
    model.save(folder.model)
    summary = {"class_names": list(class_names)}
    write_json(folder.summary, summary)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory, npz_path):
    """A finished run, to be copied: building networks takes time."""
    fields = {"variant": "encapnet_tiny", "override": LEAST}
    recipe = make_recipe(fields | {"dataset": f"npz:{npz_path}"})
    return save_run(tmp_path_factory.mktemp("saved") / "run", recipe)


@pytest.fixture
def folder(tmp_path, saved):
    shutil.copytree(saved.path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


@pytest.fixture
def no_pictures(monkeypatch):
    """Leaves out what takes longest where nobody looks at it."""
    monkeypatch.setattr(close_test, "_draw_mistakes", lambda *_: None)
    monkeypatch.setattr(close_test, "_capsules", lambda *_: {})
    monkeypatch.setattr(close_test, "reliability", lambda *_: None)
    monkeypatch.setattr(plots, "confusion", lambda *_: None)


def contents(folder):
    return {
        file.name: file.read_bytes()
        for file in (folder.path / "evaluation").iterdir()
    }


def test_wilson_interval_has_the_published_values():
    # Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for errors, count, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = scoring.interval(errors / count, count)
        np.testing.assert_allclose(found, (low, high), atol=6e-5)


def test_perfect_and_wrong_classifiers_have_errors_zero_and_one():
    labels = np.array([0, 1, 2, 2])
    right = np.eye(3)[labels]
    wrong = np.roll(right, 1, axis=1)
    assert scoring.error_rate(right, labels) == 0
    assert scoring.error_rate(wrong, labels) == 1
    assert scoring.error_rate(wrong, labels, top=3) == 0
    assert len(scoring.worst_mistakes(right, labels)) == 0
    assert len(scoring.worst_mistakes(wrong, labels)) == 4


def test_class_errors_add_up_to_the_confusion_matrix():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((500, 7)), rng.integers(0, 6, 500)
    matrix = scoring.confusion_matrix(scores, labels)
    rows = scoring.class_errors(matrix, tuple("abcdefg"))
    assert sum(row.images for row in rows) == matrix.sum() == 500
    assert [row.images for row in rows] == np.bincount(
        labels, minlength=7
    ).tolist()
    errors = sum(row.errors for row in rows)
    assert errors / 500 == pytest.approx(scoring.error_rate(scores, labels))
    for row, counts in zip(rows, matrix, strict=True):
        assert row.times <= row.errors
        if row.times:
            assert counts["abcdefg".index(row.taken_for)] == row.times
            assert row.taken_for != row.name
    assert rows[6].error is None
    predicted = scores.argmax(axis=1)
    for label, row in enumerate(rows[:6]):
        right = (labels == label) & (predicted == label)
        assert row.recall == pytest.approx(right.sum() / row.images)
        precision = right.sum() / (predicted == label).sum()
        assert row.precision == pytest.approx(precision)
        assert (row.low, row.high) == scoring.interval(row.error, row.images)


def test_a_class_that_nothing_is_taken_for_has_no_precision():
    rows = scoring.class_errors(np.array([[2, 0], [1, 0]]), ("a", "b"))
    assert (rows[0].precision, rows[1].precision) == (
        pytest.approx(2 / 3),
        None,
    )


def test_worst_mistake_has_the_widest_gap():
    scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.7], [0.95, 0.2]])
    labels = np.array([1, 1, 1, 1])
    assert scoring.worst_mistakes(scores, labels).tolist() == [0, 3, 1]
    assert scoring.worst_mistakes(scores, labels, count=1).tolist() == [0]


def test_top5_error_only_with_many_classes():
    labels = np.zeros(4, int)
    assert "test_top5_error" not in scoring.summarise_test(
        np.ones((4, 19)), labels
    )
    assert "test_top5_error" in scoring.summarise_test(np.ones((4, 20)), labels)


def test_images_are_those_of_the_places_asked_for(folder, stripes):
    model = load_run(folder.path).model
    places = np.array([40, 0, 59])
    found = scoring.images_at(model, stripes.test, places)
    images, _ = next(iter(scoring.stored_batches(model, stripes.test)))
    np.testing.assert_array_equal(found, images.numpy()[places])


def test_capsule_statistics_match_a_loop(folder, stripes):
    model = load_run(folder.path).model
    images, labels = next(iter(scoring.stored_batches(model, stripes.test)))
    layer = model.get_layer("class_capsules")
    reader = keras.Model(model.inputs, layer.output)
    capsules = reader(one_view(images, "mild")).numpy()
    found = capsule_statistics(model, stripes.test, "mild")
    lengths = np.linalg.norm(capsules, axis=-1)
    winners = lengths.argmax(axis=-1)
    for label in range(3):
        of_class = labels.numpy() == label
        np.testing.assert_allclose(
            found.lengths[label], lengths[of_class].mean(axis=0), rtol=1e-4
        )
        won = capsules[winners == label, label]
        if not len(won):
            assert np.isnan(found.effects[label]).all()
            continue
        for entry in range(won.shape[1]):
            without = won.copy()
            without[:, entry] = 0
            change = np.linalg.norm(without, axis=1)
            change -= np.linalg.norm(won, axis=1)
            assert found.effects[label, entry] == pytest.approx(
                change.mean(), abs=1e-6
            )


def test_evaluating_twice_writes_the_same_files(folder, capsys):
    evaluate(folder.path)
    first, printed = contents(folder), capsys.readouterr().out
    assert set(first) == {
        "evaluation.json",
        "per_class.csv",
        "mistakes.csv",
        "confusion.png",
        "mistakes.png",
        "reliability.png",
        "capsules.png",
        "neighbours.png",
    }
    assert "test error" in printed
    assert "Entries in use per winning capsule" in printed
    assert "most often taken for" in printed
    evaluate(folder.path)
    assert contents(folder) == first


@pytest.mark.usefixtures("no_pictures")
def test_files_agree_with_each_other_and_with_the_scores(folder, stripes):
    evaluate(folder.path, limit_test=45)
    place = folder.path / "evaluation"
    summary = json.loads((place / "evaluation.json").read_text())
    errors = summary["runs"]["run"]
    with (place / "per_class.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["0", "1", "2"]
    assert sum(int(row["images"]) for row in rows) == 45
    wrong = sum(int(row["errors"]) for row in rows)
    assert errors["test_error"] == pytest.approx(wrong / 45)
    assert errors["test_images"] == 45
    for row, same in zip(rows, summary["classes"], strict=True):
        assert row == {
            name: "" if value is None else str(value)
            for name, value in same.items()
        }
    bins = summary["calibration"]["bins"]
    assert sum(each["images"] for each in bins) == 45
    assert 0 <= summary["calibration"]["expected_calibration_error"] <= 1
    with (place / "mistakes.csv").open() as file:
        mistakes = list(csv.DictReader(file))
    assert len(mistakes) == wrong
    split = stripes.test.take(45)
    names = [split.name_of(n) for n in range(45)]
    for row in mistakes:
        label = split.labels[names.index(row["name"])]
        assert row["true"] == str(label) != row["predicted"]
    gaps = [float(row["score"]) - float(row["true_score"]) for row in mistakes]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.usefixtures("no_pictures")
def test_one_view_comes_first_and_crops_beside_it(folder, stripes, capsys):
    evaluate(folder.path)
    assert "by the mean of 5 crops" in capsys.readouterr().out
    file = folder.path / "evaluation" / "evaluation.json"
    found = json.loads(file.read_text())["runs"]["run"]
    model = load_run(folder.path).model
    for crops, name in ((False, "test_error"), (True, "multi_crop_error")):
        expected = scoring.error_rate(
            *scoring.scores_and_labels(
                model, stripes.test, augmentation="mild", crops=crops
            )
        )
        assert found[name] == expected
    assert found["multi_crop_views"] == 5
    evaluate(folder.path, multi_crop=False)
    assert "crops" not in capsys.readouterr().out


def test_one_view_is_the_centre_crop_after_training_on_crops(folder, stripes):
    model = load_run(folder.path).model
    images, _ = next(iter(scoring.stored_batches(model, stripes.test)))
    centre = tf.image.resize(images, (34, 34))[:, 1:33, 1:33]
    for augmentation, seen in (("none", images), ("strong", centre)):
        scores, _ = scoring.scores_and_labels(
            model, stripes.test, augmentation=augmentation
        )
        np.testing.assert_allclose(scores, model(seen), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("augmentation", "flip", "data", "mirrored"),
    [
        ("mild", None, True, False),
        ("mild", True, True, False),
        ("mirrored", None, False, False),
        ("mirrored", None, True, True),
        ("mirrored", True, False, True),
        ("strong", None, False, False),
        ("strong", None, True, True),
        ("strong", False, True, False),
        ("strong", True, False, True),
    ],
)
def test_tests_mirror_only_what_training_mirrored(
    recipe, augmentation, flip, data, mirrored
):
    made = recipe(augmentation=augmentation, flip=flip)
    assert made.mirrors(data) == mirrored


def test_networks_without_capsules_say_so(tmp_path, recipe, capsys):
    cnn = recipe(variant="cnn_same_shape", override=CNN)
    folder = save_run(tmp_path / "plain", cnn)
    evaluate(folder.path)
    assert "has no class capsules" in capsys.readouterr().out
    assert "capsules.png" not in contents(folder)


@pytest.mark.usefixtures("no_pictures")
def test_files_of_an_earlier_evaluation_go(folder):
    evaluate(folder.path)
    stale = folder.path / "evaluation" / "robustness.csv"
    stale.write_text("of other data")
    evaluate(folder.path)
    assert not stale.exists()


def test_a_run_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: run_dir=.*no config.json"):
        evaluate(tmp_path / "nothing")


@pytest.mark.parametrize("missing", ["model", "summary"])
def test_an_unfinished_run_is_refused(folder, missing):
    file = getattr(folder, missing)
    file.unlink()
    with pytest.raises(ValueError, match=f"finished run.*no {file.name}"):
        evaluate(folder.path)
    assert not (folder.path / "evaluation").exists()


@pytest.mark.parametrize("how", ["text", "cut", "weights"])
def test_a_damaged_model_is_refused(folder, how):
    whole = folder.model.read_bytes()
    damaged = {
        "text": b"no archive",
        "cut": whole[: len(whole) // 2],
        "weights": whole.replace(b"\x89HDF", b"\x89HDX"),
    }[how]
    folder.model.write_bytes(damaged)
    with pytest.raises(ValueError, match="model.keras is damaged.*Received: ."):
        evaluate(folder.path)
    assert not (folder.path / "evaluation").exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"class_names": 3}'])
def test_a_damaged_summary_is_refused(folder, text):
    folder.summary.write_text(text)
    with pytest.raises(ValueError, match="summary.json is damaged"):
        load_run(folder.path)


@pytest.mark.parametrize("text", ["{", '{"epochs": "x"}', '{"colour": 1}'])
def test_a_damaged_recipe_is_refused(folder, text):
    folder.config.write_text(text)
    with pytest.raises(ValueError, match="config.json is damaged"):
        load_run(folder.path)


def test_a_model_of_another_run_is_refused(folder):
    write_json(folder.summary, {"class_names": ["a", "b"]})
    with pytest.raises(ValueError, match="Received: .*3 scores.*2 classes"):
        load_run(folder.path)


def test_data_with_other_classes_are_refused(folder, npz_path, tmp_path):
    other = tmp_path / "other.npz"
    arrays = dict(np.load(npz_path)) | {"class_names": ["cat", "dog", "owl"]}
    np.savez(other, **arrays)
    with pytest.raises(ValueError, match=r"Received: .*\(cat, dog, owl\)"):
        evaluate(folder.path, dataset=f"npz:{other}")
    with pytest.raises(ValueError, match="Received: limit_test=0"):
        evaluate(folder.path, limit_test=0)
    assert not (folder.path / "evaluation").exists()


@pytest.mark.usefixtures("no_pictures")
def test_other_data_with_the_same_classes_are_taken(folder, npz_path, tmp_path):
    other = tmp_path / "other.npz"
    arrays = dict(np.load(npz_path))
    arrays["x_test"], arrays["y_test"] = (
        arrays["x_test"][:30],
        arrays["y_test"][:30],
    )
    np.savez(other, **arrays)
    evaluate(folder.path, dataset=f"npz:{other}")
    text = (folder.path / "evaluation" / "evaluation.json").read_text()
    assert json.loads(text)["runs"]["run"]["test_images"] == 30


@pytest.mark.usefixtures("no_pictures")
def test_a_comparison_names_both_runs(folder, tmp_path, recipe, capsys):
    save_run(tmp_path / "other", recipe(variant="cnn_same_shape", override=CNN))
    evaluate(folder.path, compare=tmp_path / "other")
    printed = capsys.readouterr().out
    assert "run: test error" in printed
    assert "other: test error" in printed


def test_a_comparison_of_different_image_sizes_is_refused(
    folder, tmp_path, recipe
):
    override = CNN | {"input_shape": (40, 40, 3)}
    save_run(
        tmp_path / "large", recipe(variant="cnn_same_shape", override=override)
    )
    with pytest.raises(ValueError, match="Received: compare=.*40, 40, 3"):
        evaluate(folder.path, compare=tmp_path / "large")


def test_run_keeps_its_recipe(folder, recipe):
    loaded = load_run(folder.path)
    stored = json.loads(json.dumps(dataclasses.asdict(loaded.recipe)))
    assert stored == json.loads(folder.config.read_text())
    assert loaded.class_names == ("0", "1", "2")
    assert loaded.name == "run"
