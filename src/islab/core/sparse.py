"""The small network that training leaves: it predicts, and everything about it can be read."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.compaction import compacted
from islab.core.drawn import DrawnNetworks
from islab.core.folding import FoldedUnits, folded_biases, folded_units
from islab.core.names import former_name
from islab.core.network import forward, portions
from islab.core.paths import active_weights
from islab.core.scale import Scale

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.posterior import Posterior

Float = NDArray[np.floating]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KeptDraws:
    """Draws of a network's used weights that a chain has made.

    Attributes
    ----------
    weights : (draws, edges)
    biases : (draws, units)
    noise : (draws, numbers)
        What the likelihood learned besides: noise variances, in standardised units.
    """

    weights: Float
    biases: Float
    noise: Float

    def __len__(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, eq=False)
class SparseNetwork:
    """Used weights of a median network, in float64, with the covariates they read.

    Attributes
    ----------
    architecture : Architecture
        The *compact* network: only used covariates and active hidden units.
    covariates : (used covariates,) int
        Columns of the data that the compact network reads.
    unit_labels : (units,) int
        Number of each unit in its layer of the posterior.
    edges : (edges,) int
        Flat positions of the used weights in the compact network.
    mu, sigma, alpha : (edges,)
    bias_mu, bias_sigma : (units,)
        Constants of units that no covariate feeds are folded in; then the spread is right to first
        order only, draws are exact.
    likelihood : str
    noise : (numbers,)
        What the likelihood learned besides: noise variance of each output, in standardised units.
    n_weights_initial : int
        Weights of the network before training.
    scale : Scale
        Of the data, with its names: every method takes rows on the scale of the data.
    multipliers : (bank, inputs), optional
        Draws of the flow's ``z`` for each input of a layer that has edges.
    input_index : (edges,), optional
        Column of ``multipliers`` for each edge.
    kept : KeptDraws, optional
        Draws of all weights together; without them weights are independent normal variables.
    folded : FoldedUnits, optional
        Units whose constants are folded into the biases, for draws to fold their own.
    """

    architecture: Architecture
    covariates: Index
    unit_labels: Index
    edges: Index
    mu: Float
    sigma: Float
    alpha: Float
    bias_mu: Float
    bias_sigma: Float
    likelihood: str
    noise: Float
    n_weights_initial: int
    scale: Scale
    multipliers: Float | None = None
    input_index: Index | None = None
    kept: KeptDraws | None = None
    folded: FoldedUnits | None = None

    @classmethod
    def from_draws(
        cls,
        architecture: Architecture,
        used: Index,
        kept: KeptDraws,
        *,
        alpha: Float,
        likelihood: str,
        n_weights_initial: int,
        scale: Scale | None = None,
    ) -> SparseNetwork:
        """The network of some weights on active paths, with draws of them.

        Parameters
        ----------
        architecture : Architecture
            Of all weights.
        used : (edges,)
            Flat positions of the used weights there, rising.
        kept : KeptDraws
            Of these weights, and of the biases of all units.
        alpha : (edges,)
        """
        active = np.zeros(architecture.n_weights, dtype=bool)
        active[used] = True
        compact = compacted(architecture, active)
        draws = KeptDraws(kept.weights, kept.biases[:, compact.units], kept.noise)
        return cls(
            architecture=compact.architecture,
            covariates=compact.covariates,
            unit_labels=compact.unit_labels,
            edges=compact.edges,
            mu=draws.weights.mean(axis=0)[compact.order],
            sigma=draws.weights.std(axis=0)[compact.order],
            alpha=alpha[compact.order],
            bias_mu=draws.biases.mean(axis=0),
            bias_sigma=draws.biases.std(axis=0),
            likelihood=likelihood,
            noise=draws.noise.mean(axis=0),
            n_weights_initial=n_weights_initial,
            scale=scale or Scale.plain(architecture.n_covariates, architecture.n_outputs),
            kept=replace(draws, weights=draws.weights[:, compact.order]),
        )

    @classmethod
    def from_posterior(
        cls, posterior: Posterior, threshold: float = 0.5, scale: Scale | None = None
    ) -> SparseNetwork:
        """Keeps weights with ``alpha > threshold`` on active paths."""
        full = posterior.architecture
        if not 0 <= threshold < 1:
            raise ValueError(f"Got threshold={threshold}, expected a number from 0 to below 1.")
        if not np.isfinite(posterior.mu).all() or np.isnan(posterior.lam).any():
            raise ValueError("Got a posterior with missing or infinite weights; train it again.")
        kept = np.asarray(posterior.alpha > threshold)
        compact = compacted(full, active_weights(full, kept))
        chosen = compact.weights
        bias_mu, bias_sigma = folded_biases(posterior, kept, threshold)
        folded, silent = folded_units(posterior, kept, compact.units, threshold)
        multipliers, index = used_multipliers(posterior, np.concatenate([chosen, silent]))
        if index is not None:
            folded = replace(folded, input_index=index[len(chosen) :])
        return cls(
            architecture=compact.architecture,
            covariates=compact.covariates,
            unit_labels=compact.unit_labels,
            edges=compact.edges,
            mu=posterior.mu[chosen].astype(float),
            sigma=posterior.sigma[chosen].astype(float),
            alpha=posterior.alpha[chosen].astype(float),
            bias_mu=bias_mu[compact.units],
            bias_sigma=bias_sigma[compact.units],
            likelihood=posterior.likelihood,
            noise=np.array(posterior.noise, dtype=float),
            n_weights_initial=posterior.n_weights_initial,
            scale=scale or posterior.scale or Scale.plain(full.n_covariates, full.n_outputs),
            multipliers=multipliers,
            input_index=None if index is None else index[: len(chosen)],
            folded=folded if len(silent) else None,
        )

    # -- predicting ---------------------------------------------------------------------

    def mean_weights(self) -> Float:
        """Flat weights of the compact network at the posterior mean."""
        return self._scatter(self.edge_means())

    def edge_means(self) -> Float:
        """Posterior mean of each used weight."""
        if self.multipliers is None:
            return self.mu
        return self.mu * self.multipliers.mean(axis=0)[self.input_index]

    def edge_sds(self) -> Float:
        """Posterior standard deviation of each used weight."""
        if self.multipliers is None:
            return self.sigma
        return np.sqrt(self.sigma**2 + self.mu**2 * self.multipliers.var(axis=0)[self.input_index])

    def predictor(self, x: Float) -> Float:
        """Linear predictor at the posterior mean of the weights, (rows, outputs)."""
        columns = self.standardise(x)
        return self.scale.restore(
            forward(self.architecture, self.mean_weights(), self.bias_mu, columns)
        )

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws of the compact weights and biases.

        Where a chain has made them, evenly spaced ones; ``rng`` is not used.
        """
        if self.kept is not None:
            return self.take(self.numbers(n_draws))
        mu, multipliers = self.mu, None
        if self.multipliers is not None:
            multipliers = self.multipliers[rng.integers(len(self.multipliers), size=n_draws)]
            mu = mu * multipliers[:, self.input_index]
        edges = mu + self.sigma * rng.standard_normal((n_draws, len(self.edges)))
        if self.folded is not None:
            return self._scatter(edges), self.folded.draw(multipliers, n_draws, rng)
        normals = rng.standard_normal((n_draws, len(self.bias_mu)))
        return self._scatter(edges), self.bias_mu + self.bias_sigma * normals

    def numbers(self, n_draws: int) -> Index:
        """Numbers of evenly spaced kept draws."""
        assert self.kept is not None
        return ((np.arange(n_draws) + 0.5) / n_draws * len(self.kept)).astype(np.intp)

    def noise_of(self, numbers: Index) -> Float:
        """Noise of kept draws in standardised units, (draws, numbers)."""
        assert self.kept is not None
        return self.kept.noise[numbers]

    def take(self, numbers: Index) -> tuple[Float, Float]:
        """Kept draws of the compact weights and biases."""
        assert self.kept is not None
        return self._scatter(self.kept.weights[numbers]), self.kept.biases[numbers]

    def networks(self, numbers: Index) -> DrawnNetworks:
        """Kept draws, to predict and to explain with."""
        return DrawnNetworks.from_dense(self.architecture, *self.take(numbers))

    def sample_predictor(self, x: Float, n_draws: int, rng: np.random.Generator) -> Float:
        """Linear predictor of coherent draws of the network, (draws, rows, outputs)."""
        columns = self.standardise(x)
        if self.kept is not None:
            return self.scale.restore(self.networks(self.numbers(n_draws)).predictor(columns))
        sizes = portions(n_draws, self.architecture.n_weights + len(x) * self.architecture.n_units)
        parts = [forward(self.architecture, *self.draw(size, rng), columns) for size in sizes]
        return self.scale.restore(np.concatenate(parts))

    def noise_in_units(self) -> Float:
        """Noise in the user's units; 1 for likelihoods that learn none."""
        return self.noise_to_units(self.noise)

    def noise_to_units(self, noise: Float) -> Float:
        """Noise (..., numbers) from standardised units to those of the user."""
        scaled = families.likelihood(self.likelihood).scales_target
        return noise * self.scale.y_scale**2 if scaled else noise

    def known_likelihood(self) -> families.Likelihood:
        """The likelihood with what was learned besides the weights."""
        return families.likelihood(self.likelihood).given(self.noise_in_units())

    def standardise(self, x: Float) -> Float:
        """The used columns of the data, as the compact network reads them."""
        return self.scale.standardise(x, self.covariates)

    # -- reading ------------------------------------------------------------------------

    units = former_name("units", "scale")

    @property
    def n_covariates(self) -> int:
        """Columns of the data."""
        return len(self.scale.names)

    @property
    def n_used_weights(self) -> int:
        return len(self.edges)

    @property
    def density(self) -> float:
        """Used weights as a share of those before training."""
        return self.n_used_weights / max(self.n_weights_initial, 1)

    def edge_layers(self) -> Index:
        """Layer that each used weight leads into."""
        layer = self.architecture.by_block([b.layer for b in self.architecture.blocks])
        return layer[self.edges]

    def from_covariate(self) -> NDArray[np.bool_]:
        """Whether each used weight starts at a covariate."""
        source = [b.source == "covariate" for b in self.architecture.blocks]
        return self.architecture.by_block(source)[self.edges]

    def edge_ends(self) -> tuple[Index, Index]:
        """Source and target of each used weight.

        The target is a unit of the compact network; the source is one too, or, for a
        covariate weight, a column of the data.
        """
        sources, targets = self.architecture.ends
        numbers = np.concatenate([self.covariates, np.arange(self.architecture.n_units)])
        return numbers[sources[self.edges]], targets[self.edges]

    def edges_of_output(self, output: int) -> NDArray[np.bool_]:
        """Which used weights lie on an active path to one output."""
        if not 0 <= output < self.architecture.n_outputs:
            raise ValueError(
                f"Got output={output}, expected 0 to {self.architecture.n_outputs - 1}."
            )
        kept = np.zeros(self.architecture.n_weights, dtype=bool)
        kept[self.edges] = True
        chosen = np.arange(self.architecture.n_outputs) == output
        return active_weights(self.architecture, kept, chosen)[self.edges]

    def depths(self, output: int | None = None) -> Index:
        """Contribution depth of every used covariate weight, one entry for each."""
        chosen = self.from_covariate()
        if output is not None:
            chosen = chosen & self.edges_of_output(output)
        return self.architecture.n_layers - self.edge_layers()[chosen]

    @property
    def max_depth(self) -> int:
        return int(self.depths().max(initial=0))

    @property
    def average_depth(self) -> float:
        depths = self.depths()
        return float(depths.mean()) if len(depths) else 0.0

    def covariate_depths(self) -> dict[int, Index]:
        """Depths at which each used covariate contributes."""
        chosen = self.from_covariate()
        columns = self.edge_ends()[0][chosen]
        depths = self.depths()
        return {int(column): np.sort(depths[columns == column]) for column in self.covariates}

    def covariate_counts(self) -> NDArray[np.intp]:
        """How often each covariate enters each layer on active paths, (covariates, layers)."""
        chosen = self.from_covariate()
        counts = np.zeros((self.n_covariates, self.architecture.n_layers), dtype=np.intp)
        np.add.at(counts, (self.edge_ends()[0][chosen], self.edge_layers()[chosen]), 1)
        return counts

    def covariate_inclusion(self) -> Float:
        """Mean inclusion probability of those entries, NaN where there is none."""
        chosen = self.from_covariate()
        total = np.zeros((self.n_covariates, self.architecture.n_layers))
        where = (self.edge_ends()[0][chosen], self.edge_layers()[chosen])
        np.add.at(total, where, self.alpha[chosen])
        counts = self.covariate_counts()
        return np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)

    def to_frame(self) -> pd.DataFrame:
        """One row for each used weight: layer, from, to, alpha, mean, sd."""
        import pandas as pd

        sources, targets = self.edge_ends()
        units = self.unit_names()
        is_covariate = self.from_covariate()
        names = [
            self.scale.names[s] if covariate else units[s]
            for s, covariate in zip(sources, is_covariate, strict=True)
        ]
        return pd.DataFrame(
            {
                "layer": self.edge_layers(),
                "from": names,
                "to": [units[t] for t in targets],
                "alpha": self.alpha,
                "mean": self.edge_means(),
                "sd": self.edge_sds(),
            }
        )

    def unit_names(self) -> list[str]:
        """Names of the compact network's units: ``h0.3`` in layer 0; outputs last."""
        hidden = [
            f"h{layer}.{label}"
            for layer, units in enumerate(self.architecture.units[:-1])
            for label in self.unit_labels[units]
        ]
        return [*hidden, *self.scale.outputs]

    def __repr__(self) -> str:
        return (
            f"SparseNetwork({self.n_used_weights} of {self.n_weights_initial} weights, "
            f"{len(self.covariates)} of {self.n_covariates} covariates, "
            f"depth {self.average_depth:.2f} (max {self.max_depth}))"
        )

    def _scatter(self, values: Float) -> Float:
        flat = np.zeros((*values.shape[:-1], self.architecture.n_weights))
        flat[..., self.edges] = values
        return flat


def used_multipliers(posterior: Posterior, chosen: Index) -> tuple[Float | None, Index | None]:
    """Draws of the flow for the inputs of chosen weights, and their column for each weight."""
    if posterior.multipliers is None:
        return None, None
    assert posterior.input_index is not None
    inputs, index = np.unique(posterior.input_index[chosen], return_inverse=True)
    return posterior.multipliers[:, inputs].astype(float), index


def __getattr__(name: str) -> Any:
    if name != "Units":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("Units is now islab.core.scale.Scale", FutureWarning, stacklevel=2)
    return Scale
