import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from islab import ISLaBRegressor
from islab.evaluate import evaluate
from islab.report import render_report

from .conftest import QUICK

MODELS = ["full", "median"]


def test_predictions_are_in_the_units_of_the_target(regressor, table, numbers):
    error = np.sqrt(np.mean((regressor.predict(table) - numbers) ** 2))
    assert error < 30  # the noise is 15, the target's deviation 90


def test_the_deviation_holds_noise_and_doubt(regressor, table):
    _, sd = regressor.predict(table, return_std=True)
    uncertainty = regressor.decompose_uncertainty(table)
    np.testing.assert_allclose(sd**2, uncertainty.total[:, 0])
    assert (uncertainty.aleatoric > 0).all()
    assert (uncertainty.epistemic > 0).all()


def test_changing_the_unit_changes_the_predictions_alike(regressor, table, numbers):
    scaled = ISLaBRegressor(**QUICK).fit(table, 1000 * numbers + 7)
    np.testing.assert_allclose(
        scaled.predict(table), 1000 * regressor.predict(table) + 7, rtol=1e-3
    )


@pytest.mark.parametrize("model", MODELS)
def test_intervals_cover_about_their_level(regressor, table, numbers, model):
    lower, upper = regressor.predict_interval(table, level=0.9, model=model).T
    assert 0.8 < np.mean((lower < numbers) & (numbers < upper)) <= 1


def test_wider_levels_give_wider_intervals(regressor, table):
    narrow, wide = (regressor.predict_interval(table, level) for level in (0.5, 0.99))
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (wide[:, 1] > narrow[:, 1]).all()


@pytest.mark.parametrize("level", [0, 1, -0.5, 90])
def test_levels_outside_0_and_1_are_refused(regressor, table, level):
    with pytest.raises(ValueError, match=f"Got level={level}"):
        regressor.predict_interval(table, level)


def test_quantiles_are_in_order(regressor, table):
    quantiles = regressor.predict_quantiles(table, [0.1, 0.5, 0.9])
    assert quantiles.shape == (len(table), 3)
    assert (np.diff(quantiles, axis=1) > 0).all()


@pytest.mark.parametrize("model", MODELS)
def test_draws_average_to_the_prediction(two_outputs, table, model):
    draws = two_outputs.sample_posterior(table, 200, model=model)
    assert draws.shape == (200, len(table), 2)
    np.testing.assert_allclose(draws.mean(axis=0), two_outputs.predict(table, model=model))


def test_no_draws_are_refused(regressor, table):
    with pytest.raises(ValueError, match="Got n_draws=0"):
        regressor.sample_posterior(table, 0)


def test_several_targets_are_learned_together(two_outputs, table, numbers):
    predicted = two_outputs.predict(table)
    assert predicted.shape == (len(table), 2)
    assert two_outputs.network_.scale.outputs == ("price", "half")
    np.testing.assert_allclose(np.corrcoef(predicted.T)[0, 1], -1, atol=0.05)


def test_several_targets_have_intervals_each(two_outputs, table):
    assert two_outputs.predict_interval(table).shape == (len(table), 2, 2)


def test_a_target_column_stays_a_column(table, numbers):
    model = ISLaBRegressor(**QUICK).fit(table, numbers.to_numpy()[:, None])
    assert model.predict(table).shape == (len(table), 1)


def test_counts_have_whole_and_positive_intervals(poisson, table):
    interval = poisson.predict_interval(table)
    np.testing.assert_array_equal(interval, np.round(interval))
    assert (interval >= 0).all()


def test_expected_counts_follow_the_counts(poisson, table, counts):
    assert np.corrcoef(poisson.predict(table), counts)[0, 1] > 0.6


def test_the_variance_of_a_count_is_at_least_its_mean(poisson, table):
    mean, sd = poisson.predict(table, return_std=True)
    assert (sd**2 >= mean * (1 - 1e-9)).all()


def test_negative_counts_are_refused(table, counts):
    with pytest.raises(ValueError, match=r"Got -1.0 in y.*counts, 0 or more"):
        ISLaBRegressor(likelihood="poisson", **QUICK).fit(table, np.r_[-1, counts[1:]])


def test_counts_so_large_that_the_likelihood_has_no_maximum_are_refused(table, counts):
    with pytest.raises(ValueError, match=r"Got 1e\+10 in y.*below 4.85e\+08; try a larger unit"):
        ISLaBRegressor(likelihood="poisson", **QUICK).fit(table, np.r_[1e10, counts[1:]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_targets_that_are_no_numbers_are_refused_with_their_row(table, numbers, value):
    unusable = numbers.copy()
    unusable.iloc[9] = value
    with pytest.raises(ValueError, match=rf"Got {value} in y \(row 9"):
        ISLaBRegressor(**QUICK).fit(table, unusable)


def test_as_many_targets_as_rows_are_needed(table, numbers):
    with pytest.raises(ValueError, match="Got 120 rows of X and 119 of y"):
        ISLaBRegressor(**QUICK).fit(table, numbers[:-1])


def test_a_constant_target_is_predicted_as_it_is(table):
    with pytest.warns(UserWarning, match="^The target 'y' is 5 in all rows: there is nothing to"):
        model = ISLaBRegressor(**QUICK).fit(table, np.full(len(table), 5.0))
    np.testing.assert_allclose(model.predict(table), 5, atol=0.5)


def test_residuals_are_observed_minus_predicted(regressor, table, numbers):
    frame = regressor.residuals(table, numbers)
    np.testing.assert_allclose(frame["residual"], numbers - regressor.predict(table))
    assert frame["standardised"].std() < 2


def test_residuals_of_several_targets_name_them(two_outputs, table, numbers):
    frame = two_outputs.residuals(table, np.column_stack([numbers, -numbers / 2]))
    assert frame["output"].tolist()[:3] == ["price", "half", "price"]


def test_a_row_that_counts_twice_counts_like_two(table, numbers):
    weighted = ISLaBRegressor(**QUICK).fit(table, numbers, np.full(len(table), 2.0))
    assert weighted.elbo_ < ISLaBRegressor(**QUICK).fit(table, numbers).elbo_


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_weights_that_are_no_weights_are_refused(table, numbers, weight):
    with pytest.raises(ValueError, match=r"[Nn]egative|NaN"):
        ISLaBRegressor(**QUICK).fit(table, numbers, np.r_[weight, np.ones(len(table) - 1)])


def test_weights_that_leave_one_row_are_refused(table, numbers):
    with pytest.raises(ValueError, match="1 rows with a positive sample_weight"):
        ISLaBRegressor(**QUICK).fit(table, numbers, np.r_[1, np.zeros(len(table) - 1)])


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_that_no_row_can_have_are_refused(table, numbers, weight):
    with pytest.raises(ValueError, match=r"Got sample_weight up to 1e.*expected how often rows"):
        ISLaBRegressor(**QUICK).fit(table, numbers, np.full(len(table), weight))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("predict", []),
        ("predict_quantiles", [[0.5]]),
        ("predict_interval", []),
        ("sample_posterior", []),
        ("decompose_uncertainty", []),
        ("explain_local", []),
    ],
)
def test_it_must_be_fitted_before_it_answers(table, method, arguments):
    with pytest.raises(NotFittedError):
        getattr(ISLaBRegressor(), method)(table, *arguments)


def test_targets_are_matched_by_name(two_outputs, table, numbers):
    names = list(two_outputs.network_.scale.outputs)
    targets = pd.DataFrame(two_outputs.predict(table) + 1, columns=names)
    turned = targets[names[::-1]]
    pd.testing.assert_frame_equal(
        two_outputs.residuals(table, turned), two_outputs.residuals(table, targets)
    )
    assert two_outputs.score(table, turned) == two_outputs.score(table, targets)
    assert evaluate(two_outputs, table, turned) == evaluate(two_outputs, table, targets)
    pages = [render_report(two_outputs, table, y, n_draws=10) for y in (targets, turned)]
    assert pages[0] == pages[1]


def test_posterior_and_network_take_the_same_rows(regressor, table):
    rows = regressor.columns_.encode(table.iloc[:20])
    full = regressor.posterior_.sample_predictor(rows, 400, np.random.default_rng(0))
    median = regressor.network_.sample_predictor(rows, 400, np.random.default_rng(0))
    np.testing.assert_allclose(full.mean(axis=0), median.mean(axis=0), rtol=0.1, atol=5)


def test_two_of_very_many_columns_are_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(250, 4000))
    y = 2 * x[:, 0] + x[:, 1] + 0.1 * rng.normal(size=250)
    model = ISLaBRegressor(hidden_layer_sizes=(), max_epochs=250, random_state=0)
    with pytest.warns(UserWarning, match="the 500 most associated with the target"):
        model.fit(x[:200], y[:200])
    assert model.network_.covariates.tolist() == [0, 1]
    assert model.score(x[200:], y[200:]) > 0.99


def test_several_outputs_use_columns_that_are_nearly_alike():
    """Spectra: neighbouring channels hardly differ, and their differences tell the outputs."""
    rng = np.random.default_rng(0)
    place = np.linspace(0, 1, 100)
    parts = rng.normal(size=(160, 3))
    peaks = np.exp(-0.5 * ((place - np.array([[0.3], [0.5], [0.7]])) / 0.15) ** 2)
    level = 10 * rng.normal(size=(160, 1)) * (1 + 0.2 * place)
    x = level + parts @ peaks + 0.01 * rng.normal(size=(160, 100))
    model = ISLaBRegressor(hidden_layer_sizes=(), random_state=0).fit(x[:120], parts[:120])
    assert model.score(x[120:], parts[120:]) > 0.7


def test_of_several_targets_the_constant_one_is_named(table, numbers):
    both = pd.DataFrame({"price": numbers, "tax": 0.0})
    with pytest.warns(UserWarning, match="The target 'tax' is 0 in all rows") as said:
        ISLaBRegressor(**QUICK).fit(table, both)
    assert len(said) == 1


def test_rows_of_weight_0_do_not_make_a_target_vary(table, numbers):
    weight = np.r_[0.0, np.ones(len(table) - 1)]
    with pytest.warns(UserWarning, match="is 3 in all rows"):
        ISLaBRegressor(**QUICK).fit(table, np.where(weight > 0, 3.0, numbers), weight)
