import pytest

from tests.trainers.conftest import UNITS
from tests.trainers.tune.conftest import BOTH
from trainers.tune import space
from trainers.tune.axes import AXES, parse_axes, split_texts


def test_every_known_axis_reaches_the_network(recipe):
    axes = parse_axes(list(AXES))
    chosen = {
        "agreement_weight": 3.0, "agreement_epsilon": 0.5, "num_iterations": 7,
        "cost": "l2", "type2_layers": 2, "coefficients": "own",
        "learning_rate": 0.25, "weight_decay": 0.125, "initial_length": 2.0,
        "loss": "spread", "augmentation": "mild", "aide": "type1",
    }  # fmt: skip
    applied = space.apply(recipe(**UNITS), axes, chosen)
    network = applied.network()
    options = network.agreement_options
    assert (options.weight, options.epsilon) == (3.0, 0.5)
    assert (options.num_iterations, options.cost) == (7, "l2")
    assert network.type2_layers == (2,)
    assert (network.coefficients, network.aide) == (("own",), ("type1",))
    assert network.initial_length == 2.0
    assert (applied.learning_rate, applied.weight_decay) == (0.25, 0.125)
    assert (applied.loss, applied.augmentation) == ("spread", "mild")
    assert space.defaults(axes, applied) == chosen


def test_any_field_may_be_searched_by_range_or_choices(recipe):
    texts = split_texts(
        "clip_norm:0.1:10,num_capsules:1:4,strides=(1,)/(2,),"
        "capsule_dims=None/(4,),ema=0.9/None,debias=True/False"
    )
    axes = parse_axes(texts)
    assert [axis.integer for axis in axes[:2]] == [False, True]
    # None is no number: the range's least value stands for it.
    own = space.defaults(axes, recipe(**UNITS))
    assert own == {
        "clip_norm": 0.1, "num_capsules": 2, "strides": "(2,)",
        "capsule_dims": "None", "ema": "None", "debias": "True",
    }  # fmt: skip
    chosen = {
        "clip_norm": 2.0, "num_capsules": 4, "strides": "(1,)",
        "capsule_dims": "(4,)", "ema": "0.9", "debias": "False",
    }  # fmt: skip
    applied = space.apply(recipe(**UNITS), axes, chosen)
    network = applied.network()
    assert (applied.clip_norm, applied.ema) == (2.0, 0.9)
    assert (network.num_capsules, network.strides) == (4, (1,))
    assert network.capsule_dims == (4,)
    assert network.agreement_options.debias is False


def test_choices_that_no_network_can_have_are_refused(recipe):
    axes = parse_axes(["aide=type1/typo"])
    with pytest.raises(ValueError, match="Received: aide='typo'"):
        space.defaults(axes, recipe(**UNITS))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lambda"], "`search` must be one of.*Received"),
        ([], "one or more.*Received"),
        (["cost", "cost"], "different names.*Received: --search=cost,cost"),
        (["learning_rate:1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:1:0.1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:0:1"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:a:b"], "NAME:LOW:HIGH.*Received"),
        (["learning_rate:1:inf"], "NAME:LOW:HIGH.*Received"),
        (["num_iterations:0:9"], "NAME:LOW:HIGH.*Received"),
        (["cost:1:2"], "NAME:LOW:HIGH.*Received"),
        (["clip_norm"], "NAME:LOW:HIGH.*Received: --search=clip_norm"),
        (["cost="], "NAME=A.*Received"),
        (["cost=l2/l2"], "different choices.*Received"),
        (["seed:1:2"], "`search` must be one of.*Received"),
    ],
)
def test_bad_names_and_ranges_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        parse_axes(texts)


def test_ranges_may_be_given():
    (axis,) = parse_axes(["type2_layers:1:2"])
    assert axis.values(2) == [1, 2]
    assert [type(v) for v in axis.values(2)] == [int, int]


def test_what_a_network_does_not_have_is_refused(recipe):
    def defaults(name, **fields):
        return space.defaults(parse_axes([name]), recipe(**fields))

    with pytest.raises(ValueError, match="no agreement units.*--agreement"):
        defaults("agreement_weight")
    plain = {"variant": "cnn_same_shape", "override": {}}
    with pytest.raises(ValueError, match="Received.*no agreement units"):
        defaults("cost", **plain)
    with pytest.raises(ValueError, match="Received.*it has no coefficients"):
        defaults("coefficients", **plain)


def test_a_grid_is_even_within_its_trials():
    def points(texts, trials):
        grid = space.grid(parse_axes(texts), trials)
        names = grid[0].keys()
        return [sorted({p[n] for p in grid}) for n in names], len(grid)

    (weights, epsilons), count = points(BOTH, 12)
    assert weights == [0.1, 1, 10, 100]
    assert epsilons == [0.01, 0.1, 1]
    assert count == 12
    assert points(["type2_layers"], 12) == ([[0, 1, 2, 3, 4]], 5)
    with pytest.raises(ValueError, match="at least 9 trials. Received.*=8"):
        points(["cost", "coefficients"], 8)
