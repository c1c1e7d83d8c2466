"""Likelihoods against scipy.stats, finite differences and sampling."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from islab.core import families

# Those with several predictors of a target have tests of their own.
NAMES = [n for n in families.likelihoods() if families.likelihood(n).n_predictors == 1]
NOISE = {
    "gaussian": np.array([0.5, 2.0, 0.1]),
    "student_t": np.array([0.5, 2.0, 0.1]),
    "negative_binomial": np.array([0.5, 2.0, 0.1]),
    "zero_inflated_poisson": np.array([0.5, 2.0, 0.1]),
    "zero_inflated_negative_binomial": np.array([0.5, 2.0, 0.1, 0.3, 0.8, 0.05]),
    "ordinal": np.array([0.5, 2.0, 0.1]),  # gaps between four thresholds, shared by all outputs
}
N_SAMPLES = 100_000


def noise_of(name):
    return NOISE.get(name, np.ones(3))


def example(name, seed=0):
    """Targets and predictors of six rows and three outputs."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(6, 3))
    return families.likelihood(name).sample(eta, noise_of(name), rng), eta


def draws_of_predictor(seed=1, n_draws=40):
    return np.random.default_rng(seed).normal(0.5, 1.0, size=(n_draws, 4, 3))


def log_density(name, y, eta):
    if name == "bernoulli":
        return stats.bernoulli.logpmf(y, special.expit(eta)).sum(axis=-1)
    if name == "categorical":
        return stats.multinomial.logpmf(y, 1, special.softmax(eta, axis=-1))
    if name == "gaussian":
        return stats.norm.logpdf(y, eta, np.sqrt(NOISE["gaussian"])).sum(axis=-1)
    if name == "student_t":
        return stats.t.logpdf(y, 4, eta, np.sqrt(NOISE[name])).sum(axis=-1)
    if name == "negative_binomial":
        size = 1 / NOISE[name]
        return stats.nbinom.logpmf(y, size, size / (size + np.exp(eta))).sum(axis=-1)
    if name.startswith("zero_inflated"):
        noise = NOISE[name]
        odds = noise[-3:]
        counts = stats.poisson.pmf(y, np.exp(eta))
        if len(noise) > 3:
            size = 1 / noise[:3]
            counts = stats.nbinom.pmf(y, size, size / (size + np.exp(eta)))
        return np.log(((y == 0) * odds + counts) / (1 + odds)).sum(axis=-1)
    if name == "ordinal":
        ends = np.r_[-np.inf, 0, np.cumsum(NOISE[name]), np.inf]
        level = y.astype(int)
        share = stats.logistic.cdf(ends[level] - eta) - stats.logistic.cdf(ends[level - 1] - eta)
        return np.log(share).sum(axis=-1)
    return stats.poisson.logpmf(y, np.exp(eta)).sum(axis=-1)


@pytest.mark.parametrize("name", NAMES)
def test_nll_is_minus_the_log_density(name):
    y, eta = example(name)
    nll = families.likelihood(name).nll(y, eta, noise_of(name))
    np.testing.assert_allclose(nll, -log_density(name, y, eta), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_and_torch_agree(name):
    y, eta = example(name)
    likelihood, noise = families.likelihood(name), noise_of(name)
    in_torch = likelihood.nll(*(torch.from_numpy(a) for a in (y, eta, noise)))
    np.testing.assert_allclose(in_torch.numpy(), likelihood.nll(y, eta, noise), rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 22.0])  # beyond 20 the Poisson rate is a straight line
@pytest.mark.parametrize("name", NAMES)
def test_gradient_matches_finite_differences(name, shift):
    y, eta = example(name)
    eta = eta + shift
    likelihood, noise = families.likelihood(name), noise_of(name)
    gradient = likelihood.gradient(y, eta, noise)
    step = 1e-5
    for output in range(3):
        move = step * np.eye(3)[output]
        up, down = (likelihood.nll(y, eta + sign * move, noise) for sign in (1, -1))
        np.testing.assert_allclose(
            gradient[:, output], (up - down) / (2 * step), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("name", NAMES)
def test_gradient_matches_autograd(name):
    y, eta = (torch.from_numpy(a) for a in example(name))
    likelihood, noise = families.likelihood(name), torch.from_numpy(noise_of(name))
    eta.requires_grad_()
    likelihood.nll(y, eta, noise).sum().backward()
    expected = likelihood.gradient(y, eta.detach(), noise)
    np.testing.assert_allclose(eta.grad.numpy(), expected.numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "poisson", "ordinal"])
def test_nll_and_gradient_are_finite_at_huge_predictors_in_single_precision(name):
    y, _ = example(name)
    likelihood, noise = families.likelihood(name), np.ones(3, dtype=np.float32)
    for size in (-1e4, 1e4):
        eta = np.full(y.shape, size, dtype=np.float32)
        eta[:, 0] *= -1
        assert np.isfinite(likelihood.nll(y.astype(np.float32), eta, noise)).all()
        assert np.isfinite(likelihood.gradient(y.astype(np.float32), eta, noise)).all()


def test_bernoulli_autograd_is_right_at_a_predictor_of_zero():
    eta = torch.zeros((1, 1), dtype=torch.float64, requires_grad=True)
    families.likelihood("bernoulli").nll(torch.zeros_like(eta), eta, 1.0).sum().backward()
    assert eta.grad.item() == pytest.approx(0.5)


def test_poisson_rate_and_its_slope_have_no_step_where_the_line_begins():
    poisson = families.likelihood("poisson")
    below, above = np.array([20 - 1e-9]), np.array([20 + 1e-9])
    assert poisson.mean(above) == pytest.approx(poisson.mean(below), rel=1e-8)
    zero = np.zeros(1)
    assert poisson.gradient(zero, above, 1.0) == pytest.approx(poisson.gradient(zero, below, 1.0))


def test_class_probabilities_sum_to_one():
    _, eta = example("categorical")
    np.testing.assert_allclose(families.likelihood("categorical").mean(eta).sum(axis=-1), 1)


@pytest.mark.parametrize("name", NAMES)
def test_samples_have_the_mean_and_variance_of_the_likelihood(name):
    likelihood, noise = families.likelihood(name), noise_of(name)
    eta = np.array([-1.0, 0.3, 2.0])
    samples = likelihood.sample(
        np.broadcast_to(eta, (N_SAMPLES, 3)), noise, np.random.default_rng(2)
    )
    mean, variance = likelihood.given(noise).mean(eta), likelihood.variance(eta, noise)
    squared = (samples - mean) ** 2
    assert (abs(samples.mean(axis=0) - mean) < 5 * np.sqrt(variance / N_SAMPLES)).all()
    error = squared.std(axis=0) / np.sqrt(N_SAMPLES) + 1e-12
    assert (abs(squared.mean(axis=0) - variance) < 5 * error).all()


def test_a_categorical_sample_is_one_class():
    y, _ = example("categorical")
    assert (np.sort(y, axis=-1) == [0, 0, 1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_predictive_mean_averages_expectations_and_not_predictors(name):
    likelihood, draws = families.likelihood(name).given(noise_of(name)), draws_of_predictor()
    expected = np.mean([likelihood.mean(draw) for draw in draws], axis=0)
    np.testing.assert_allclose(likelihood.predictive_mean(draws), expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_uncertainties_add_up_to_the_variance_of_samples(name):
    likelihood, noise, draws = families.likelihood(name), noise_of(name), draws_of_predictor()
    repeated = np.repeat(draws, 2000, axis=0)
    samples = likelihood.sample(repeated, noise, np.random.default_rng(3))
    squared = (samples - samples.mean(axis=0)) ** 2
    error = squared.std(axis=0) / np.sqrt(len(samples))
    total = likelihood.uncertainty(draws, noise).total
    assert (abs(squared.mean(axis=0) - total) < 5 * error + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_known_weights_leave_no_epistemic_uncertainty(name):
    likelihood, noise = families.likelihood(name), noise_of(name)
    one = np.repeat(draws_of_predictor()[:1], 5, axis=0)
    uncertainty = likelihood.uncertainty(one, noise)
    np.testing.assert_allclose(uncertainty.epistemic, 0, atol=1e-20)
    np.testing.assert_allclose(uncertainty.aleatoric, likelihood.variance(one[0], noise))


@pytest.mark.parametrize("name", NAMES)
def test_log_score_averages_densities_and_not_their_logs(name):
    likelihood, noise, draws = families.likelihood(name), noise_of(name), draws_of_predictor()
    y = likelihood.sample(draws[0], noise, np.random.default_rng(4))
    densities = [np.exp(-likelihood.nll(y, draw, noise)) for draw in draws]
    expected = -np.log(np.mean(densities, axis=0))
    np.testing.assert_allclose(likelihood.log_score(y, draws, noise), expected, rtol=1e-10)


def test_log_score_does_not_underflow_far_from_the_data():
    score = families.likelihood("gaussian").log_score(
        np.full((1, 1), 1e4), np.zeros((3, 1, 1)), np.ones(1)
    )
    assert score[0] == pytest.approx(0.5e8, rel=1e-6)


LEVELS = [0.001, 0.05, 0.5, 0.9, 0.999]


def test_gaussian_quantiles_invert_the_mixture():
    draws, noise = draws_of_predictor(), NOISE["gaussian"]
    quantiles = families.likelihood("gaussian").predictive_quantiles(draws, noise, LEVELS)
    reached = stats.norm.cdf(quantiles[:, None], draws, np.sqrt(noise)).mean(axis=1)
    expected = np.broadcast_to(np.reshape(LEVELS, (-1, 1, 1)), reached.shape)
    np.testing.assert_allclose(reached, expected, rtol=1e-8)


def test_poisson_quantile_is_the_smallest_count_that_reaches_the_level():
    draws = draws_of_predictor() + 5
    quantiles = families.likelihood("poisson").predictive_quantiles(draws, np.ones(3), LEVELS)
    level = np.reshape(LEVELS, (-1, 1, 1))

    def reached(count):
        return stats.poisson.cdf(count[:, None], np.exp(draws)).mean(axis=1)

    assert (reached(quantiles) >= level).all()
    assert (reached(quantiles - 1) < level).all()


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("name", [n for n in NAMES if not families.likelihood(n).one_hot])
def test_quantiles_match_those_of_samples(name, shift):
    likelihood, noise = families.likelihood(name), noise_of(name)
    draws = draws_of_predictor() + shift
    repeated = np.repeat(draws, 2000, axis=0)
    samples = likelihood.sample(repeated, noise, np.random.default_rng(5))
    levels = [0.1, 0.5, 0.9]
    for level, quantile in zip(
        levels, likelihood.predictive_quantiles(draws, noise, levels), strict=True
    ):
        error = 5 * np.sqrt(0.25 / len(samples))
        assert ((samples <= quantile).mean(axis=0) > level - error).all()
        assert ((samples < quantile).mean(axis=0) < level + error).all()


@pytest.mark.parametrize("name", ["gaussian", "poisson", "bernoulli"])
def test_one_level_may_be_a_number(name):
    quantiles = families.likelihood(name).predictive_quantiles(
        draws_of_predictor(), np.ones(3), 0.5
    )
    assert quantiles.shape == (1, 4, 3)


def test_poisson_quantile_of_a_rare_count_beside_a_frequent_one_is_zero():
    draws = np.log([[[1e-3], [5000.0]]])
    quantiles = families.likelihood("poisson").predictive_quantiles(draws, np.ones(1), [0.5])
    assert quantiles[0, 0, 0] == 0


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, np.nan])
@pytest.mark.parametrize("name", ["gaussian", "poisson", "bernoulli"])
def test_impossible_quantile_levels_are_named(name, level):
    with pytest.raises(ValueError, match=f"Got quantile levels \\[0.5, {level}\\]"):
        families.likelihood(name).predictive_quantiles(
            draws_of_predictor(), np.ones(3), [0.5, level]
        )


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("mean", [-1.0, 1.0, 5.0])
@pytest.mark.parametrize("name", ["zero_inflated_poisson", "zero_inflated_negative_binomial"])
def test_quantiles_of_zero_inflated_counts_are_the_smallest_counts_that_reach_the_level(
    name, mean, spread
):
    family, rng = families.likelihood(name), np.random.default_rng(7)
    eta = mean + 0.3 * rng.normal(size=(60, 5, 1))
    noise = 0.6 * np.exp(spread * rng.normal(size=(60, 1, family.n_noise(1))))
    levels = np.array([0.001, 0.05, 0.2, 0.4, 0.5, 0.9, 0.999])
    found = family.predictive_quantiles(eta, noise, levels)
    none, size, rate = noise[..., -1:] / (1 + noise[..., -1:]), 1 / noise[..., :1], np.exp(eta)

    def reached(count):
        counts = stats.poisson.cdf(count[:, None], rate)
        if family.n_noise(1) > 1:
            counts = stats.nbinom.cdf(count[:, None], size, size / (size + rate))
        return (none * (count[:, None] >= 0) + (1 - none) * counts).mean(axis=1)

    level = levels.reshape(-1, 1, 1)
    assert (reached(found) >= level - 1e-11).all()
    assert (reached(found - 1) < level + 1e-11).all()


@pytest.mark.parametrize("name", ["zero_inflated_poisson", "zero_inflated_negative_binomial"])
def test_quantiles_of_zero_inflated_counts_may_have_noise_by_row(name):
    family, rng = families.likelihood(name), np.random.default_rng(8)
    eta = 1 + rng.normal(size=(20, 3, 1))
    noise = np.array([[0.3], [0.3], [2.0]]) * np.ones(family.n_noise(1))
    found = family.predictive_quantiles(eta, noise, [0.5, 0.9])
    for row in range(3):
        alone = family.predictive_quantiles(eta[:, row : row + 1], noise[row], [0.5, 0.9])
        np.testing.assert_array_equal(found[:, row : row + 1], alone)


def test_classes_have_no_quantiles():
    with pytest.raises(ValueError, match="no order"):
        families.likelihood("categorical").predictive_quantiles(
            draws_of_predictor(), np.ones(3), [0.5]
        )


@pytest.mark.parametrize("name", NAMES)
def test_initial_bias_nearly_minimises_the_nll_of_a_constant(name):
    likelihood, noise = families.likelihood(name), noise_of(name)
    # Thresholds are shared by all outputs, and so is what they are estimated from.
    eta = np.broadcast_to([0.3] * 3 if likelihood.ordered else [-1.0, 0.3, 2.0], (500, 3))
    y = likelihood.sample(eta, noise, np.random.default_rng(6))
    if likelihood.ordered:
        y = y[:, :1]
    if likelihood.given(noise) is not likelihood:
        noise = likelihood.start_noise(y)
    bias = np.broadcast_to(likelihood.initial_bias(y), y.shape)
    slope = likelihood.gradient(y, bias, noise).mean(axis=0)
    assert (abs(slope) < 1 / len(y)).all()  # a pseudo-observation at most


@pytest.mark.parametrize("name", NAMES)
def test_initial_bias_is_finite_when_an_outcome_never_occurs(name):
    y = np.zeros((4, 3))
    y[:, 0] = 1
    assert np.isfinite(families.likelihood(name).initial_bias(y)).all()


def test_unknown_likelihood_is_named():
    with pytest.raises(ValueError, match="Got likelihood='gamma', expected one of bernoulli"):
        families.likelihood("gamma")


@pytest.mark.parametrize("name", sorted(set(NOISE) - {"ordinal"}))
def test_noise_rests_where_the_likelihood_is_greatest(name):
    family, rng = families.likelihood(name), np.random.default_rng(0)
    eta = rng.normal(1, 0.5, size=(400, 1))
    noise = np.ones(family.n_noise(1))
    y = family.sample(eta, noise / 2, rng)
    for _ in range(3000):
        noise = noise + 0.05 * (family.noise_terms(y, eta, noise).mean(axis=0) - noise)
    for number in range(len(noise)):
        grid = np.tile(noise, (41, 1))
        grid[:, number] *= np.exp(np.linspace(-0.02, 0.02, 41))
        total = [family.nll(y, eta, each).sum() for each in grid]
        assert 17 <= np.argmin(total) <= 23


def test_gaps_rest_where_the_likelihood_is_greatest():
    family, rng = families.likelihood("ordinal"), np.random.default_rng(0)
    eta = rng.normal(1, 2, size=(400, 1))
    y = family.sample(eta, np.array([0.5, 3.0]), rng)
    noise = np.array([2.0, 1.0])
    for _ in range(1500):
        noise = noise + 0.2 * (family.noise_terms(y, eta, noise).mean(axis=0) - noise)
    for gap in range(2):
        factor = np.ones((41, 2))
        factor[:, gap] = np.exp(np.linspace(-0.02, 0.02, 41))
        total = [family.nll(y, eta, noise * each).sum() for each in factor]
        assert 17 <= np.argmin(total) <= 23


def test_probabilities_of_ordered_classes_are_differences_of_the_logistic_distribution():
    gaps, eta = np.array([0.7, 1.9]), np.array([[-1.0], [0.5], [4.0]])
    found = families.likelihood("ordinal").given(gaps).class_probabilities(eta)
    ends = np.array([-np.inf, 0.0, 0.7, 2.6, np.inf])
    np.testing.assert_allclose(found, np.diff(stats.logistic.cdf(ends - eta)), atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_the_expected_hessian_of_ordered_classes_is_the_variance_of_the_score():
    family, gaps, eta = families.likelihood("ordinal"), np.array([0.7, 1.9]), np.array([[0.4]])
    shares = family.given(gaps).class_probabilities(eta)[0]
    scores = [family.gradient(np.array([[level]]), eta, gaps)[0, 0] for level in (1.0, 2, 3, 4)]
    assert shares @ scores == pytest.approx(0, abs=1e-12)
    root = family.hessian_roots(eta, gaps)[0, 0, 0]
    assert root**2 == pytest.approx(shares @ np.square(scores), rel=1e-10)


@pytest.mark.parametrize("name", ["zero_inflated_poisson", "zero_inflated_negative_binomial"])
def test_the_expected_hessian_of_zero_inflated_counts_is_the_variance_of_the_score(name):
    family, noise = families.likelihood(name), NOISE[name][[0, -1]]
    noise, eta = noise[-family.n_noise(1) :], np.full((400, 1), 0.8)
    y = np.arange(400.0)[:, None]
    share = np.exp(-family.nll(y, eta, noise))
    assert share.sum() == pytest.approx(1, abs=1e-9)
    score = family.gradient(y, eta, noise)[:, 0]
    assert share @ score == pytest.approx(0, abs=1e-9)
    root = family.hessian_roots(eta[:1], noise)[0, 0, 0]
    assert root**2 == pytest.approx(share @ score**2, rel=1e-8)


def two_targets(seed=0, n_rows=6):
    """Targets, twice, and predictors of their means and log SDs."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(n_rows, 4))
    return families.likelihood("heteroscedastic").sample(eta, np.ones(4), rng), eta


def test_noise_with_a_predictor_has_the_normal_density():
    y, eta = two_targets()
    found = families.likelihood("heteroscedastic").nll(y, eta, np.ones(4))
    expected = -stats.norm.logpdf(y[:, :2], eta[:, :2], np.exp(eta[:, 2:])).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    in_torch = families.likelihood("heteroscedastic").nll(
        *(torch.from_numpy(each) for each in (y, eta, np.ones(4)))
    )
    np.testing.assert_allclose(in_torch.numpy(), expected, rtol=1e-12)


def test_gradients_of_noise_with_a_predictor_match_finite_differences():
    y, eta = two_targets()
    eta[0, 2:] = [20.0, -20.0]  # beyond the largest log SD
    likelihood, noise, step = families.likelihood("heteroscedastic"), np.ones(4), 1e-6
    gradient = likelihood.gradient(y, eta, noise)
    for output in range(4):
        move = step * np.eye(4)[output]
        up, down = (likelihood.nll(y, eta + sign * move, noise) for sign in (1, -1))
        np.testing.assert_allclose(
            gradient[1:, output], ((up - down) / (2 * step))[1:], rtol=1e-5, atol=1e-6
        )
    assert (gradient[0, 2:] == 0).all()


def test_the_expected_hessian_of_noise_with_a_predictor_is_the_variance_of_the_score():
    family, noise = families.likelihood("heteroscedastic"), np.ones(2)
    eta = np.broadcast_to([0.3, -0.7], (N_SAMPLES, 2))
    scores = family.gradient(family.sample(eta, noise, np.random.default_rng(0)), eta, noise)
    roots = family.hessian_roots(eta[:1], noise)[:, 0]
    np.testing.assert_allclose(np.cov(scores.T), roots.T @ roots, atol=0.1)


def test_quantiles_and_variances_of_noise_with_a_predictor_are_those_of_the_mixture():
    family, noise = families.likelihood("heteroscedastic"), np.ones(4)
    draws = np.random.default_rng(1).normal(0.5, 0.7, size=(40, 3, 4))
    quantiles = family.predictive_quantiles(draws, noise, LEVELS)
    reached = stats.norm.cdf(quantiles[:, None], draws[..., :2], np.exp(draws[..., 2:]))
    expected = np.broadcast_to(np.reshape(LEVELS, (-1, 1, 1)), (5, 3, 2))
    np.testing.assert_allclose(reached.mean(axis=1), expected, rtol=1e-8)
    total = family.uncertainty(draws, noise).total
    second = (np.exp(2 * draws[..., 2:]) + draws[..., :2] ** 2).mean(axis=0)
    np.testing.assert_allclose(total, second - draws[..., :2].mean(axis=0) ** 2)
