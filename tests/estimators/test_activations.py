"""Activations of one's own, and other ones in other layers."""

import numpy as np
import pytest

from islab import ISLaBRegressor, load
from islab.baselines import L1SkipRegressor
from islab.core import families
from islab.core.families.activation import LeakyRelu


@pytest.mark.parametrize("posterior", ["sampled", "independent"])
def test_a_leaky_rectifier_of_another_slope_is_registered_by_name_and_compiled(posterior):
    tenth = LeakyRelu("leaky_tenth", 0.1)
    families.register(tenth)
    try:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(300, 1))
        y = np.where(x > 0, x, 0.1 * x)[:, 0] + 0.01 * rng.normal(size=300)
        model = ISLaBRegressor(
            activation="leaky_tenth", posterior=posterior, random_state=0, n_restarts=1
        ).fit(x, y)
        assert model.posterior_.architecture.activation == "leaky_tenth"
        ends = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        np.testing.assert_allclose(model.predict(ends), [-0.2, -0.1, 1.0, 2.0], atol=0.03)
    finally:
        families.unregister(tenth)


BY_LAYER = ("tanh", "relu")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    return x, np.tanh(2 * x[:, 0]) + np.abs(x[:, 1]) + 0.1 * rng.normal(size=400)


def fitted(data, **params):
    options = {"hidden_layer_sizes": (6, 5), "n_restarts": 1, "max_epochs": 150, "random_state": 0}
    return ISLaBRegressor(**{**options, **params}).fit(*data)


@pytest.fixture(scope="module")
def by_layer(data):
    pytest.importorskip("torch")
    return fitted(data, activation=BY_LAYER)


def test_each_layer_has_the_activation_that_was_asked_for(by_layer, data):
    assert by_layer.network_.architecture.activation_names == BY_LAYER
    assert by_layer.score(*data) > 0.9


def test_a_model_with_activations_by_layer_is_saved_and_loaded(by_layer, data, tmp_path):
    by_layer.save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    assert again.activation == BY_LAYER
    np.testing.assert_array_equal(again.predict(data[0]), by_layer.predict(data[0]))


def test_layers_that_share_their_activation_are_sampled_as_with_one_name(data):
    one, each = (fitted(data, activation=name) for name in ("relu", ("relu", "relu")))
    np.testing.assert_array_equal(one.predict(data[0]), each.predict(data[0]))


@pytest.mark.parametrize("names", [("relu",), ("tanh", "cosine"), (), 3])
def test_what_is_no_activation_for_each_layer_is_refused(data, names):
    with pytest.raises(ValueError, match="one for each"):
        fitted(data, activation=names)


def test_chains_and_the_compiled_engine_say_that_they_take_one_activation(data):
    with pytest.raises(ValueError, match="one activation in all layers"):
        fitted(data, activation=BY_LAYER, posterior="sampled")
    with pytest.raises(ValueError, match=r"expected one family that is compiled.*engine='torch'"):
        fitted(data, activation=BY_LAYER, engine="native")


def test_a_baseline_takes_activations_by_layer_too(data):
    model = L1SkipRegressor(
        hidden_layer_sizes=(6, 5), activation=BY_LAYER, max_epochs=100, random_state=0
    ).fit(*data)
    assert model.network_.architecture.activation_names == BY_LAYER
    assert model.score(*data) > 0.8
