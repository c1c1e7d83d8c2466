"""Contributions of the posterior average beside values that the shap package computes."""

import warnings

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("shap")


@pytest.fixture(scope="module")
def x():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=NAMES)


def fitted(x, hidden):
    noise = np.random.default_rng(1).normal(size=len(x))
    y = 2 * x["a"] - np.abs(x["b"]) + 0.2 * noise
    return ISLaBRegressor(
        hidden_layer_sizes=hidden, max_epochs=60, n_restarts=2, random_state=0
    ).fit(x, y)


def both(shap, model, x):
    """Ours and shap's, from the same baseline row, for the model's own predictions."""
    baseline = x.median().to_frame().T
    ours = model.explain_local(x[:4], baseline=baseline).contribution[..., 0]
    # Of three variables the kernel explainer visits all coalitions, so its values are exact.
    explainer = shap.KernelExplainer(
        lambda rows: model.predict(pd.DataFrame(rows, columns=NAMES)), baseline.to_numpy()
    )
    return ours, explainer.shap_values(x[:4].to_numpy(), l1_reg=False, silent=True)


def test_contributions_of_linear_networks_are_shapley_values(shap, x):
    ours, theirs = both(shap, fitted(x, ()), x)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_contributions_of_bent_networks_have_the_same_sum_and_share_it_alike(shap, x):
    model = fitted(x, "auto")
    ours, theirs = both(shap, model, x)
    np.testing.assert_allclose(ours.sum(axis=1), theirs.sum(axis=1), rtol=0, atol=1e-9)
    assert np.abs(ours[:, 1]).max() > 0.3
    # The target has no interactions: what differs is what a few draws believe of them.
    assert np.abs(ours - theirs).max() < 0.01


def test_shap_shows_the_draws_mean_as_the_model_predicts_it(shap, x):
    model = fitted(x, ())
    values = model.explain_local(x[:4]).to_shap()
    found = values.base_values + values.values.sum(axis=1)
    np.testing.assert_allclose(found, model.predict(x[:4]), rtol=0, atol=1e-9)
