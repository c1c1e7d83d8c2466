"""Small problems that every engine can run on."""

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.learn.engines import Problem, Steps


def make_problem(rng, likelihood="gaussian", n_rows=40, n_covariates=3, n_outputs=None):
    """Random data of the right kind for a likelihood."""
    outputs = n_outputs or (3 if likelihood == "categorical" else 2)
    x = rng.standard_normal((n_rows, n_covariates))
    y = {
        "gaussian": lambda: rng.standard_normal((n_rows, outputs)),
        "bernoulli": lambda: rng.integers(2, size=(n_rows, outputs)).astype(float),
        "student_t": lambda: rng.standard_t(3, size=(n_rows, outputs)),
        "poisson": lambda: rng.poisson(2.0, size=(n_rows, outputs)).astype(float),
        "negative_binomial": lambda: rng.poisson(2.0, size=(n_rows, outputs)).astype(float),
        "zero_inflated_poisson": lambda: rng.poisson(1.0, size=(n_rows, outputs)).astype(float),
        "zero_inflated_negative_binomial": (
            lambda: rng.poisson(1.0, size=(n_rows, outputs)).astype(float)
        ),
        "heteroscedastic": lambda: rng.standard_normal((n_rows, outputs)),
        "ordinal": lambda: rng.integers(1, 5, size=(n_rows, outputs)).astype(float),
        "categorical": lambda: np.eye(outputs)[rng.integers(outputs, size=n_rows)],
    }[likelihood]()
    return Problem(x, y)


def make_posterior(rng, problem, hidden=(5, 4), likelihood="gaussian", **architecture):
    net = Architecture(problem.x.shape[1], hidden, problem.y.shape[1], **architecture)
    start = Posterior.initialise(net, rng, likelihood=likelihood)
    start.lam = rng.uniform(-2, 2, size=net.n_weights)
    start.noise = families.likelihood(likelihood).start_noise(problem.y)
    return start


def make_steps(rng, n_rows, n_steps=5, batch=8, rate=0.01, lambda_rate=0.02, kl_weight=1.0):
    rows = np.concatenate([rng.permutation(n_rows)[:batch] for _ in range(n_steps)])
    return Steps(
        rows=rows,
        sizes=np.full(n_steps, batch),
        rate=np.full(n_steps, rate),
        lambda_rate=np.full(n_steps, lambda_rate),
        kl_weight=np.full(n_steps, kl_weight),
    )
