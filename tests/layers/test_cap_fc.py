import numpy as np
import pytest

from encapnet_tf.layers import CapFC, Lengths
from encapnet_tf.ops import list_capsules
from tests import golden_files, reference

TOLERANCE = {"float32": 2e-5, "float64": 1e-9}
MODES = ["per_dimension", "dense", "shared"]
X = np.random.default_rng(0).normal(size=(2, 3, 2, 8))


def layer_on(shape, mode="per_dimension", dtype="float64"):
    layer = CapFC(5, 4, mode, dtype=dtype)
    layer.build(shape)
    return layer


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_per_dimension_is_the_authors(dtype):
    content, meta = golden_files.load("capfc_default")
    layer = CapFC(5, meta["cap_dim"], dtype=dtype)
    x = golden_files.maps(content["in/x"]).astype(dtype)
    layer.build(x.shape)
    layer.kernel.assign(content["w/weight"])
    np.testing.assert_allclose(
        layer(x), content["out/y"], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dense_is_the_authors(dtype):
    content, meta = golden_files.load("capfc_fc")
    layer = CapFC(5, meta["cap_dim"], "dense", dtype=dtype)
    x = golden_files.maps(content["in/x"]).astype(dtype)
    layer.build(x.shape)
    # Theirs flattens (c, d, h, w), ours (c, h, w, d).
    weight = content["w/fc_layer.weight"].reshape(40, 4, 8, 2, 2)
    weight = weight.transpose(0, 1, 3, 4, 2).reshape(40, 128)
    layer.kernel.assign(weight.T)
    layer.bias.assign(content["w/fc_layer.bias"])
    np.testing.assert_allclose(
        layer(x), content["out/y"], atol=TOLERANCE[dtype]
    )


def test_per_dimension_equals_a_loop():
    layer = layer_on(X.shape)
    lower, kernel = list_capsules(X, 2).numpy(), layer.kernel.numpy()
    sums = np.zeros((2, 5, 4))
    for j in range(5):
        for d in range(4):
            for i in range(12):
                sums[:, j, d] += kernel[d, i, j] * lower[:, i, d]
    np.testing.assert_allclose(layer(X), reference.squash(sums), atol=1e-12)


def test_shared_equals_a_loop_over_votes():
    layer = layer_on(X.shape, "shared")
    lower = list_capsules(X, 2).numpy()
    kernel, weights = layer.kernel.numpy(), layer.sum_weights.numpy()
    sums = np.zeros((2, 5, 4))
    for i in range(12):
        votes = (lower[:, i] @ kernel).reshape(2, 5, 4)
        for j in range(5):
            sums[:, j] += weights[i, j] * votes[:, j]
    np.testing.assert_allclose(layer(X), reference.squash(sums), atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_maps_and_a_row_of_the_same_capsules_agree(mode):
    layer = layer_on(X.shape, mode)
    row = list_capsules(X, 2)
    of_row = layer_on(row.shape, mode)
    of_row.set_weights(layer.get_weights())
    np.testing.assert_array_equal(layer(X), of_row(row))


def test_weights_start_uniform_within_one_over_the_root_of_n():
    layer = CapFC(10, 16)
    layer.build((None, 4, 4, 512))
    kernel = layer.kernel.numpy()
    assert kernel.shape == (16, 512, 10)
    bound = 512**-0.5
    assert np.abs(kernel).max() <= bound
    np.testing.assert_allclose(kernel.std(), bound / 3**0.5, rtol=0.02)


@pytest.mark.parametrize(
    "shape", [(None, 3, 2, 6), (None, 12, 5), (None, 8), (None, None, 4)]
)
def test_refuses_inputs_that_are_no_capsules(shape):
    with pytest.raises(ValueError, match="maps .* or a row .*Received: inputs"):
        layer_on(shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_capsules": 0}, "`num_capsules` must be.*Received"),
        ({"capsule_dim": "4"}, "`capsule_dim` must be.*Received"),
        ({"mode": "fc"}, "`mode` must be one of.*Received"),
    ],
)
def test_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        CapFC(**{"num_capsules": 5, "capsule_dim": 4} | arguments)


def test_lengths_are_the_norms_in_float32_at_least():
    capsules = np.random.default_rng(0).normal(size=(2, 5, 4))
    expected = np.linalg.norm(capsules, axis=-1)
    np.testing.assert_allclose(
        Lengths(dtype="float64")(capsules), expected, rtol=1e-12
    )
    narrow = Lengths(dtype="mixed_bfloat16")(capsules)
    assert narrow.dtype == "float32"
    np.testing.assert_allclose(narrow, expected, rtol=2e-2)
