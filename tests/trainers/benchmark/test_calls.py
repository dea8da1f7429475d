import functools

import numpy as np
import pytest

from encapnet_tf.config import VARIANTS, override
from encapnet_tf.layers import GroupedConv2D
from trainers.benchmark import calls as benchmark_calls
from trainers.benchmark import measurer
from trainers.cost.timing import interleaved_seconds


def test_units_are_left_out_of_the_same_network(monkeypatch):
    made = []

    def network(recipe):
        made.append(recipe.network())
        return {"train": lambda: None}

    monkeypatch.setattr(benchmark_calls, "network", network)
    measurer.measure_agreement("encapnet14_authors_master", 2, 0.0)
    whole = VARIANTS["encapnet14_authors_master"]
    assert made == [whole, override(whole, agreement="none")]
    assert made[0] != made[1]


def test_calls_take_turns_in_changing_order():
    made = []
    calls = {name: functools.partial(made.append, name) for name in "abc"}
    times = interleaved_seconds(calls, 0.0, least_rounds=4)
    assert [len(times[name]) for name in "abc"] == [4, 4, 4]
    rounds = ["".join(made[n : n + 3]) for n in range(0, 15, 3)]
    assert made[15:] == []
    assert rounds[0] == "abc"  # to warm up
    assert {"".join(sorted(order)) for order in rounds} == {"abc"}
    assert len(set(rounds)) > 2


def test_aides_have_the_paper_s_shapes():
    ((name, (layer, maps)),) = benchmark_calls.aides("encapnet6").items()
    assert name == "7×7/2 256→512 on 8×8"
    assert maps == (8, 8, 256)
    assert layer.compute_output_shape((1, *maps)) == (1, 4, 4, 512)
    assert benchmark_calls.aides("encapnet6_master") == {}


def test_a_timed_gradient_is_the_convolution_s():
    """The last entries of the gradients, each by a difference of values."""
    layer = GroupedConv2D(4, 3, 2, skip_own_block=2)
    call = benchmark_calls.convolution(layer, (1, 5, 5, 2))["backward"]
    maps = benchmark_calls._random(1, 5, 5, 2).numpy()
    upstream = benchmark_calls._random(1, 1, 3, 3, 4).numpy()[0]
    kernel, bias = layer.get_weights()

    def value(maps, kernel, bias):
        layer.set_weights([kernel, bias])
        return float(np.sum(layer(maps).numpy() * upstream, dtype=np.float64))

    wanted, start = 0.0, value(maps, kernel, bias)
    for number in range(3):
        moved = [maps.copy(), kernel.copy(), bias.copy()]
        # Linear in each: any step does.
        moved[number].flat[-1] += 1.0
        wanted += value(*moved) - start
    layer.set_weights([kernel, bias])
    assert call() == pytest.approx(wanted, rel=1e-4)
