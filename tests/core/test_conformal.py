"""Conformal ranks from weighted draws."""

import numpy as np
import pytest

from islab.core.conformal import (
    add_one_in,
    interval_around,
    p_values,
    scores_of_numbers,
)


def normal_mean(rng, n_rows=30, n_draws=40_000):
    """Rows of a normal mean with a N(0, 1) prior and unit noise, and exact posterior draws."""
    y = rng.normal(0.5, 1, n_rows)
    precision = n_rows + 1
    draws = y.sum() / precision + rng.normal(size=n_draws) / np.sqrt(precision)
    return y, draws


def test_draws_are_weighted_to_the_posterior_with_one_more_row():
    y, draws = normal_mean(np.random.default_rng(0))
    candidates = np.array([-1.0, 0.5, 2.0])
    weights = add_one_in(-((candidates - draws[:, None]) ** 2) / 2)
    expected = (y.sum() + candidates) / (len(y) + 2)
    np.testing.assert_allclose(weights.T @ draws, expected, atol=0.004)
    np.testing.assert_allclose(weights.sum(axis=0), 1)


def test_scores_are_those_of_the_posterior_with_one_more_row():
    y, draws = normal_mean(np.random.default_rng(1))
    weights = add_one_in(-((1.5 - draws[:, None]) ** 2) / 2)
    found = scores_of_numbers(weights, y - draws[:, None])[0]
    mean, variance = (y.sum() + 1.5) / (len(y) + 2), 1 / (len(y) + 2)
    np.testing.assert_allclose(found, np.abs(y - mean) / np.sqrt(1 + variance), atol=0.01)


def test_p_values_are_those_of_fits_with_each_candidate():
    y, draws = normal_mean(np.random.default_rng(2))
    candidates = np.linspace(-2.5, 3.5, 25)
    log_density = -((candidates - draws[:, None]) ** 2) / 2
    found = p_values(y - draws[:, None], log_density, candidates - draws[:, None], classes=False)
    mean = (y.sum() + candidates) / (len(y) + 2)
    far = np.abs(y - mean[:, None]) >= np.abs(candidates - mean)[:, None]
    exact = (1 + far.sum(axis=1)) / (len(y) + 1)
    # A rank may differ by one where two rows are nearly as far.
    assert np.abs(found - exact).max() <= 1 / 31 + 1e-12
    assert (found == exact).mean() > 0.8


def test_the_class_that_fits_worse_than_all_rows_has_the_least_p_value():
    kept = np.full((5, 9), 0.8)
    probability = np.tile([0.1, 0.9], (5, 1))
    found = p_values(kept, np.log(probability), probability, classes=True)
    np.testing.assert_allclose(found, [0.1, 1.0])


def test_intervals_are_found_from_the_centre():
    ends = np.array([[-3.0, 0.5], [-0.01, 40.0]])

    def inside(y, rows):
        return (y >= ends[rows, 0]) & (y <= ends[rows, 1])

    found = interval_around(inside, np.zeros(2), np.ones(2))
    np.testing.assert_allclose(found, ends, atol=5e-3)


def test_an_end_that_is_not_found_is_infinite():
    found = interval_around(lambda y, _: y < 1, np.zeros(1), np.ones(1))
    assert found[0, 0] == -np.inf
    assert found[0, 1] == pytest.approx(1, abs=1e-3)
