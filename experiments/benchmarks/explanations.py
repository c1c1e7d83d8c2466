"""Whether intervals of contributions, effects and shares hold the truth as often as they say.

Truths are networks of four covariates drawn from a prior: linear, or with one bent unit, of which
the predictor differs from the best straight line by an SD below or above 0.4. Targets are numbers
with noise of SD 1, ordered classes, or counts with many zeros. A model is fitted to
each table, and 90 % intervals are compared with what the true network gives for the same rows:
contributions to 20 rows, averaged effects at all their points, and shares of the variance.

``python -m experiments.benchmarks.explanations [--tables 40] [--families gaussian]`` prints the
mean coverage with its standard error over tables, and stores ``results/explanations.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.posterior import Posterior
from islab.core.sparse import SparseNetwork
from islab.explain import explain_global, explain_local

FILE = Path(__file__).parent / "results" / "explanations.json"
N_COVARIATES, LEVEL, EXPLAINED = 4, 0.9, 20
LARGEST_SD = 2.5  # of the predictor; above it classes are nearly certain
ROUNDING = 1e-6
# Least and greatest SD of the predictor around the best straight line.
TRUTHS = {"linear": (0.0, ROUNDING), "weakly bent": (ROUNDING, 0.4), "clearly bent": (0.4, np.inf)}
Targets = tuple[type[Any], dict[str, Any], Any]


def from_the_prior(
    rng: np.random.Generator, kind: str, n_rows: int
) -> tuple[SparseNetwork, Float, Float]:
    """A network, rows and its predictor; how many of its weights are used is drawn first."""
    hidden = () if kind == "linear" else (1,)
    net = Architecture(N_COVARIATES, hidden, 1, activation="relu")
    least, greatest = TRUTHS[kind]
    while True:
        slab = 1 / np.sqrt(rng.gamma(1.0, 1.0))
        used = rng.random(net.n_weights) < rng.beta(1.0, 1.0)
        weights = np.where(used, slab * rng.standard_normal(net.n_weights), 0.0)
        biases = np.array([rng.standard_normal(), 0.0][-net.n_units :])
        truth = certain(net, weights, biases)
        x = rng.standard_normal((n_rows, N_COVARIATES))
        eta = truth.predictor(x)[:, 0]
        if eta.std() < LARGEST_SD and least <= bend(x, eta) <= greatest:
            return truth, x, eta


def bend(x: Float, eta: Float) -> float:
    """SD of a predictor around the best straight line."""
    columns = np.c_[np.ones(len(x)), x]
    return float((eta - columns @ np.linalg.lstsq(columns, eta, rcond=None)[0]).std())


def certain(net: Architecture, weights: Float, biases: Float) -> SparseNetwork:
    """The network of these weights without those that are 0."""
    known = Posterior.initialise(net, np.random.default_rng(0)).copy(
        mu=weights,
        lam=np.where(weights != 0, 5.0, -5.0),
        rho=np.full(len(weights), -40.0),
        bias_mu=biases,
        bias_rho=np.full(len(biases), -40.0),
    )
    return known.median()


def gaussian(eta: Float, rng: np.random.Generator) -> Targets:
    return ISLaBRegressor, {}, eta + rng.standard_normal(len(eta))


def ordinal(eta: Float, rng: np.random.Generator) -> Targets:
    levels = ["a low", "b middle", "c high"]
    labels = np.array(levels)[np.digitize(eta + rng.logistic(size=len(eta)), [-1.0, 1.0])]
    labels[:3] = levels
    return (
        ISLaBClassifier,
        {"likelihood": "ordinal"},
        pd.Series(pd.Categorical(labels, levels, ordered=True)),
    )


def zero_inflated(eta: Float, rng: np.random.Generator) -> Targets:
    counts = rng.poisson(np.exp(0.5 + 0.5 * eta)) * (rng.random(len(eta)) < 0.7)
    return ISLaBRegressor, {"likelihood": "zero_inflated_poisson"}, counts


# How targets are drawn, and how many units of the predictor one of the truth is.
FAMILIES: dict[str, tuple[Callable[[Float, np.random.Generator], Targets], float]] = {
    "gaussian": (gaussian, 1.0),
    "ordinal": (ordinal, 1.0),
    "zero_inflated_poisson": (zero_inflated, 0.5),
}


def one_table(
    family: str, seed: int, truth_kind: str = "linear", n_rows: int = 300, **settings: Any
) -> dict[str, float]:
    """Which contributions, points of effects and shares are covered, for one truth."""
    rng = np.random.default_rng(seed)
    drawn, factor = FAMILIES[family]
    truth, x, eta = from_the_prior(rng, truth_kind, n_rows)
    kind, options, y = drawn(eta, rng)
    table = pd.DataFrame(x, columns=[f"x{k}" for k in range(N_COVARIATES)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = kind(random_state=seed, **options, **settings).fit(table, y)
    covered = {
        "contributions": contributions_covered(model, truth, table[:EXPLAINED], factor),
        "effects": effects_covered(model, truth, table, factor),
    }
    if eta.std() > 0:
        covered["shares"] = shares_covered(model, truth, table)
    return covered


def contributions_covered(
    model: Any, truth: SparseNetwork, rows: pd.DataFrame, factor: float
) -> float:
    found = model.explain_local(rows, level=LEVEL)
    start = model.network_.scale.typical
    exact = explain_local(truth, rows.to_numpy(), baseline=start, n_draws=2, random_state=0)
    expected = factor * exact.contribution[..., 0]
    low, high = np.zeros(expected.shape), np.zeros(expected.shape)
    summary = found.contribution_summary
    low[:, found.used], high[:, found.used] = summary.lower[..., 0], summary.upper[..., 0]
    return inside(low, expected, high)


def effects_covered(model: Any, truth: SparseNetwork, table: pd.DataFrame, factor: float) -> float:
    own, exact = _everything(model, truth, table)
    points = []
    for name in table.columns:
        band, true = own.effect(name, "average"), exact.effect(name, "average")
        np.testing.assert_allclose(band.values.astype(float), true.values)
        expected = factor * true.summary.mean
        points.append(inside(band.summary.lower, expected, band.summary.upper))
    return float(np.mean(points))


def shares_covered(model: Any, truth: SparseNetwork, table: pd.DataFrame) -> float:
    own, exact = (
        each.importance.to_frame().set_index("term") for each in _everything(model, truth, table)
    )
    lines = own.loc[[name for name in table.columns if name in own.index]]
    expected = exact["share"].reindex(lines.index).fillna(0.0)
    return inside(lines["share_lower"], expected, lines["share_upper"])


def _everything(model: Any, truth: SparseNetwork, table: pd.DataFrame) -> tuple[Any, Any]:
    """The model and the truth explained over the same rows."""
    exact = explain_global(truth, table.to_numpy(), n_draws=2, random_state=0)
    return model.explain_global(table, level=LEVEL), exact


def inside(low: Any, value: Any, high: Any) -> float:
    """The share of intervals that hold their value, to rounding."""
    low, value, high = map(np.asarray, (low, value, high))
    return float(np.mean((low - ROUNDING <= value) & (value <= high + ROUNDING)))


def tables(family: str, n_tables: int, truth: str = "linear", **settings: Any) -> pd.DataFrame:
    """A line for each truth, with the shares covered."""
    return pd.DataFrame([one_table(family, seed, truth, **settings) for seed in range(n_tables)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40, help="of each kind")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--truths", nargs="*", default=list(TRUTHS), choices=list(TRUTHS))
    arguments = parser.parse_args()
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for family in arguments.families:
        for truth in arguments.truths:
            frame = tables(family, arguments.tables, truth)
            found = frame.agg(["mean", "sem"]).round(3)
            known[f"{family}, {truth}"] = {"tables": len(frame), **found.to_dict()}
            FILE.write_text(json.dumps(known, indent=1) + "\n")
            print(f"{family}, {truth}, {len(frame)} tables\n{found.to_string()}\n", flush=True)


if __name__ == "__main__":
    main()
