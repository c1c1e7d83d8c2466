"""What makes a prediction uncertain: the variance of the predictor, shared out to variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain.local_explanation import LocalExplanation

Float = NDArray[np.floating]


@dataclass(frozen=True)
class Drivers:
    """Shares of the variance of the predictor over draws, by row and output.

    Attributes
    ----------
    variables, outputs : tuple of str
    labels : (rows,)
        Names of the rows.
    share : (rows, used variables, outputs)
        Part due to the contribution of each variable. A share is negative where one
        offsets the others.
    intercept_share : (rows, outputs)
        Part due to the intercept; with ``share`` it adds up to 1.
    variance : (rows, outputs)
        Variance of the predictor over draws. Shares of a predictor that does not vary are NaN.
    noise : (outputs,), optional
        Noise variance of Gaussian outputs, which comes on top.
    """

    variables: tuple[str, ...]
    outputs: tuple[str, ...]
    labels: NDArray
    share: Float
    intercept_share: Float
    variance: Float
    noise: Float | None

    def to_frame(self) -> pd.DataFrame:
        """One line for each row, output and source of variance.

        ``source`` is a variable, ``(intercept)`` or ``(noise)``; the noise has a variance but
        no share, as it does not belong to the predictor.
        """
        import pandas as pd

        sources = [*self.variables, "(intercept)"]
        share = np.concatenate([self.share, self.intercept_share[:, None]], axis=1)
        variance = share * self.variance[:, None]
        if self.noise is not None:
            sources.append("(noise)")
            extra = np.broadcast_to(self.noise, self.intercept_share.shape)[:, None]
            share = np.concatenate([share, np.full_like(extra, np.nan)], axis=1)
            variance = np.concatenate([variance, extra], axis=1)
        rows, n_sources, outputs = share.shape
        return pd.DataFrame(
            {
                "row": np.repeat(np.asarray(self.labels), n_sources * outputs),
                "output": np.tile(np.array(self.outputs, dtype=object), rows * n_sources),
                "source": np.tile(np.repeat(np.array(sources, dtype=object), outputs), rows),
                "variance": variance.ravel(),
                "share": share.ravel(),
            }
        )

    def plot(self, **options: Any) -> Any:
        """Bars of the shares; see :func:`islab.plots.driver_bars`."""
        from islab.plots import driver_bars

        return driver_bars(self, **options)


def drivers_of(explanation: LocalExplanation) -> Drivers:
    """Shares the variance of the predictor out to intercept and contributions.

    Notes
    -----
    The variance of the predictor is its covariance with the intercept plus the sum of its
    covariances with the contributions. Divided by the variance these are shares that add up to 1.
    They depend on the baseline.
    """
    predictor = explanation.draws_predictor
    centred = predictor - predictor.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    products = [
        np.einsum("drvo,dro->rvo", drawn, centred[:, rows])
        for rows, drawn in explanation.variable_blocks()
    ]
    covariance = np.concatenate(products) / len(centred)
    nothing = np.full(covariance.shape, np.nan)
    varies = np.broadcast_to(variance[:, None] > 0, covariance.shape)
    share = np.divide(covariance, variance[:, None], out=nothing, where=varies)
    intercept = np.where(variance > 0, 1 - share.sum(axis=1), np.nan)
    likelihood = families.likelihood(explanation.likelihood)
    return Drivers(
        variables=explanation.variables,
        outputs=explanation.outputs,
        labels=explanation.labels,
        share=share,
        intercept_share=intercept,
        variance=variance,
        noise=explanation.noise if likelihood.normal_noise else None,
    )
