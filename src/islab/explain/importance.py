"""Importance that adds up: the predictor's variance over rows, by variable and by interaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float, Index
from islab.core.paths import active_weights
from islab.core.summary import Summary, summarise
from islab.explain.drawn import ExplainedNetworks
from islab.explain.effects import EffectCurves, evenly
from islab.explain.grids import Grid, number_points

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 300
MOST_BACKGROUND = 100  # rows over which effects are averaged
LEAST_BACKGROUND = 30
JOINT_BACKGROUND = 30  # of a picture, which has many points
MOST_ROWS_EACH = 9_000  # looked at for a term
MOST_POINTS = 24  # of a number, between which its effect is taken as linear
MOST_DRAWS = 100
MOST_PAIRS = 15
MOST_VARIABLES = 60  # whose pairs are looked at
FEW_ROWS, FEW_DRAWS = 24, 20  # by which pairs are compared
PAIRS_AT_ONCE = 200
LEAST_PROBABILITY = 0.05
LEAST_SHARE = 0.005  # of an interaction that is worth a picture
ROUNDING = 1e-9
OTHERS = ("other interactions",)

Term = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Importance:
    """Shares of the predictor's variance over rows; they add up to 1 in every draw.

    The predictor of a row is its mean, plus the main effect of each variable (its centred partial
    dependence at the row's value), plus for each pair that interacts what their joint partial
    dependence has beyond the two main effects, plus the rest. The share of a term is its
    covariance with the predictor over rows, divided by the predictor's variance: for a linear model
    of independent covariates it is ``beta_j^2 var(x_j)`` divided by their sum. A share may be
    negative where correlated variables offset each other.

    Attributes
    ----------
    terms : tuple of tuple of str
        A variable, two that interact, or ``("other interactions",)``: those of three or more
        variables, and of pairs that hardly ever meet or, beyond 15 pairs, hardly interact.
    probability : (terms,)
        That the variable is used, or that the two meet in a hidden unit; NaN for the rest.
    draws : (draws, terms)
        Of at most 100 draws, over at most 300 rows, with effects averaged over at most 100 rows.
        Draws in which the predictor does not vary have no shares and are left out.
    level : float
    """

    terms: tuple[Term, ...]
    probability: Float
    draws: Float
    level: float

    @cached_property
    def summary(self) -> Summary:
        """(terms,)"""
        return summarise(self.draws, self.level)

    def to_frame(self) -> pd.DataFrame:
        """A line for each term, the largest share first: probability, share and its interval."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "term": [" x ".join(term) for term in self.terms],
                "n_variables": [0 if term == OTHERS else len(term) for term in self.terms],
                "probability": self.probability,
                "share": self.summary.mean,
                "share_lower": self.summary.lower,
                "share_upper": self.summary.upper,
            }
        )
        return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    def plot(self, *, top: int = 15, ax: Any = None) -> Any:
        """Bars of the shares; see :func:`islab.plots.importance_bars`."""
        from islab.plots import importance_bars

        return importance_bars(self, top=top, ax=ax)

    def __repr__(self) -> str:
        return f"Importance({len(self.terms)} terms, {len(self.draws)} draws)"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, float_format="{:.4g}".format)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of variables that meet in a hidden unit.

    Attributes
    ----------
    table : DataFrame
        A line for each pair: ``first``, ``second``, ``probability`` that they meet, and the
        ``share`` of the predictor's variance that is due to it, with interval.
    curves : EffectCurves
    """

    table: pd.DataFrame
    curves: EffectCurves

    def to_frame(self) -> pd.DataFrame:
        """The pairs, the strongest first; no lines if there are none."""
        return self.table.copy()

    def plot(self, *, top: int = 4, ax: Any = None) -> Any:
        """The joint effects of the strongest pairs; see :func:`islab.plots.joint_effects`.

        Parameters
        ----------
        top : int
            Pairs at most; those with less than 0.5 % of the variance are left out.
        ax : axes or array of axes, optional
            One for each pair.
        """
        from islab.plots import joint_effects

        strong = self.table[self.table["share"] >= LEAST_SHARE].head(top)
        pairs = strong[["first", "second"]].itertuples(index=False, name=None)
        return joint_effects([joint_effect(self.curves, *pair) for pair in pairs], ax=ax)

    def __repr__(self) -> str:
        if self.table.empty:
            return "Interactions(none: no two variables meet in a hidden unit)"
        return f"Interactions({len(self.table)} pairs)"

    def _repr_html_(self) -> str:
        if self.table.empty:
            return "<p>No two variables meet in a hidden unit.</p>"
        return self.table.to_html(index=False, float_format="{:.4g}".format)


@dataclass(frozen=True, eq=False)
class JointEffect:
    """How two variables change the predictor together, averaged over rows.

    Attributes
    ----------
    first, second : Grid
    outputs : tuple of str
    mean, lower, upper : (points of the first, points of the second, outputs)
        Counted from the mean over the points.
    likelihood : str
    """

    first: Grid
    second: Grid
    outputs: tuple[str, ...]
    mean: Float
    lower: Float
    upper: Float
    likelihood: str


def joint_effect(curves: EffectCurves, first: str, second: str) -> JointEffect:
    """The joint partial dependence of two variables; a category comes second."""
    one, two = (_numbers_only(curves.grid(name)) for name in (first, second))
    if one.is_category and not two.is_category:
        one, two = two, one
    drawn = curves.averaged(one, two, rows=evenly(curves.rows, JOINT_BACKGROUND))
    drawn = drawn - drawn.mean(axis=(1, 2), keepdims=True)
    summary = summarise(drawn, curves.level)
    outputs = tuple(curves.networks.scale.outputs[number] for number in curves.outputs)
    likelihood = curves.networks.likelihood
    return JointEffect(one, two, outputs, summary.mean, summary.lower, summary.upper, likelihood)


def _numbers_only(grid: Grid, most: int = 20) -> Grid:
    """A grid without the point for missing values, and coarser."""
    if grid.is_category:
        return grid
    known = np.flatnonzero(~np.isnan(grid.values.astype(float)))
    some = known[np.unique(np.linspace(0, len(known) - 1, most).astype(int))]
    return Grid(grid.variable, grid.columns, grid.values[some], grid.codes[some], is_category=False)


def meetings(networks: ExplainedNetworks) -> tuple[Float, Float]:
    """Probability that variables are used (variables,), and that two meet (variables, variables).

    Two variables meet if both have a path to one hidden unit, which has one to an output.
    """
    every = networks.scale.variable_names
    place = {name: number for number, name in enumerate(every)}
    owner = np.array([place[name] for name in networks.scale.variables], dtype=np.intp)
    used, meet = np.zeros(len(every)), np.zeros((len(every), len(every)))
    for part in networks.parts:
        net = part.architecture
        kept = active_weights(net, part.weights != 0)
        into = np.zeros((len(kept), net.n_units, len(every)), dtype=bool)
        entering = net.covariate_matrix(kept)
        for column, covariate in enumerate(part.covariates):
            into[:, : net.n_covariate_rows, owner[covariate]] |= entering[..., column]
        used += into.any(axis=1).sum(axis=0)
        for layer in range(1, net.n_layers - 1):
            wires = net.hidden_block(layer).view(kept)
            into[:, net.units[layer]] |= np.matmul(wires, into[:, net.units[layer - 1]])
        hidden = into[:, : sum(net.hidden)].astype(np.float32)
        meet += (np.matmul(hidden.swapaxes(1, 2), hidden) > 0).sum(axis=0)
    np.fill_diagonal(meet, 0.0)
    return used / networks.n_draws, meet / networks.n_draws


def importance_of(curves: EffectCurves) -> Importance:
    """Shares the variance of the predictor over the rows out to variables and interactions."""
    used, meet = meetings(curves.networks)
    networks = curves.networks.thinned(MOST_DRAWS)
    curves = replace(curves, draw=lambda: networks)
    names = networks.scale.variable_names
    place = {name: number for number, name in enumerate(names)}
    rows = evenly(curves.rows, MOST_ROWS)
    background = evenly(curves.rows, MOST_BACKGROUND)
    decomposition = _Decomposition(curves, rows, background)
    main: dict[str, Float] = {}
    terms: list[Term] = []
    shares: list[Float] = []
    probability: list[float] = []
    for name in names:
        if used[place[name]] > 0:
            alone = not meet[place[name]].any()
            main[name] = decomposition.main(name, alone)
            terms.append((name,))
            shares.append(decomposition.share(main[name]))
            probability.append(used[place[name]])
    sizes = np.array([np.square(main[name]).mean() if name in main else 0.0 for name in names])
    for first, second in _pairs(names, meet, sizes, decomposition):
        terms.append((first, second))
        shares.append(decomposition.share(decomposition.joint(first, second, main)))
        probability.append(meet[place[first], place[second]])
    rest = np.where(decomposition.varies, 1 - np.sum(shares, axis=0), 0.0)
    if terms and np.abs(rest).max() > ROUNDING:
        terms.append(OTHERS)
        shares.append(rest)
        probability.append(np.nan)
    drawn = np.array(shares).T.reshape(networks.n_draws, len(terms))
    drawn = drawn[decomposition.varies]
    known = drawn if len(drawn) else np.zeros((1, len(terms)))
    return Importance(tuple(terms), np.array(probability), known, curves.level)


def interactions_of(curves: EffectCurves, importance: Importance) -> Interactions:
    """The pairs among the terms of an importance, the strongest first."""
    import pandas as pd

    summary, lines = importance.summary, []
    for number, term in enumerate(importance.terms):
        if len(term) == 2:
            lines.append(
                {
                    "first": term[0],
                    "second": term[1],
                    "probability": importance.probability[number],
                    "share": summary.mean[number],
                    "share_lower": summary.lower[number],
                    "share_upper": summary.upper[number],
                }
            )
    columns = ["first", "second", "probability", "share", "share_lower", "share_upper"]
    table = pd.DataFrame(lines, columns=columns)
    return Interactions(
        table.sort_values("share", ascending=False, kind="stable", ignore_index=True), curves
    )


def _pairs(
    names: tuple[str, ...], meet: Float, sizes: Float, decomposition: _Decomposition
) -> list[tuple[str, str]]:
    """Pairs that meet in enough draws; of many those that seem to interact most.

    ``sizes`` are those of the main effects, (variables,).
    """
    first, second = np.triu_indices(len(names), k=1)
    often = meet[first, second] >= LEAST_PROBABILITY
    if often.sum() > MOST_PAIRS:
        looked_at = np.zeros(len(names), dtype=bool)
        looked_at[np.argsort(-sizes, kind="stable")[:MOST_VARIABLES]] = True
        often &= looked_at[first] & looked_at[second]
    found = [(names[a], names[b]) for a, b in zip(first[often], second[often], strict=True)]
    if len(found) <= MOST_PAIRS:
        return found
    order = np.argsort(-decomposition.strengths(found), kind="stable")
    return [found[k] for k in order[:MOST_PAIRS]]


@dataclass(frozen=True, eq=False)
class _Decomposition:
    """Terms of the predictor at some rows, each (draws, rows, outputs) with mean 0 over rows."""

    curves: EffectCurves
    rows: Float
    background: Float

    @cached_property
    def centred(self) -> Float:
        """The predictor itself."""
        return _centred(self.curves.networks.predictor(self.rows) @ self.curves.combine)

    @property
    def weight(self) -> Float:
        """Of each output's variance: outputs may be in different units."""
        return 1 / self.curves.networks.scale.y_scale[self.curves.outputs] ** 2

    @cached_property
    def total(self) -> Float:
        """Variance of the predictor in each draw, (draws,)."""
        return (self.centred**2).mean(axis=1) @ self.weight

    @cached_property
    def varies(self) -> NDArray[np.bool_]:
        """Draws whose predictor varies by more than rounding, (draws,)."""
        size = (self.curves.networks.predictor(self.rows[:1])[:, 0] ** 2).max(axis=-1)
        return self.total > ROUNDING**2 * (1 + size)

    def main(self, variable: str, alone: bool) -> Float:
        """Centred partial dependence of a variable at the rows.

        ``alone``: it meets no others, so that it is the same over any rows. So it is in draws
        without a hidden unit that reads it; where nothing reads it, it is 0.
        """
        columns, codes, place = self._values((variable,))
        points = codes
        if codes.shape[1] == 1 and not alone:
            points = number_points(codes[:, 0], most=MOST_POINTS)[:, None]
        read, bent = self._entering(columns)
        wide = np.zeros_like(bent) if alone else bent
        drawn: Float = self._averaged(columns, points, wide)
        drawn += self._averaged(columns, points, read & ~wide, most=1)
        if len(points) < len(codes):
            drawn = _between(points[:, 0], drawn, codes[:, 0])
        return _centred(drawn[:, place])

    def joint(self, first: str, second: str, main: dict[str, Float]) -> Float:
        """What the joint partial dependence of two variables has beyond those of each.

        They meet only where hidden units read both; elsewhere it is 0.
        """
        columns, codes, place = self._values((first, second))
        one, two = (self._entering(self.curves.grid(name).columns)[1] for name in (first, second))
        both = one & two
        drawn = _centred(self._averaged(columns, codes, both)[:, place])
        drawn[both] -= main[first][both] + main[second][both]
        return drawn

    def _entering(self, columns: Index) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Draws that read some of the columns, and those in which hidden units do."""
        read, bent = self.curves.networks.entering
        return np.asarray(read[:, columns].any(axis=1)), np.asarray(bent[:, columns].any(axis=1))

    def _values(self, variables: Term) -> tuple[Index, Float, Index]:
        """Columns of variables, their different values among the rows, and which each row has."""
        columns = np.concatenate([self.curves.grid(name).columns for name in variables])
        codes, place = np.unique(self.rows[:, columns], axis=0, return_inverse=True)
        return columns, codes, place.ravel()

    def _averaged(
        self, columns: Index, points: Float, draws: NDArray[np.bool_], most: int | None = None
    ) -> Float:
        """Predictor of some draws at points, averaged over rows; 0 of other draws."""
        found = np.zeros((len(draws), len(points), len(self.curves.outputs)))
        if draws.any():
            taken = self.curves.networks.take(np.flatnonzero(draws))
            curves = replace(self.curves, draw=lambda: taken)
            grid = Grid("", columns, np.arange(len(points)), points, is_category=True)
            most = most or max(LEAST_BACKGROUND, MOST_ROWS_EACH // len(points))
            found[draws] = curves.averaged(grid, rows=evenly(self.background, most))
        return found

    def strengths(self, pairs: list[tuple[str, str]]) -> Float:
        """About how much each pair interacts, from a few rows and draws, (pairs,).

        The mean size of what the predictor changes if both variables take the values of another
        row, beyond what it changes if each does alone.
        """
        rows = evenly(self.rows, FEW_ROWS)
        others = np.roll(rows, len(rows) // 2, axis=0)
        curves, networks = self.curves, self.curves.networks.thinned(FEW_DRAWS)
        columns = {name: curves.grid(name).columns for pair in pairs for name in pair}

        def changed(changes: list[Index]) -> Float:
            """(draws, changes, rows, outputs)"""
            moved = np.repeat(rows[None], len(changes), axis=0)
            for place, own in enumerate(changes):
                moved[place][:, own] = others[:, own]
            found = networks.predictor(moved.reshape(-1, rows.shape[1])) @ curves.combine
            return found.reshape(len(found), *moved.shape[:2], -1)

        alone = dict(zip(columns, np.moveaxis(changed(list(columns.values())), 1, 0), strict=True))
        plain = changed([np.zeros(0, dtype=np.intp)])[:, 0]
        found = []
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            some = pairs[start : start + PAIRS_AT_ONCE]
            both = changed([np.concatenate([columns[a], columns[b]]) for a, b in some])
            for place, (a, b) in enumerate(some):
                beyond = both[:, place] - alone[a] - alone[b] + plain
                found.append(float(np.abs(beyond).mean(axis=(0, 1)) @ np.sqrt(self.weight)))
        return np.array(found)

    def share(self, term: Float) -> Float:
        """Covariance of a term with the predictor, as a share of its variance, (draws,)."""
        product = (term * self.centred).mean(axis=1) @ self.weight
        return np.divide(product, self.total, out=np.zeros(len(product)), where=self.varies)


def _between(points: Float, values: Float, at: Float) -> Float:
    """Values (draws, points, outputs) on the lines between points, at others from least to most."""
    right = np.clip(np.searchsorted(points, at), 1, len(points) - 1)
    share = ((at - points[right - 1]) / (points[right] - points[right - 1]))[:, None]
    return (1 - share) * values[:, right - 1] + share * values[:, right]


def _centred(values: Float) -> Float:
    return values - values.mean(axis=1, keepdims=True)
