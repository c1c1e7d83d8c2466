"""Columns that nothing can be learned from."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.plots import pixel_maps

from .conftest import QUICK

MODELS = ["full", "median"]
CONSTANT = [0, 7, 15]


def pixels(n_rows=80, seed=0):
    """Images of 4 x 4 pixels, three of which are always black."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n_rows, 16)).astype(float)
    x[:, CONSTANT] = 0
    return x, x[:, 5] > x[:, 6]


@pytest.fixture(scope="module", params=["lrt", "flow"])
def dense(request):
    """A model that keeps as much as it can."""
    if request.param == "flow":
        pytest.importorskip("torch")
    settings = {**QUICK, "max_epochs": 5, "posterior": request.param}
    return ISLaBClassifier(**settings, sparsity=0.0, prior_inclusion=0.9).fit(*pixels())


def test_the_model_at_hand_uses_nearly_everything(dense):
    assert len(dense.network_.covariates) > 8


def test_constant_pixels_are_not_used(dense):
    assert not np.isin(CONSTANT, dense.network_.covariates).any()
    assert not dense.get_support()[CONSTANT].any()


def test_constant_pixels_are_not_used_by_the_full_model(dense):
    matrix = dense.posterior_.architecture.covariate_matrix(dense.posterior_.alpha)
    assert matrix[:, CONSTANT].max() < 1e-12
    others = np.delete(matrix, CONSTANT, axis=1)
    assert others.max() > 0.5


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


def test_pictures_still_have_all_pixels(dense):
    pytest.importorskip("matplotlib").use("agg")
    assert dense.network_.n_covariates == 16
    pixel_maps(dense.network_, (4, 4))


def test_explanations_still_have_all_pixels(dense):
    x, _ = pixels()
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


def test_a_constant_column_leaves_the_model_as_it_is(regressor, table, numbers):
    more = table.assign(constant=3.0)
    model = ISLaBRegressor(**QUICK).fit(more, numbers)
    np.testing.assert_array_equal(model.predict(more), regressor.predict(table))


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
