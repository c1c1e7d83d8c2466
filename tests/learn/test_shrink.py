"""Which units are dead, and what they leave behind."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.equations import inverse_softplus, moments, softplus
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.learn.engines.base import Parameters
from islab.learn.shrink import Shrink, sent_constants, split_by_layer

IN, OUT = 9.0, -9.0


def posterior(lam_by_block, hidden=(2, 2), activation="leaky_relu"):
    """One covariate, one output; inclusion by block as nested lists (targets x sources)."""
    net = Architecture(1, hidden, 1, activation=activation)
    start = Posterior.initialise(net, np.random.default_rng(0))
    start.lam = np.concatenate([np.ravel(block) for block in lam_by_block]).astype(float)
    return start


def parameters(p):
    return Parameters(p.mu, p.rho, p.lam, p.bias_mu, p.bias_rho, p.noise)


def test_a_unit_lives_only_on_a_path_from_a_covariate_to_an_output():
    p = posterior(
        [
            [IN, IN],  # x -> h1: both fed
            [OUT, OUT],  # x -> h2
            [OUT],  # x -> y
            [[IN, OUT], [OUT, OUT]],  # h1 -> h2: only h2.0 fed, by h1.0
            [IN, IN],  # h2 -> y: both heard
        ]
    )
    living = Shrink().living(p.architecture, p.lam)
    assert living.tolist() == [True, False, True, False, True]


def test_paths_below_the_threshold_do_not_count():
    faint = -4.7  # alpha = 0.009
    p = posterior([[IN, IN], [OUT, OUT], [OUT], [[IN, IN], [IN, IN]], [faint, IN]])
    living = Shrink(threshold=0.01).living(p.architecture, p.lam)
    assert living.tolist() == [True, True, False, True, True]
    assert Shrink(threshold=0.005).living(p.architecture, p.lam).all()


@pytest.mark.parametrize("activation", ["leaky_relu", "sigmoid", ("leaky_relu", "sigmoid")])
def test_the_mean_of_the_network_survives_the_drop(activation):
    """Units fed by their bias alone send the mean of their activation over the bias."""
    p = posterior(
        [[IN, OUT], [OUT, OUT], [IN], [[IN, OUT], [OUT, IN]], [IN, IN]], activation=activation
    )
    p.mu += 0.5
    p.bias_rho = inverse_softplus(np.full(p.architecture.n_units, 0.7))
    net = p.architecture
    dropped = ~Shrink().living(net, p.lam)
    assert dropped.tolist() == [False, True, False, True, False]
    shift = sent_constants(net, parameters(p), dropped)
    kept = net.keep_units(split_by_layer(net, ~dropped))
    rng = np.random.default_rng(1)
    sizes = (200_000, net.n_units)
    biases = p.bias_mu + softplus(p.bias_rho) * rng.standard_normal(sizes)
    x = np.array([[0.3]])
    mean, _ = moments(p.mu, p.sigma, p.alpha)
    before = forward(net, mean, biases, x)
    after = forward(kept.architecture, mean[kept.weights], (biases + shift)[:, kept.units], x)
    error = 4 * before.std() / np.sqrt(sizes[0])
    # the dropped chain h1.1 -> h2.1 -> y is folded with mean values at each link
    tolerance = error + (0.02 if "sigmoid" in activation else 0.12)
    assert before.mean() == pytest.approx(after.mean(), abs=tolerance)


def test_nothing_dropped_sends_nothing():
    p = posterior([[IN, IN], [IN, IN], [IN], [[IN, IN], [IN, IN]], [IN, IN]])
    shift = sent_constants(p.architecture, parameters(p), np.zeros(5, dtype=bool))
    assert not shift.any()
