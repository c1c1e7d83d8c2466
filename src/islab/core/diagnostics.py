"""How far the draws of chains can be trusted: convergence, acceptance, agreement of chains."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.dependencies import needed
from islab.core.mixing import bulk_size, mean_error, of_one_length, rhat
from islab.core.sampled import AllRows, SampledPosterior

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]

LARGEST_RHAT, FEWEST_EFFECTIVE = 1.05, 100
FAR_APART = 1.2  # R-hat of chains that do not visit each other's networks
LARGEST_GAP = 0.5  # between chains, of the probability that a variable is used


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Convergence of the chains of a sampled posterior.

    Attributes
    ----------
    quantities : DataFrame
        For the predictions of training rows (the worst of them), the log likelihood, the number of
        used weights, what the likelihood learns besides, as ``summary()`` calls it and in its
        units, and the use of each variable: mean, standard deviation, Monte Carlo standard error,
        rank-normalised R-hat and effective number of draws.
    moves : DataFrame
        Proposed and accepted moves of each kind, over all chains.
    chains : DataFrame
        Share, draws, mean log likelihood and mean number of used weights of each chain.
    pareto_k : float
        Share of training rows whose leave-one-out density is unreliable (Pareto k above 0.7).
    all_rows : AllRows, optional
        How weights were learned, if chains saw some of the rows only.
    """

    quantities: pd.DataFrame
    moves: pd.DataFrame
    chains: pd.DataFrame
    pareto_k: float
    all_rows: AllRows | None = None

    def to_frame(self, table: str = "quantities") -> pd.DataFrame:
        """One of the tables: ``"quantities"``, ``"moves"`` or ``"chains"``."""
        tables = ("quantities", "moves", "chains")
        if table not in tables:
            raise ValueError(f"Got table={table!r}, expected one of {', '.join(tables)}.")
        return getattr(self, table)

    @property
    def converged(self) -> bool:
        """Whether R-hat of the predictions and their effective number of draws are good."""
        worst = self.quantities.loc["predictions"]
        return bool(worst["rhat"] <= LARGEST_RHAT and worst["ess_bulk"] >= FEWEST_EFFECTIVE)

    @property
    def words(self) -> str:
        """One line to print."""
        worst, n_chains = self.quantities.loc["predictions"], len(self.chains)
        line = f"{n_chains} chains, R-hat of predictions {worst['rhat']:.2f}, "
        line += f"{worst['ess_bulk']:.0f} effective draws"
        if self.converged:
            return line
        apart = worst["rhat"] > FAR_APART
        return f"{line}: {'chains found different networks' if apart else 'not converged'}"

    def __str__(self) -> str:
        parts = [self.words, "", self.quantities.to_string(float_format="{:.3g}".format)]
        if self.all_rows is not None:
            parts.insert(1, self.all_rows.words)
        parts += ["", self.moves.to_string(float_format="{:.2f}".format)]
        return "\n".join([*parts, "", self.chains.to_string(float_format="{:.3g}".format)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = (self.quantities, self.moves, self.chains)
        shown = "".join(table.to_html(float_format="{:.3g}".format) for table in tables)
        lines = [self.words] if self.all_rows is None else [self.words, self.all_rows.words]
        return f"<div><p>{'<br>'.join(map(escape, lines))}</p>{shown}</div>"


def diagnose(posterior: SampledPosterior) -> Diagnostics:
    """Convergence of the chains of a sampled posterior."""
    import pandas as pd

    traces = _traces(posterior)
    whole = [np.concatenate(trace) for trace in traces.values()]
    values = np.stack([of_one_length(trace) for trace in traces.values()], axis=2).astype(float)
    predictions = posterior.mixing
    lines = pd.DataFrame(
        {
            "mean": [float(draws.mean()) for draws in whole],
            "sd": [float(draws.std()) for draws in whole],
            "mcse": mean_error(values),
            "rhat": rhat(values),
            "ess_bulk": bulk_size(values),
        },
        index=pd.Index(list(traces), name="quantity"),
    )
    worst = pd.DataFrame(
        {"rhat": predictions.rhat, "ess_bulk": predictions.ess}, index=["predictions"]
    )
    return Diagnostics(
        quantities=pd.concat([worst.reindex(columns=lines.columns), lines]).rename_axis("quantity"),
        moves=_moves(posterior),
        chains=_chains(posterior),
        pareto_k=predictions.pareto_k,
        all_rows=posterior.all_rows,
    )


def disagreeing_variable(posterior: SampledPosterior) -> tuple[str, float, float] | None:
    """The variable on whose use chains differ most, with the extremes, if they differ much."""
    names, used = posterior.used_variables()
    by_chain = np.array([each.mean(axis=0) for each in used])
    lowest, highest = by_chain.min(axis=0), by_chain.max(axis=0)
    if not len(names) or (highest - lowest).max() <= LARGEST_GAP:
        return None
    worst = int((highest - lowest).argmax())
    return names[worst], float(lowest[worst]), float(highest[worst])


def to_arviz(posterior: SampledPosterior) -> Any:
    """The draws as ArviZ takes them: what has the same meaning in every draw.

    Hidden units have no identity across draws, so their weights are not there: the group
    ``posterior`` has ``used`` (by variable), ``nonlinear`` (by covariate), ``n_used_weights``,
    ``noise`` and ``log_likelihood``, of all rows together.
    """
    # No dimension is called "variable" or "column": xarray and ArviZ use these words themselves
    # when they make tables and plots.
    base = needed("arviz_base", "ArviZ data", "arviz")
    names, used = posterior.used_variables()
    scale, net = posterior.data_scale, posterior.architecture
    values: dict[str, list[NDArray]] = {
        "used": [each.astype(np.int8) for each in used],
        "nonlinear": [chain.bends_covariate(net).astype(np.int8) for chain in posterior.chains],
        "n_used_weights": [chain.sizes for chain in posterior.chains],
        "noise": [chain.noise for chain in posterior.chains],
        "log_likelihood": [chain.log_likelihood for chain in posterior.chains],
    }
    dims = {"used": ["table_column"], "nonlinear": ["covariate"]}
    if posterior.chains[0].noise.shape[1] == len(scale.outputs):
        dims["noise"] = ["output"]
    return base.from_dict(
        {"posterior": {name: of_one_length(chains) for name, chains in values.items()}},
        coords={
            "table_column": list(names),
            "covariate": list(scale.names),
            "output": list(scale.outputs),
        },
        dims=dims,
    )


def _traces(posterior: SampledPosterior) -> dict[str, list[NDArray]]:
    """Quantities that have the same meaning in every draw, by chain, each (draws,)."""
    names, used = posterior.used_variables()
    traces: dict[str, list[NDArray]] = {
        "log likelihood": [chain.log_likelihood for chain in posterior.chains],
        "used weights": [chain.sizes for chain in posterior.chains],
    }
    traces |= _noise_traces(posterior)
    for number, name in enumerate(names):
        traces[f"{name} is used"] = [each[:, number] for each in used]
    return traces


def _noise_traces(posterior: SampledPosterior) -> dict[str, list[NDArray]]:
    """What the likelihood learned besides the weights, in the user's units, by chain."""
    family, scale = families.likelihood(posterior.likelihood), posterior.data_scale
    if not family.learns_noise:
        return {}
    noise = [chain.noise for chain in posterior.chains]
    if family.scales_target:
        noise = [scale.y_scale * np.sqrt(each) for each in noise]
    n_numbers = noise[0].shape[1]
    by_output = n_numbers == len(scale.outputs)
    ends = [f" of {output}" for output in scale.outputs]
    ends = ends if by_output else [f", number {k + 1}" for k in range(n_numbers)]
    return {f"{family.noise_name}{end}": [n[:, k] for n in noise] for k, end in enumerate(ends)}


def _moves(posterior: SampledPosterior) -> pd.DataFrame:
    import pandas as pd

    lines = {}
    for name in posterior.chains[0].moves:
        accepted, proposed = (sum(c.moves[name][k] for c in posterior.chains) for k in (0, 1))
        lines[name] = {
            "proposed": proposed,
            "accepted": accepted,
            "rate": accepted / proposed if proposed else np.nan,
        }
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("move")


def _chains(posterior: SampledPosterior) -> pd.DataFrame:
    import pandas as pd

    chains = posterior.chains
    return pd.DataFrame(
        {
            "share": posterior.chain_weights,
            "draws": [chain.n_draws for chain in chains],
            "log_likelihood": [chain.log_likelihood.mean() for chain in chains],
            "used_weights": [chain.sizes.mean() for chain in chains],
        }
    ).rename_axis("chain")
