"""The sampled posterior: draws of sparse networks from several chains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.compaction import drop_covariates
from islab.core.drawn import DrawnNetworks
from islab.core.leave_one_out import words_of_stacking
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]
Index = NDArray[np.intp]

LARGEST_PARETO_K = 0.7
LEAST_LOSS, LEAST_LOSS_OF_A_ROW = 4.0, 0.1  # nats


@dataclass(frozen=True)
class ReadingPrice:
    """What is lost if the readable network predicts instead of all draws.

    Attributes
    ----------
    difference : float
        Of the expected log predictive densities of all training rows, by leave-one-out.
    se : float
        Its standard error.
    n_rows : int
    """

    difference: float
    se: float
    n_rows: int

    @property
    def large(self) -> bool:
        """Whether the loss is clear and of a size that matters."""
        clear = self.difference > 2 * self.se and self.difference > LEAST_LOSS
        return clear and self.difference / self.n_rows > LEAST_LOSS_OF_A_ROW

    @property
    def words(self) -> str:
        """One line to print."""
        size, error = f"{abs(self.difference) / self.n_rows:.3f}", f"{self.se / self.n_rows:.3f}"
        side = "lower" if self.difference >= 0 else "higher"
        if float(size) == 0:
            return f"log predictive density a row within 0.001 of that of all draws (SE {error})"
        return f"log predictive density {size} a row {side} than that of all draws (SE {error})"


@dataclass(frozen=True)
class PredictionMixing:
    """How well chains agree in what they predict for training rows.

    Attributes
    ----------
    rhat, ess : float
        The largest R-hat and the smallest effective number of draws among the rows.
    pareto_k : float
        Share of rows whose leave-one-out density is unreliable.
    """

    rhat: float
    ess: float
    pareto_k: float


@dataclass(frozen=True)
class AllRows:
    """How weights were learned where chains could not see all rows.

    Given a structure the posterior of the weights is a Gaussian at their mode given all rows.

    Attributes
    ----------
    n_rows : int
        That the weights were learned from.
    n_sampled : int
        On which chains drew the structures.
    n_structures : int
        In the posterior.
    promised : float
        Log posterior density that a further step to the mode promises, at most.
    pareto_k : float
        Of importance weights of the draws; above 0.7 the Gaussian is a poor approximation.
    """

    n_rows: int
    n_sampled: int
    n_structures: int
    promised: float
    pareto_k: float

    @property
    def good(self) -> bool:
        """Whether the Gaussian is close to the posterior."""
        return self.pareto_k <= LARGEST_PARETO_K

    @property
    def words(self) -> str:
        """One line to print."""
        line = (
            f"structures from {self.n_sampled:,} rows, weights from all {self.n_rows:,} by a "
            f"Gaussian at their mode (Pareto k {self.pareto_k:.2f}"
        )
        return f"{line})" if self.good else f"{line}, above 0.7: intervals are rough)"


UNKNOWN_MIXING = PredictionMixing(np.nan, np.nan, np.nan)


@dataclass(eq=False)
class SampledPosterior:
    """Draws of sparse networks, pooled over chains: what predicts and what is explained.

    Hidden units have no identity across draws, so their weights are never averaged. What has one
    is asked for here: which covariates are used, which are bent, which meet in a unit, how large
    the networks are.

    Attributes
    ----------
    architecture : Architecture
        All weights that could be used.
    likelihood : str
    chains : tuple of ChainDraws
    chain_weights : (chains,)
        Share of each chain in the posterior; they sum to 1.
    network : SparseNetwork, optional
        The readable network that was chosen from the draws.
    price : ReadingPrice, optional
        What that network loses against all draws.
    mixing : PredictionMixing
        How well the chains agree in what they predict.
    all_rows : AllRows, optional
        How weights were learned, if chains saw some of the rows only.
    stacked : bool
        Whether these are independent draws of variational runs, each of which stands for a chain.
    n_weights_initial : int
        Weights of the architecture that training began with.
    scale : Scale, optional
        Names and scale of the data; plain numbers if not given.
    """

    architecture: Architecture
    likelihood: str
    chains: tuple[ChainDraws, ...]
    chain_weights: Float
    network: SparseNetwork | None = None
    price: ReadingPrice | None = None
    mixing: PredictionMixing = UNKNOWN_MIXING
    all_rows: AllRows | None = None
    stacked: bool = False
    n_weights_initial: int = 0
    scale: Scale | None = None

    def median(self) -> SparseNetwork:
        """The network to read."""
        assert self.network is not None
        return replace(self.network, scale=self.data_scale)

    def over_columns(self, columns: Index, n_covariates: int) -> SampledPosterior:
        """The same for data with further columns, which no draw uses.

        Parameters
        ----------
        columns : (covariates,)
            Where the covariates of these draws stand among all.
        n_covariates : int
            Of the data.
        """
        if n_covariates == self.architecture.n_covariates:
            return self
        wide = replace(self.architecture, n_covariates=n_covariates)
        positions = drop_covariates(wide, columns)[1]
        chains = tuple(replace(chain, slots=positions[chain.slots]) for chain in self.chains)
        network = self.median()
        network = replace(
            network,
            covariates=columns[network.covariates],
            n_weights_initial=wide.n_weights,
            scale=Scale.plain(n_covariates, wide.n_outputs),
        )
        return replace(
            self,
            architecture=wide,
            chains=chains,
            network=network,
            n_weights_initial=wide.n_weights,
        )

    @property
    def noise(self) -> Float:
        """Mean noise over the draws, (numbers,)."""
        means = [chain.noise.mean(axis=0) for chain in self.chains]
        return self.chain_weights @ np.array(means)

    @property
    def n_draws(self) -> int:
        return sum(chain.n_draws for chain in self.chains)

    @property
    def draw_weights(self) -> Float:
        """Share of each draw, chain after chain, (draws,)."""
        shares = zip(self.chain_weights, self.chains, strict=True)
        return np.concatenate([np.full(c.n_draws, share / c.n_draws) for share, c in shares])

    def numbers(self, n_draws: int) -> Index:
        """Numbers of draws that stand for the posterior with equal weights, evenly spaced."""
        edges = np.cumsum(self.draw_weights)
        points = (np.arange(n_draws) + 0.5) / n_draws * edges[-1]
        return np.minimum(np.searchsorted(edges, points), self.n_draws - 1)

    def take(self, numbers: Index) -> tuple[Float, Float]:
        """Weights (draws, weights) and biases (draws, units) of these draws, rising numbers."""
        return self.networks(numbers).dense()

    def networks(self, numbers: Index) -> DrawnNetworks:
        """These draws, rising numbers."""
        parts = [
            chain.networks(self.architecture, which) for chain, which in self._by_chain(numbers)
        ]
        return DrawnNetworks.joined(parts)

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Weights and biases of evenly spaced draws. They are there: ``rng`` is not used."""
        return self.take(self.numbers(n_draws))

    def noise_of(self, numbers: Index) -> Float:
        """Noise of these draws, (draws, numbers)."""
        parts = self._by_chain(numbers)
        return np.concatenate([chain.noise[which] for chain, which in parts])

    def sample_predictor(
        self, x: Float, n_draws: int, rng: np.random.Generator | None = None
    ) -> Float:
        """Linear predictor of evenly spaced draws on the scale of the data.

        They are there: ``rng`` is not used.
        """
        scale = self.data_scale
        drawn = self.networks(self.numbers(n_draws)).predictor(scale.standardise(x))
        return scale.restore(drawn)

    # -- what has an identity -----------------------------------------------------------------

    def sizes(self) -> Index:
        """Used weights of each draw."""
        return np.concatenate([chain.sizes for chain in self.chains])

    def inclusion(self) -> Float:
        """Share of the draws that use each weight, (weights,).

        A hidden unit has no identity across draws: only sums over a layer tell something.
        """
        counts = [np.bincount(c.slots, minlength=self.architecture.n_weights) for c in self.chains]
        shares = self.chain_weights / [chain.n_draws for chain in self.chains]
        return shares @ np.array(counts)

    def to_frame(self) -> pd.DataFrame:
        """For each covariate ``p_used`` and ``p_nonlinear``, with the spread over chains.

        ``p_nonlinear`` is the probability that the covariate enters a hidden unit.
        """
        import pandas as pd

        used = [chain.uses_covariate(self.architecture) for chain in self.chains]
        bent = [chain.bends_covariate(self.architecture) for chain in self.chains]
        by_chain = np.array([u.mean(axis=0) for u in used])
        return pd.DataFrame(
            {
                "p_used": self.chain_weights @ by_chain,
                "p_nonlinear": self.chain_weights @ np.array([b.mean(axis=0) for b in bent]),
                "lowest_chain": by_chain.min(axis=0),
                "highest_chain": by_chain.max(axis=0),
            },
            index=pd.Index(self.data_scale.names, name="covariate"),
        )

    def pairs(self) -> pd.DataFrame:
        """For each pair of covariates the probability that they meet in a hidden unit."""
        import pandas as pd

        meet = [chain.pairs(self.architecture) for chain in self.chains]
        probability = np.tensordot(self.chain_weights, np.array(meet), axes=1)
        first, second = np.triu_indices(self.architecture.n_covariates, k=1)
        names = np.array(self.data_scale.names, dtype=object)
        frame = pd.DataFrame(
            {"first": names[first], "second": names[second], "p": probability[first, second]}
        )
        kept = frame[frame["p"] > 0].sort_values("p", ascending=False, kind="stable")
        return kept.reset_index(drop=True)

    def used_variables(self) -> tuple[tuple[str, ...], list[NDArray[np.bool_]]]:
        """Names of the variables, and which of them each draw of each chain uses.

        A variable is used if one of its covariates is.
        """
        owners = self.data_scale.variables
        names = tuple(dict.fromkeys(owners))
        number = {name: k for k, name in enumerate(names)}
        place = np.array([number[owner] for owner in owners], dtype=np.intp)
        used = []
        for chain in self.chains:
            own = np.zeros((chain.n_draws, len(names)), dtype=bool)
            np.logical_or.at(own.T, place, chain.uses_covariate(self.architecture).T)
            used.append(own)
        return names, used

    @property
    def stacking(self) -> str | None:
        """One line to print of runs that are stacked; None for chains."""
        return words_of_stacking(self.chain_weights) if self.stacked else None

    @property
    def data_scale(self) -> Scale:
        """Names and scale of the data, plain ones if none are known."""
        plain = Scale.plain(self.architecture.n_covariates, self.architecture.n_outputs)
        return self.scale or plain

    def _by_chain(self, draws: Index) -> list[tuple[ChainDraws, Index]]:
        starts = np.cumsum([0, *(chain.n_draws for chain in self.chains)])
        owners = np.searchsorted(starts, draws, side="right") - 1
        return [(c, draws[owners == k] - starts[k]) for k, c in enumerate(self.chains)]
