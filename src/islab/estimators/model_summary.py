"""What a summary tells of a fitted model of tables: gathered from fit, draws and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core import families
from islab.core.names import in_figures, printable, shortened
from islab.core.summary import summarise
from islab.estimators.summary import (
    ModelSummary,
    facts_of_networks,
    facts_of_size,
    facts_of_training,
)
from islab.estimators.training_fit import NAME_LENGTH, Quality
from islab.tables.rows import shown_values

if TYPE_CHECKING:
    import pandas as pd

    from islab.estimators.base import NetworkEstimator
    from islab.explain import GlobalExplanation

LIKELY = 0.5
MOST_TYPICAL = 6
COLUMNS = [
    "covariate",
    "variable",
    "weights",
    "inclusion",
    "used_probability",
    "min_depth",
    "max_depth",
]


def summarise_model(
    estimator: NetworkEstimator, X: Any = None, y: Any = None, level: float = 0.95
) -> ModelSummary:
    """The summary of a fitted estimator, with what rows and targets add to it."""
    network = estimator.network_
    everything = estimator.explain_global(X, level=level)
    family = families.likelihood(network.likelihood)
    facts = facts_of_size(network, network.scale.outputs) | {
        "used covariates": f"{len(network.covariates)} of {network.n_covariates}",
        "depth": f"{network.average_depth:.2f} on average, {network.max_depth} at most",
    }
    if len(getattr(estimator, "classes_", ())) == 2 and len(network.scale.outputs) == 1:
        facts["outputs"] = f"probability of {facts['outputs']}"
    likely = everything.effects["p_nonlinear"] > LIKELY
    linear = network.max_depth == 1 and not likely.any()
    if network.max_depth == 1:
        unlike = "" if linear else ", unlike most draws"
        facts["reads as"] = f"a {family.words.linear_model} regression{unlike}"
    if linear:
        facts |= _intercepts(everything, level)
    elif X is None and len(everything.effects):
        facts["typical row"] = _typical_row(estimator, everything)
    facts |= facts_of_training(estimator)
    facts |= {name: f"{value:.4g}" for name, value in estimator.chosen_.items()}
    if family.learns_noise:
        noise = network.noise_in_units()
        shown = noise**0.5 if family.scales_target else noise
        facts[family.noise_name] = ", ".join(in_figures(each, 4) for each in shown)
    facts |= _fit_quality(estimator, X, y)
    facts |= facts_of_networks(estimator.posterior_)
    if estimator.disagreement_ is not None and "readable network" not in facts:
        facts["caution"] = estimator.disagreement_
    effects = _with_probabilities(everything.effects, everything.variables)
    effects = _with_shares(effects, _shares(estimator, X, everything))
    covariates = _used_covariates(estimator, everything.covariates)
    name = type(estimator).__name__
    ratio = family.words.ratio
    return ModelSummary(name, facts, effects, covariates, level, ratio, everything, linear)


def _intercepts(everything: GlobalExplanation, level: float) -> dict[str, str]:
    """The predictor where numbers are 0 and categories at their typical level, by output."""
    curves = everything.curves
    start = curves.networks.scale.typical.copy()
    for grid in curves.grids:
        if not grid.is_category:
            start[grid.columns[0]] = 0.0
    drawn = curves.networks.predictor(start[None])[:, 0] @ curves.combine
    summary = summarise(drawn, level)
    ends = zip(summary.mean, summary.lower, summary.upper, strict=True)
    told = [
        f"{in_figures(mean, 4)} [{in_figures(low, 4)}, {in_figures(high, 4)}]"
        for mean, low, high in ends
    ]
    names = curves.networks.scale.outputs
    if len(names) == 1:
        return {"intercept": told[0]}
    shown = [f"intercept, {shortened(printable(name), NAME_LENGTH)}" for name in names]
    return dict(zip(shown, told, strict=True))


def _typical_row(estimator: NetworkEstimator, everything: GlobalExplanation) -> str:
    """Values of the variables that have effects, the largest effects first."""
    columns = estimator.columns_
    names = dict.fromkeys(columns.owners)
    values = shown_values(columns, everything.curves.networks.scale.typical[None])[0]
    typical = dict(zip(names, values, strict=True))
    used = list(dict.fromkeys(everything.effects["variable"]))
    told = [
        f"{shortened(printable(name), NAME_LENGTH)} {_value(typical[name])}"
        for name in used[:MOST_TYPICAL]
    ]
    more = [f"and {len(used) - MOST_TYPICAL} more"] if len(used) > MOST_TYPICAL else []
    return ", ".join([*told, *more])


def _value(value: Any) -> str:
    if isinstance(value, float):
        return in_figures(value, 4)
    return shortened(printable(str(value)), NAME_LENGTH)


def _fit_quality(estimator: NetworkEstimator, X: Any, y: Any) -> dict[str, str]:
    """Variance explained and base rate: of the rows, or without any of those of training."""
    classes, known = getattr(estimator, "classes_", None), estimator.training_fit_
    if X is None:
        return {} if known is None else known.quality.facts(classes, "the training rows")
    if y is None:
        return {}
    found: Any = estimator.predictions(X)
    return Quality.of(found, found.observed(y)).facts(classes, "these rows")


def _with_probabilities(effects: pd.DataFrame, variables: pd.DataFrame) -> pd.DataFrame:
    """Effects with the probabilities that all draws of a posterior give, where they are known."""
    known = variables.set_index("variable")["used_probability"]
    found = effects["variable"].map(known)
    return effects.assign(p_used=found.fillna(effects["p_used"]))


def _shares(estimator: NetworkEstimator, X: Any, everything: GlobalExplanation) -> dict[str, float]:
    """Shares of the predictor's variance by variable; empty if they are not known."""
    if X is not None:
        frame = everything.importance.to_frame()
        return dict(zip(frame["term"], frame["share"], strict=True))
    known = estimator.training_fit_
    return {} if known is None else {term: share for term, (share, _, _) in known.shares.items()}


def _with_shares(effects: pd.DataFrame, shares: dict[str, float]) -> pd.DataFrame:
    """Effects with each variable's share of the predictor's variance, the largest first."""
    if not shares:
        return effects
    found = effects.assign(share=effects["variable"].map(shares).fillna(0.0))
    return found.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def _used_covariates(estimator: NetworkEstimator, frame: pd.DataFrame) -> pd.DataFrame:
    """The used lines of the global explanation, the surest first."""
    network = estimator.network_
    start = network.from_covariate()
    columns = network.edge_ends()[0][start]
    total = np.bincount(columns, weights=network.alpha[start], minlength=len(frame))
    frame = frame.assign(weights=frame["count"], inclusion=total / np.maximum(frame["count"], 1))
    used = frame[frame["weights"] > 0].astype({"min_depth": int, "max_depth": int})
    order = ["used_probability", "inclusion", "weights"]
    return used[COLUMNS].sort_values(order, ascending=False, ignore_index=True)
