"""Columns that nothing can be learned from."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.estimators.learnable_covariates import over_all_covariates

from .conftest import QUICK

MODELS = ["full", "median"]
CONSTANT = [0, 7, 15]


def pixels(n_rows=80, seed=0):
    """Images of 4 x 4 pixels, three of which are always black."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n_rows, 16)).astype(float)
    x[:, CONSTANT] = 0
    return x, x[:, 5] > x[:, 6]


@pytest.fixture(scope="module")
def dense():
    """A model that keeps as much as it can."""
    settings = {**QUICK, "max_epochs": 5, "prior_inclusion": 0.9}
    return ISLaBClassifier(**settings, sparsity=0.0).fit(*pixels())


def test_the_model_at_hand_uses_nearly_everything(dense):
    assert len(dense.network_.covariates) > 8


def test_constant_pixels_are_not_used(dense):
    assert not np.isin(CONSTANT, dense.network_.covariates).any()
    assert not dense.get_support()[CONSTANT].any()


def test_constant_pixels_are_not_used_by_the_full_model(dense):
    used = dense.posterior_.to_frame()["p_used"].to_numpy()
    assert not used[CONSTANT].any()
    assert np.delete(used, CONSTANT).max() > 0.5


@pytest.mark.parametrize("model", MODELS)
def test_predictions_do_not_depend_on_what_was_constant(dense, model):
    x, _ = pixels()
    moved = x.copy()
    moved[:, CONSTANT] = 1e9
    np.testing.assert_array_equal(
        dense.predict_proba(moved, model=model), dense.predict_proba(x, model=model)
    )


def test_missing_values_where_all_was_constant_are_no_news(dense):
    x, _ = pixels()
    holes = x.copy()
    holes[:, CONSTANT] = np.nan
    np.testing.assert_array_equal(dense.predict_proba(holes), dense.predict_proba(x))


def test_explanations_and_pictures_still_have_all_pixels(dense):
    x, _ = pixels()
    assert dense.network_.n_covariates == 16
    assert dense.explain_local(x[:2]).slope.shape == (2, 16, 1)
    frame = dense.explain_global(x).to_frame("covariates")
    assert frame["used_probability"].to_numpy()[CONSTANT].max() == 0


def test_such_a_model_comes_back_from_a_file(dense, tmp_path):
    x, _ = pixels()
    dense.save(tmp_path / "m.islab")
    loaded = load(tmp_path / "m.islab")
    for model in MODELS:
        np.testing.assert_array_equal(
            loaded.predict_proba(x, model=model), dense.predict_proba(x, model=model)
        )


def test_weights_are_counted_as_if_all_pixels_were_read(dense):
    # 16 pixels, 4 hidden units, 1 output: v * h + (h + v) * m.
    assert dense.network_.n_weights_initial == 16 * 4 + (4 + 16)


@pytest.mark.parametrize("input_skip", [True, False])
def test_a_flow_over_all_covariates_draws_the_same_functions(input_skip):
    rng = np.random.default_rng(0)
    varies = np.array([True, False, True, False])
    net = Architecture(2, (3, 2), 1, input_skip)
    learned = Posterior.initialise(net, rng, Initial("dense", "dense"))
    bank = rng.normal(1, 0.3, (40, net.input_index.max() + 1))
    learned = learned.copy(multipliers=bank, input_index=net.input_index)
    whole = over_all_covariates(learned, varies, 99)
    x = np.where(varies, rng.normal(size=(5, 4)), 0.0)
    few = learned.sample_predictor(x[:, varies], 4000, rng)
    all_ = whole.sample_predictor(x, 4000, rng)
    np.testing.assert_allclose(all_.mean(axis=0), few.mean(axis=0), atol=6 * few.std() / 4000**0.5)
    np.testing.assert_allclose(
        whole.median().predictor(x), learned.median().predictor(x[:, varies])
    )
    assert whole.n_weights_initial == 99


def test_a_constant_column_leaves_the_model_as_it_is(regressor, table, numbers):
    more = table.assign(constant=3.0)
    model = ISLaBRegressor(**QUICK).fit(more, numbers)
    found, before = model.predict(more, model="median"), regressor.predict(table, model="median")
    np.testing.assert_array_equal(found, before)


def test_nothing_but_constants_predicts_the_same_for_all_rows():
    table = pd.DataFrame({"a": [1.0] * 40, "b": ["u"] * 40})
    model = ISLaBRegressor(**QUICK).fit(table, np.arange(40.0))
    assert model.n_used_weights_ == 0
    np.testing.assert_allclose(model.predict(table), 19.5, atol=5)
    assert np.ptp(model.predict(table.assign(a=np.arange(40.0)), model="full")) == 0


def test_what_varies_in_rows_of_weight_0_only_is_constant(table, labels):
    weight = np.r_[np.zeros(20), np.ones(len(table) - 20)]
    odd = table.assign(early=weight == 0, level=np.where(weight == 0, "u", "v"))
    model = ISLaBClassifier(**QUICK).fit(odd, labels, sample_weight=weight)
    assert [v.name for v in model.columns_.variables if not all(v.varies)] == ["early", "level"]


@pytest.mark.slow  # importing torch takes longer than all other tests here
def test_a_flow_is_learned_without_constant_pixels_and_comes_back(tmp_path):
    pytest.importorskip("torch")
    settings = {**QUICK, "max_epochs": 5, "posterior": "flow", "prior_inclusion": 0.9}
    x, y = pixels()
    model = ISLaBClassifier(**settings, sparsity=0.0).fit(x, y)
    assert not np.isin(CONSTANT, model.network_.covariates).any()
    model.save(tmp_path / "m.islab")
    loaded = load(tmp_path / "m.islab")
    for which in MODELS:
        np.testing.assert_array_equal(
            loaded.predict_proba(x, model=which), model.predict_proba(x, model=which)
        )
