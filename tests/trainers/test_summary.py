import os
import re
import subprocess
import sys

import keras
import pytest
from absl import flags

from encapnet_tf import create_model, layers, list_variants
from encapnet_tf.ops import routed_moments
from trainers import cli, summary
from trainers.cost.machine_memory import Memory, _free_in_container
from trainers.cost.step_cost import count_parameters, step_cost
from trainers.cost.step_trace import outline_model

GIB = 2**30


def cost_of(layer, *shapes, batch_size=2):
    """The cost of a model with one layer, and the row of that layer."""
    inputs = [keras.Input(shape) for shape in shapes]
    model = keras.Model(inputs, layer(inputs if shapes[1:] else inputs[0]))
    cost = step_cost(model, batch_size)
    return cost, next(r for r in cost.layers if r.name == layer.name)


@pytest.mark.parametrize("batch_size", [1, 5])
def test_multiply_adds_of_a_grouped_convolution(batch_size):
    layer = layers.GroupedConv2D(8, 3, stride=2, groups=4)
    cost, row = cost_of(layer, (8, 8, 4), batch_size=batch_size)
    # 4·4·8 outputs, each of 3·3 places of one channel.
    assert row.multiply_adds == 4 * 4 * 8 * 9
    # The gradient of the kernel costs the same again; images need none.
    assert cost.step_multiply_adds == 2 * row.multiply_adds


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"branches": "master"}, 36 * 8 * 9),
        # Master, aide 7×7 over all four channels, coefficients from 2D = 4.
        ({"coefficients": "both"}, 36 * 8 * (9 + 49 * 4 + 9 * 4)),
        # Coefficients from the D = 2 entries of one branch.
        ({"coefficients": "own"}, 36 * 8 * (9 + 49 * 4 + 9 * 2)),
    ],
)
def test_multiply_adds_of_cap_conv(arguments, expected):
    _, row = cost_of(layers.CapConv(4, 2, **arguments), (6, 6, 4))
    assert row.multiply_adds == expected


def test_multiply_adds_of_cap_fc():
    _, row = cost_of(layers.CapFC(5, 4), (3, 3, 8))
    assert row.multiply_adds == 18 * 4 * 5  # N·D·M


@pytest.mark.parametrize("largest_at_once", [2**18, 0])
@pytest.mark.parametrize("routing", ["dynamic", "em"])
def test_multiply_adds_of_routed_capsules(
    routing, largest_at_once, monkeypatch
):
    monkeypatch.setattr(routed_moments, "LARGEST_AT_ONCE", largest_at_once)
    layer = layers.RoutedCapsules(
        4, num_capsules=6, capsule_dim=5, routing=routing
    )
    inputs = [keras.Input((3, 3, 8))]
    if routing == "em":
        inputs.append(keras.Input((3, 3, 4)))
    model = keras.Model(inputs, layer(*inputs))
    row = step_cost(model, 2).layers[-1]
    weights = 4 * 6 * 5 * 2  # C·M·E·D
    if routing == "dynamic":
        # From 1 and u, D + 1 features of each channel, to all votes' entries.
        features, mapping, once = 3, weights * 3 // 2, 0
    else:
        # Features are 1, δ and three products of two entries of δ, which are
        # made of 36 capsules per image, and of the weights for both images.
        features, mapping = 6, weights + weights * 3 // 2
        once = weights + (36 + 4 * 6 * 5 // 2) * 2 * 2 * 3
    scores = 36 * 6 * features  # N·M·F
    # One round with equal coefficients; two with queries, scores and sums.
    expected = once + mapping + 2 * (2 * mapping + 2 * scores)
    assert row.multiply_adds == expected


def test_a_loop_over_images_needs_the_memory_of_one(monkeypatch):
    layer = layers.RoutedCapsules(4, num_capsules=600, capsule_dim=2)

    def transient(largest_at_once):
        monkeypatch.setattr(routed_moments, "LARGEST_AT_ONCE", largest_at_once)
        return cost_of(layer, (8, 8, 8), batch_size=16)[0].transient_bytes

    coefficients = 4 * 256 * 600  # of one image
    assert transient(2**18) > 2 * 16 * coefficients
    assert transient(0) < 6 * coefficients


def test_multiply_adds_of_an_agreement_unit():
    layer = layers.FeedbackAgreement(4, divergence="kl")
    cost, row = cost_of(layer, (4, 4, 8), (8, 8, 4))
    generator = 4 * 4 * 8 * 9
    extractor = 4 * 4 * 9 * 4 + 2 * 2 * 9
    assert row.multiply_adds == generator + 2 * extractor
    assert row.training_only
    assert cost.inference_multiply_adds == cost.inference_parameters == 0


def test_kept_memory_is_what_the_backward_pass_reads():
    inputs = keras.Input((8, 8, 4))
    maps = layers.GroupedConv2D(6, 3, use_bias=False)(inputs)
    cost = step_cost(keras.Model(inputs, keras.layers.ReLU()(maps)), 3)
    images, convolution, relu = (row.kept_bytes for row in cost.layers)
    # The kernel's gradient reads the images, the ReLU's its own output.
    assert images == 3 * 8 * 8 * 4 * 4
    assert convolution == 0
    assert relu == 3 * 8 * 8 * 6 * 4
    assert cost.transient_bytes > 0


def test_layers_with_numbers_in_their_names_are_told_apart():
    inputs = keras.Input((8, 8, 4))
    maps = layers.GroupedConv2D(4, 3, name="conv")(inputs)
    maps = layers.GroupedConv2D(4, 1, name="conv_1")(maps)
    maps = layers.GroupedConv2D(4, 5, name="conv_2")(maps)
    rows = step_cost(keras.Model(inputs, maps), 2).layers[1:]
    assert [row.multiply_adds for row in rows] == [
        64 * 4 * 4 * places for places in (9, 1, 25)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", ["encapnet_tiny", "encapnet_small", "capnet_em", "resnet18"]
)
def test_parameters_are_the_models(variant):
    model = outline_model(variant)
    cost = step_cost(model, 2)
    assert cost.parameters + cost.other_parameters == model.count_params()
    assert cost.parameters == count_parameters(model).trainable
    assert cost.weight_bytes == 4 * model.count_params()


def test_a_real_model_costs_what_its_outline_does():
    one_module = {"type2_layers": (0,), "strides": (2,)}
    real = step_cost(create_model("encapnet_tiny", **one_module), 4)
    assert step_cost(outline_model("encapnet_tiny", **one_module), 4) == real


def test_an_outline_stays_empty_when_another_model_is_built():
    model = outline_model("encapnet_tiny")
    create_model("encapnet_tiny")
    assert all(v._value is None for v in model.trainable_variables)


def test_batch_size_must_be_positive():
    with pytest.raises(ValueError, match="Received: batch_size=0"):
        step_cost(outline_model("encapnet_tiny"), 0)


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
    assert re.search(r"module3_type1 +CapConv +4x4x256 +1,930,528 ", text)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "message"),
    [("--bogus", "bogus"), ("--input_shape=32,3", "input_shape=(32, 3)")],
)
def test_a_refusal_is_one_line_and_exit_code_2(flag, message):
    done = subprocess.run(
        [sys.executable, "-m", "trainers.summary", "encapnet_tiny", flag],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_overrides_are_split_between_fields():
    texts = ["stem=((8,2),(8,1)),agreement=none", "cap_fc=dense"]
    assert cli.parse_overrides(texts) == {
        "stem": ((8, 2), (8, 1)),
        "agreement": "none",
        "cap_fc": "dense",
    }


@pytest.mark.slow
def test_largest_batch_that_fits_is_counted():
    model = outline_model("capnet_em")
    memory = Memory(10 * GIB, "on this machine")
    text = summary.verdict(model, step_cost(model, 256), memory)
    size = int(re.search(r"batch that fits is (\d+)", text)[1])
    usable = 0.8 * memory.free_bytes
    assert step_cost(model, size).memory_bytes <= usable
    assert step_cost(model, 2 * size).memory_bytes > usable
    text = summary.verdict(model, step_cost(model, 4), Memory(GIB, "here"))
    assert "Not even a batch of one image fits" in text


def test_a_containers_limit_counts(tmp_path):
    assert _free_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.stat").write_text("anon 200\ninactive_file 100\n")
    assert _free_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("1000\n")
    assert _free_in_container(tmp_path) == [800]


PEAK = """
import pathlib
import runpy
import sys
sys.argv = ["summary", "capnet_em", "--batch_size=2048"]
try:
    runpy.run_module("trainers.summary", run_name="__main__")
except SystemExit as end:
    assert not end.code
# Not ru_maxrss: a child starts with its parent's.
status = pathlib.Path("/proc/self/status").read_text()
print("peak", int(status.split("VmHWM:")[1].split()[0]) * 1024)
"""


@pytest.mark.slow
def test_hundreds_of_gigabytes_are_counted_in_little_memory():
    text = subprocess.run(
        [sys.executable, "-c", PEAK], check=True, capture_output=True, text=True
    ).stdout
    assert int(text.split("peak ")[1]) < 1.5 * GIB
    needed = re.search(r"total +([0-9,.]+)\n", text)[1]
    assert float(needed.replace(",", "")) > 100 * 1024


STEP = """
import pathlib
import sys
import keras
import tensorflow as tf
from encapnet_tf import create_model
from encapnet_tf.losses import MarginLoss

def status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(name + ":")[1].split()[0]) * 1024

model = create_model(sys.argv[1])
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
images = tf.random.uniform((int(sys.argv[2]), *model.input_shape[1:]))
labels = tf.zeros(len(images), tf.int32)
loss = MarginLoss()

@tf.function(jit_compile=False)
def step():
    with tf.GradientTape() as tape:
        total = tf.add_n([loss(labels, model(images, training=True))]
                         + model.losses)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(total, variables), variables))

step.get_concrete_function()
before = status("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")
step()
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="needs Linux"
)
@pytest.mark.parametrize(
    ("variant", "batch_size"),
    [("encapnet14_authors_master", 64), ("capnet_dynamic", 16)],
)
def test_estimate_is_close_to_a_measured_step(variant, batch_size):
    grown = subprocess.run(
        [sys.executable, "-c", STEP, variant, str(batch_size)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    cost = step_cost(outline_model(variant), batch_size)
    # The weights and the optimiser's slots were there before the step.
    expected = cost.memory_bytes - cost.weight_bytes - cost.slot_bytes
    assert 0.75 < expected / int(grown) < 1.25
