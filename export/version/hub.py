"""What a model hub reads: metadata above the model card, and a config.

The metadata are those that the Hugging Face Hub asks for.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import encapnet_tf
from encapnet_tf.data.sources.catalogue import SOURCES
from export.version.stages import ONNX, SAVED_MODEL
from trainers.recipe import Recipe
from trainers.runs.finished import Run

# The Hub's words for licences; any other is "other", with its name.
_LICENCES = """
afl-3.0 agpl-3.0 apache-2.0 artistic-2.0 bsd-2-clause bsd-3-clause
bsd-3-clause-clear bsl-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0
cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0
cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0
cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 cdla-permissive-2.0
cdla-sharing-1.0 ecl-2.0 epl-1.0 epl-2.0 eupl-1.1 gpl-2.0 gpl-3.0 isc
lgpl-2.1 lgpl-3.0 mit mpl-2.0 ms-pl ncsa odbl odc-by openrail osl-3.0 pddl
postgresql unknown unlicense wtfpl zlib
"""
# Its names of the data that it has.
_DATASETS = {
    "svhn": "ufldl-stanford/svhn",
    "cifar10": "uoft-cs/cifar10",
    "cifar100": "uoft-cs/cifar100",
    "mnist": "ylecun/mnist",
    "fashion_mnist": "zalando-datasets/fashion_mnist",
    "imagenet2012": "ILSVRC/imagenet-1k",
}
_TASK = "image-classification"


def dataset_name(recipe: Recipe) -> str:
    """Returns what the data are called, without the folder they lie in."""
    kind, colon, path = recipe.dataset.partition(":")
    return kind + colon + path.rstrip("/").rpartition("/")[-1]


def config(run: Run) -> dict[str, Any]:
    """Returns what builds the network again, and what trains it again.

    Args:
        run: A finished run.

    Returns:
        With "variant" and "network", what `encapnet_tf.create_model` takes;
        and the "recipe", for `trainers.fit --config`.
    """
    _, *shape = run.model.input_shape
    recipe = run.recipe
    network = recipe.network(
        num_classes=len(run.class_names), input_shape=tuple(shape)
    )
    # Where something lay on this machine says nothing to others.
    given = dataclasses.asdict(recipe) | {"dataset": dataset_name(recipe)}
    return {
        "library_name": "encapnet_tf",
        "library_version": encapnet_tf.__version__,
        "variant": recipe.variant,
        "network": dataclasses.asdict(network),
        "recipe": {
            name: value
            for name, value in given.items()
            if value is not None and name not in ("data_dir", "init_from")
        },
    }


def metadata(run: Run, licence: str | None, files: list[str]) -> str:
    """Returns the YAML that stands above a model card, with its rules.

    Args:
        run: The run.
        licence: Under which the model is handed on; None: not stated.
        files: Names of the formats.
    """
    recipe = run.recipe
    named = {
        **_licence(licence),
        "library_name": "encapnet_tf",
        "pipeline_tag": _TASK,
        "tags": _tags(run, files),
        "metrics": ["accuracy"],
        "model-index": [{"name": recipe.label, "results": [_result(run)]}],
    }
    if recipe.dataset in _DATASETS:
        named["datasets"] = [_DATASETS[recipe.dataset]]
    return "\n".join(("---", *_yaml(named), "---"))


def _licence(licence):
    known = (licence or "unknown").lower()
    if known in _LICENCES.split():
        return {"license": known}
    name = re.sub(r"[^a-z0-9.]+", "-", known).strip("-")
    return {"license": "other", "license_name": name}


def _tags(run, files):
    capsules = ["capsule-network"] if run.scores == "lengths" else []
    formats = {SAVED_MODEL: "tensorflow", ONNX: "onnx"}
    found = [formats.get(name, "tflite") for name in files]
    return [run.recipe.variant, *capsules, *dict.fromkeys(found)]


def _result(run):
    """What the test said, as a result of the model index."""
    dataset, summary = run.recipe.dataset, run.summary
    source = SOURCES.get(dataset)
    name = dataset_name(run.recipe)
    return {
        "task": {"type": _TASK},
        "dataset": {
            "type": _DATASETS.get(dataset, name),
            "name": name,
            "split": source.test_part if source else "test",
        },
        "metrics": [
            {
                "type": "accuracy",
                "value": round(1 - summary["test_error"], 6),
                "name": f"accuracy on {summary['test_images']:,} test images",
            }
        ],
    }


def _yaml(value: Any) -> Iterator[str]:
    """Sets out dictionaries and lists as YAML; a leaf is JSON, which it is."""
    if isinstance(value, dict):
        for name, each in value.items():
            first, *rest = _yaml(each)
            if isinstance(each, (dict, list)):
                yield from (f"{name}:", *(f"  {n}" for n in (first, *rest)))
            else:
                yield f"{name}: {first}"
    elif isinstance(value, list):
        for each in value:
            first, *rest = _yaml(each)
            yield from (f"- {first}", *(f"  {line}" for line in rest))
    else:
        yield json.dumps(value, ensure_ascii=False)
