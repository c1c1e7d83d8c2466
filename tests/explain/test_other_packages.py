"""Slopes and contributions against captum, LIME and shap."""

import warnings

import numpy as np
import pytest

from islab.explain import explain_local
from tests.explain.conftest import at_mean


def test_slopes_are_captums_saliency(make_network, make_rows):
    torch = pytest.importorskip("torch")
    attr = pytest.importorskip("captum.attr")
    from islab.export import to_torch

    network = make_network(2)
    x = make_rows(network)
    module = to_torch(network)
    tensor = torch.tensor(x, requires_grad=True)
    saliency = attr.Saliency(module.predictor).attribute(tensor, target=1, abs=False)
    found = explain_local(network, x, draws=at_mean(network)).slope[..., 1]
    np.testing.assert_allclose(found, saliency.numpy(), rtol=1e-9, atol=1e-12)


def test_slopes_are_limes_least_squares_in_a_small_ball(make_network, make_rows):
    lime_base = pytest.importorskip("lime.lime_base")
    from sklearn.linear_model import LinearRegression

    network = make_network()
    x = make_rows(network)[:1]
    ball = x + 1e-5 * np.random.default_rng(0).normal(size=(500, 5)) * network.scale.x_scale
    ball[0] = x
    explainer = lime_base.LimeBase(kernel_fn=np.ones_like)
    distance = np.linalg.norm(ball - x, axis=1)
    _, pairs, _, _ = explainer.explain_instance_with_data(
        ball,
        network.predictor(ball),
        distance,
        0,
        5,
        feature_selection="none",
        model_regressor=LinearRegression(),
    )
    lime = np.array([weight for _, weight in sorted(pairs)])
    found = explain_local(network, x, draws=at_mean(network)).slope[0, :, 0]
    np.testing.assert_allclose(found, lime, rtol=1e-5, atol=1e-7)


@pytest.fixture
def shap():
    pytest.importorskip("shap")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import shap

        yield shap


@pytest.mark.usefixtures("shap")
def test_shap_values_and_base_value_sum_to_the_predictor(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    found = explain_local(network, make_rows(network), n_draws=20)
    values = found.to_shap()
    np.testing.assert_allclose(values.base_values + values.values.sum(axis=1), found.predictor)


@pytest.mark.usefixtures("shap")
def test_shap_values_are_the_contributions_of_variables(make_network, make_rows):
    network = make_network()
    found = explain_local(network, make_rows(network), n_draws=20, random_state=0)
    values = found.to_shap()
    np.testing.assert_array_equal(values.values, found.variable_summary.mean[..., 0])
    centred = found.relative_to("zero").variable_summary.mean[..., 0]
    np.testing.assert_array_equal(found.to_shap("zero").values, centred)
    assert values.feature_names == ["age", "weight", "colour", "height"]


def test_shap_draws_its_waterfall_and_bar(shap, make_network, make_rows):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    network = make_network()
    values = explain_local(network, make_rows(network), n_draws=20).to_shap()
    axes = [shap.plots.waterfall(values[0], show=False), shap.plots.bar(values, show=False)]
    assert all(len(ax.patches) for ax in axes)
    plt.close("all")
