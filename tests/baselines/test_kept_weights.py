"""Posteriors of weights that are certainly in or out."""

import numpy as np

from islab.baselines.kept_weights import rho_of, with_structure
from islab.core.architecture import Architecture
from islab.core.equations import softplus
from islab.core.network import forward
from islab.core.paths import active_weights


def test_rho_gives_back_the_spread_or_none():
    sigma = np.array([0.0, 1e-8, 0.3, 50.0])
    np.testing.assert_allclose(softplus(rho_of(sigma)), sigma, rtol=1e-10)


def test_a_structure_is_the_same_function_as_its_weights():
    rng = np.random.default_rng(0)
    net = Architecture(3, (4, 3), 2)
    mu, biases = rng.standard_normal(net.n_weights), rng.standard_normal(net.n_units)
    kept = rng.random(net.n_weights) < 0.4
    kept[net.covariate_matrix(np.arange(net.n_weights))[:2].ravel()] = False  # fed by nothing
    posterior = with_structure(
        net,
        "gaussian",
        np.ones(2),
        mu=mu,
        sigma=np.zeros_like(mu),
        bias_mu=biases,
        bias_sigma=np.zeros_like(biases),
        kept=kept,
    )
    x = rng.standard_normal((6, 3))
    expected = forward(net, np.where(kept, mu, 0.0), biases, x)
    drawn = forward(net, *posterior.draw(3, rng), x)
    np.testing.assert_allclose(drawn, np.broadcast_to(expected, drawn.shape), atol=1e-10)
    np.testing.assert_allclose(posterior.median().predictor(x), expected, atol=1e-10)
    np.testing.assert_array_equal(posterior.alpha > 0.5, active_weights(net, kept))
