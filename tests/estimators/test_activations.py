"""Activations of one's own, and other ones in other layers."""

import numpy as np
import pytest

from islab import ISLaBRegressor
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
