"""What a model hub reads of a version folder."""

import json
import pathlib
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from encapnet_tf import create_model
from encapnet_tf.config import variant_config
from export.model_path import kind_of
from export.version import hub
from tests.conformance import VARIANT_OVERRIDES
from trainers.recipe import make_recipe, read_recipe
from trainers.runs.finished import load_run

ROOT = pathlib.Path(__file__).parent.parent.parent
FOLDER = "folder:/home/me/Own photos, 2026/"


def run_of(variant="encapnet_tiny", dataset="svhn", **overrides):
    """As much of a run as a hub is told."""
    recipe = make_recipe(
        {"variant": variant, "dataset": dataset, "override": overrides}
    )
    network = recipe.network()
    names = tuple(map(str, range(network.num_classes)))
    return SimpleNamespace(
        recipe=recipe,
        model=SimpleNamespace(input_shape=(None, *network.input_shape)),
        class_names=names,
        scores=network.scores,
        summary={"test_error": 0.0525, "test_images": 26032},
    )


def parsed(block):
    start, text, end = block.split("---")
    assert start == end == ""
    return yaml.safe_load(text)


def test_the_card_starts_with_its_metadata(exported, trained):
    card = (exported.folder / "README.md").read_text()
    assert card.startswith("---\n")
    _, block, body = card.split("---\n", 2)
    assert body.strip().startswith("# encapnet_tiny on npz:stripes.npz\n")
    found = yaml.safe_load(block)
    assert found["license"] == "mit"
    assert found["library_name"] == "encapnet_tf"
    assert found["pipeline_tag"] == "image-classification"
    assert found["tags"] == [
        "encapnet_tiny", "capsule-network", "tensorflow", "tflite", "onnx"
    ]  # fmt: skip
    ((result,),) = (each["results"] for each in found["model-index"])
    summary = json.loads(trained.summary.read_text())
    accuracy = result["metrics"][0]["value"]
    assert accuracy == pytest.approx(1 - summary["test_error"], abs=1e-6)


def test_data_that_the_hub_has_go_by_its_name():
    found = parsed(hub.metadata(run_of(), "Apache-2.0", ["saved_model.pb"]))
    assert found == {
        "license": "apache-2.0",
        "library_name": "encapnet_tf",
        "pipeline_tag": "image-classification",
        "tags": ["encapnet_tiny", "capsule-network", "tensorflow"],
        "metrics": ["accuracy"],
        "model-index": [
            {
                "name": "encapnet_tiny-svhn",
                "results": [
                    {
                        "task": {"type": "image-classification"},
                        "dataset": {
                            "type": "ufldl-stanford/svhn",
                            "name": "svhn",
                            "split": "test",
                        },
                        "metrics": [
                            {
                                "type": "accuracy",
                                "value": 0.9475,
                                "name": "accuracy on 26,032 test images",
                            }
                        ],
                    }
                ],
            }
        ],
        "datasets": ["ufldl-stanford/svhn"],
    }


def test_own_data_have_a_name_and_no_place():
    run = run_of("resnet18", FOLDER)
    found = parsed(hub.metadata(run, None, ["model.tflite"]))
    assert found["license"] == "unknown"
    assert found["tags"] == ["resnet18", "tflite"]
    assert "datasets" not in found
    ((result,),) = (each["results"] for each in found["model-index"])
    assert result["dataset"]["name"] == "folder:Own photos, 2026"
    recipe = hub.config(run)["recipe"]
    assert recipe["dataset"] == "folder:Own photos, 2026"


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC-BY-4.0", {"license": "cc-by-4.0"}),
        ("Our Terms, v1.0: “no”", {"license_name": "our-terms-v1.0-no"}),
    ],
)
def test_a_licence_that_the_hub_does_not_know_is_named(licence, expected):
    found = parsed(hub.metadata(run_of(), licence, ["model.onnx"]))
    assert found.items() >= ({"license": "other"} | expected).items()


@pytest.mark.parametrize("variant", VARIANT_OVERRIDES)
def test_the_config_is_that_of_the_network(variant):
    run = run_of(variant, **VARIANT_OVERRIDES[variant])
    config = json.loads(json.dumps(hub.config(run)))
    again = variant_config(config["variant"], **config["network"])
    theirs = hub.config(run_of(variant, **config["network"]))
    assert json.loads(json.dumps(theirs["network"])) == config["network"]
    assert again.num_classes == run.recipe.network().num_classes


def test_the_config_builds_the_network_of_the_run(exported, trained):
    config = json.loads((exported.folder / "config.json").read_text())
    assert config["library_name"] == "encapnet_tf"
    model = create_model(config["variant"], **config["network"])
    run = load_run(trained.path)
    paths = [weight.path for weight in run.model.weights]
    assert [weight.path for weight in model.weights] == paths
    model.set_weights(run.model.get_weights())
    images = np.random.default_rng(0).uniform(size=(4, 32, 32, 3))
    np.testing.assert_array_equal(model(images), run.model(images))


def test_the_config_trains_it_again(exported, trained, npz_path):
    fields = read_recipe(exported.folder / "config.json")
    assert fields["dataset"] == f"npz:{npz_path.name}"
    assert "data_dir" not in fields
    again = make_recipe(fields | {"dataset": f"npz:{npz_path}"})
    assert again == make_recipe(read_recipe(trained.config))


def test_nothing_in_the_folder_names_this_machine(exported, npz_path):
    for path in exported.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for place in (ROOT, npz_path.parent, exported.folder):
                assert str(place).encode() not in content, path


def test_a_version_is_no_run(exported, tmp_path):
    folder = tmp_path / "1"
    shutil.copytree(exported.folder, folder)
    assert kind_of(folder) == "saved_model"
    (folder / "saved_model.pb").unlink()
    with pytest.raises(ValueError, match="no SavedModel. Name one of its file"):
        kind_of(folder)
