"""Networks of a given size, explanations of them, and what axes say."""

import numpy as np

from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale
from islab.explain import explain_local


def network_of(n_edges, v=16, hidden=(5, 4), m=1, name="a rather long name of covariate {}"):
    """A network with at least that many used weights, and the fewest."""
    rng = np.random.default_rng(0)
    net = Architecture(v, hidden, m)
    likelihood = "categorical" if m > 1 else "bernoulli"
    posterior = Posterior.initialise(net, rng, Initial(), likelihood)
    order = np.argsort(np.argsort(rng.random(net.n_weights)))
    names = tuple(name.replace("{}", str(column)) for column in range(v))
    scale = Scale(
        np.zeros(v),
        np.ones(v),
        np.zeros(m),
        np.ones(m),
        names,
        tuple(f"{name} class {k}" for k in range(m)),
        names,
    )
    for size in range(n_edges, net.n_weights + 1):
        lam = np.where(order < size, 3.0, -3.0)
        found = posterior.copy(lam=lam).median(scale=scale)
        if found.n_used_weights >= n_edges:
            return found
    raise AssertionError


def explanation_of(network, n_rows=2, **options):
    x = np.random.default_rng(0).normal(size=(n_rows, network.n_covariates))
    return explain_local(network, x, n_draws=50, random_state=0, **options)


def texts(ax):
    return [text.get_text() for text in ax.texts]
