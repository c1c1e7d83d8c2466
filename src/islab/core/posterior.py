"""The dense variational posterior: what training learns about every weight."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.equations import inverse_softplus, moments, sigmoid, softplus
from islab.core.network import forward, portions
from islab.core.paths import active_weights
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork

Float = NDArray[np.floating]
Bounds = tuple[float, float]

INCLUSION_BOUNDS: dict[str, Bounds] = {
    "polarized": (-10.0, 10.0),
    "polarized_mild": (-3.0, 3.0),
    "polarized_sparse": (-10.0, 5.0),
    "polarized_dense": (-5.0, 10.0),
    "dense": (1.5, 2.5),
    "sparse": (-2.5, -1.5),
    "balanced": (-1.0, 1.0),
}


@dataclass(frozen=True)
class Initial:
    """Where a posterior starts.

    Parameters
    ----------
    covariate_inclusion, hidden_inclusion : str or (low, high)
        Range of ``lambda = logit(alpha)`` for weights from covariates and from hidden units:
        polarized, polarized_mild, polarized_sparse, polarized_dense, dense, sparse, balanced,
        or bounds.
    means : {"he", "glorot"} or (low, high)
        Normal means with variance 2 / inputs or 2 / (inputs + outputs), or uniform bounds.
    output_scale : (covariate, hidden)
        Factors on the means of the output layer.
    sigma, sigma_jitter : float
        Standard deviation of every weight, and of the noise on its ``rho``.
    bias_sd : float
        Spread of the hidden biases around 0.
    biases_selected : bool
        Whether biases have inclusion parameters; they start where those of covariates do.
    """

    covariate_inclusion: str | Bounds = (2.0, 2.0)
    hidden_inclusion: str | Bounds = (0.0, 0.0)
    means: str | Bounds = "he"
    output_scale: Bounds = (0.1, 0.3)
    sigma: float = 0.05
    sigma_jitter: float = 0.1
    bias_sd: float = 0.1
    biases_selected: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.sigma < np.inf:
            raise ValueError(f"Got sigma={self.sigma}, expected a positive number.")


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a posterior; columns are the hidden inputs, then the covariates."""

    mu: Float  # (out, in)
    sigma: Float  # (out, in)
    alpha: Float  # (out, in)
    bias_mu: Float  # (out,)
    bias_sigma: Float  # (out,)


@dataclass(eq=False)
class Posterior:
    """Mean, spread and inclusion probability of every weight, and how outputs are read.

    Attributes
    ----------
    architecture : Architecture
    mu, rho, lam : (weights,)
        ``sigma = softplus(rho)``, ``alpha = sigmoid(lam)``.
    bias_mu, bias_rho : (units,)
    likelihood : str
        Name of the likelihood of the outputs.
    noise : (outputs,)
        Noise variance of Gaussian outputs, 1 for others.
    n_weights_initial : int
        Weights before dead units were dropped; densities refer to it.
    multipliers : (bank, inputs), optional
        Draws of the flow's ``z``, one column for each input of each layer; the mean of a weight
        is ``z * mu``.
    input_index : (weights,), optional
        Column of ``multipliers`` for each weight.
    scale : Scale, optional
        Of the data, if rows come on it; without one they are standardised already.
    bias_lam : (units,), optional
        As ``lam``, where biases are selected, too; without it all are certain.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "rho": ("weights",),
        "lam": ("weights",),
        "bias_mu": ("units",),
        "bias_rho": ("units",),
        "noise": ("noise",),
        "multipliers": ("bank", "inputs"),
        "input_index": ("weights",),
        "bias_lam": ("units",),
    }

    architecture: Architecture
    mu: Float
    rho: Float
    lam: Float
    bias_mu: Float
    bias_rho: Float
    likelihood: str = "gaussian"
    noise: Float = field(default_factory=lambda: np.ones(1))
    n_weights_initial: int = 0
    multipliers: Float | None = None
    input_index: NDArray[np.intp] | None = None
    scale: Scale | None = None
    bias_lam: Float | None = None

    def __post_init__(self) -> None:
        self.n_weights_initial = self.n_weights_initial or self.architecture.n_weights

    @classmethod
    def initialise(
        cls,
        architecture: Architecture,
        rng: np.random.Generator,
        initial: Initial | None = None,
        likelihood: str = "gaussian",
    ) -> Posterior:
        """A posterior to start training from."""
        initial = initial or Initial()
        n_outputs = architecture.n_outputs
        n_noise = families.likelihood(likelihood).n_noise(n_outputs) or n_outputs
        n_weights, n_units = architecture.n_weights, architecture.n_units
        mu, lam = np.empty(n_weights), np.empty(n_weights)
        for block in architecture.blocks:
            covariate = block.source == "covariate"
            inclusion = initial.covariate_inclusion if covariate else initial.hidden_inclusion
            lam[block.weights] = rng.uniform(*inclusion_bounds(inclusion), size=block.size)
            fan_in = architecture.n_inputs(block.layer)
            means = _draw_means(initial.means, fan_in, block.n_targets, block.size, rng)
            last = block.layer == architecture.n_layers - 1 and architecture.n_layers > 1
            scale = initial.output_scale[0 if covariate else 1] if last else 1.0
            mu[block.weights] = scale * means
        rho = inverse_softplus(np.float64(initial.sigma))
        bias_mu = initial.bias_sd * rng.standard_normal(n_units)
        bias_mu[architecture.units[-1]] = 0.0
        start = cls(
            architecture=architecture,
            mu=mu,
            rho=rho + initial.sigma_jitter * rng.standard_normal(n_weights),
            lam=lam,
            bias_mu=bias_mu,
            bias_rho=rho + initial.sigma_jitter * rng.standard_normal(n_units),
            likelihood=likelihood,
            noise=np.ones(n_noise),
        )
        if initial.biases_selected:
            bounds = inclusion_bounds(initial.covariate_inclusion)
            start.bias_lam = rng.uniform(*bounds, size=n_units)
        return start

    @property
    def sigma(self) -> Float:
        return softplus(self.rho)

    @property
    def alpha(self) -> Float:
        return sigmoid(self.lam)

    @property
    def bias_sigma(self) -> Float:
        return softplus(self.bias_rho)

    @property
    def bias_alpha(self) -> Float:
        """Inclusion probability of each bias, (units,): 1 where biases are not selected."""
        return np.ones(len(self.bias_mu)) if self.bias_lam is None else sigmoid(self.bias_lam)

    def mean_biases(self) -> Float:
        """Posterior expectation of each bias."""
        return self.bias_alpha * self.bias_mu

    def kept_biases(self, threshold: float = 0.5) -> tuple[Float, Float]:
        """Mean and spread of the median network's biases: 0 of those that are not in it."""
        kept = self.bias_alpha > threshold
        mean, spread = np.where(kept, self.bias_mu, 0.0), np.where(kept, self.bias_sigma, 0.0)
        return mean.astype(float), spread.astype(float)

    def layer(self, index: int) -> Layer:
        """The arrays of one layer in the paper's order (copies)."""
        where = self.architecture.weight_index(index)
        units = self.architecture.units[index]
        return Layer(
            mu=self.mu[where],
            sigma=self.sigma[where],
            alpha=self.alpha[where],
            bias_mu=self.bias_mu[units].copy(),
            bias_sigma=self.bias_sigma[units],
        )

    @property
    def layers(self) -> list[Layer]:
        return [self.layer(index) for index in range(self.architecture.n_layers)]

    def mean_multiplier(self) -> Float:
        """Expected ``z`` of each weight: 1 without a flow."""
        if self.multipliers is None:
            return np.ones(self.architecture.n_weights)
        return self.multipliers.mean(axis=0)[self.input_index]

    def slab_variance(self) -> Float:
        """Variance of each weight given that it is included."""
        if self.multipliers is None:
            return self.sigma**2
        return self.sigma**2 + self.mu**2 * self.multipliers.var(axis=0)[self.input_index]

    def mean_weights(self) -> Float:
        """Posterior expectation of each weight."""
        return moments(self.mu * self.mean_multiplier(), self.sigma, self.alpha)[0]

    def inclusion(self) -> Float:
        """Inclusion probability of each weight, (weights,)."""
        return np.asarray(self.alpha, dtype=float)

    def used_weights(self, threshold: float = 0.5) -> NDArray[np.bool_]:
        """Which weights the median network has: ``alpha > threshold``, on an active path."""
        return active_weights(self.architecture, np.asarray(self.alpha > threshold))

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws of all weights (draws, weights) and biases (draws, units).

        One draw is one network: the same for all rows.
        """
        shape = (n_draws, self.architecture.n_weights)
        included = rng.random(shape) < self.alpha
        mu = self.mu
        if self.multipliers is not None:
            chosen = rng.integers(len(self.multipliers), size=n_draws)
            mu = mu * self.multipliers[chosen][:, self.input_index]
        weights = np.where(included, mu + self.sigma * rng.standard_normal(shape), 0.0)
        units = (n_draws, self.architecture.n_units)
        biases = self.bias_mu + self.bias_sigma * rng.standard_normal(units)
        if self.bias_lam is not None:
            biases = np.where(rng.random(units) < self.bias_alpha, biases, 0.0)
        return weights, biases

    def sample_predictor(self, x: Float, n_draws: int, rng: np.random.Generator) -> Float:
        """Linear predictor of coherent draws of the full model, (draws, rows, outputs).

        Rows and predictors are on the scale of the data if the posterior has one.
        """
        columns = x if self.scale is None else self.scale.standardise(x)
        cost = self.architecture.n_weights + len(x) * self.architecture.n_units
        sizes = portions(n_draws, cost)
        draws = (self.draw(size, rng) for size in sizes)
        parts = [forward(self.architecture, weights, biases, columns) for weights, biases in draws]
        predictor = np.concatenate(parts)
        return predictor if self.scale is None else self.scale.restore(predictor)

    def median(self, threshold: float = 0.5, scale: Scale | None = None) -> SparseNetwork:
        """The small network of weights with ``alpha > threshold`` on active paths."""
        return SparseNetwork.from_posterior(self, threshold, scale)

    def copy(self, **changes: object) -> Posterior:
        """A posterior that shares nothing with this one."""
        arrays = {name: getattr(self, name) for name in self.ARRAYS}
        copied = {name: None if a is None else np.array(a) for name, a in arrays.items()}
        return replace(self, **{**copied, **changes})  # type: ignore[arg-type]


def inclusion_bounds(inclusion: str | Bounds) -> Bounds:
    """Bounds on ``lambda`` from a keyword or a pair."""
    if isinstance(inclusion, str):
        if inclusion not in INCLUSION_BOUNDS:
            raise ValueError(
                f"Got inclusion={inclusion!r}, expected one of {', '.join(INCLUSION_BOUNDS)} "
                "or a pair of bounds on logit(alpha)."
            )
        return INCLUSION_BOUNDS[inclusion]
    low, high = inclusion
    if not -np.inf < low <= high < np.inf:
        raise ValueError(f"Got inclusion bounds ({low}, {high}), expected finite low <= high.")
    return float(low), float(high)


def _draw_means(
    means: str | Bounds, fan_in: int, fan_out: int, size: int, rng: np.random.Generator
) -> Float:
    if means == "he":
        return rng.standard_normal(size) * np.sqrt(2 / max(fan_in, 1))
    if means == "glorot":
        return rng.standard_normal(size) * np.sqrt(2 / max(fan_in + fan_out, 1))
    if isinstance(means, str):
        raise ValueError(f"Got means={means!r}, expected 'he', 'glorot' or a pair of bounds.")
    low, high = means
    if not -np.inf < low <= high < np.inf:
        raise ValueError(f"Got means=({low}, {high}), expected finite low <= high.")
    return rng.uniform(low, high, size=size)
