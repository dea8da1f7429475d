import pytest
from absl import flags

from encapnet_tf.config import VARIANTS, override
from tests.trainers.conftest import LEAST
from trainers.benchmark import __main__ as benchmark
from trainers.benchmark import tasks
from trainers.benchmark.growth import GROWTHS, Growth
from trainers.benchmark.measurer import Measurer
from trainers.benchmark.results import (
    Measurement,
    Results,
)

# One capsule layer with an aide.
SMALL = LEAST | {"aide": "all"}


def measurement(name="net", action="train", size=8, seconds=(1.0,), **fields):
    products = (0.5,) * len(seconds)
    fields = {"part": "variants", "product_seconds": products} | fields
    return Measurement(
        name=name, action=action, size=size, seconds=seconds, **fields
    )


def results(*measurements):
    return Results(
        "a machine", {"tensorflow": "2"}, {"batch": 8}, 0.1,
        {1000: (0.2, 0.1)}, measurements,
    )  # fmt: skip


def run(*arguments, ask=None):
    """Runs the program in this process; returns its exit code."""
    values = flags.FlagValues()
    benchmark.define(values)
    return benchmark.main(values(["benchmark", *arguments])[1:], values, ask)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Everything, measured on the least that there is, and what was said."""
    folder = tmp_path_factory.mktemp("benchmark")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        small = override(VARIANTS["encapnet_tiny"], **SMALL)
        patch.setitem(VARIANTS, "encapnet_least", small)
        for name, value in {
            "_PRODUCTS": (64, 128),
            "_AGREEMENT": ("encapnet_least",),
            "_CONVOLUTIONS": {"variant": "encapnet_least", "batch": 2},
            "_PIPELINE_IMAGES": 50,
            "_SOLVER_BATCHES": (8,),
        }.items():
            patch.setattr(tasks, name, value)
        patch.delitem(GROWTHS, "width")
        patch.delitem(GROWTHS, "depth")
        solver = GROWTHS["iterations"]._replace(sizes=(1, 2, 3))
        patch.setitem(GROWTHS, "iterations", solver)
        patch.setitem(GROWTHS, "batch", Growth("images", (1, 2, 4), case))
        patch.setattr("builtins.print", lambda *a, **_: said.append(a[:1]))
        code = run(
            "--variants=encapnet_least,encapnet_least", "--batch=4",
            "--seconds=0.001", f"--out={folder}", ask=Measurer().answer,
        )  # fmt: skip
    assert code == 0
    return folder, "\n".join(text for line in said for text in line)


def case(size):
    return {"variant": "encapnet_tiny", "override": LEAST, "batch_size": size}
