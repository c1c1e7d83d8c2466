"""Quantiles over draws: compiled against numpy, and both against their definitions."""

from contextlib import contextmanager

import numpy as np
import pytest
from scipy import stats

from islab.core import families
from islab.core.equations import exponential, sigmoid
from islab.core.families.mixtures import sample_quantiles
from islab.core.native import compiled

SETS = [] if compiled is None else compiled.instruction_sets()
HOW = ["numpy", *SETS]
LEVELS = [0.95, 1e-6, 0.05, 0.5, 0.999]
NUMBERS = ["gaussian", "student_t"]


@contextmanager
def computing(how):
    """Without compiled code, or with its version for some kind of processor."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("families.mixtures", "equations"):
            if how == "numpy":
                patch.setattr(f"islab.core.{module}.compiled", None)
            else:
                patch.setattr(f"islab.core.{module}.instructions", how)
        yield


def quantiles(name, draws, noise, levels, how):
    with computing(how):
        return families.likelihood(name).predictive_quantiles(draws, noise, levels)


def draws_of(kind, rng, n_draws=50, n_rows=11):
    """Centres that are close together, in two groups far apart, or all the same."""
    draws = rng.normal(size=(n_draws, n_rows, 2))
    if kind == "two groups":
        draws[: n_draws // 3] += 40
    return np.full(draws.shape, 3.0) if kind == "equal" else draws


# -- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", SETS)
@pytest.mark.parametrize("kind", ["close", "two groups", "equal"])
@pytest.mark.parametrize("shape", [(2,), (50, 1, 2), (11, 1), (50, 11, 2), (1,), (50, 1, 1)])
@pytest.mark.parametrize("name", NUMBERS)
def test_compiled_quantiles_are_those_of_numpy(name, shape, kind, how):
    rng = np.random.default_rng(0)
    draws, noise = draws_of(kind, rng), rng.uniform(0.1, 2.0, size=shape)
    expected = quantiles(name, draws, noise, LEVELS, "numpy")
    found = quantiles(name, draws, noise, LEVELS, how)
    np.testing.assert_allclose(found, expected, atol=2e-9)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["close", "two groups", "equal"])
@pytest.mark.parametrize("name", NUMBERS)
def test_quantiles_invert_the_mixture(name, kind, how):
    rng = np.random.default_rng(1)
    draws, noise = draws_of(kind, rng), rng.uniform(0.1, 2.0, size=(50, 1, 2))
    found = quantiles(name, draws, noise, LEVELS, how)
    distribution = stats.norm() if name == "gaussian" else stats.t(4)
    reached = distribution.cdf((found[:, None] - draws) / np.sqrt(noise)).mean(axis=1)
    expected = np.broadcast_to(np.reshape(LEVELS, (-1, 1, 1)), reached.shape)
    np.testing.assert_allclose(reached, expected, rtol=1e-7)


@pytest.mark.parametrize("how", SETS)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_quantile_is_the_same_beside_any_others(name, how):
    draws = draws_of("two groups", np.random.default_rng(2), n_rows=13)
    whole = quantiles(name, draws, np.ones(2), LEVELS, how)
    for row in range(13):
        alone = quantiles(name, draws[:, [row]], np.ones(2), LEVELS, how)
        np.testing.assert_array_equal(alone, whole[:, [row]])


@pytest.mark.parametrize("how", HOW)
def test_quantiles_of_one_draw_are_those_of_its_distribution(how):
    found = quantiles("gaussian", np.full((1, 1, 1), 5.0), np.array([4.0]), LEVELS, how)
    np.testing.assert_allclose(found[:, 0, 0], stats.norm.ppf(LEVELS, 5, 2), rtol=1e-9)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_quantiles_follow_the_unit_of_the_target(scale, how):
    draws = draws_of("close", np.random.default_rng(3))
    expected = scale * quantiles("gaussian", draws, np.ones(2), LEVELS, how)
    found = quantiles("gaussian", scale * draws, np.full(2, scale**2), LEVELS, how)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


# -- counts -----------------------------------------------------------------------------------

RATES = {
    "small": (0.0, 0.4),
    "nearly none": (-12.0, 1.0),
    "hundreds": (5.5, 0.2),
    "thousands": (8.0, 0.1),
    "far apart": (3.0, 3.0),
    "a million": (14.0, 0.05),
}


def share_up_to(name, count, rate, dispersion):
    if name == "poisson":
        return stats.poisson.cdf(count, rate)
    size = 1 / dispersion
    return stats.nbinom.cdf(count, size, size / (size + rate))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(1,), (40, 1, 1), (6, 1)])
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_a_quantile_is_the_smallest_count_that_reaches_its_level(name, rates, shape, how):
    rng = np.random.default_rng(4)
    centre, spread = RATES[rates]
    draws = centre + spread * rng.normal(size=(40, 6, 1))
    dispersion = rng.uniform(0.1, 0.5, size=shape)
    levels = np.array([0.05, 0.5, 0.95])
    found = quantiles(name, draws, dispersion, levels, how)
    rate, level = families.likelihood(name).mean(draws), levels[:, None, None]

    def reached(count):
        return share_up_to(name, count[:, None], rate, dispersion).mean(axis=1)

    assert (reached(found) >= level - 1e-12).all()
    assert ((found == 0) | (reached(found - 1) < level + 1e-12)).all()


@pytest.mark.parametrize("how", HOW)
def test_overdispersed_counts_of_hardly_any_dispersion_are_poisson_counts(how):
    draws = 7 + 0.1 * np.random.default_rng(5).normal(size=(30, 4, 1))
    found = quantiles("negative_binomial", draws, np.array([1e-9]), [0.05, 0.95], how)
    np.testing.assert_array_equal(found, quantiles("poisson", draws, np.ones(1), [0.05, 0.95], how))


# -- ranks and responses ----------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("n_draws", [1, 2, 3, 100, 1000])
def test_quantiles_of_values_are_those_of_numpy(n_draws, how):
    values = np.random.default_rng(6).normal(size=(n_draws, 9, 3)).round(1)
    levels = np.array([0.9, 0.0, 0.05, 0.5, 0.5, 1.0])
    with computing(how):
        found = sample_quantiles(values, levels)
    np.testing.assert_allclose(found, np.quantile(values, levels, axis=0), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("power", [0, 1, 30])
def test_quantiles_of_skewed_and_equal_values_are_those_of_numpy(power, how):
    values = np.random.default_rng(9).normal(size=(700, 5)) ** power
    values[:, 1] = 1e300
    values[:3, 2] = -np.inf
    levels = np.array([0.05, 0.5, 0.95])
    with computing(how):
        found = sample_quantiles(values, levels)
    np.testing.assert_array_equal(found, np.quantile(values, levels, axis=0))


@pytest.mark.parametrize("how", HOW)
def test_a_missing_value_makes_the_quantiles_of_its_column_missing(how):
    values = np.random.default_rng(7).normal(size=(20, 3))
    values[4, 1] = np.nan
    with computing(how):
        found = sample_quantiles(values, np.array([0.5, 0.9]))
    assert np.isnan(found).tolist() == [[False, True, False]] * 2


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_exponentials_are_those_of_numpy(n, how):
    x = np.random.default_rng(8).uniform(-708, 709, size=n)
    with computing(how):
        np.testing.assert_allclose(exponential(x), np.exp(x), rtol=1e-15)
        np.testing.assert_allclose(sigmoid(x), 1 / (1 + np.exp(-x)), rtol=1e-14)


@pytest.mark.parametrize("how", HOW)
def test_exponentials_are_finite_up_to_the_largest_double(how):
    most, least = (np.log(getattr(np.finfo(float), name)) for name in ("max", "tiny"))
    x = np.array([np.nextafter(most, 0), most, np.nextafter(most, 1e3), least])
    with computing(how), np.errstate(over="ignore"):
        np.testing.assert_allclose(exponential(x), np.exp(x), rtol=1e-15)


@pytest.mark.parametrize("how", HOW)
def test_exponentials_of_huge_numbers_are_infinite_or_nothing(how):
    with computing(how), np.errstate(over="ignore"):
        found = exponential(np.array([1e3, np.inf, -1e3, -np.inf, np.nan]))
        assert sigmoid(np.array([-1e300, 1e300])).tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(found, [np.inf, np.inf, 0.0, 0.0, np.nan])


@pytest.mark.skipif(compiled is None, reason="there is no compiled module")
@pytest.mark.parametrize(
    ("levels", "message"),
    [([0.5, 0.4], "rise"), ([-0.1], "rise"), ([1.1], "rise"), ([[0.5]], "vec")],
)
def test_levels_that_do_not_rise_are_refused(levels, message):
    with pytest.raises(ValueError, match=message):
        compiled.quantiles(numbers=np.zeros((2, 2)), levels=levels)


@pytest.mark.skipif(compiled is None, reason="there is no compiled module")
@pytest.mark.parametrize("shape", [(3, 1), (1, 2), (2, 3), (0, 3), (3,)])
def test_scales_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"one scale|draws, columns"):
        compiled.location_quantiles(
            kind="normal",
            centres=np.zeros((2, 4)),
            inverse_scale=np.ones(shape),
            levels=[0.5],
            reaches=[0.0],
            instructions="baseline",
        )
