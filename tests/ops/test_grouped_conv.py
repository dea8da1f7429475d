import contextlib
import functools

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import (
    forms,
    grouped_conv2d,
    grouped_conv2d_transpose,
)
from encapnet_tf.ops.forms import plain_forms
from tests import reference

GROUPS, IN, OUT = 4, 2, 3
# Kernel size, stride, height, width.
FORMS = [
    (3, 1, 5, 6), (3, 2, 6, 6), (3, 2, 5, 7), (1, 1, 4, 5),
    (1, 2, 5, 6), (5, 2, 7, 4), (7, 1, 5, 5), (3, 3, 7, 8),
]  # fmt: skip


def tensors(size, stride, height, width, dtype="float32"):
    """Inputs, kernel and an upstream gradient."""
    rng = np.random.default_rng(0)
    shrunk = (-(-height // stride), -(-width // stride))
    shapes = (
        (2, height, width, GROUPS * IN),
        (size, size, IN, GROUPS * OUT),
        (2, *shrunk, GROUPS * OUT),
    )
    return [tf.constant(rng.normal(size=shape), dtype) for shape in shapes]


def convolution(form):
    return functools.partial(grouped_conv2d, groups=GROUPS, stride=form[1])


def transposition(form):
    return functools.partial(
        grouped_conv2d_transpose,
        groups=GROUPS,
        stride=form[1],
        output_size=form[2:],
    )


def with_gradients(convolve, inputs, kernel, upstream):
    with tf.GradientTape() as tape:
        tape.watch((inputs, kernel))
        outputs = convolve(inputs, kernel)
    gradients = tape.gradient(
        outputs, (inputs, kernel), output_gradients=upstream
    )
    return outputs, *gradients


def assert_same(ours, theirs, tolerance=1e-4):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=tolerance)


@pytest.fixture(autouse=True)
def narrow_groups(request, monkeypatch):
    """Leaves groups as they are, but in the tests of merging them."""
    if "merged" not in request.node.name:
        monkeypatch.setattr(forms, "_NATIVE_WIDTH", 1)
        monkeypatch.setattr(forms, "_SPLIT_WIDTH", 1)


@pytest.fixture
def split_path(monkeypatch):
    monkeypatch.setattr(forms, "_native_groups", lambda dtype: False)


@pytest.mark.parametrize("form", FORMS)
def test_equals_a_loop_over_groups(form):
    x, kernel, _ = tensors(*form, dtype="float64")
    expected = reference.grouped_conv(
        x.numpy(), kernel.numpy(), GROUPS, form[1]
    )
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        ours = grouped_conv2d(
            tf.cast(x, dtype),
            tf.cast(kernel, dtype),
            groups=GROUPS,
            stride=form[1],
        )
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_both_paths_give_the_same_numbers_and_gradients(form, monkeypatch):
    convolve = convolution(form)
    results = []
    for native in (True, False):
        monkeypatch.setattr(
            forms, "_native_groups", lambda dtype, native=native: native
        )
        results.append(with_gradients(convolve, *tensors(*form)))
    assert_same(*results)


@pytest.mark.parametrize("form", FORMS)
def test_both_paths_of_the_transpose_agree(form, monkeypatch):
    x, kernel, y = tensors(*form)

    convolve = transposition(form)
    results = []
    for native in (True, False):
        monkeypatch.setattr(
            forms, "_native_groups", lambda dtype, native=native: native
        )
        results.append(with_gradients(convolve, y, kernel, x))
    assert_same(*results)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_transpose_is_the_adjoint(form, dtype):
    """<conv(x), y> = <x, convT(y)>, and so are its own gradients."""
    x, kernel, y = tensors(*form, dtype=dtype)
    mapped, to_x, to_kernel = with_gradients(convolution(form), x, kernel, y)
    recovered, to_y, to_same_kernel = with_gradients(
        transposition(form), y, kernel, x
    )
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    assert recovered.shape == x.shape
    assert_same(
        (recovered, to_y, to_same_kernel),
        (to_x, mapped, to_kernel),
        tolerance,
    )
    np.testing.assert_allclose(
        tf.reduce_sum(mapped * y),
        tf.reduce_sum(x * recovered),
        rtol=tolerance,
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_one_group_is_an_ordinary_convolution(stride):
    x, _, _ = tensors(3, stride, 6, 5, dtype="float64")
    kernel = np.random.default_rng(1).normal(size=(3, 3, 8, 5))
    np.testing.assert_allclose(
        grouped_conv2d(x, kernel, stride=stride),
        reference.conv(x.numpy(), kernel, 0, stride),
        atol=1e-12,
    )


def num_convolutions(dtype, **options):
    """How many convolutions the traced function holds."""
    x, kernel, _ = tensors(3, 1, 4, 4, dtype=dtype)
    traced = tf.function(
        lambda x, kernel: grouped_conv2d(x, kernel, groups=GROUPS), **options
    )
    graph = traced.get_concrete_function(x, kernel).graph
    return sum(op.type == "Conv2D" for op in graph.get_operations())


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_types_without_grouped_gradients_are_split(dtype):
    assert not forms._native_groups(tf.as_dtype(dtype))
    assert num_convolutions(dtype) == GROUPS


def test_under_xla_the_convolution_is_split():
    assert num_convolutions("float32", jit_compile=True) == GROUPS


def test_a_function_that_xla_calls_is_split_too():
    x, kernel, _ = tensors(3, 1, 4, 4)
    paths = []

    @tf.function
    def inner(x):
        paths.append(forms._native_groups(x.dtype))
        return grouped_conv2d(x, kernel, groups=GROUPS)

    expected = inner(x)
    compiled = tf.function(lambda x: inner(x), jit_compile=True)(x)
    np.testing.assert_allclose(compiled, expected, atol=1e-4)


@pytest.mark.skipif(
    not forms._native_groups(tf.float32),
    reason="this CPU has no grouped gradients",
)
def test_float32_on_a_cpu_takes_the_native_kernel():
    assert num_convolutions("float32") == 1


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_merged_groups_give_the_same_numbers_and_gradients(
    form, native, monkeypatch
):
    convolve = convolution(form)
    transpose = transposition(form)
    monkeypatch.setattr(forms, "_native_groups", lambda dtype: native)
    x, kernel, y = tensors(*form)
    results = []
    # One by one, two by two, all of them.
    for width in (1, 6, 32):
        monkeypatch.setattr(forms, "_NATIVE_WIDTH", width)
        monkeypatch.setattr(forms, "_SPLIT_WIDTH", width)
        results.append(
            with_gradients(convolve, x, kernel, y)
            + with_gradients(transpose, y, kernel, x)
        )
    for merged in results[1:]:
        assert_same(merged, results[0])


def groups_of(*, elsewhere=False):
    """How many groups of two channels are left of eight."""
    context = plain_forms() if elsewhere else contextlib.nullcontext()
    kernel = tf.ones((3, 3, 1, 16))
    with context:
        return forms.convolution(tf.ones((1, 6, 6, 8)), kernel, 8, 1).groups


def test_narrow_groups_are_merged_for_this_cpu_only(monkeypatch):
    assert groups_of(elsewhere=True) == 8
    monkeypatch.setattr(forms, "_native_groups", lambda dtype: True)
    assert groups_of() == 2
    monkeypatch.setattr(forms, "_native_groups", lambda dtype: False)
    assert groups_of() == 1


def test_split_float16_equals_float32(split_path):
    x, kernel, _ = tensors(3, 2, 6, 6)
    half = grouped_conv2d(
        tf.cast(x, tf.float16),
        tf.cast(kernel, tf.float16),
        groups=GROUPS,
        stride=2,
    )
    full = grouped_conv2d(x, kernel, groups=GROUPS, stride=2)
    np.testing.assert_allclose(half, full, atol=5e-2)


def test_transpose_reaches_odd_and_even_sizes():
    y, kernel = tf.ones((1, 3, 3, 6)), tf.ones((3, 3, 1, 6))
    for size in ((5, 5), (6, 6), (5, 6)):
        result = grouped_conv2d_transpose(
            y, kernel, groups=2, stride=2, output_size=size
        )
        assert result.shape == (1, *size, 2)


def test_unknown_sizes_are_convolved():
    x, kernel, _ = tensors(3, 2, 6, 6)
    traced = tf.function(
        lambda x: grouped_conv2d(x, kernel, groups=GROUPS, stride=2),
        input_signature=[tf.TensorSpec((None, None, None, GROUPS * IN))],
    )
    np.testing.assert_allclose(
        traced(x),
        grouped_conv2d(x, kernel, groups=GROUPS, stride=2),
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("inputs", "kernel", "message"),
    [
        (6, (3, 3, 2, 8), "divide the inputs channels.*Received: groups=4"),
        (8, (3, 3, 2, 9), "divide the outputs channels.*Received: groups=4"),
        (8, (2, 2, 2, 8), "must be odd.*Received: kernel of shape"),
        (8, (3, 3, 4, 8), "needs inputs with 16 channels.*Received"),
    ],
)
def test_refuses_what_does_not_fit(inputs, kernel, message):
    with pytest.raises(ValueError, match=message):
        grouped_conv2d(tf.ones((1, 4, 4, inputs)), tf.ones(kernel), groups=4)


@pytest.mark.parametrize(
    ("inputs", "kernel", "message"),
    [
        (9, (3, 3, 2, 9), "divide the inputs channels.*Received: groups=4"),
        (8, (2, 2, 2, 8), "must be odd.*Received: kernel of shape"),
        (16, (3, 3, 2, 8), "needs inputs with 8 channels.*Received"),
    ],
)
def test_transpose_refuses_what_does_not_fit(inputs, kernel, message):
    with pytest.raises(ValueError, match=message):
        grouped_conv2d_transpose(
            tf.ones((1, 4, 4, inputs)),
            tf.ones(kernel),
            groups=4,
            output_size=(4, 4),
        )


def test_transpose_refuses_a_size_that_does_not_shrink_to_the_inputs():
    with pytest.raises(ValueError, match=r"`output_size`.*Received.*\(7, 6\)"):
        grouped_conv2d_transpose(
            tf.ones((1, 3, 3, 4)),
            tf.ones((3, 3, 1, 4)),
            groups=2,
            stride=2,
            output_size=(7, 6),
        )
