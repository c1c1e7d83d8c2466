import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson
from sklearn.linear_model import BayesianRidge, LogisticRegression

from islab import ISLaBClassifier, ISLaBRegressor
from islab.evaluate import (
    PINBALL_LEVELS,
    calibration_error,
    crps,
    evaluate,
    inclusion_rate,
    interval_coverage,
    interval_width,
    pinball_loss,
    score_classes,
    score_numbers,
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


def test_right_and_certain_predictions_have_no_error():
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


def test_each_row_may_have_its_own_noise():
    y, sd = np.array([0.3, -1.0, 2.0]), np.array([0.7, 0.0, 2.0])
    alone = [crps([own], [[1.0]], sd=width) for own, width in zip(y, sd, strict=True)]
    assert crps(y, np.ones((1, 3)), sd=sd) == pytest.approx(np.mean(alone))


def test_each_draw_may_have_its_own_noise():
    centres, sd, y = np.array([-1.0, 0.5, 3.0]), np.array([0.4, 1.5, 0.2]), 1.0
    grid = np.linspace(-8, 9, 170_001)
    share = norm.cdf((grid - centres[:, None]) / sd[:, None]).mean(axis=0)
    integral = ((share - (grid >= y)) ** 2).sum() * (grid[1] - grid[0])
    found = crps([y], centres[:, None], sd=sd[:, None])
    assert found == pytest.approx(integral, abs=1e-4)


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


# -- all scores of classes --------------------------------------------------------------------

STATED = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])


def test_scores_of_two_classes_are_those_of_their_definitions():
    scores = score_classes(["no", "yes", "yes"], STATED, ["no", "yes"])
    assert scores == pytest.approx(
        {
            "accuracy": 2 / 3,
            "auc": 1.0,
            "ece": (0.1 + 0.4 + 0.7) / 3,
            "nll": -np.log([0.9, 0.6, 0.3]).mean(),
            "brier": np.square([0.1, 0.4, 0.7]).mean(),
        }
    )


def test_the_brier_score_of_several_classes_sums_over_them():
    stated = [[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]
    scores = score_classes([0, 1], stated, [0, 1, 2])
    assert scores["brier"] == pytest.approx((0.25 + 0.09 + 0.04 + 0.01 + 0.04 + 0.01) / 2)


def test_the_auc_of_several_classes_is_the_mean_of_each_against_the_others():
    stated = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.3, 0.2, 0.5], [0.45, 0.35, 0.2]])
    y = np.array([0, 1, 2, 0])
    # Class 0: 3 of 4 pairs in order; class 1: 3 of 3; class 2: 3 of 3.
    assert score_classes(y, stated, [0, 1, 2])["auc"] == pytest.approx((3 / 4 + 1 + 1) / 3)


def test_there_is_no_auc_where_y_lacks_a_class():
    assert np.isnan(score_classes(["no", "no", "no"], STATED, ["no", "yes"])["auc"])


def test_a_class_that_training_did_not_see_is_named():
    with pytest.raises(ValueError, match=r"Got class 'perhaps' in y, expected .* no, yes"):
        score_classes(["no", "yes", "perhaps"], STATED, ["no", "yes"])


def test_there_is_a_column_for_each_class():
    with pytest.raises(ValueError, match=r"shape \(3, 2\) for 3 classes"):
        score_classes([0, 1, 2], STATED, [0, 1, 2])


# -- all scores of numbers --------------------------------------------------------------------

OBSERVED = np.array([1.0, 2.0, 4.0])
MEAN, SD = np.array([1.5, 2.0, 3.0]), np.array([0.5, 1.0, 2.0])


def test_scores_of_one_normal_are_those_of_their_definitions():
    scores = score_numbers(OBSERVED, MEAN[None], SD**2)
    quantiles = MEAN[:, None] + SD[:, None] * norm.ppf(PINBALL_LEVELS)
    assert scores == pytest.approx(
        {
            "rmse": np.sqrt((0.25 + 0 + 1) / 3),
            "mae": 0.5,
            "r2": 1 - 1.25 / np.square(OBSERVED - OBSERVED.mean()).sum(),
            "pearson": np.corrcoef(OBSERVED, MEAN)[0, 1],
            "nll": -norm.logpdf(OBSERVED, MEAN, SD).mean(),
            "pinball": pinball_loss(OBSERVED, quantiles),
            "pinball_paper": 0.25,
            "coverage": 1.0,
            "width": 2 * norm.ppf(0.95) * SD.mean(),
            "crps": gaussian_crps(OBSERVED, MEAN, SD).mean(),
        }
    )


def test_draws_are_a_mixture():
    centres = np.array([[0.0], [2.0]])
    density = (norm.pdf(0.5, 0, 0.3) + norm.pdf(0.5, 2, 0.3)) / 2
    scores = score_numbers([0.5], centres, 0.09)
    assert scores["nll"] == pytest.approx(-np.log(density))
    assert scores["rmse"] == pytest.approx(0.5)


def test_draws_with_noise_of_their_own_are_a_mixture():
    centres, sd = np.array([[0.0], [2.0]]), np.array([0.3, 1.2])
    density = norm.pdf(0.5, centres[:, 0], sd).mean()
    scores = score_numbers([0.5], centres, (sd**2)[:, None, None])
    assert scores["nll"] == pytest.approx(-np.log(density))


def test_intervals_are_those_of_all_draws_in_whatever_order_they_come():
    centres = np.repeat([[0.0], [10.0]], 500, axis=0)
    assert score_numbers([5.0], centres, 0.01)["width"] > 9


def test_counts_have_the_score_of_their_rates():
    scores = score_numbers([3.0, 0.0], np.log([[2.0, 1.0]]), likelihood="poisson")
    assert scores["nll"] == pytest.approx(-poisson.logpmf([3, 0], [2.0, 1.0]).mean())


def test_counts_have_the_crps_of_their_distribution_function():
    values = np.arange(60)
    exact = np.square(poisson.cdf(values, 6.0) - (values >= 9)).sum()
    scores = score_numbers([9.0], np.log([[6.0]]), likelihood="poisson")
    assert scores["crps"] == pytest.approx(exact, rel=0.02)


def test_targets_that_do_not_vary_have_no_correlation():
    scores = score_numbers([1.0, 1.0], [[0.5, 1.0]], 1.0)
    assert np.isnan([scores["r2"], scores["pearson"]]).all()


def test_predictions_that_do_not_vary_have_no_correlation():
    assert np.isnan(score_numbers([1.0, 2.0], [[1.5, 1.5]], 1.0)["pearson"])


def test_numbers_without_noise_have_no_density():
    with pytest.raises(ValueError, match="Got noise=0, expected positive"):
        score_numbers([1.0], [[1.0]])


# -- evaluating a model -----------------------------------------------------------------------

QUICK = {"max_epochs": 20, "n_restarts": 1, "hidden_layer_sizes": (3,), "random_state": 0}


def make_table(n_rows=60):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    return table, table["a"] - table["b"] + 0.3 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def classifier():
    table, score = make_table()
    return ISLaBClassifier(**QUICK).fit(table, score > 0)


@pytest.fixture(scope="module")
def regressor():
    return ISLaBRegressor(**QUICK).fit(*make_table())


@pytest.mark.parametrize("model", ["full", "median"])
def test_a_classifier_has_the_scores_of_its_probabilities(classifier, model):
    table, score = make_table()
    found = evaluate(classifier, table, score > 0, model=model)
    expected = score_classes(score > 0, classifier.predict_proba(table, model=model), [False, True])
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("model", ["full", "median"])
def test_a_regressor_has_the_error_of_its_predictions(regressor, model):
    table, y = make_table()
    error = y - regressor.predict(table, model=model)
    found = evaluate(regressor, table, y, model=model)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize("model", ["full", "median"])
def test_a_regressor_has_the_density_of_its_predictions(regressor, model):
    table, y = make_table()
    found = evaluate(regressor, table, y, model=model)
    expected = regressor.predictions(table).log_score(y, model).mean()
    assert found["nll"] == pytest.approx(expected, rel=1e-9)


def test_outputs_are_averaged():
    table, y = make_table()
    both = np.column_stack([y, 10 * table["c"] + y])
    model = ISLaBRegressor(**QUICK).fit(table, both)
    error = np.sqrt(np.mean((both - model.predict(table)) ** 2, axis=0))
    assert evaluate(model, table, both)["rmse"] == pytest.approx(error.mean())


def test_the_median_model_has_the_size_of_its_network(regressor):
    table, y = make_table()
    found, network = evaluate(regressor, table, y, model="median"), regressor.network_
    assert found["used_weights"] == network.n_used_weights
    assert found["density"] == network.density
    assert found["average_depth"] == network.average_depth
    assert found["max_depth"] == network.max_depth


def test_the_full_model_has_the_mean_size_of_its_draws():
    table, y = make_table()
    regressor = ISLaBRegressor(**QUICK, posterior="independent").fit(table, y)
    expected = regressor.posterior_.alpha.sum()
    # Weights off active paths are not used, so that the sum of probabilities is an upper bound.
    used = evaluate(regressor, table, y, model="full")["used_weights"]
    assert regressor.n_used_weights_ - 1 < used < expected + 2


def test_a_sampled_model_has_the_mean_size_of_its_draws(regressor):
    table, y = make_table()
    sizes = regressor.posterior_.sizes()
    used = evaluate(regressor, table, y, model="full")["used_weights"]
    assert used == pytest.approx(sizes.mean(), abs=3 * sizes.std() / np.sqrt(len(sizes)) + 0.05)


def test_selected_columns_are_named(regressor):
    table, y = make_table()
    names = regressor.get_feature_names_out().tolist()
    assert evaluate(regressor, table, y)["selected"] == names


def test_any_classifier_can_be_evaluated():
    table, score = make_table()
    model = LogisticRegression().fit(table, score > 0)
    found = evaluate(model, table, score > 0)
    assert found["accuracy"] == model.score(table, score > 0)
    assert np.isnan(found["used_weights"])
    assert found["selected"] is None


def test_any_regressor_that_states_its_spread_can_be_evaluated():
    table, y = make_table()
    model = BayesianRidge().fit(table, y)
    mean, sd = model.predict(table, return_std=True)
    assert evaluate(model, table, y)["nll"] == pytest.approx(-norm.logpdf(y, mean, sd).mean())
