"""Centre and spread of the data, and the user's names: kept once, shared by all that need them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from islab.core.arrays import Float, Index
from islab.core.families import Likelihood


@dataclass(frozen=True, eq=False)
class Scale:
    """The scale and the names of the data, and how a network's standardised numbers follow.

    Attributes
    ----------
    x_center, x_scale : (covariates,)
        The network reads ``(x - x_center) / x_scale``.
    y_center, y_scale : (outputs,)
        The linear predictor on the scale of the data is ``y_center + y_scale * predictor``.
    names : tuple of str
        Covariates.
    outputs : tuple of str
        Outputs; for the categorical likelihood, the classes.
    variables : tuple of str
        For each covariate the variable it belongs to: one-hot columns share theirs.
    x_typical : (covariates,), optional
        The typical row of the training data: the median of each number, the most frequent level
        of each category, nothing missing. None in files of version 0.1.
    """

    x_center: Float
    x_scale: Float
    y_center: Float
    y_scale: Float
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    variables: tuple[str, ...]
    x_typical: Float | None = None

    @property
    def typical(self) -> Float:
        """The typical row, or the center where the typical row is not known, (covariates,)."""
        return self.x_center if self.x_typical is None else self.x_typical

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Variables with covariates, each once."""
        return tuple(dict.fromkeys(self.variables))

    @classmethod
    def plain(cls, n_covariates: int, n_outputs: int) -> Scale:
        """Data as they are: ``x0``, ``x1``, ... and ``y0``, ``y1``, ..."""
        names = tuple(f"x{column}" for column in range(n_covariates))
        return cls(
            x_center=np.zeros(n_covariates),
            x_scale=np.ones(n_covariates),
            y_center=np.zeros(n_outputs),
            y_scale=np.ones(n_outputs),
            names=names,
            outputs=tuple(f"y{output}" for output in range(n_outputs)),
            variables=names,
        )

    def with_predictors(self, likelihood: Likelihood) -> Scale:
        """The same with an output for each predictor of each target."""
        y_center, y_scale = likelihood.output_scale(self.y_center, self.y_scale)
        outputs = likelihood.output_names(self.outputs)
        return replace(self, y_center=y_center, y_scale=y_scale, outputs=outputs)

    def standardise(self, x: Float, columns: Index | slice = slice(None)) -> Float:
        """These columns of rows (rows, covariates), as a network reads them."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise ValueError(f"Got x of shape {x.shape}, expected (rows, {len(self.names)}).")
        return (x[:, columns] - self.x_center[columns]) / self.x_scale[columns]

    def restore(self, predictor: Float) -> Float:
        """Linear predictors (..., outputs) on the scale of the data."""
        return self.y_center + self.y_scale * predictor
