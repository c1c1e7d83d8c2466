import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from islab import ISLaBClassifier

from .conftest import QUICK, make_table

MODELS = ["full", "median"]


def test_classes_keep_their_names(classifier, table, labels):
    assert classifier.classes_.tolist() == ["ill", "well"]
    assert set(classifier.predict(table)) == {"ill", "well"}


def test_it_learns_what_decides(classifier, table, labels):
    assert classifier.score(table, labels) > 0.9


def test_three_classes_are_learned(three_classes, table, three_labels):
    assert three_classes.score(table, three_labels) > 0.8


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_sum_to_1(three_classes, table, model):
    probabilities = three_classes.predict_proba(table, model=model)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["classifier", "three_classes"])
def test_draws_average_to_the_prediction(request, table, name, model):
    estimator = request.getfixturevalue(name)
    draws = estimator.sample_posterior(table, model=model)
    assert draws.shape == (200, len(table), len(estimator.classes_))
    np.testing.assert_allclose(
        draws.mean(axis=0), estimator.predict_proba(table, model=model), atol=1e-12
    )


def test_full_and_median_are_different_averages(three_classes, table):
    full, median = (three_classes.predict_proba(table, model=model) for model in MODELS)
    assert np.abs(full - median).max() > 1e-6


def test_an_unknown_model_is_refused(classifier, table):
    with pytest.raises(ValueError, match="Got model='mean', expected 'full' or 'median'"):
        classifier.predict(table, model="mean")


def test_log_probabilities_are_finite_logarithms(classifier, table):
    logs = classifier.predict_log_proba(table)
    np.testing.assert_allclose(np.exp(logs), classifier.predict_proba(table), atol=1e-12)
    assert np.isfinite(logs).all()


def test_intervals_of_two_classes_are_those_of_the_second(classifier, table):
    interval = classifier.predict_interval(table, level=0.9)
    draws = classifier.sample_posterior(table)[..., 1]
    assert interval.shape == (len(table), 2)
    np.testing.assert_allclose(interval.T, np.quantile(draws, [0.05, 0.95], axis=0))


def test_quantiles_of_three_classes_have_an_axis_for_them(three_classes, table):
    assert three_classes.predict_quantiles(table, [0.1, 0.5]).shape == (len(table), 3, 2)


def test_uncertainty_adds_up_to_the_variance_of_a_label(classifier, table):
    uncertainty = classifier.decompose_uncertainty(table)
    probability = classifier.predict_proba(table)[:, [1]]
    np.testing.assert_allclose(uncertainty.total, probability * (1 - probability), atol=1e-12)


def test_predictions_are_the_same_each_time(classifier, table):
    np.testing.assert_array_equal(classifier.predict_proba(table), classifier.predict_proba(table))


@pytest.mark.parametrize("model", MODELS)
def test_a_row_is_predicted_alike_alone_and_among_others(classifier, table, model):
    alone = classifier.predict_proba(table.iloc[[17]], model=model)
    among = classifier.predict_proba(table, model=model)[[17]]
    np.testing.assert_allclose(alone, among, rtol=1e-12)


def test_many_rows_are_predicted_in_pieces_with_the_same_result(classifier, table, monkeypatch):
    whole = classifier.predict_proba(table)
    monkeypatch.setattr("islab.estimators.drawn_rows.NUMBERS_AT_ONCE", 2000)
    np.testing.assert_allclose(classifier.predict_proba(table), whole, rtol=1e-12)


def test_the_same_seed_gives_the_same_model(classifier, table, labels):
    again = ISLaBClassifier(**QUICK).fit(table, labels)
    np.testing.assert_array_equal(again.predict_proba(table), classifier.predict_proba(table))


def test_booleans_are_classes(table, labels):
    model = ISLaBClassifier(**QUICK).fit(table, labels == "ill")
    assert model.predict(table).dtype == bool


def test_categorical_labels_are_classes(table, labels):
    model = ISLaBClassifier(**QUICK).fit(table, labels.astype("category"))
    assert model.classes_.tolist() == ["ill", "well"]


def test_class_weights_shift_probabilities_to_the_heavier_class(table, labels):
    unsure = labels.where(np.random.default_rng(0).random(len(labels)) < 0.8, "well")
    plain = ISLaBClassifier(**QUICK).fit(table, unsure)
    heavy = ISLaBClassifier(**QUICK, class_weight={"ill": 10, "well": 1}).fit(table, unsure)
    shift = heavy.predict_proba(table) - plain.predict_proba(table)
    assert shift[:, 0].mean() > 0.1


def learned_from(monkeypatch, model, *data):
    """The problem that fitting hands on to training."""
    problems = []

    def stop(problem, *_, **__):
        problems.append(problem)
        raise KeyboardInterrupt

    monkeypatch.setattr("islab.estimators.islab_base.fit_recipe", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    return problems[0]


def test_class_weights_are_factors_on_weights_of_rows(table, labels, monkeypatch):
    weight = np.linspace(1, 2, len(table))
    model = ISLaBClassifier(class_weight={"ill": 3, "well": 1})
    problem = learned_from(monkeypatch, model, table, labels, weight)
    np.testing.assert_allclose(problem.sample_weight, weight * np.where(labels == "ill", 3, 1))


def test_balanced_classes_have_equal_weight_whatever_their_rows_weigh(table, labels, monkeypatch):
    weight = np.linspace(1, 3, len(table))
    model = ISLaBClassifier(class_weight="balanced")
    ill = (labels == "ill").to_numpy()
    for given in (weight, None):
        problem = learned_from(monkeypatch, model, table, labels, given)
        totals = problem.sample_weight[ill].sum(), problem.sample_weight[~ill].sum()
        mean = (len(table) if given is None else given.sum()) / 2
        np.testing.assert_allclose(totals, [mean, mean])


@pytest.mark.parametrize("class_weight", [None, "balanced", {"ill": 3}])
def test_rows_of_weight_0_do_not_matter(table, labels, class_weight):
    weight = np.r_[np.zeros(20), np.ones(len(table) - 20)]
    settings = {**QUICK, "class_weight": class_weight}
    weighted = ISLaBClassifier(**settings).fit(table, labels, sample_weight=weight)
    without = ISLaBClassifier(**settings).fit(table.iloc[20:], labels.iloc[20:])
    np.testing.assert_allclose(
        weighted.predict_proba(table), without.predict_proba(table), rtol=1e-6
    )


def test_classes_of_weight_0_do_not_count(table, labels):
    odd = labels.copy()
    odd.iloc[0] = "zombie"
    weight = np.r_[0, np.ones(len(table) - 1)]
    model = ISLaBClassifier(**QUICK).fit(table, odd, sample_weight=weight)
    assert model.classes_.tolist() == ["ill", "well"]


def test_residuals_are_what_the_observed_class_lacks(classifier, table, labels):
    frame = classifier.residuals(table, labels)
    probability = classifier.predict_proba(table)[np.arange(len(table)), (labels == "well") * 1]
    np.testing.assert_allclose(frame["residual"], 1 - probability)


def test_residuals_of_an_unknown_class_are_refused(classifier, table, labels):
    with pytest.raises(ValueError, match="Got class 'zombie' in y"):
        classifier.residuals(table, labels.replace("ill", "zombie"))


def test_one_class_is_refused(table):
    with pytest.raises(ValueError, match="single class, 'ill'"):
        ISLaBClassifier(**QUICK).fit(table, ["ill"] * len(table))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_without_a_class_are_refused(table, labels, missing):
    unusable = labels.astype(object)
    unusable.iloc[5] = missing
    with pytest.raises(ValueError, match=r"in y \(row 5"):
        ISLaBClassifier(**QUICK).fit(table, unusable)


def test_numbers_with_fractions_are_no_classes(table, numbers):
    with pytest.raises(ValueError, match="continuous"):
        ISLaBClassifier(**QUICK).fit(table, numbers)


def test_it_must_be_fitted_before_it_predicts(table):
    with pytest.raises(NotFittedError):
        ISLaBClassifier().predict(table)


def test_two_rows_are_enough():
    model = ISLaBClassifier(**QUICK).fit([[0.0], [1.0]], [0, 1])
    assert model.predict_proba([[0.5]]).shape == (1, 2)


def test_unseen_levels_are_predicted_with_a_warning(classifier):
    rows = make_table(3, seed=5).assign(colour=["red", "purple", "blue"])
    with pytest.warns(UserWarning, match="'purple' in 1 row of column 'colour'"):
        assert len(classifier.predict(rows)) == 3


def test_polars_frames_are_accepted(classifier, table, labels):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table.to_dict(orient="list"))
    model = ISLaBClassifier(**QUICK).fit(frame, polars.Series(labels.tolist()))
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    np.testing.assert_array_equal(model.predict_proba(frame), classifier.predict_proba(table))


def test_missing_values_are_accepted(table, labels):
    holes = table.copy()
    holes.loc[::7, "size"] = np.nan
    holes.loc[::5, "colour"] = None
    model = ISLaBClassifier(**QUICK).fit(holes, labels)
    assert model.score(holes, labels) > 0.8


def test_labels_in_a_frame_of_one_column_are_taken_with_a_warning(table, labels):
    with pytest.warns(UserWarning, match="column-vector"):
        ISLaBClassifier(**QUICK).fit(table, pd.DataFrame(labels))


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf, 1e300])
def test_class_weights_that_are_no_weights_are_refused(table, labels, weight):
    model = ISLaBClassifier(**QUICK, class_weight={"ill": weight})
    with pytest.raises(ValueError, match=r"Got class_weight=.* for class 'ill', expected numbers"):
        model.fit(table, labels)


def test_class_weights_name_classes_that_are_numbers(table, labels):
    model = ISLaBClassifier(**QUICK, class_weight={1: 0})
    with pytest.raises(ValueError, match="Got class_weight=0 for class 1, expected"):
        model.fit(table, (labels == "ill").astype(int))
