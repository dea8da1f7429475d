import numpy as np
import pytest
from scipy import stats

from encapnet_tf.config import VARIANTS
from tests.trainers.benchmark.conftest import measurement
from trainers.benchmark.growth import GROWTHS, fit_exponent, fit_growths
from trainers.recipe import make_recipe


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_a_fit_finds_the_exponent(exponent):
    sizes = np.array([3, 5, 17, 100])
    fit = fit_exponent(sizes, 0.01 * sizes[:, None] ** exponent * [1, 3])
    assert fit.exponent == pytest.approx(exponent, abs=1e-12)
    assert fit.standard_error == pytest.approx(0, abs=1e-12)


def test_the_standard_error_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    sizes = np.array([32, 64, 128, 256, 512])
    seconds = 0.001 * sizes**1.2 * rng.lognormal(0, 0.1, 5)
    fit = fit_exponent(sizes, seconds[:, None] * [1, 2, 3])
    wanted = stats.linregress(np.log(sizes), np.log(seconds))
    assert fit.exponent == pytest.approx(wanted.slope)
    assert fit.standard_error == pytest.approx(wanted.stderr)
    assert abs(fit.exponent - 1.2) < 3 * fit.standard_error


def test_medians_on_a_line_do_not_hide_rounds_that_differ():
    """Exponents 0, 1 and 2 in the three rounds."""
    sizes = np.array([1, 2, 4])
    fit = fit_exponent(sizes, np.stack([sizes**n for n in (0, 1, 2)], axis=1))
    assert fit.exponent == pytest.approx(1)
    assert fit.standard_error == pytest.approx(stats.sem([0, 1, 2]))


def test_growths_are_fitted_by_their_medians():
    found = [
        measurement(name, size=n, seconds=(n**p, n**p, 99), part="growth")
        for name, p in (("batch", 1), ("width", 2))
        for n in (1, 2, 4)
    ]
    fits = fit_growths(found)
    assert fits["batch"].exponent == pytest.approx(1)
    assert fits["width"].exponent == pytest.approx(2)


def test_only_what_is_named_grows():
    def network(name, size):
        return make_recipe(GROWTHS[name].case(size)).network()

    batch = [GROWTHS["batch"].case(n)["batch_size"] for n in (64, 128)]
    assert batch == [64, 128]
    assert network("batch", 64) == network("batch", 128)
    plain = VARIANTS["encapnet_small"]
    assert network("width", plain.num_capsules) == plain
    wide = network("width", 64)
    assert (wide.num_capsules, wide.stem) == (64, ((128, 2),))
    assert network("depth", 0) == plain
    assert network("depth", 8).type2_layers == (8,) * 6
    assert GROWTHS["iterations"].case(8)["num_iterations"] == 8
    for growth in GROWTHS.values():
        assert len(set(growth.sizes)) >= 3


def test_two_sizes_do_not_make_an_exponent():
    with pytest.raises(ValueError, match=r"Received: sizes=\[2, 2, 4\]"):
        fit_exponent([2, 2, 4], [[1, 1], [1, 1], [2, 2]])
