"""What every method promises, checked for all of them on the same small tables."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.baselines import (
    ESTIMATORS,
    BayesianLinearRegressor,
    ConcreteDropoutClassifier,
    HorseshoeClassifier,
    L1SkipClassifier,
    SpaMClassifier,
)

QUICK = {
    "max_epochs": 40,
    "n_draws": 50,
    "n_restarts": 1,
    "hidden_layer_sizes": (4,),
    "random_state": 0,
}
BATCHES = "training visits random batches of rows, which repeating or leaving out rows changes"
METHODS = (ISLaBClassifier, ISLaBRegressor, *ESTIMATORS)


def quick(method):
    """An unfitted estimator that trains in a moment."""
    known = method().get_params()
    return method(**{name: value for name, value in QUICK.items() if name in known})


def expected_failures(estimator):
    return {"check_sample_weight_equivalence_on_dense_data": BATCHES}


@parametrize_with_checks(
    [quick(method) for method in ESTIMATORS], expected_failed_checks=expected_failures
)
def test_baselines_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "method", [L1SkipClassifier, ConcreteDropoutClassifier, HorseshoeClassifier, SpaMClassifier]
)
def test_the_documentation_of_a_baseline_names_every_parameter(method):
    for name in method().get_params():
        assert f"\n{name} : " in method.__doc__


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(100, 20, 150),
            "noise": rng.normal(size=150),
            "colour": rng.choice(["red", "green", "blue"], 150),
        }
    )
    table.loc[3, "noise"] = np.nan
    return table


@pytest.fixture(scope="module")
def score(table):
    return (table["size"] - 100) / 20 + 2 * (table["colour"] == "red")


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.__name__)
def model(request, table, score):
    estimator = quick(request.param)
    noise = np.random.default_rng(1).normal(scale=0.2, size=len(score))
    target = np.where(score > 0.5, "ill", "well") if is_classifier(estimator) else score + noise
    return estimator.fit(table, target)


def predictions(estimator, table, **options):
    if is_classifier(estimator):
        return estimator.predict_proba(table, **options)
    return np.column_stack(estimator.predict(table, return_std=True, **options))


def test_predictions_are_finite_and_of_the_right_shape(model, table):
    found = predictions(model, table)
    assert found.shape == (len(table), 2)
    assert np.isfinite(found).all()


def test_the_median_network_can_be_asked_for(model, table):
    assert np.isfinite(predictions(model, table.head(5), model="median")).all()


def test_the_signal_is_found(model, table, score):
    found = predictions(model, table)[:, 0]
    assert abs(np.corrcoef(found, score)[0, 1]) > 0.75


def test_intervals_are_ordered(model, table):
    low, high = model.predict_interval(table, level=0.8).T
    assert (low <= high).all()


def test_summary_names_the_method_and_its_size(model):
    text = str(model.summary())
    assert type(model).__name__ in text
    assert "used weights" in text
    assert model.summary().to_frame("covariates")["covariate"].is_unique


def test_what_auto_stood_for_is_on_record_and_in_the_summary(model):
    held_out = {"penalty", "length_scale", "sparsity", "posterior_scale"}
    own = type(model).__name__.startswith(("L1", "Concrete", "SpaM"))
    assert set(model.chosen_) == (held_out & set(model.get_params()) if own else set())
    assert all(f"{value:.4g}" in str(model.summary()) for value in model.chosen_.values())


def test_selected_columns_are_a_mask_over_the_table(model, table):
    support = model.get_support()
    assert support.shape == (table.shape[1],)
    assert support[0]


def test_used_weights_are_no_more_than_there_were(model):
    assert 0 < model.n_used_weights_ <= model.network_.n_weights_initial


def test_contributions_sum_to_the_predictor(model, table):
    local = model.explain_local(table.head(7), n_draws=20)
    total = local.intercept[:, 0] + local.contribution[..., 0].sum(axis=1)
    expected = model.predictions(table.head(7), n_draws=20).predictor().mean(axis=0)
    np.testing.assert_allclose(total, expected[:, 0], rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_files_give_the_same_predictions(model, table, tmp_path, sparse):
    path = tmp_path / "model.islab"
    model.save(path, sparse=sparse)
    loaded = islab.load(path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.chosen_ == model.chosen_
    expected = predictions(model, table, model="median" if sparse else "full")
    np.testing.assert_array_equal(predictions(loaded, table), expected)


def test_the_same_seed_gives_the_same_model(model, table, score):
    target = np.where(score > 0.5, "ill", "well") if is_classifier(model) else score
    first, second = (clone(model).fit(table, target) for _ in range(2))
    np.testing.assert_array_equal(predictions(first, table), predictions(second, table))


def test_three_classes_or_two_outputs_are_learned(model, table, score):
    if is_classifier(model):
        target = np.digitize(score, [0.0, 1.5])
        assert clone(model).fit(table, target).predict_proba(table).shape == (len(table), 3)
    else:
        target = np.column_stack([score, -score])
        assert clone(model).fit(table, target).predict(table).shape == (len(table), 2)


def test_a_wrong_parameter_is_named(model, table, score):
    wrong = clone(model).set_params(batch_size=-3)
    target = np.where(score > 0.5, "ill", "well") if is_classifier(model) else score
    with pytest.raises(ValueError, match=r"Got batch_size=-3, expected"):
        wrong.fit(table, target)


def test_importing_the_baselines_does_not_import_torch():
    code = "import sys, islab.baselines as b; b.ESTIMATORS; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_linear_model_takes_a_flow():
    rng = np.random.default_rng(0)
    common = rng.standard_normal(200)
    x = np.column_stack([common, common]) + 0.2 * rng.standard_normal((200, 2))
    y = x.sum(axis=1) + rng.standard_normal(200)
    model = BayesianLinearRegressor(posterior="flow", flow="rnvp", random_state=0).fit(x, y)
    drawn = model.posterior_.draw(2000, np.random.default_rng(0))[0]
    assert np.corrcoef(drawn.T)[0, 1] < -0.5
