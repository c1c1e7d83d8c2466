"""Conformal intervals and prediction sets of fitted models."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.estimators.conformal import MOST_DRAWS, MOST_ROWS
from islab.evaluate import interval_coverage

QUICK = {"hidden_layer_sizes": (2,), "n_restarts": 1, "max_epochs": 300, "random_state": 0}


def make_rows(n_rows, seed):
    """A straight line with noise that is mostly small and sometimes not: no normal noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2))
    sizes = np.where(rng.random(n_rows) < 0.72, 0.1, 3.0)
    return x, x[:, 0] + rng.choice([-1, 1], n_rows) * sizes


@pytest.fixture(scope="module")
def numbers():
    return ISLaBRegressor(**QUICK).fit(*make_rows(300, 0))


def make_classes(n_rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2))
    labels = np.array(["high", "low", "middle"])
    score = x[:, 0] + 0.8 * rng.normal(size=n_rows)
    return x, labels[np.where(score > 0.6, 0, np.where(score < -0.6, 1, 2))]


@pytest.fixture(scope="module")
def classes():
    return ISLaBClassifier(**QUICK).fit(*make_classes(300, 0))


def test_conformal_intervals_cover_where_those_of_the_posterior_do_not(numbers):
    x, y = make_rows(1500, 1)
    level = 0.8
    posterior = interval_coverage(y, numbers.predict_interval(x, level))
    conformal = interval_coverage(y, numbers.predict_interval(x, level, method="conformal"))
    assert posterior < 0.74
    # The level holds on average over training sets: with 300 rows to +-.023 for one of them.
    assert 0.75 < conformal < 0.88


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The targets have outliers")
def test_conformal_intervals_hold_their_level_over_training_sets():
    covered = []
    for seed in range(30):
        model = ISLaBRegressor(**QUICK).fit(*make_rows(100, seed))
        x, y = make_rows(1000, 1000 + seed)
        ends = model.predict_interval(x, 0.8, method="conformal")
        covered.append(interval_coverage(y, ends))
    error = np.std(covered, ddof=1) / np.sqrt(len(covered))
    assert np.mean(covered) > 0.8 - 2.5 * error
    assert np.mean(covered) < 0.85


def test_a_higher_level_gives_wider_intervals_around_the_same_rows(numbers):
    x, _ = make_rows(50, 2)
    narrow, wide = (numbers.predict_interval(x, p, method="conformal") for p in (0.5, 0.95))
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (wide[:, 1] >= narrow[:, 1]).all()


def test_intervals_follow_the_unit_of_the_target(numbers):
    x, y = make_rows(300, 0)
    other = ISLaBRegressor(**QUICK).fit(x, 1000 * y + 5)
    new = x[:20]
    found = other.predict_interval(new, method="conformal")
    expected = 1000 * numbers.predict_interval(new, method="conformal") + 5
    np.testing.assert_allclose(found, expected, atol=60)  # .02 of the spread of the noise


def test_noise_by_covariates_gives_intervals_of_different_widths():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 1))
    y = np.exp(1.5 * x[:, 0]) * rng.normal(size=400)
    model = ISLaBRegressor(likelihood="heteroscedastic", **QUICK).fit(x, y)
    ends = model.predict_interval(np.array([[-0.9], [0.9]]), method="conformal")
    narrow, wide = np.diff(ends, axis=1)[:, 0]
    assert wide > 4 * narrow


def test_prediction_sets_cover_and_are_smaller_than_all_classes(classes):
    x, y = make_classes(1500, 1)
    sets = classes.predict_set(x, level=0.8)
    own = sets[np.arange(len(y)), np.searchsorted(classes.classes_, y)]
    assert 0.76 < own.mean() < 0.87
    assert sets.sum(axis=1).mean() < 2
    assert (classes.predict_set(x, level=0.95) >= sets).all()


@pytest.mark.parametrize("which", ["numbers", "classes"])
def test_files_keep_what_is_needed(which, request, tmp_path):
    model = request.getfixturevalue(which)
    x, _ = make_rows(30, 3)
    model.save(tmp_path / "model.islab")
    other = load(tmp_path / "model.islab")
    if which == "numbers":
        found = [each.predict_interval(x, method="conformal") for each in (model, other)]
    else:
        found = [each.predict_set(x) for each in (model, other)]
    np.testing.assert_array_equal(*found)


def test_other_numbers_of_draws_change_nothing(numbers):
    x, _ = make_rows(10, 3)
    expected = numbers.predict_interval(x, method="conformal")
    copied = ISLaBRegressor(**QUICK).fit(*make_rows(300, 0))
    copied.set_params(n_draws=50)
    np.testing.assert_array_equal(copied.predict_interval(x, method="conformal"), expected)


def test_of_many_rows_some_are_kept():
    x = np.random.default_rng(0).normal(size=(MOST_ROWS + 50, 1))
    model = ISLaBRegressor(**QUICK).fit(x, x[:, 0] + np.sin(9 * x[:, 0]))
    assert model.conformity_.shape == (MOST_DRAWS, MOST_ROWS)


# -- what has none ----------------------------------------------------------------------------


def refused(model, x):
    with pytest.raises(ValueError, match="without what conformal prediction needs"):
        model.predict_interval(x, method="conformal")


def test_weighted_rows_are_refused():
    x, y = make_rows(60, 0)
    weight = np.linspace(1, 2, 60)
    refused(ISLaBRegressor(**QUICK).fit(x, y, sample_weight=weight), x)


def test_equal_weights_are_no_weights():
    x, y = make_rows(60, 0)
    model = ISLaBRegressor(**QUICK).fit(x, y, sample_weight=np.full(60, 2.0))
    assert model.conformity_ is not None


def test_several_targets_are_refused():
    x, y = make_rows(60, 0)
    refused(ISLaBRegressor(**QUICK).fit(x, np.column_stack([y, -y])), x)


def test_counts_are_refused():
    x, _ = make_rows(60, 0)
    visits = np.random.default_rng(0).poisson(2, 60)
    refused(ISLaBRegressor(likelihood="poisson", **QUICK).fit(x, visits), x)


def test_a_sparse_file_is_refused(numbers, tmp_path):
    numbers.save(tmp_path / "model.islab", sparse=True)
    refused(load(tmp_path / "model.islab"), make_rows(5, 0)[0])


def test_the_median_network_is_refused(numbers):
    with pytest.raises(ValueError, match="Got model='median' for a conformal prediction"):
        numbers.predict_interval(make_rows(5, 0)[0], method="conformal", model="median")


def test_another_method_is_refused(numbers):
    with pytest.raises(ValueError, match="Got method='exact'"):
        numbers.predict_interval(make_rows(5, 0)[0], method="exact")


def test_a_level_of_one_is_refused(classes):
    with pytest.raises(ValueError, match="Got level=1"):
        classes.predict_set(pd.DataFrame(make_rows(5, 0)[0]), level=1.0)
