"""Networks in odd units with hostile names, and rows to try exports on."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale

HOSTILE = (
    'quote" \\n [label=x];',
    "$\\alpha_1^2$ & 50% #tag {a} ~b",
    "tick`s ``two`` @ eta",
    "<script>alert('x')</script>]]>",
    "two\nlines\x00\x1b",
    '"""\nimport os\n"""',
)
HOSTILE_OUTPUTS = ("y $#@ `x`", '"); import os', "c_\\end{align*}")


@pytest.fixture
def make_network():
    def make(likelihood="gaussian", activation="leaky_relu", n_outputs=None, threshold=0.5):
        n_outputs = n_outputs or {"categorical": 3, "ordinal": 1}.get(likelihood, 2)
        rng = np.random.default_rng(0)
        net = Architecture(len(HOSTILE), (4, 3), n_outputs, activation=activation)
        start = Initial((-1.0, 2.0), (-1.0, 2.0), means=(-1, 1), output_scale=(1.0, 1.0))
        posterior = Posterior.initialise(net, rng, start, likelihood)
        posterior = posterior.copy(bias_mu=rng.normal(size=net.n_units))
        real = likelihood == "gaussian"
        scale = Scale(
            x_center=rng.normal(10, 5, len(HOSTILE)),
            x_scale=rng.uniform(0.2, 8, len(HOSTILE)),
            y_center=rng.normal(size=n_outputs) if real else np.zeros(n_outputs),
            y_scale=rng.uniform(1, 9, n_outputs) if real else np.ones(n_outputs),
            names=HOSTILE,
            outputs=HOSTILE_OUTPUTS[:n_outputs],
            variables=HOSTILE,
        )
        return posterior.median(threshold, scale)

    return make


@pytest.fixture
def make_rows():
    def make(network, n_rows=20):
        noise = np.random.default_rng(1).normal(size=(n_rows, network.n_covariates))
        return network.scale.x_center + network.scale.x_scale * noise

    return make


@pytest.fixture(scope="session")
def classifier():
    from tests.export.running import fitted

    return fitted("bernoulli")


@pytest.fixture(scope="session")
def regressor():
    from tests.export.running import fitted

    return fitted("gaussian", posterior="sampled")
