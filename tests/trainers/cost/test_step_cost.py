import keras
import pytest

from encapnet_tf import create_model, layers
from encapnet_tf.ops import forms
from trainers.cost.step_cost import count_parameters, step_cost
from trainers.cost.step_trace import outline_model


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
    monkeypatch.setattr(forms, "_LARGEST_AT_ONCE", largest_at_once)
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
        monkeypatch.setattr(forms, "_LARGEST_AT_ONCE", largest_at_once)
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
