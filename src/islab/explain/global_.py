"""What the whole model is: its used weights, the covariates they read, effects, importance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families
from islab.core.drawn import DrawnNetworks
from islab.core.network import portions
from islab.core.outputs import (
    Output,
    checked_rows,
    contrast_matrix,
    is_piecewise_linear,
    output_number,
)
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.explain.drawn import Explainable, ExplainedNetworks, Source
from islab.explain.effect_table import effect_table
from islab.explain.effects import Effect, EffectCurves
from islab.explain.grids import Grid, plain_grids
from islab.explain.importance import Importance, Interactions, importance_of, interactions_of

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

MOST_EFFECTS = 12


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """The model as tables, curves of effects, and shares of the predictor's variance.

    Graph and tables are about the readable network; effects, interactions, importance and the
    column ``contribution`` are about all draws of the posterior, or of that network if
    ``model="median"`` was asked for.

    Attributes
    ----------
    source : SparseNetwork
        The readable network.
    output : str, optional
        The one output whose paths are described, or None for all.
    edges : DataFrame
        A line for each used weight: layer, from, to, outputs (those it has a path to), alpha,
        mean, sd. Layers count from 0; weights are those of standardised covariates.
    covariates : DataFrame
        A line for each covariate of the data: its variable; for each layer how often it enters
        there on an active path (``count_0``, ...) and with what mean inclusion probability
        (``alpha_0``, ..., NaN where it does not enter); ``count``; ``used_probability``, the
        posterior probability that some active path starts at it; ``min_depth``, ``mean_depth``
        and ``max_depth``; ``contribution``, the mean over rows of the size of its contribution,
        counted from the typical row.
    variables : DataFrame
        The same by variable: the one-hot columns of a variable are one line.
    network : DataFrame
        A line for the network and, with several outputs, one for the paths to each: used
        weights, density, used covariates, mean and max depth.
    exact : bool
        False for curved activations, whose contributions are found by quadrature.
    curves : EffectCurves
        What effects and importance are found from.
    """

    source: SparseNetwork
    output: str | None
    exact: bool
    edges: pd.DataFrame
    covariates: pd.DataFrame
    variables: pd.DataFrame
    network: pd.DataFrame
    curves: EffectCurves = field(repr=False)

    def to_frame(self, table: str = "covariates") -> pd.DataFrame:
        """One of the tables.

        Parameters
        ----------
        table : {"covariates", "variables", "effects", "edges", "network"}
        """
        tables = ("edges", "covariates", "variables", "effects", "network")
        if table not in tables:
            raise ValueError(f"Got table={table!r}, expected one of {', '.join(tables)}.")
        return getattr(self, table)

    def effect(self, variable: str, kind: str = "auto") -> Effect:
        """How the predictor changes with one variable, with a credible band.

        Parameters
        ----------
        variable : str
        kind : {"auto", "average", "accumulated"}
            Partial dependence, or accumulated local effects, which ``"auto"`` takes for numbers
            that have a correlation above 0.5 with another used covariate. Without rows, the
            other variables are those of the typical row.
        """
        return self.curves.effect(variable, kind)

    def plot_effects(
        self,
        variables: str | Sequence[str] | None = None,
        *,
        kind: str = "auto",
        ax: Any = None,
    ) -> Any:
        """Curves of the effects of numbers with bands, points with intervals of categories.

        Parameters
        ----------
        variables : str or sequence of str, optional
            Up to twelve used variables if not given, those that contribute most first.
        kind : {"auto", "average", "accumulated"}
        ax : axes or array of axes, optional
            One for each variable.

        Returns
        -------
        axes, or array of axes
        """
        from islab.plots import effect_curves

        names = [variables] if isinstance(variables, str) else variables
        chosen = self._used_variables if names is None else names
        return effect_curves([self.effect(name, kind) for name in chosen], ax=ax)

    @cached_property
    def effects(self) -> pd.DataFrame:
        """Effects of all variables with intervals, the largest first.

        See :func:`islab.explain.effect_table.effect_table`.
        """
        return effect_table(self.curves)

    @cached_property
    def importance(self) -> Importance:
        """Shares of the predictor's variance over the rows, by variable and interaction."""
        self._require_rows("Importance")
        return importance_of(self.curves)

    @cached_property
    def interactions(self) -> Interactions:
        """Pairs of variables that meet in a hidden unit, and how much that matters."""
        self._require_rows("The strength of interactions")
        return interactions_of(self.curves, self.importance)

    @property
    def _used_variables(self) -> list[str]:
        frame = self.variables
        used = frame[(frame["count"] > 0) | (frame["used_probability"] >= 0.5)]
        order = used.sort_values("contribution", ascending=False, kind="stable")
        return order["variable"].head(MOST_EFFECTS).tolist()

    def _require_rows(self, what: str) -> None:
        if self.curves.x is None:
            raise ValueError(
                f"{what} needs rows to vary over, expected a table; try explain_global(X)."
            )

    def plot(self, **options: Any) -> Any:
        """The graph of active paths.

        Parameters
        ----------
        **options
            Those of :func:`islab.plots.path_graph`: ``by_variable``, ``label``, ``max_edges``,
            ``ax``.

        Returns
        -------
        axes
        """
        from islab.plots import path_graph

        return path_graph(self.source, output=self.output, **options)

    def __repr__(self) -> str:
        paths = "" if self.output is None else f", paths to {self.output!r}"
        kind = "" if self.exact else ", contributions approximate"
        return f"GlobalExplanation({self.source!r}{paths}{kind})"

    def _repr_html_(self) -> str:
        used = self.variables[self.variables["count"] > 0]
        order = used.sort_values("contribution", ascending=False, kind="stable")
        return order.to_html(index=False, float_format="{:.4g}".format)


def explain_global(
    network: SparseNetwork | Explainable,
    x: ArrayLike | Any | None = None,
    posterior: Source | None = None,
    *,
    output: Output | None = None,
    n_draws: int = 200,
    level: float = 0.95,
    random_state: int | np.random.Generator | None = None,
    model: Literal["full", "median"] | None = None,
    grids: Sequence[Grid] | None = None,
    draws: Callable[[], tuple[DrawnNetworks, Any]] | None = None,
) -> GlobalExplanation:
    """The covariates that the network uses, the layers they enter, effects and importance.

    Parameters
    ----------
    network : SparseNetwork, or a fitted estimator
        With an estimator this is its own ``explain_global``, which takes tables as they are and
        knows its posterior and seed.
    x : (rows, covariates), or of an estimator a DataFrame or (rows, columns), optional
        Rows over which effects and the sizes of contributions are averaged. Without them
        ``contribution`` is NaN, effects are those of changes of the typical row, and there is no
        importance.
    posterior : Posterior, SampledPosterior or another distribution of weights, optional
        Tells the probability that a covariate is used at all; without it ``used_probability`` is
        NaN.
    output : name or position, optional
        Tell only of the paths to this output.
    n_draws : int
        Draws of the posterior.
    level : float
        Of the credible intervals.
    random_state : int or Generator, optional
    model : {"full", "median"}, optional
        Whose draws have the effects that are shown: those of the posterior, which is the default
        where there is one, or those of ``network``.
    grids : sequence of Grid, optional
        Values of the variables at which effects are found; estimators know what levels are called.
    draws : callable, optional
        Gives draws made before, in place of new ones: networks, and what is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from islab.core.architecture import Architecture
    >>> from islab.core.posterior import Posterior
    >>> posterior = Posterior.initialise(Architecture(2, (), 1), np.random.default_rng(0))
    >>> explanation = explain_global(posterior.median(), posterior=posterior, random_state=0)
    >>> explanation.covariates[["covariate", "count_0", "used_probability"]]
      covariate  count_0  used_probability
    0        x0        1              0.86
    1        x1        1              0.85
    """
    if not 0 < level < 1:
        raise ValueError(f"Got level={level}, expected a number between 0 and 1; try 0.95.")
    if isinstance(network, Explainable):
        return network.explain_global(x, output=output, n_draws=n_draws, level=level, model=model)
    number = None if output is None else output_number(network.scale.outputs, output)
    rows = None if x is None else checked_rows(network.scale, x)
    rng = np.random.default_rng(random_state)
    used = _used_draws(posterior, number, n_draws, rng)
    source = network if posterior is None or model == "median" else posterior

    def drawn() -> ExplainedNetworks:
        if draws is None:
            return ExplainedNetworks.collect(source, network.scale, [source.draw(n_draws, rng)])
        return ExplainedNetworks.of(source, network.scale, draws()[0])

    curves = curves_over(network, rows, number, drawn, level, grids)
    return GlobalExplanation(
        source=network,
        output=None if number is None else network.scale.outputs[number],
        exact=is_piecewise_linear(source),
        edges=_edge_table(network, number),
        covariates=_covariate_table(network, number, curves, used),
        variables=_variable_table(network, number, curves, used),
        network=_network_table(network, number),
        curves=curves,
    )


def curves_over(
    network: SparseNetwork,
    rows: Float | None,
    number: int | None,
    draw: Callable[[], ExplainedNetworks],
    level: float,
    grids: Sequence[Grid] | None,
) -> EffectCurves:
    """Effects over rows of the networks that ``draw`` gives, on one output or all (None)."""
    scale = network.scale
    relative = families.likelihood(network.likelihood).relative_predictor
    contrast = contrast_matrix(scale, network.likelihood, "center" if relative else None)
    outputs = list(range(len(scale.outputs))) if number is None else [number]
    if grids is None:
        around = scale.typical + scale.x_scale * np.linspace(-2, 2, 9)[:, None]
        grids = plain_grids(scale, around if rows is None else rows)
    return EffectCurves(draw, rows, tuple(grids), outputs, contrast[outputs].T, level)


def _on_paths(network: SparseNetwork, number: int | None) -> Mask:
    """Which used weights lie on a path to the output, all for None."""
    if number is None:
        return np.ones(len(network.edges), dtype=bool)
    return network.edges_of_output(number)


def _edge_table(network: SparseNetwork, number: int | None) -> pd.DataFrame:
    frame = network.to_frame()
    names = network.scale.outputs
    reaches = [network.edges_of_output(k) for k in range(len(names))]
    outputs = [
        tuple(name for name, reached in zip(names, edge, strict=True) if reached)
        for edge in zip(*reaches, strict=True)
    ]
    frame.insert(3, "outputs", np.fromiter(outputs, dtype=object, count=len(outputs)))
    return frame[_on_paths(network, number)].reset_index(drop=True)


def _covariate_table(
    network: SparseNetwork, number: int | None, curves: EffectCurves, used: Mask | None
) -> pd.DataFrame:
    owner = np.arange(network.n_covariates)
    frame = _entries(network, number, owner, curves, used)
    frame.insert(0, "covariate", list(network.scale.names))
    frame.insert(1, "variable", list(network.scale.variables))
    return frame


def _variable_table(
    network: SparseNetwork, number: int | None, curves: EffectCurves, used: Mask | None
) -> pd.DataFrame:
    variables = list(dict.fromkeys(network.scale.variables))
    place = {variable: index for index, variable in enumerate(variables)}
    owner = np.array([place[variable] for variable in network.scale.variables], dtype=np.intp)
    frame = _entries(network, number, owner, curves, used)
    frame.insert(0, "variable", variables)
    return frame


def _entries(
    network: SparseNetwork,
    number: int | None,
    owner: NDArray[np.intp],
    curves: EffectCurves,
    used: Mask | None,
) -> pd.DataFrame:
    """Where covariates enter, how surely and how deep, added up by their owner's number."""
    import pandas as pd

    n_owners, n_layers = int(owner.max(initial=-1)) + 1, network.architecture.n_layers
    chosen = network.from_covariate() & _on_paths(network, number)
    entry, layer = owner[network.edge_ends()[0][chosen]], network.edge_layers()[chosen]
    counts = np.zeros((n_owners, n_layers), dtype=int)
    total = np.zeros(counts.shape)
    np.add.at(counts, (entry, layer), 1)
    np.add.at(total, (entry, layer), network.alpha[chosen])
    alpha = np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)
    columns: dict[str, Any] = {}
    for index in range(n_layers):
        columns[f"count_{index}"] = counts[:, index]
        columns[f"alpha_{index}"] = alpha[:, index]
    columns["count"] = counts.sum(axis=1)
    columns["used_probability"] = _used_probability(used, owner, n_owners)
    depths = pd.Series(n_layers - layer).groupby(entry).agg(["min", "mean", "max"])
    depths = depths.reindex(range(n_owners))
    for statistic in ("min", "mean", "max"):
        columns[f"{statistic}_depth"] = depths[statistic].to_numpy(dtype=float)
    columns["contribution"] = _mean_sizes(curves, owner, n_owners)
    return pd.DataFrame(columns)


def _network_table(network: SparseNetwork, number: int | None) -> pd.DataFrame:
    import pandas as pd

    names = network.scale.outputs
    numbers: list[int | None] = [number]
    if number is None and len(names) > 1:
        numbers += range(len(names))
    lines = []
    for each in numbers:
        on_paths = _on_paths(network, each)
        depths = network.depths(each)
        covariates = network.edge_ends()[0][on_paths & network.from_covariate()]
        lines.append(
            {
                "output": "(all)" if each is None else names[each],
                "used_weights": int(on_paths.sum()),
                "density": on_paths.sum() / max(network.n_weights_initial, 1),
                "used_covariates": len(np.unique(covariates)),
                "mean_depth": float(depths.mean()) if len(depths) else 0.0,
                "max_depth": int(depths.max(initial=0)),
            }
        )
    return pd.DataFrame(lines)


def _mean_sizes(curves: EffectCurves, owner: NDArray[np.intp], n_owners: int) -> Float:
    """Mean absolute contribution of each owner, its columns added up within a row."""
    if curves.x is None or not len(curves.x):
        return np.full(n_owners, np.nan)
    sizes = np.zeros(n_owners)
    owners, place = np.unique(owner[curves.networks.used], return_inverse=True)
    added = np.zeros((len(owners), *curves.contributions.shape[::2]))
    np.add.at(added, place, np.swapaxes(curves.contributions, 0, 1))
    sizes[owners] = np.abs(added).mean(axis=(1, 2))
    return sizes


def _used_draws(
    posterior: Any, number: int | None, n_draws: int, rng: np.random.Generator
) -> Mask | None:
    """Whether each covariate starts an active path in each drawn structure."""
    if not isinstance(posterior, Posterior | SampledPosterior):
        return None
    shape = posterior.architecture
    outputs = None if number is None else np.arange(shape.n_outputs) == number
    drawn = []
    for kept in _structures(posterior, n_draws, rng):
        active = active_weights(shape, kept, outputs)
        drawn.append(shape.covariate_matrix(active).any(axis=-2))
    return np.concatenate(drawn)


def _structures(
    posterior: Posterior | SampledPosterior, n_draws: int, rng: np.random.Generator
) -> Iterator[Mask]:
    """Which weights are used, in parts of (draws, weights); sampled structures are all used."""
    n_weights = posterior.architecture.n_weights
    if isinstance(posterior, Posterior):
        for size in portions(n_draws, n_weights):
            yield rng.random((size, n_weights)) < posterior.alpha
        return
    numbers, first = posterior.numbers(posterior.n_draws), 0
    for size in portions(len(numbers), n_weights):
        yield posterior.take(numbers[first : first + size])[0] != 0
        first += size


def _used_probability(used: Mask | None, owner: NDArray[np.intp], n_owners: int) -> Float:
    if used is None:
        return np.full(n_owners, np.nan)
    any_of = np.zeros((n_owners, len(used)), dtype=bool)
    np.logical_or.at(any_of, owner, used.T)
    return any_of.mean(axis=1)
