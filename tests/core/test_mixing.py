"""R-hat and effective sizes against ArviZ and against processes whose values are known."""

import numpy as np
import pytest

from islab.core.mixing import bulk_size, effective_size, mean_error, of_one_length, rhat


def autoregressive(n_draws, correlation, n_quantities=6, n_chains=4, seed=0):
    """Draws of stationary processes of variance 1, (chains, draws, quantities)."""
    shocks = np.random.default_rng(seed).standard_normal((n_chains, n_draws, n_quantities))
    draws = shocks.copy()
    for step in range(1, n_draws):
        draws[:, step] = correlation * draws[:, step - 1]
        draws[:, step] += np.sqrt(1 - correlation**2) * shocks[:, step]
    return draws


@pytest.mark.parametrize(
    ("n_draws", "correlation"), [(64, 0.0), (101, 0.3), (400, -0.5), (300, 0.95)]
)
def test_values_are_those_of_arviz(n_draws, correlation):
    stats = pytest.importorskip("arviz_stats.base").array_stats
    draws = autoregressive(n_draws, correlation)
    draws[:, :, 4] = draws[:, :, 4] > 0
    draws[:, :, 5] += np.arange(4)[:, None]

    def arviz(name, **options):
        columns = np.moveaxis(draws, 2, 0)
        return [getattr(stats, name)(c, chain_axis=0, draw_axis=1, **options) for c in columns]

    np.testing.assert_allclose(rhat(draws), arviz("rhat"), rtol=1e-12)
    np.testing.assert_allclose(bulk_size(draws), arviz("ess", method="bulk"), rtol=1e-10)
    np.testing.assert_allclose(effective_size(draws), arviz("ess", method="mean"), rtol=1e-10)
    np.testing.assert_allclose(mean_error(draws), arviz("mcse", method="mean"), rtol=1e-10)


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.6, 0.9])
def test_effective_draws_are_those_of_an_autoregressive_process(correlation):
    draws = autoregressive(4000, correlation, n_quantities=20)
    exact = draws.shape[0] * draws.shape[1] * (1 - correlation) / (1 + correlation)
    assert effective_size(draws).mean() == pytest.approx(exact, rel=0.1)


def test_errors_of_means_are_their_spread_over_repetitions():
    draws = autoregressive(200, 0.8, n_quantities=400)
    means = draws.mean(axis=(0, 1))
    assert mean_error(draws).mean() == pytest.approx(means.std(), rel=0.12)


def test_chains_around_different_values_have_a_large_rhat():
    draws = autoregressive(200, 0.0)
    assert rhat(draws).max() < 1.03
    assert (rhat(draws + 3 * np.arange(4)[:, None, None]) > 1.5).all()


def test_chains_of_different_spread_have_a_large_rhat():
    draws = autoregressive(400, 0.0) * np.array([1, 1, 1, 5])[:, None, None]
    assert (rhat(draws) > 1.1).all()


def test_what_never_changes_has_converged():
    draws = np.ones((3, 50, 2))
    np.testing.assert_array_equal(rhat(draws), 1.0)
    np.testing.assert_array_equal(effective_size(draws), 150)
    np.testing.assert_array_equal(mean_error(draws), 0.0)


def test_of_longer_chains_evenly_spaced_draws_are_compared():
    found = of_one_length([np.arange(3), np.arange(101)])
    np.testing.assert_array_equal(found, [[0, 1, 2], [0, 50, 100]])
