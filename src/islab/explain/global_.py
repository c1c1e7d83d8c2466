"""What the whole network is: its used weights, the covariates they read, its size and depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.network import portions
from islab.core.outputs import Output, checked_rows, is_piecewise_linear, output_number
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.explain.linear_pieces import linear_pieces

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

NUMBERS_AT_ONCE = 5_000_000


@dataclass(frozen=True)
class GlobalExplanation:
    """The network as four tables.

    Attributes
    ----------
    source : SparseNetwork
        The network explained.
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
        and ``max_depth``; ``contribution``, its mean absolute contribution over the rows.
    variables : DataFrame
        The same by variable: the one-hot columns of a variable are one line.
    network : DataFrame
        A line for the network and, with several outputs, one for the paths to each: used
        weights, density, used covariates, mean and max depth.
    exact : bool
        False for curved activations, whose ``contribution`` is the gradient times the distance
        from the center: an approximation.
    """

    source: SparseNetwork
    output: str | None
    exact: bool
    edges: pd.DataFrame
    covariates: pd.DataFrame
    variables: pd.DataFrame
    network: pd.DataFrame

    def to_frame(self, table: str = "covariates") -> pd.DataFrame:
        """One of the tables: ``"edges"``, ``"covariates"``, ``"variables"`` or ``"network"``."""
        tables = ("edges", "covariates", "variables", "network")
        if table not in tables:
            raise ValueError(f"Got table={table!r}, expected one of {', '.join(tables)}.")
        return getattr(self, table)

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


def explain_global(
    network: SparseNetwork,
    x: ArrayLike | None = None,
    posterior: Posterior | SampledPosterior | None = None,
    *,
    output: Output | None = None,
    n_draws: int = 200,
    random_state: int | np.random.Generator | None = None,
) -> GlobalExplanation:
    """The covariates that the network uses, the layers they enter, and inclusion probabilities.

    Parameters
    ----------
    network : SparseNetwork
    x : (rows, covariates), optional
        Rows over which absolute contributions, counted from the center of the training data, are
        averaged; without them ``contribution`` is NaN.
    posterior : Posterior or SampledPosterior, optional
        The full posterior, for the probability that a covariate is used at all; without it
        ``used_probability`` is NaN.
    output : name or position, optional
        Tell only of the paths to this output.
    n_draws : int
        Structures drawn from the posterior.
    random_state : int or Generator, optional

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
    number = None if output is None else output_number(network.scale.outputs, output)
    rows = None if x is None else checked_rows(network, x)
    used = _used_draws(network, posterior, number, n_draws, np.random.default_rng(random_state))
    return GlobalExplanation(
        source=network,
        output=None if number is None else network.scale.outputs[number],
        exact=is_piecewise_linear(network),
        edges=_edge_table(network, number),
        covariates=_covariate_table(network, number, rows, used),
        variables=_variable_table(network, number, rows, used),
        network=_network_table(network, number),
    )


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
    network: SparseNetwork, number: int | None, rows: Float | None, used: Mask | None
) -> pd.DataFrame:
    owner = np.arange(network.n_covariates)
    frame = _entries(network, number, owner, rows, used)
    frame.insert(0, "covariate", list(network.scale.names))
    frame.insert(1, "variable", list(network.scale.variables))
    return frame


def _variable_table(
    network: SparseNetwork, number: int | None, rows: Float | None, used: Mask | None
) -> pd.DataFrame:
    variables = list(dict.fromkeys(network.scale.variables))
    place = {variable: index for index, variable in enumerate(variables)}
    owner = np.array([place[variable] for variable in network.scale.variables], dtype=np.intp)
    frame = _entries(network, number, owner, rows, used)
    frame.insert(0, "variable", variables)
    return frame


def _entries(
    network: SparseNetwork,
    number: int | None,
    owner: NDArray[np.intp],
    rows: Float | None,
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
    columns["contribution"] = _mean_sizes(network, number, owner, n_owners, rows)
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


def _mean_sizes(
    network: SparseNetwork,
    number: int | None,
    owner: NDArray[np.intp],
    n_owners: int,
    rows: Float | None,
) -> Float:
    """Mean absolute contribution of each owner, its columns added up within a row."""
    if rows is None or not len(rows):
        return np.full(n_owners, np.nan)
    outputs = list(range(len(network.scale.outputs))) if number is None else [number]
    used, center = network.covariates, network.scale.x_center[network.covariates]
    owners, place = np.unique(owner[used], return_inverse=True)
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    total = np.zeros(len(owners))
    widest = max(len(used), *network.architecture.widths)
    step = max(1, NUMBERS_AT_ONCE // (widest * len(outputs)))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        contributions = linear_pieces(network, *at_mean, some, outputs).slope[0]
        contributions *= (some[:, used] - center)[:, :, None]
        added = np.zeros((len(owners), len(some), len(outputs)))
        np.add.at(added, place, np.swapaxes(contributions, 0, 1))
        total += np.abs(added).sum(axis=(1, 2))
    sizes = np.zeros(n_owners)
    sizes[owners] = total / (len(rows) * len(outputs))
    return sizes


def _used_draws(
    network: SparseNetwork,
    posterior: Posterior | SampledPosterior | None,
    number: int | None,
    n_draws: int,
    rng: np.random.Generator,
) -> Mask | None:
    """Whether each covariate starts an active path in each drawn structure."""
    if posterior is None:
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
