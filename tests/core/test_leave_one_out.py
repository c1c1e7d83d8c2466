"""Leave-one-out densities against ArviZ and against a model whose answer is known."""

import numpy as np
import pytest
from scipy.stats import norm

from islab.core.leave_one_out import leave_one_out, stacking_weights


@pytest.mark.parametrize("n_draws", [100, 400, 1000])
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_densities_are_those_of_arviz(n_draws, spread):
    arviz = pytest.importorskip("arviz_stats.base")
    rows = spread * np.random.default_rng(1).standard_t(5, size=(n_draws, 30))
    elpd, k = leave_one_out(rows)
    log_weights, expected_k = arviz.array_stats.psislw(rows.T, axis=-1)
    expected = np.log(np.exp(log_weights + rows.T).sum(axis=-1))
    np.testing.assert_allclose(k, expected_k, atol=1e-8)
    np.testing.assert_allclose(elpd, expected, atol=1e-8)


def test_densities_are_those_of_a_normal_mean_without_the_row():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(40)
    draws = y.mean() + rng.standard_normal((20_000, 1)) / np.sqrt(len(y))
    elpd, _ = leave_one_out(norm.logpdf(y, draws, 1.0))
    others = (y.sum() - y) / (len(y) - 1)
    exact = norm.logpdf(y, others, np.sqrt(1 + 1 / (len(y) - 1)))
    np.testing.assert_allclose(elpd, exact, atol=0.01)


def test_equal_draws_have_their_own_density():
    rows = np.tile(np.array([-1.0, -2.0, -5.0]), (200, 1))
    np.testing.assert_allclose(leave_one_out(rows)[0], rows[0])


@pytest.mark.parametrize("n_rows", [50, 5000])
def test_a_chain_that_predicts_worse_everywhere_keeps_the_share_of_the_prior(n_rows):
    elpd = np.array([[-1.0] * n_rows, [-21.0] * n_rows])
    prior = np.sqrt(n_rows) / 3
    lost = prior / (n_rows + 2 * prior)
    np.testing.assert_allclose(stacking_weights(elpd), [1 - lost, lost], rtol=1e-6)


def test_chains_that_differ_by_chance_have_nearly_equal_shares():
    elpd = np.random.default_rng(0).normal(-1, 0.05, size=(3, 400))
    np.testing.assert_allclose(stacking_weights(elpd), 1 / 3, atol=0.03)


def test_stacking_mixes_chains_that_predict_different_rows():
    rng = np.random.default_rng(0)
    first = rng.random(1000) < 0.7
    elpd = np.log(np.where(first, [[0.9], [0.1]], [[0.1], [0.9]]))
    weights = stacking_weights(elpd)
    grid = np.linspace(0.001, 0.999, 999)
    mixed = grid[:, None] * np.exp(elpd[0]) + (1 - grid)[:, None] * np.exp(elpd[1])
    prior = np.sqrt(1000) / 3 * np.log(grid * (1 - grid))
    best = grid[(np.log(mixed).sum(axis=1) + prior).argmax()]
    assert weights[0] == pytest.approx(best, abs=0.002)
