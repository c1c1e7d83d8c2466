"""The paper's two simulated problems."""

import numpy as np

from islab.learn.engines import Problem


def simulated(kind, rho, n_rows, seed=0):
    """The paper's two problems: covariates from -10 to 10, label by the median."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-10, 10, (n_rows, 4))
    x[:, 2] = rho * x[:, 0] + (1 - rho) * x[:, 2]
    eta = x[:, 0] + x[:, 1] + 0.01 * rng.standard_normal(n_rows)
    if kind == "nonlinear":
        eta = eta + x[:, 0] * x[:, 1] + x[:, 0] ** 2 + x[:, 1] ** 2
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return Problem(z, (eta >= np.median(eta)).astype(float)[:, None])


def split(problem, n_train):
    train = Problem(problem.x[:n_train], problem.y[:n_train])
    return train, problem.x[n_train:], problem.y[n_train:]


def accuracy(network, x, y):
    return ((network.predictor(x) > 0) == (y > 0.5)).mean()
