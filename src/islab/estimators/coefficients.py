"""Slopes, what other values would add, predictors and inclusion probabilities, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from islab.core.arrays import Float, Index
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.core.summary import summarise
from islab.estimators.drawn_rows import Model
from islab.estimators.posterior import PosteriorEstimator
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder
from islab.tables.dates import Moment
from islab.tables.numbers import Number
from islab.tables.orders import Ordered

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.sparse import SparseNetwork

NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Move:
    """One variable at another value: rows keep all other covariates.

    Attributes
    ----------
    variable : str
    columns : (own covariates,)
    values : (rows,) object
        The other values, as people know them.
    codes : (rows, own covariates)
        What the covariates become.
    """

    variable: str
    columns: Index
    values: NDArray[np.object_]
    codes: Float


class CoefficientsMixin(PosteriorEstimator):
    """What regression people ask a model for."""

    columns_: ColumnEncoder
    network_: SparseNetwork

    def coef(self, X: Any, *, level: float = 0.95, model: Model | None = None) -> pd.DataFrame:
        """Slopes of the predictor by each covariate, averaged over rows, with intervals.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
            One row for its own slopes, or all of those to average over.
        level : float
            Of the credible intervals.
        model : {"full", "median"}, optional

        Returns
        -------
        DataFrame
            A line for each output and covariate: ``slope``, the posterior mean of the average over
            rows, its ``sd`` and the ends ``lower`` and ``upper`` of its interval; ``lowest`` and
            ``highest``, the least and the greatest mean slope among the rows, which are the same
            where the effect is a straight line. Covariates that no draw uses have zeros. Scores of
            several classes are told against their mean.

        Notes
        -----
        Slopes are changes of the predictor (the target, log odds or log rate) for one unit of the
        covariate. With a curved activation they are derivatives at the rows.
        """
        import pandas as pd

        found = self._row_draws(X, model)
        draws, (rows, _) = found.draws, found.x.shape
        size = draws.n_draws * len(found.used) * len(found.outputs)
        total = np.zeros((draws.n_draws, len(found.used), len(found.outputs)))
        low, high = np.full((2, *total.shape[1:]), [[[np.inf]], [[-np.inf]]])
        for block in _blocks(rows, size):
            slopes = draws.slopes(block)
            total += slopes.sum(axis=1)
            means = slopes.mean(axis=0)
            low, high = np.minimum(low, means.min(axis=0)), np.maximum(high, means.max(axis=0))
        told = summarise(total / rows, level)
        parts = {"slope": told.mean, "sd": told.sd, "lower": told.lower, "upper": told.upper}
        parts |= {"lowest": low, "highest": high}
        names = found.scale.names
        whole = {name: np.zeros((len(names), len(found.outputs))) for name in parts}
        for name, values in parts.items():
            whole[name][found.used] = values
        frame = {
            "output": np.repeat(np.array(found.outputs, dtype=object), len(names)),
            "covariate": np.tile(np.array(names, dtype=object), len(found.outputs)),
        }
        return pd.DataFrame(frame | {name: values.T.ravel() for name, values in whole.items()})

    def potential_contributions(
        self, X: Any, *, level: float = 0.95, model: Model | None = None
    ) -> pd.DataFrame:
        """What each variable would add to the predictor of a row if it alone had another value.

        Numbers move up by one standard deviation of the training data, or down where that would
        leave their range there, so that a variable of zeros and ones moves to its other value.
        Categories move to each of their other levels. A number that is missing becomes the
        typical one.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        level : float
            Of the credible intervals.
        model : {"full", "median"}, optional

        Returns
        -------
        DataFrame
            A line for each row, output, variable and other value: ``value``, ``to``, the mean
            change of the predictor ``potential``, and ``lower`` and ``upper``. It is the exact
            difference of two predictors in every draw, for curved networks too.
        """
        import pandas as pd

        found = self._row_draws(X, model)
        shown = found.values
        assert shown is not None
        moves = list(_moves(self.columns_, found))
        known = list(dict.fromkeys(found.scale.variables))
        n_moves = len(moves)
        size = found.draws.n_draws * max(n_moves, 1) * len(found.outputs)
        parts = []
        for block in _blocks(len(found.x), size):
            rows = found.x[block]
            moved = np.repeat(rows[:, None], n_moves, axis=1)
            for number, move in enumerate(moves):
                moved[:, number, move.columns] = move.codes[block]
            there = found.draws.at(moved.reshape(-1, rows.shape[1]))
            change = there.reshape(len(there), len(rows), n_moves, -1)
            change = change - found.draws.predictor(block)[:, :, None]
            told = summarise(change, level)
            parts.append(np.stack([told.mean, told.lower, told.upper], axis=-1))
        values = np.concatenate(parts)  # (rows, moves, outputs, 3)
        row, other, output = np.indices(values.shape[:3]).reshape(3, -1)
        place = np.array([known.index(each.variable) for each in moves], dtype=np.intp)
        to = np.stack([each.values for each in moves], axis=1)
        frame = pd.DataFrame(
            {
                "row": np.asarray(found.labels)[row],
                "output": np.array(found.outputs, dtype=object)[output],
                "variable": np.array([each.variable for each in moves], dtype=object)[other],
                "value": shown[row, place[other]],
                "to": to[row, other],
            }
        )
        flat = values.reshape(-1, 3)
        frame = frame.assign(potential=flat[:, 0], lower=flat[:, 1], upper=flat[:, 2])
        return frame[frame["value"] != frame["to"]].reset_index(drop=True)

    def sample_predictor(
        self, X: Any, n_draws: int | None = None, *, model: Model | None = None
    ) -> Float:
        """Linear predictor under coherent draws of the model, (draws, rows, outputs).

        It is in the unit of the target, or the log odds, log rate or score of each class;
        ``sample_posterior`` gives expected targets and probabilities.

        Parameters
        ----------
        X : table, as in ``fit``
        n_draws : int, optional
            As many as the estimator's ``n_draws`` if not given.
        model : {"full", "median"}, optional
        """
        return self.predictions(X, n_draws=n_draws).predictor(model)

    def inclusion(self) -> pd.DataFrame:
        """Mean inclusion probability of each layer: of all its weights, and of those it uses.

        Returns
        -------
        DataFrame
            A line for each layer and what its weights come from, ``"covariates"`` or
            ``"hidden"``: ``weights``, ``mean_inclusion`` over all of them, ``used_weights`` of the
            readable network and ``mean_inclusion_used``. Layers are counted from 0, the last is the
            output layer. Weights that training dropped for good, with hidden units or layers, are
            the line ``"dropped"``, with inclusion 0.
        """
        import pandas as pd

        check_is_fitted(self)
        posterior = self.posterior_
        if not isinstance(posterior, Posterior | SampledPosterior):
            raise ValueError(
                f"Got a model that holds {type(posterior).__name__}, expected its posterior with "
                "inclusion probabilities; try a file saved without sparse=True."
            )
        net, alpha, network = posterior.architecture, posterior.inclusion(), self.network_
        layers, covariate = network.edge_layers(), network.from_covariate()
        # The readable network may have fewer layers than those of all draws.
        layers = layers + net.n_layers - network.architecture.n_layers
        lines: list[tuple[Any, str, int, Float, Float]] = []
        for block in net.blocks:
            own = (layers == block.layer) & (covariate == (block.source == "covariate"))
            source = "covariates" if block.source == "covariate" else block.source
            lines.append(
                (block.layer, source, block.size, alpha[block.weights], network.alpha[own])
            )
        dropped = posterior.n_weights_initial - net.n_weights
        if dropped > 0:
            lines.append((pd.NA, "dropped", dropped, np.zeros(1), np.zeros(0)))
        return pd.DataFrame(
            {
                "layer": pd.array([line[0] for line in lines], dtype="Int64"),
                "source": [line[1] for line in lines],
                "weights": [line[2] for line in lines],
                "mean_inclusion": [_mean(line[3]) for line in lines],
                "used_weights": [len(line[4]) for line in lines],
                "mean_inclusion_used": [_mean(line[4]) for line in lines],
            }
        )

    def _row_draws(self, X: Any, model: Model | None) -> Any:
        """The explanation of rows by their own lines, whatever the activation."""
        from islab.estimators.explanations import explain_rows

        check_is_fitted(self)
        return explain_rows(self, X, model, None, kind="linear", approximate=True)  # type: ignore[arg-type]


def _mean(values: Float) -> float:
    return float(values.mean()) if len(values) else np.nan


def _blocks(n_rows: int, cost: int) -> Iterator[slice]:
    step = max(1, NUMBERS_AT_ONCE // max(cost, 1))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def _moves(encoder: ColumnEncoder, found: Any) -> Iterator[Move]:
    """Other values of every variable that some draw uses."""
    first, x, scale = 0, found.x, found.scale
    used = set(found.used.tolist())
    for variable in encoder.variables:
        columns = np.arange(first, first + len(variable.covariates))
        first += len(columns)
        if not used & set(columns.tolist()):
            continue
        trend = variable.trend if isinstance(variable, Moment) else variable
        if isinstance(trend, Category | Ordered):
            names, codes = trend.choices()
            for name, code in list(zip(names, codes, strict=True))[:-1]:
                values = np.full(len(x), name, dtype=object)
                yield Move(variable.name, columns, values, np.tile(code, (len(x), 1)))
            continue
        assert isinstance(trend, Number)
        own, step = x[:, columns].copy(), scale.x_scale[columns[0]]
        if np.isclose(2 * step, trend.high - trend.low):
            step = trend.high - trend.low  # of two values, whose scale is half their distance
        up = own[:, 0] + step
        own[:, 0] = np.where(up <= trend.high, up, own[:, 0] - step)
        if trend.indicator:
            missing = own[:, 1] > 0
            own[missing] = [trend.fill, 0.0] if own.shape[1] == 2 else own[missing]
        shown = own[:, 0] if trend.tails is None else trend.tails.restore(own[:, 0])
        if isinstance(variable, Moment):
            shown = np.round(shown + variable.start).astype("datetime64[D]").astype(str)
        yield Move(variable.name, columns, shown.astype(object), own)
