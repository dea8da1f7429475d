import re

import keras
import pytest
from absl import flags

from encapnet_tf import list_variants
from tests import forked
from tests.trainers.conftest import LEAST
from trainers import cli, summary
from trainers.cost.machine_memory import Memory
from trainers.cost.step_cost import step_cost
from trainers.cost.step_trace import outline_model
from trainers.cost.verdict import verdict

GIB = 2**30


def run(*arguments):
    """Runs the program in this process."""
    values = flags.FlagValues()
    summary.define(values)
    summary.main(values(["summary", *arguments])[1:], values)


def test_table_is_aligned_and_says_whether_it_fits(capsys):
    run("encapnet_small", "--batch_size=64", "--num_classes=7")
    text = capsys.readouterr().out
    assert "images 32x32x3, 7 classes, batch 64, float32" in text
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 3 + len(outline_model("encapnet_small").layers)
    assert len({len(line) for line in table}) == 1
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"module6_type1 +CapConv +4x4x256 +627,712 ", text)
    assert "It fits: a step takes about" in text


@pytest.mark.slow
def test_list_has_every_variant(capsys):
    run()
    text = capsys.readouterr().out
    for variant in list_variants():
        assert re.search(
            rf"^{variant} +\d+x\d+x3 +\d+ +[\d,]+ +[\d,]+$", text, re.M
        )
    assert re.search("encapnet14_authors_master .* 2,083,206 +1,729,920", text)


@pytest.mark.slow
def test_half_precision_takes_less_memory(capsys):
    totals = []
    for policy in ("float32", "mixed_bfloat16"):
        run("encapnet_small", f"--dtype_policy={policy}")
        text = capsys.readouterr().out
        found = re.search("activations kept for backward +([0-9.,]+)", text)
        totals.append(float(found[1]))
    assert totals[1] < 0.9 * totals[0]
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["encapnet_smal"], "Did you mean 'encapnet_small'"),
        (["encapnet_tiny", "--input_shape=32,3"], "input_shape=(32, 3)"),
        (["encapnet_tiny", "--input_shape=a,b,c"], "--input_shape=a,b,c"),
        (["encapnet_tiny", "--batch_size=0"], "batch_size=0"),
        (["encapnet_tiny", "--bogus"], "bogus"),
        (["encapnet_tiny", "--dtype_policy=half"], "half"),
        (["encapnet_tiny", "--override=skip"], "--override=skip"),
        (["encapnet_tiny", "--override=nothing=1"], "{'nothing': 1}"),
        (["encapnet_tiny", "--override=stem=1"], "stem=1"),
        (["encapnet_tiny", "resnet18"], "encapnet_tiny resnet18"),
    ],
)
def test_mistakes_are_refused_by_name(arguments, message):
    with pytest.raises((ValueError, flags.Error), match=re.escape(message)):
        run(*arguments)


def test_overrides_are_split_between_fields():
    texts = ["stem=((8,2),(8,1)),agreement=none", "cap_fc=dense"]
    assert cli.parse_overrides(texts) == {
        "stem": ((8, 2), (8, 1)),
        "agreement": "none",
        "cap_fc": "dense",
    }


@pytest.mark.slow
def test_largest_batch_that_fits_is_counted():
    model = outline_model("encapnet_tiny", **LEAST)
    cost = step_cost(model, 256)
    memory = Memory(int(1.2 * cost.memory_bytes), "on this machine")
    text = verdict(model, cost, memory)
    size = int(re.search(r"batch that fits is (\d+)", text)[1])
    usable = 0.8 * memory.free_bytes
    assert step_cost(model, size).memory_bytes <= usable
    assert step_cost(model, 2 * size).memory_bytes > usable
    text = verdict(model, step_cost(model, 4), Memory(2**16, "here"))
    assert "Not even a batch of one image fits" in text


@pytest.mark.slow
def test_hundreds_of_gigabytes_are_counted_in_little_memory():
    done = forked.run(
        "tests.trainers.peak", "trainers.summary", "capnet_em",
        "--batch_size=2048",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split("peak ")[1]) < 1.5 * GIB
    needed = re.search(r"total +([0-9,.]+)\n", done.stdout)[1]
    assert float(needed.replace(",", "")) > 100 * 1024
