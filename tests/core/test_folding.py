"""Units that no covariate feeds: every draw of a median network folds its own constants."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.compaction import compacted
from islab.core.equations import inverse_softplus, softplus
from islab.core.folding import folded_units
from islab.core.network import forward
from islab.core.paths import active_weights, fed_units
from islab.core.posterior import Posterior

N_DRAWS = 20_000


def kept_at_random(seed, hidden=(4, 4, 3), activation="tanh", flow=False):
    """A posterior that keeps half of its weights: some units are fed by none."""
    rng = np.random.default_rng(seed)
    chosen = np.random.default_rng(seed + 100)
    net = Architecture(2, hidden, 2, activation=activation)
    posterior = Posterior.initialise(net, rng)
    posterior = posterior.copy(
        mu=rng.normal(0, 1.5, net.n_weights),
        rho=rng.normal(0, 1, net.n_weights),
        lam=np.where(chosen.random(net.n_weights) < 0.5, 9.0, -9.0),
        bias_mu=rng.normal(0, 1, net.n_units),
        bias_rho=rng.normal(0, 1, net.n_units),
    )
    if flow:
        n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
        bank = rng.normal(1, 0.5, (5, n_inputs))
        posterior = posterior.copy(multipliers=bank, input_index=net.input_index)
    return posterior


def bias_only():
    """One hidden unit without covariates that feeds both outputs, as do the covariates."""
    net = Architecture(2, (1,), 2, activation="sigmoid")
    lam = np.full(net.n_weights, 9.0)
    lam[net.block(0, "covariate").weights] = -9.0
    wide = inverse_softplus(np.float64(2.0))
    return Posterior.initialise(net, np.random.default_rng(0)).copy(
        lam=lam, mu=np.full(net.n_weights, 1.0), bias_mu=np.zeros(3), bias_rho=np.full(3, wide)
    )


@pytest.mark.parametrize("flow", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 10, 11])
def test_every_draw_predicts_as_the_dense_network_of_the_same_numbers(seed, flow):
    posterior, n_draws = kept_at_random(seed, flow=flow), 7
    net, kept = posterior.architecture, posterior.alpha > 0.5
    network = posterior.median()
    x = np.random.default_rng(1).normal(size=(5, 2))
    found = network.sample_predictor(x, n_draws, np.random.default_rng(2))

    # The numbers in the order of the network's draws, where they belong in the dense one.
    rng, compact = np.random.default_rng(2), compacted(net, active_weights(net, kept))
    silent = folded_units(posterior, kept, compact.units)[1]
    rows = rng.integers(5, size=n_draws) if flow else None

    def drawn(which):
        mean = posterior.mu[which]
        if flow:
            mean = mean * posterior.multipliers[rows][:, posterior.input_index[which]]
        return mean + posterior.sigma[which] * rng.standard_normal((n_draws, len(which)))

    weights = np.zeros((n_draws, net.n_weights))
    weights[:, compact.weights] = drawn(compact.weights)
    weights[:, silent] = drawn(silent)
    both = np.unique(np.concatenate([compact.units, net.ends[0][silent] - net.n_covariates]))
    biases = np.tile(posterior.bias_mu, (n_draws, 1))
    normals = rng.standard_normal((n_draws, len(both)))
    biases[:, both] += softplus(posterior.bias_rho[both]) * normals
    assert network.folded is not None
    np.testing.assert_allclose(found, forward(net, weights, biases, x), rtol=1e-12, atol=1e-12)


def test_constants_that_reach_two_outputs_move_them_together():
    posterior = bias_only()
    _, folded = posterior.median().draw(N_DRAWS, np.random.default_rng(3))
    dense = posterior.copy(lam=np.where(posterior.lam > 0, 50.0, -50.0))
    eta = dense.sample_predictor(np.zeros((1, 2)), N_DRAWS, np.random.default_rng(4))[:, 0]
    np.testing.assert_allclose(folded.mean(axis=0), eta.mean(axis=0), atol=0.12)
    np.testing.assert_allclose(folded.std(axis=0), eta.std(axis=0), rtol=0.03)
    assert np.corrcoef(folded.T)[0, 1] == pytest.approx(np.corrcoef(eta.T)[0, 1], abs=0.03)


def test_networks_whose_units_are_all_fed_have_nothing_to_fold():
    posterior = kept_at_random(0)
    everything = posterior.copy(lam=np.full(posterior.architecture.n_weights, 9.0))
    assert fed_units(posterior.architecture, everything.alpha > 0.5).all()
    assert everything.median().folded is None


def test_biases_at_the_mean_are_those_of_draws_without_spread():
    posterior = kept_at_random(2)
    narrow = np.full(posterior.architecture.n_weights, -40.0)
    still = posterior.copy(rho=narrow, bias_rho=narrow[: posterior.architecture.n_units])
    network = still.median()
    _, biases = network.draw(3, np.random.default_rng(0))
    np.testing.assert_allclose(biases, np.tile(network.bias_mu, (3, 1)), atol=1e-12)
