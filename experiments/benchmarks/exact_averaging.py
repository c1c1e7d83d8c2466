"""Whether fits cover fixed truths, and choose covariates, as exact Bayesian averaging does.

Small effects are shrunk and covered less by any honest prior, so the nominal level is not what
fixed truths are judged by. Ten covariates, effects of 1, 0.5 and 0.25 residual SDs: all 1,024
linear models, their slab variance and noise on a grid, with the prior of the chains, beside default
fits and fits of linear models. How often 90 % intervals cover effects and expectations, and the
share of irrelevant covariates in the median model and in the readable network.

``python -m experiments.benchmarks.exact_averaging [--tables 20] [--rows 200 1000]
[--correlations 0.9]`` prints them.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaln, logsumexp

from experiments.benchmarks.coverage import (
    FIXED,
    N_COVARIATES,
    NEW_ROWS,
    Float,
    covariates,
    covered,
    linear_fixed,
)
from islab import ISLaBRegressor
from islab.learn.sample import ChainPrior

DRAWS = 1000
LOG_TAU2 = np.linspace(-5.0, 6.0, 15)
NOISE_STEPS = np.linspace(-4.0, 4.0, 11)  # standard errors of the log noise variance
MASKS = np.array(list(product((False, True), repeat=N_COVARIATES)))


def averaged(
    x: Float, y: Float, prior: ChainPrior, rng: np.random.Generator
) -> tuple[Float, Float]:
    """Draws of intercept and slopes (draws, 1 + covariates), and inclusion probabilities.

    Data are standardised as for the chains; slopes are on the scale of the data.
    """
    n, v = x.shape
    center, spread, shift, scale = x.mean(axis=0), x.std(axis=0), y.mean(), y.std()
    columns, target = np.c_[np.ones(n), (x - center) / spread], (y - shift) / scale
    rest = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
    degrees = max(n - v - 1, 4)
    log_noise = np.log(rest @ rest / degrees) + NOISE_STEPS * np.sqrt(2 / degrees)
    cells = np.array(list(product(log_noise, LOG_TAU2)))
    noise, tau2 = np.exp(cells).T
    hyper = -prior.tau_shape * cells[:, 1] - prior.tau_scale / tau2
    hyper += -prior.noise_shape * cells[:, 0] - prior.noise_scale / noise
    gram, cross = columns.T @ columns, columns.T @ target
    heights = np.empty((len(MASKS), len(cells)))
    parts = []
    for number, mask in enumerate(MASKS):
        chosen = np.flatnonzero(np.r_[True, mask])
        precision = np.repeat(1 / tau2[:, None], len(chosen), axis=1)
        precision[:, 0] = 1 / prior.bias_sd**2
        matrix = gram[np.ix_(chosen, chosen)] / noise[:, None, None]
        matrix = matrix + precision[..., None] * np.eye(len(chosen))
        factor = np.linalg.cholesky(matrix)
        fit = np.linalg.solve(factor, (cross[chosen] / noise[:, None])[..., None])[..., 0]
        heights[number] = (
            0.5 * np.log(precision).sum(axis=1)
            - np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
            + 0.5 * (fit**2).sum(axis=1)
            - 0.5 * target @ target / noise
            - 0.5 * n * cells[:, 0]
            + hyper
            + betaln(prior.inclusion_a + mask.sum(), prior.inclusion_b + v - mask.sum())
        )
        parts.append((chosen, factor, fit))
    shares = np.exp(heights - logsumexp(heights))
    drawn = rng.choice(shares.size, DRAWS, p=shares.ravel() / shares.sum())
    weights = np.zeros((DRAWS, 1 + v))
    for draw, (number, cell) in enumerate(zip(*np.divmod(drawn, len(cells)), strict=True)):
        chosen, factor, fit = parts[number]
        normal = rng.standard_normal(len(chosen))
        weights[draw, chosen] = np.linalg.solve(factor[cell].T, fit[cell] + normal)
    slopes = weights[:, 1:] * scale / spread
    intercept = shift + scale * weights[:, 0] - slopes @ center
    return np.c_[intercept, slopes], shares.sum(axis=1) @ MASKS


def one_table(correlation: float, n_rows: int, seed: int) -> list[dict[str, Any]]:
    """For each method how much is covered, and false discoveries."""
    rng = np.random.default_rng([seed, n_rows, round(100 * correlation)])
    function = linear_fixed(rng)
    x, new = (covariates(n, correlation, rng) for n in (n_rows, NEW_ROWS))
    y = function(x) + rng.standard_normal(n_rows)
    true = function(np.eye(N_COVARIATES))
    weights, inclusion = averaged(x, y, ChainPrior(), rng)
    found = {"exact": (weights[:, 1:], weights[:, :1] + weights[:, 1:] @ new.T, inclusion > 0.5)}
    steps = np.vstack([np.zeros(N_COVARIATES), np.eye(N_COVARIATES)])
    for method, settings in (("islab", {}), ("islab, linear", {"hidden_layer_sizes": ()})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = ISLaBRegressor(**settings, random_state=seed).fit(x, y)
        drawn = model.sample_posterior(np.vstack([steps, new]))[..., 0]
        effects = drawn[:, 1 : len(steps)] - drawn[:, :1]
        found[method] = (effects, drawn[:, len(steps) :], model.get_support())
    lines = []
    for method, (effects, expected, chosen) in found.items():
        inside = covered(effects, true)
        lines.append(
            {
                "correlation": correlation,
                "rows": n_rows,
                "method": method,
                **{f"effect of {size}": inside[true == size].mean() for size in FIXED},
                "expectation": covered(expected, function(new)).mean(),
                "chosen": chosen.sum(),
                "irrelevant": (chosen & (true == 0)).sum(),
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=50, help="of each setting")
    parser.add_argument("--rows", type=int, nargs="*", default=[200, 1000])
    parser.add_argument("--correlations", type=float, nargs="*", default=[0.0, 0.5, 0.7, 0.9])
    arguments = parser.parse_args()
    for correlation, rows in product(arguments.correlations, arguments.rows):
        lines = [
            line for seed in range(arguments.tables) for line in one_table(correlation, rows, seed)
        ]
        frame = pd.DataFrame(lines).groupby(["correlation", "rows", "method"]).mean()
        frame["share irrelevant"] = frame["irrelevant"] / frame["chosen"]
        print(frame.round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
