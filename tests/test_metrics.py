import numpy as np
import pytest
from scipy.stats import norm

from islab.metrics import (
    PINBALL_LEVELS,
    calibration_error,
    crps,
    inclusion_rate,
    interval_coverage,
    interval_width,
    pinball_loss,
    selection_stability,
)

# -- calibration ------------------------------------------------------------------------------


def test_calibration_error_is_the_mean_gap_of_the_bins():
    stated = np.array([0.95, 0.95, 0.65, 0.65])
    probability = np.column_stack([stated, 1 - stated])
    assert calibration_error([0, 0, 0, 1], probability) == pytest.approx((0.05 + 0.15) / 2)


def test_gaps_within_a_bin_cancel():
    assert calibration_error([1, 0], [0.81, 0.89]) == pytest.approx(0.85 - 0.5)


def test_gaps_of_different_bins_add_up():
    assert calibration_error([1, 0], [0.79, 0.81]) == pytest.approx((0.21 + 0.81) / 2)


def test_the_top_label_counts_where_there_are_columns():
    assert calibration_error([0, 2], [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]) == pytest.approx(0.45)


def test_one_column_counts_as_stated():
    # The top label would be right twice, at 0.9 on average.
    assert calibration_error([0, 1], [0.2, 1.0]) == pytest.approx(0.1)


def test_truths_and_certainties_have_no_error():
    assert calibration_error([0, 1, 1], [0.0, 1.0, 1.0]) == 0


def test_the_end_of_a_bin_belongs_to_it():
    assert calibration_error([1, 0], [0.3, 0.25]) == pytest.approx(0.225)


def test_calibrated_probabilities_have_a_small_error():
    rng = np.random.default_rng(0)
    stated = rng.random(100_000)
    assert calibration_error(rng.random(100_000) < stated, stated) < 0.01


@pytest.mark.parametrize(
    ("y", "probability", "message"),
    [
        ([0, 1], [0.5], "as many rows"),
        ([], [], "not 0"),
        ([0, 1], [0.5, 1.5], "Got probabilities from 0.5 to 1.5"),
        ([0, 2], [0.5, 0.5], "positions of classes, 0 to 1"),
        (["a", "b"], [0.5, 0.5], "positions of classes"),
    ],
)
def test_what_is_no_probability_or_class_is_refused(y, probability, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(y, probability)


# -- quantiles and intervals ------------------------------------------------------------------


def test_the_median_alone_gives_half_the_absolute_error():
    assert pinball_loss([1.0, 5.0], [[2.0], [2.0]], [0.5]) == pytest.approx(0.5 * (1 + 3) / 2)


def test_levels_are_five_percent_apart():
    np.testing.assert_allclose(PINBALL_LEVELS, np.linspace(0.05, 0.95, 19))


def test_true_quantiles_have_the_least_pinball_loss():
    y = np.random.default_rng(1).normal(size=4000)
    right = np.tile(norm.ppf(PINBALL_LEVELS), (len(y), 1))
    assert pinball_loss(y, right) < min(pinball_loss(y, 0.8 * right), pinball_loss(y, 1.2 * right))


def test_pinball_loss_of_many_levels_is_half_the_crps():
    levels = (np.arange(200) + 0.5) / 200
    quantiles = norm.ppf(levels, loc=1.0, scale=2.0)[None]
    assert 2 * pinball_loss([2.5], quantiles, levels) == pytest.approx(
        crps([2.5], [[1.0]], sd=2.0), rel=0.01
    )


def test_as_many_quantiles_as_levels_are_needed():
    with pytest.raises(ValueError, match=r"expected \(rows, 19\)"):
        pinball_loss([1.0], [[1.0, 2.0]])


def test_the_ends_of_an_interval_belong_to_it():
    assert interval_coverage([0.0, 1.0, 1.1, -0.1], [[0, 1]] * 4) == 0.5


def test_width_is_upper_minus_lower():
    assert interval_width([[0, 1], [2, 5]]) == 2


def test_intervals_have_two_ends():
    with pytest.raises(ValueError, match=r"expected \(rows, 2\)"):
        interval_width([[0, 1, 2]])


# -- crps -------------------------------------------------------------------------------------


def gaussian_crps(y, mean, sd):
    """Gneiting and Raftery (2007), equation 5."""
    z = (y - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_a_single_draw_has_the_absolute_error():
    assert crps([1.0, 3.0], [[2.0, 2.5]]) == pytest.approx(0.75)


def test_draws_have_the_score_of_their_step_function():
    draws, y = np.array([0.0, 1.0, 4.0]), 2.0
    grid = np.linspace(-1, 5, 600_001)
    share = (draws[:, None] <= grid).mean(axis=0)
    integral = ((share - (grid >= y)) ** 2).sum() * (grid[1] - grid[0])
    assert crps([y], draws[:, None]) == pytest.approx(integral, abs=1e-4)


def test_one_normal_has_its_closed_form():
    y = np.array([-2.0, 0.1, 5.0])
    expected = gaussian_crps(y, 1.0, 0.7).mean()
    assert crps(y, np.ones((1, 3)), sd=0.7) == pytest.approx(expected)


def test_equal_centres_are_one_normal():
    assert crps([0.3], np.ones((7, 1)), sd=0.7) == pytest.approx(gaussian_crps(0.3, 1.0, 0.7))


def test_a_mixture_has_the_score_of_its_distribution_function():
    centres, sd, y = np.array([-1.0, 0.5, 3.0]), 0.4, 1.0
    grid = np.linspace(-4, 7, 110_001)
    share = norm.cdf((grid - centres[:, None]) / sd).mean(axis=0)
    integral = ((share - (grid >= y)) ** 2).sum() * (grid[1] - grid[0])
    assert crps([y], centres[:, None], sd=sd) == pytest.approx(integral, abs=1e-4)


def test_little_noise_is_nearly_none():
    draws = np.random.default_rng(2).normal(size=(20, 3))
    assert crps(np.zeros(3), draws, sd=1e-9) == pytest.approx(crps(np.zeros(3), draws))


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="Got sd=-1"):
        crps([0.0], [[1.0]], sd=-1)


# -- selections -------------------------------------------------------------------------------


def test_stability_is_the_mean_over_pairs():
    found = selection_stability([{"a", "b"}, {"a"}, {"b", "c"}])
    assert found == pytest.approx((1 / 2 + 1 / 3 + 0) / 3)


def test_empty_selections_agree():
    assert selection_stability([[], []]) == 1


def test_one_selection_is_compared_with_nothing():
    with pytest.raises(ValueError, match="Got 1 selections, expected at least 2"):
        selection_stability([{"a"}])


def test_rates_count_selections_that_hold_a_name():
    rates = inclusion_rate([["a"], ["a", "b"], [], ["a"]], ["a", "b", "c"])
    assert rates == {"a": 0.75, "b": 0.25, "c": 0.0}


def test_no_selections_have_no_rates():
    with pytest.raises(ValueError, match="Got no selections"):
        inclusion_rate([], ["a"])
