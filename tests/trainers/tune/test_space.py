import pytest

from tests.trainers.conftest import UNITS
from tests.trainers.tune.conftest import BOTH
from trainers.tune import space


def test_every_axis_reaches_the_network(recipe):
    axes = space.parse_axes(list(space.AXES))
    chosen = {
        "agreement_weight": 3.0, "agreement_epsilon": 0.5, "iterations": 7,
        "cost": "l2", "type2_layers": 2, "coefficients": "own",
        "learning_rate": 0.25,
    }  # fmt: skip
    applied = space.apply(recipe(**UNITS), axes, chosen)
    network = applied.network()
    options = network.agreement_options
    assert (options.weight, options.epsilon) == (3.0, 0.5)
    assert (options.num_iterations, options.cost) == (7, "l2")
    assert network.type2_layers == (2,)
    assert network.coefficients == ("own",)
    assert applied.learning_rate == 0.25
    assert space.defaults(axes, applied) == chosen


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
        (["iterations:0:9"], "NAME:LOW:HIGH.*Received"),
        (["cost:1:2"], "NAME:LOW:HIGH.*Received"),
    ],
)
def test_bad_names_and_ranges_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        space.parse_axes(texts)


def test_ranges_may_be_given():
    (axis,) = space.parse_axes(["type2_layers:1:2"])
    assert axis.values(2) == [1, 2]
    assert [type(v) for v in axis.values(2)] == [int, int]


def test_what_a_network_does_not_have_is_refused(recipe):
    def defaults(name, **fields):
        return space.defaults(space.parse_axes([name]), recipe(**fields))

    with pytest.raises(ValueError, match="no agreement units.*--agreement"):
        defaults("agreement_weight")
    plain = {"variant": "cnn_same_shape", "override": {}}
    with pytest.raises(ValueError, match="Received.*no agreement units"):
        defaults("cost", **plain)
    with pytest.raises(ValueError, match="Received.*it has no coefficients"):
        defaults("coefficients", **plain)


def test_a_grid_is_even_within_its_trials():
    def points(texts, trials):
        grid = space.grid(space.parse_axes(texts), trials)
        names = grid[0].keys()
        return [sorted({p[n] for p in grid}) for n in names], len(grid)

    (weights, epsilons), count = points(BOTH, 12)
    assert weights == [0.1, 1, 10, 100]
    assert epsilons == [0.01, 0.1, 1]
    assert count == 12
    assert points(["type2_layers"], 12) == ([[0, 1, 2, 3, 4]], 5)
    with pytest.raises(ValueError, match="at least 9 trials. Received.*=8"):
        points(["cost", "coefficients"], 8)
