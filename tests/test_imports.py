"""The order of the house: imports point only upward in it."""

import ast
import graphlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

from encapnet_tf.version import __version__

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = ("encapnet_tf", "export", "trainers")
# A part may import itself and the parts before it.
ORDER = (
    "backend cache checks choices keras_internals lazy tensorflow_internals "
    "version",
    "config",
    "ops",
    "layers",
    "losses training_only",
    "weights",
    "models agreement",
)
LEVEL = {
    part: level for level, parts in enumerate(ORDER) for part in parts.split()
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    module_name(path): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


def imports_of(module):
    """Modules of this project that a file names, within functions too."""
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.append(full if full in FILES else node.module)
        yield from (n for n in names if n.split(".")[0] in PACKAGES)


def part(module):
    """The second name of a module of the library."""
    return module.split(".")[1] if "." in module else ""


LIBRARY = [name for name in FILES if name.startswith("encapnet_tf.")]


@pytest.mark.parametrize("module", LIBRARY)
def test_library_imports_point_upward(module):
    own = part(module)
    for imported in imports_of(module):
        assert imported.startswith("encapnet_tf."), f"{module} ← {imported}"
        other = part(imported)
        if own == "data":
            assert other == "data" or LEVEL[other] == 0, (
                f"{module} ← {imported}"
            )
        elif own != other:
            assert LEVEL[other] < LEVEL[own], f"{module} ← {imported}"


def test_every_part_of_the_library_has_its_place():
    assert {part(module) for module in LIBRARY} == {*LEVEL, "data"}


# The programs, and `__main__` of the packages, come last.
TRAINERS = (
    "choices files machine progress quiet stopping",
    "pictures recipe scoring tensorflow_start", "stored_recipe", "cli",
    "data_report tables", "cost", "runs", "training", "study",
    "benchmark evaluate fit h_imagenet launch summary tune", "reproduce",
    "command",
)  # fmt: skip
TRAINERS_LEVEL = {
    part: level
    for level, parts in enumerate(TRAINERS)
    for part in parts.split()
}


def test_imports_of_the_trainers_point_upward():
    for module in FILES:
        own = part(module)
        if not module.startswith("trainers."):
            continue
        for imported in imports_of(module):
            other = part(imported)
            if imported.startswith("trainers.") and own != other:
                assert TRAINERS_LEVEL[other] < TRAINERS_LEVEL[own], (
                    f"{module} ← {imported}"
                )


def test_no_package_has_many_files_and_no_file_many_lines():
    for module, path in FILES.items():
        assert len(path.read_text().splitlines()) <= 350, module
        if path.name == "__init__.py":
            assert len(list(path.parent.glob("*.py"))) <= 18, module


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("encapnet_tf", {"encapnet_tf"}),
        ("trainers", {"encapnet_tf", "trainers"}),
        ("export", {"encapnet_tf", "trainers", "export"}),
    ],
)
def test_packages_import_only_what_stands_above_them(package, allowed):
    for module in FILES:
        if module.split(".")[0] == package:
            roots = {name.split(".")[0] for name in imports_of(module)}
            assert roots <= allowed, f"{module} imports {roots}"


def test_no_imports_run_in_a_circle():
    graph = {module: set(imports_of(module)) - {module} for module in FILES}
    graphlib.TopologicalSorter(graph).prepare()


def run(code, cwd=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        # The programs' own, if a test has imported them.
        env=os.environ | {"ENCAPNET_TF_LAZY": ""} | environment,
    )


# A second import, which sees another backend.
AGAIN = """
for name in [n for n in sys.modules if n.startswith("encapnet")]:
    del sys.modules[name]
import keras
keras.backend.backend = lambda: "jax"
import encapnet_tf
print(encapnet_tf.__version__)
encapnet_tf.create_model
"""
REFUSAL = (
    "ImportError: encapnet_tf needs Keras on TensorFlow. Received: Keras on jax"
)

LAZILY = """
import sys
import encapnet_tf, encapnet_tf.checks, encapnet_tf.version
from encapnet_tf.choices import AUGMENTATIONS
from encapnet_tf.config import VARIANTS, variant_config
from encapnet_tf.data import DATASETS
assert "svhn" in DATASETS and "mild" in AUGMENTATIONS and VARIANTS
assert variant_config("encapnet_tiny").num_capsules == 4
print(sorted({"keras", "tensorflow", "numpy"} & set(sys.modules)))
from encapnet_tf import data
for package in (encapnet_tf, data):
    for name in package.__all__:
        getattr(package, name)
    try:
        package.nonsense
    except AttributeError as error:
        print(error)
print("tensorflow_datasets" in sys.modules)
print(encapnet_tf.create_model("encapnet_tiny", num_classes=3).output_shape)
"""


@pytest.mark.slow
def test_a_lazy_import_starts_tensorflow_when_it_is_needed():
    """And never tensorflow-datasets, which takes seconds too."""
    result = run(LAZILY + AGAIN, ENCAPNET_TF_LAZY="1")
    assert result.stdout.splitlines() == [
        "[]",
        "module 'encapnet_tf' has no attribute 'nonsense'",
        "module 'encapnet_tf.data' has no attribute 'nonsense'",
        "False",
        "(None, 3)",
        __version__,
    ], result.stderr
    assert result.stderr.splitlines()[-1].startswith(REFUSAL)


IMPORT = """
import json, logging, os, random, sys, threading, warnings
import keras, numpy, tensorflow
from absl import flags

def state():
    return [
        dict(os.environ), os.getcwd(), sys.path, threading.active_count(),
        random.getstate(), str(numpy.random.get_state()), sorted(flags.FLAGS),
        str(warnings.filters), str(logging.root.handlers), logging.root.level,
        keras.config.floatx(), keras.config.dtype_policy().name,
        keras.config.image_data_format(),
    ]

before = state()
print("before", file=sys.stderr, flush=True)
modules = set(sys.modules)
import encapnet_tf
imported = sorted(set(sys.modules) - modules)
print("after", file=sys.stderr, flush=True)
changed = [one for one, other in zip(before, state()) if one != other]
# Refused once TensorFlow has started.
tensorflow.config.threading.set_intra_op_parallelism_threads(1)
cpu = tensorflow.config.list_physical_devices("CPU")[0]
tensorflow.config.set_logical_device_configuration(
    cpu, [tensorflow.config.LogicalDeviceConfiguration()] * 2
)
print(json.dumps({"imported": imported, "changed": changed}))
"""


@pytest.mark.slow
def test_importing_the_library_imports_and_changes_nothing_else(tmp_path):
    """Beyond the imports of TensorFlow and Keras."""
    result = run(IMPORT + AGAIN, cwd=tmp_path, PYTHONPATH=str(ROOT))
    answer = json.loads(result.stdout)
    assert {name.split(".")[0] for name in answer["imported"]} == {
        "encapnet_tf"
    }
    assert answer["changed"] == []
    assert "before\nafter\n" in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert result.stderr.splitlines()[-1].startswith(REFUSAL)
