"""The program that keeps a run's weights in one file."""

import json
import re
import shlex

import keras
import numpy as np
import pytest
from absl import flags

import encapnet_tf
from encapnet_tf.weights.archive import read_archive
from export.opened import open_model
from export.weights import __main__ as program
from export.weights.card import training_command
from trainers import cli
from trainers.recipe import make_recipe
from trainers.runs.finished import load_archive, load_run
from trainers.stored_recipe import read_recipe

IMAGES = np.random.default_rng(0).random((6, 32, 32, 3), np.float32)


def run(*arguments):
    values = flags.FlagValues()
    program.define(values)
    return program.main(values(["weights", *arguments])[1:], values)


@pytest.fixture(scope="module")
def models(trained, tmp_path_factory):
    """The weights of a run that had an agreement unit."""
    path = tmp_path_factory.mktemp("kept") / "stripes.npz"
    code = run(
        f"--run_dir={trained.path}", f"--out={path}", "--samples=3",
        "--license=MIT", "--data_note=Stripes, by nobody.",
    )  # fmt: skip
    assert code == 0
    return path


def test_the_network_answers_as_the_run_does(trained, models):
    run = load_run(trained.path)
    assert encapnet_tf.agreement_units(run.model)
    model = encapnet_tf.create_model("encapnet_tiny", weights=models)
    assert not encapnet_tf.agreement_units(model)
    np.testing.assert_allclose(
        model.predict_on_batch(IMAGES), run.model.predict_on_batch(IMAGES),
        atol=2e-3,
    )  # fmt: skip


def test_the_archive_is_a_run_again(trained, models):
    kept, run = load_archive(models), load_run(trained.path)
    assert kept.recipe == run.recipe
    assert kept.class_names == run.class_names
    assert kept.name == "stripes"
    images = (IMAGES * 255).astype(np.uint8)
    np.testing.assert_allclose(
        open_model(models)(images).scores,
        open_model(trained.path)(images).scores,
        atol=2e-3,
    )


def test_the_card_states_what_was_measured(trained, models):
    card = models.with_suffix(".md").read_text()
    summary = json.loads(trained.summary.read_text())
    error = f"{summary['test_error']:.2%}"
    assert f"Test error {error} (95% interval" in card
    assert f"with the run's float32 weights {error}." in card
    for words in ("licence: MIT", "Stripes, by nobody.", f'weights="{models}"',
                  "agreement_ramp=0.0", "3 epochs"):  # fmt: skip
        assert words in card


def test_samples_are_as_many_of_each_class(models):
    with np.load(models.with_suffix(".samples.npz")) as stored:
        assert np.bincount(stored["labels"]).tolist() == [3, 3, 3]
        assert stored["images"].shape == (9, 32, 32, 3)
        assert stored["images"].dtype == np.uint8


def test_the_command_on_a_card_trains_the_same_recipe(trained, models):
    """Every kind of flag in it, read as the program reads it."""
    about, _ = read_archive(models)
    overrides = {"strides": (1, 2), "type2_layers": (0, 0), "aide": "none"}
    for given in (
        about["recipe"],
        {"variant": "encapnet_tiny", "override": overrides,
         "multi_crop": False, "dataset": "svhn", "image_size": "96x64",
         "deterministic": True},
    ):  # fmt: skip
        recipe = make_recipe(given)
        _, dash_m, fit, *words = shlex.split(training_command(recipe))
        assert (dash_m, fit) == ("-m", "trainers.fit")
        values = flags.FlagValues()
        cli.define_recipe(values)
        values(["fit", *words])
        again = cli.recipe_from_flags(values)
        for name in vars(recipe):
            if name != "override":
                assert getattr(again, name) == getattr(recipe, name), name
        assert again.network() == recipe.network()


def test_rounding_that_costs_accuracy_is_refused(run_dir, tmp_path):
    """A kernel beyond what float16 can say."""
    model = keras.models.load_model(run_dir / "model.keras", compile=False)
    first = model.get_layer("stem1")
    (kernel,) = (v for v in first.weights if v.path == "stem1/conv/kernel")
    (mean,) = (v for v in first.weights if v.path.endswith("moving_mean"))
    (variance,) = (
        v for v in first.weights if v.path.endswith("moving_variance")
    )
    kernel.assign(kernel * 1e6)
    mean.assign(mean * 1e6)
    variance.assign(variance * 1e12)
    model.save(run_dir / "model.keras")
    out = tmp_path / "kept" / "weights.npz"
    with pytest.raises(ValueError, match="must bear rounding.*Nothing is"):
        run(f"--run_dir={run_dir}", f"--out={out}")
    assert list(out.parent.iterdir()) == []


def test_refusals(run_dir, tmp_path):
    cases = {
        ("--run_dir=nowhere",): "`run_dir` must be.*Received: run_dir=nowhere",
        (f"--run_dir={run_dir}", "--out=a.keras"): "suffix.*'.npz'.*'.keras'",
        (str(run_dir),): "takes flags only",
    }
    for arguments, words in cases.items():
        with pytest.raises(ValueError, match=words):
            run(*arguments)
    recipe = read_recipe(run_dir / "config.json") | {"dataset": "npz:gone.npz"}
    (run_dir / "config.json").write_text(json.dumps(recipe))
    with pytest.raises(ValueError, match=re.escape("gone.npz")):
        run(f"--run_dir={run_dir}", f"--out={tmp_path / 'w.npz'}")
    assert not list(tmp_path.glob("w.*"))
