"""Models in the forms of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from islab.core.expressions import Cell, Expression, call
from islab.estimators.posterior import PosteriorEstimator
from islab.tables.columns import ColumnEncoder
from islab.tables.frames import column_names
from islab.tables.offsets import OffsetColumns
from islab.tables.targets import codes_of

if TYPE_CHECKING:
    from islab.export.portable import Portable

DRAWS = 100


class ExportMixin(PosteriorEstimator):
    """Exports of estimators that read tables."""

    columns_: ColumnEncoder
    offset_columns_: OffsetColumns = OffsetColumns()

    def export(self, to: str, path: str | Path | None = None, **options: Any) -> Any:
        """The model for other programs, which predicts rows of the table as they are.

        Categories, missing values, dates and scales are dealt with inside, as in ``predict``.

        Parameters
        ----------
        to : {"formula", "latex", "python", "sql", "onnx", "torch", "graphml"}
        path : path, optional
            File to write; replaced in one move if it exists.
        **options
            Those of the function of :mod:`islab.export` for that form: ``model``, ``n_draws`` and
            ``level`` of "python", "sql" and "onnx", ``table`` and ``dialect`` of "sql", ``digits``
            of "formula" and "latex".

        Returns
        -------
        str
            Or an ``onnx.ModelProto``, or a ``torch.nn.Module``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from islab import ISLaBClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ISLaBClassifier(max_epochs=20, n_restarts=1, random_state=0).fit(X, y)
        >>> module = {}
        >>> exec(model.export("python", n_draws=20), module)
        >>> module["predict"](X[0].tolist()) == int(model.predict(X[:1])[0])
        True
        """
        from islab.export import export

        check_is_fitted(self)
        return export(self, to, path, **options)

    def portable(self, model: str | None = None, n_draws: int | None = None) -> Portable:
        """What an export holds.

        Parameters
        ----------
        model : {"full", "median"}, optional
            Draws of the full posterior, the default unless the file that the model comes from was
            saved with ``sparse=True``; or the readable network.
        n_draws : int, optional
            Draws to hold, 100 of the full posterior if not given; :attr:`n_draws` of the model give
            the numbers of ``predict``. The readable network is held at the mean of its weights,
            unless draws of these are asked for.
        """
        from islab.export.portable import Portable, drawn_layers

        check_is_fitted(self)
        if n_draws is not None and n_draws < 1:
            raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try {DRAWS}.")
        network, n_covariates = self.network_, len(self.columns_.names)
        found = self._predictions(
            covariates=np.empty((0, n_covariates)),
            network=network,
            posterior=self.posterior_,
            n_draws=n_draws or DRAWS,
            seed=self.seed_,
        )
        chosen: Any = found.models[-1] if model is None else model
        if chosen == "median" and n_draws is None:
            weights, biases = network.mean_weights()[None], network.bias_mu[None]
            noise = network.noise_in_units()
        else:
            weights, biases = found.networks(chosen).dense()
            noise = found.noise(chosen)
        full = chosen == "full"
        net = (self.posterior_ if full else network).architecture
        layers, used = drawn_layers(
            net,
            weights,
            biases,
            network.scale,
            np.arange(n_covariates) if full else network.covariates,
            self.columns_.varies,
        )
        classes: Any = getattr(self, "classes_", None)
        levels = getattr(self, "levels_", None)
        return Portable(
            columns=(*column_names(self), *self.offset_columns_.names),
            named=hasattr(self, "feature_names_in_"),
            covariates={network.scale.names[k]: self.columns_.expression(k) for k in used},
            layers=layers,
            activations=net.activations,
            likelihood=network.likelihood,
            noise=np.array(np.broadcast_to(noise, (len(weights), 1, noise.shape[-1]))[:, 0]),
            outputs=network.scale.outputs,
            classes=None if classes is None else tuple(classes.tolist()),
            order=None if levels is None else tuple(codes_of(classes, levels).tolist()),
            offset=self._offset_expression(),
            flat=getattr(self, "_flat", False),
        )

    def _offset_expression(self) -> Expression | None:
        known = self.offset_columns_
        parts: list[Expression] = [] if known.offset is None else [Cell(known.offset)]
        if known.exposure is not None:
            parts.append(call("log", Cell(known.exposure)))
        return sum(parts[1:], start=parts[0]) if parts else None
