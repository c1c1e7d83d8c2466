"""Certificates hold at their level, and their formulas are right."""

import numpy as np
import pytest

from islab.core.certificate import binary_kl, certify, kl_upper


def test_the_inverse_of_kl_gives_back_the_budget():
    share, budget = np.array([0.0, 0.03, 0.5]), np.array([0.01, 0.02, 0.1])
    assert binary_kl(share, kl_upper(share, budget)) == pytest.approx(budget, rel=1e-9)


def test_without_errors_the_bound_of_the_average_is_in_closed_form():
    found = certify(np.zeros(10), 0.0, 100, level=0.9)
    assert found.average_bound == pytest.approx(1 - 0.05 ** (1 / 100))


def test_equal_losses_keep_equal_weights():
    found = certify(np.full(10, 0.2), 0.2, 100, level=0.95)
    assert found.kl == pytest.approx(0, abs=1e-12)
    assert found.weights == pytest.approx(np.full(10, 0.1))


def test_weights_chosen_by_the_rows_lower_the_bound_where_draws_differ():
    losses = np.r_[np.full(50, 0.05), np.full(50, 0.5)]
    found = certify(losses, 0.3, 500, level=0.95)
    budget = np.log(2 * np.sqrt(500) / 0.025) / 500
    assert found.bound < kl_upper(np.array([losses.mean()]), np.array([budget]))[0]


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_bounds_hold_at_their_level_also_for_weights_chosen_by_the_rows(rate):
    """Draws of independent errors: choosing among them overfits as much as it can."""
    rng, n_rows, n_draws, repeats = np.random.default_rng(1), 60, 200, 400
    broken = 0
    for _ in range(repeats):
        losses = rng.binomial(n_rows, rate, n_draws) / n_rows
        average = rng.binomial(n_rows, rate) / n_rows
        found = certify(losses, average, n_rows, level=0.8)
        broken += found.bound < rate or found.average_bound < rate
    assert broken / repeats <= 0.2


def test_the_sentence_states_level_bounds_and_rows():
    text = str(certify(np.full(4, 0.1), 0.1, 50, level=0.95))
    assert "0.95 confidence" in text
    assert "error rate" in text
    assert "50 certifying rows" in text
    assert certify(np.full(4, 0.1), 0.1, 50, level=0.95).to_frame().shape == (2, 3)
