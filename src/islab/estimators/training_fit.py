"""How well a model fits the rows that it learned from: what a summary tells without them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.names import printable, shortened
from islab.explain.drawn import ExplainedNetworks
from islab.explain.effects import even_places
from islab.explain.global_ import curves_over
from islab.explain.importance import importance_of, meetings

if TYPE_CHECKING:
    from islab.estimators.base import NetworkEstimator
    from islab.estimators.predictions import Predictions

MOST_ROWS, MOST_DRAWS = 1000, 200
MOST_VARIABLES = 60  # that some draw uses: shares of more would take long
LEVEL = 0.95
NAME_LENGTH = 36


@dataclass(frozen=True)
class Quality:
    """What a model explains of some rows.

    Attributes
    ----------
    explained : tuple of float
        R squared of each target; of classes one number, the share of the deviance. NaN if targets
        do not vary.
    base_rates : tuple of float
        Of each class; empty for numbers.
    """

    explained: tuple[float, ...]
    base_rates: tuple[float, ...] = ()

    @classmethod
    def of(cls, predictions: Any, observed: NDArray) -> Quality:
        """Of predictions and checked targets, (rows,) of classes or (rows, outputs)."""
        if predictions.kind == "classes":
            own = observed[:, None] == predictions.classes
            rates = own.mean(axis=0)
            null = -np.log(rates.clip(1e-300))[own.argmax(axis=1)].mean()
            left = predictions.log_score(observed).mean()
            explained = 1 - left / null if null > 0 else np.nan
            return cls((float(explained),), tuple(rates.tolist()))
        residual = ((observed - predictions.mean()) ** 2).sum(axis=0)
        total = ((observed - observed.mean(axis=0)) ** 2).sum(axis=0)
        return cls(tuple((1 - residual / np.maximum(total, 1e-300)).tolist()))

    def facts(self, classes: Any, which: str) -> dict[str, str]:
        """Lines of a summary; ``which`` names the rows."""
        if not self.base_rates:
            shares = ", ".join(f"{share:.3f}" for share in self.explained)
            return {"R\N{SUPERSCRIPT TWO}": f"{shares} of {which}"}
        rates = ", ".join(
            f"{shortened(printable(str(name)), NAME_LENGTH)} {share:.1%}"
            for name, share in zip(classes, self.base_rates, strict=True)
        )
        explained = f"{self.explained[0]:.1%} of {which}"
        return {"base rate": rates, "deviance explained": explained}


@dataclass(frozen=True)
class TrainingFit:
    """What was found about the training rows at the end of a fit, or some of them if many.

    Attributes
    ----------
    quality : Quality
    shares : dict
        Of variables and interactions, by name: the share of the predictor's variance, and the ends
        of its 95 % interval. Empty if very many variables are used.
    """

    quality: Quality
    shares: dict[str, tuple[float, float, float]]


def training_fit(
    estimator: NetworkEstimator, covariates: Float, observed: NDArray, offset: Float | None
) -> TrainingFit:
    """The fit to training rows (rows, covariates) with their targets."""
    rows = even_places(len(covariates), MOST_ROWS)
    predictions = estimator._predictions(
        covariates=covariates[rows],
        offset=None if offset is None else offset[rows],
        network=estimator.network_,
        posterior=estimator.posterior_,
        n_draws=min(estimator.n_draws, MOST_DRAWS),
        seed=estimator.seed_,
    )
    quality = Quality.of(predictions, observed[rows])
    return TrainingFit(quality, _shares(estimator, predictions))


def _shares(
    estimator: NetworkEstimator, predictions: Predictions
) -> dict[str, tuple[float, float, float]]:
    from islab.estimators.explanations import grids_of

    network, rows = estimator.network_, predictions.covariates
    networks = ExplainedNetworks.of(predictions.source(), network.scale, predictions.networks())
    if int((meetings(networks)[0] > 0).sum()) > MOST_VARIABLES:
        return {}
    grids = grids_of(estimator.columns_, rows, network.scale.typical)
    curves = curves_over(network, rows, None, partial(_same, networks), LEVEL, grids)
    found = importance_of(curves).to_frame()
    columns = ("share", "share_lower", "share_upper")
    numbers = found[[*columns]].itertuples(index=False, name=None)
    return dict(zip(found["term"], numbers, strict=True))


def _same(networks: ExplainedNetworks) -> ExplainedNetworks:
    return networks
