"""Small networks in odd units, whose every number can be checked."""

import numpy as np
import pytest

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale

N_COVARIATES = 5


def posterior_of(n_outputs=1, activation="leaky_relu", seed=0, flow=False, likelihood="gaussian"):
    """About two thirds of the weights are kept."""
    rng = np.random.default_rng(seed)
    net = Architecture(N_COVARIATES, (4, 3), n_outputs, activation=activation)
    start = Initial((-1.0, 2.0), (-1.0, 2.0), means=(-2, 2), sigma=0.3, output_scale=(1.0, 1.0))
    posterior = Posterior.initialise(net, rng, start, likelihood)
    n_noise = families.likelihood(likelihood).n_noise(n_outputs) or n_outputs
    changes = {"bias_mu": rng.normal(size=net.n_units), "noise": rng.uniform(1, 2, n_noise)}
    if flow:
        n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
        changes["multipliers"] = rng.normal(1, 0.5, size=(4, n_inputs))
        changes["input_index"] = net.input_index
    return posterior.copy(**changes)


def scale_of(n_outputs, likelihood):
    rng = np.random.default_rng(7)
    real = likelihood == "gaussian"
    return Scale(
        x_center=rng.normal(10, 5, N_COVARIATES),
        x_scale=rng.uniform(0.2, 8, N_COVARIATES),
        y_center=rng.normal(size=n_outputs) if real else np.zeros(n_outputs),
        y_scale=rng.uniform(1, 9, n_outputs) if real else np.ones(n_outputs),
        names=("age", "weight", "colour_red", "colour_green", "height"),
        outputs=tuple(f"class {k}" for k in range(n_outputs)) if n_outputs > 1 else ("risk",),
        variables=("age", "weight", "colour", "colour", "height"),
    )


def at_mean(network):
    """One draw: the network with its mean weights."""
    return network.mean_weights()[None], network.bias_mu[None]


@pytest.fixture
def make_posterior():
    return posterior_of


@pytest.fixture
def make_network():
    def make(n_outputs=1, activation="leaky_relu", seed=0, flow=False, likelihood="gaussian"):
        posterior = posterior_of(n_outputs, activation, seed, flow, likelihood)
        return posterior.median(scale=scale_of(n_outputs, likelihood))

    return make


@pytest.fixture
def make_rows():
    def make(network, n_rows=6, seed=1):
        noise = np.random.default_rng(seed).normal(size=(n_rows, N_COVARIATES))
        return network.scale.x_center + network.scale.x_scale * noise

    return make
