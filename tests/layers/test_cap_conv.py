import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.layers import CapConv
from tests import golden_files, reference

TOLERANCE = {"float32": 2e-5, "float64": 1e-9}


def from_golden(content, meta, dtype):
    x = golden_files.maps(content["in/x"])
    aide = meta["coefficients"] != "master"
    layer = CapConv(
        num_capsules=meta["groups"],
        capsule_dim=content["out/y"].shape[1] // meta["groups"],
        kernel_size=meta["kernel"],
        stride=meta["stride"],
        branches="master_aide" if aide else "master",
        coefficients=meta["coefficients"] if aide else "own",
        aide_scope="all",
        project_skip="w/conv_adjust_blob_shape.weight" in content,
        dtype=dtype,
    )
    layer.build(x.shape)
    if aide:
        golden_files.set_conv(
            layer.master, content, "block.0.main_cap.0.conv.0"
        )
        golden_files.set_norm(layer.master_norm, content, "block.0.main_cap.1")
        golden_files.set_conv(layer.aide, content, "block.0.res_cap.0")
        golden_files.set_norm(layer.aide_norm, content, "block.0.res_cap.1")
        halves = [f"w/block.0.{branch}_cap_coeff" for branch in ("main", "res")]
        layer.coefficient_conv.kernel.assign(
            golden_files.kernel(
                np.concatenate([content[f"{h}.weight"] for h in halves])
            )
        )
        layer.coefficient_conv.bias.assign(
            np.concatenate([content[f"{h}.bias"] for h in halves])
        )
    else:
        golden_files.set_conv(layer.master, content, "block.0.conv.0")
    golden_files.set_norm(layer.norm, content, "block.1")
    if layer.project_skip:
        golden_files.set_conv(
            layer.skip_projection, content, "conv_adjust_blob_shape"
        )
    return layer, tf.constant(x, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name",
    [
        "capconv_cross_type1_eval",
        "capconv_cross_type1_train",
        "capconv_cross_type2_train",
        "capconv_master_type1_train",
        "capconv_master_type2_train",
        "capconv_own_type1_s1_train",
    ],
)
def test_outputs_and_gradients_are_the_authors(name, dtype):
    content, meta = golden_files.load(name)
    layer, x = from_golden(content, meta, dtype)
    # Their type II skip adds the layer's own input.
    skip = {"skip": x} if meta["skip"] and not layer.project_skip else {}
    expected = golden_files.maps(content["out/y"])
    weights = tf.constant(golden_files.weight_of_outputs(expected), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        skip = {"skip": x} if skip else {}
        y = layer(x, training=meta["mode"] == "train", **skip)
        total = tf.reduce_sum(y * weights)
    gradient = tape.gradient(total, x)
    np.testing.assert_allclose(y, expected, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(
        gradient,
        golden_files.maps(content["grad/x"]),
        atol=TOLERANCE[dtype] * max(1, np.abs(content["grad/x"]).max()),
    )


@pytest.mark.parametrize("coefficients", ["own", "cross", "both"])
@pytest.mark.parametrize("aide_scope", ["others", "all"])
def test_equals_a_plain_loop(coefficients, aide_scope):
    layer = CapConv(
        3,
        4,
        kernel_size=3,
        stride=2,
        coefficients=coefficients,
        aide_scope=aide_scope,
        project_skip=True,
        dtype="float64",
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 5, 6))
    skip = rng.normal(size=(2, 3, 3, 12))
    layer.build(x.shape, skip.shape)
    for weight in layer.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    if aide_scope == "others":
        # As a trained kernel: its own blocks never left zero.
        kernel = layer.aide.kernel.numpy()
        for capsule in range(3):
            kernel[
                :, :, 2 * capsule : 2 * capsule + 2,
                4 * capsule : 4 * capsule + 4,
            ] = 0  # fmt: skip
        layer.aide.kernel.assign(kernel)
    np.testing.assert_allclose(
        layer(x, skip=skip, training=True),
        reference.cap_conv(layer, x, skip),
        atol=1e-12,
    )


def test_aide_of_others_never_reads_nor_learns_its_own_capsule():
    layer = CapConv(2, 3, aide_scope="others")
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 2)).astype("float32")
    layer.build(x.shape)
    own = [(0, slice(0, 3)), (1, slice(3, 6))]
    optimizer = tf.keras.optimizers.SGD(0.1, weight_decay=0.01)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True)[..., 0])
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply(gradients, layer.trainable_variables)
    kernel = layer.aide.kernel.numpy()
    for block in own:
        assert not kernel[:, :, *block].any()
    assert np.count_nonzero(kernel) == kernel.size // 2


def test_master_with_a_single_capsule_is_an_ordinary_convolution():
    layer = CapConv(1, 5, branches="master")
    layer.build((None, 4, 4, 3))
    assert layer.master.kernel.shape == (3, 3, 3, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branches": "both"}, "`branches` must be one of.*Received"),
        ({"coefficients": "v4"}, "`coefficients` must be one of.*Received"),
        ({"aide_scope": "own"}, "`aide_scope` must be one of.*Received"),
        ({"num_capsules": 0}, "`num_capsules` must be a positive.*Received"),
        ({"capsule_dim": 1.5}, "`capsule_dim` must be a positive.*Received"),
        ({"kernel_size": 2}, "kernel size must be odd.*Received"),
    ],
)
def test_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        CapConv(**{"num_capsules": 4, "capsule_dim": 2, **arguments})(
            np.ones((1, 4, 4, 8), "float32")
        )


def test_refuses_channels_that_are_no_capsules():
    with pytest.raises(ValueError, match="multiple of `num_capsules`.*Receiv"):
        CapConv(4, 2)(np.ones((1, 4, 4, 6), "float32"))


def test_refuses_a_skip_of_another_shape():
    with pytest.raises(ValueError, match="`skip` must have.*Received"):
        CapConv(4, 2)(
            np.ones((1, 4, 4, 8), "float32"), skip=np.ones((1, 2, 2, 8))
        )


@pytest.mark.parametrize("dim", [2, 4, 8, 16])
def test_capsules_start_with_the_length_asked_for(dim):
    keras.utils.set_random_seed(0)
    inputs = tf.random.normal((32, 8, 8, 8))

    def mean_square_before_squash(**options):
        layer = CapConv(8, dim, branches="master", **options)
        capsules = ops.split_capsules(layer(inputs, training=True), 8)
        lengths = tf.norm(capsules, axis=-1)
        # |v| = n²/(1+n²)
        return tf.reduce_mean(lengths / (1 - lengths)).numpy()

    chosen = mean_square_before_squash(initial_length=1.5)
    assert chosen == pytest.approx(1.5**2, rel=0.05)
    paper = mean_square_before_squash()
    assert paper == pytest.approx(dim / 2, rel=0.05)


def test_every_norm_before_a_squash_starts_alike():
    layer = CapConv(4, 8, initial_length=3.0)
    layer.build((None, 6, 6, 4))
    for norm in (layer.norm, layer.master_norm, layer.aide_norm):
        np.testing.assert_array_equal(norm.gamma, np.full(32, 1.5))


def test_an_initial_length_must_be_above_zero():
    with pytest.raises(ValueError, match="Received: initial_length=0"):
        CapConv(4, 2, initial_length=0)
