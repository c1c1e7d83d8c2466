"""Horseshoe: a network in which inputs and hidden units that are not needed shrink to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from islab.baselines.base import BaselineEstimator, Plan
from islab.baselines.batched_networks import Pass, Spread, input_layers, standard_normals
from islab.baselines.descent import Slope, cut, descend, first_guess
from islab.baselines.shrinkage import (
    Horseshoe,
    best_thresholds,
    expected_nll,
    factors_kl,
    factors_kl_slopes,
    log_moments,
)
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.equations import gaussian_kl, sigmoid, slab_kl, slab_kl_slopes, softplus
from islab.core.priors import BIAS_TAU
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.parameter_checks import Rules, auto, positive, real
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned
from islab.learn.engines.base import LARGEST_LAMBDA

FIRST_RHO = -3.0
FIRST_LOG_VARIANCE = -4.0


class Variables(NamedTuple):
    """What is learned, each (replicas, ...), or something for each of it.

    The scale of an input is ``z = sqrt(s_a s_b a b)``: the two factors of the layer are shared
    by all its inputs. Logarithms of factors are normal.
    """

    mu: Float  # (replicas, weights), before scaling
    rho: Float
    bias_mu: Float  # (replicas, units)
    bias_rho: Float
    layer_log: Float  # (replicas, 2, layers)
    layer_log_variance: Float
    input_log: Float  # (replicas, 2, inputs)
    input_log_variance: Float

    @property
    def sigma(self) -> Float:
        """Standard deviations of weights before scaling."""
        return softplus(self.rho)

    @property
    def bias_sigma(self) -> Float:
        return softplus(self.bias_rho)

    @property
    def sigma_slope(self) -> Float:
        """Derivative of ``sigma = softplus(rho)`` by ``rho``."""
        return sigmoid(self.rho)

    @property
    def bias_sigma_slope(self) -> Float:
        return sigmoid(self.bias_rho)


class HorseshoeNetwork:
    """Normal weights and log-normal scales while they are learned.

    Parameters
    ----------
    architecture : Architecture
    global_scale : float
        Of the half-Cauchy prior of each layer's scale.
    """

    def __init__(self, architecture: Architecture, global_scale: float) -> None:
        self.architecture, self.global_scale = architecture, global_scale
        net, layers = architecture, np.arange(architecture.n_layers)
        self.input_layer = input_layers(net)
        self.n_inputs = np.bincount(self.input_layer, minlength=net.n_layers)
        # A product with it sums over the inputs of each layer.
        self.of_inputs = (self.input_layer[:, None] == layers).astype(np.float32)
        of_each = (net.n_weights, net.n_units, 2 * net.n_layers, 2 * len(self.input_layer))
        self.lengths = [length for length in of_each for _ in range(2)]

    def split(self, theta: Float) -> Variables:
        """Views of parameters (replicas, parameters)."""
        flat = cut(theta, self.lengths)
        factors = [part.reshape(len(theta), 2, -1) for part in flat[4:]]
        return Variables(*flat[:4], *factors)

    def start(self, guess: Float) -> Float:
        """Parameters to begin with, from weights and biases."""
        net, theta = self.architecture, np.zeros((1, sum(self.lengths)))
        at = self.split(theta)
        # Weights start on the scale of their prior, 1; the layers' scales make up for it.
        at.layer_log[...] = 0.5 * np.log(2 / np.maximum(self.n_inputs, 1))
        scale = np.exp(at.layer_log[0, 0])[self.input_layer][net.input_index]
        at.mu[...], at.bias_mu[...] = guess[: net.n_weights] / scale, guess[net.n_weights :]
        at.rho[...], at.bias_rho[...] = FIRST_RHO, FIRST_RHO
        at.layer_log_variance[...] = FIRST_LOG_VARIANCE
        at.input_log_variance[...] = FIRST_LOG_VARIANCE
        return theta

    def gradient(
        self, theta: Float, x: Float, slope: Slope, rng: np.random.Generator
    ) -> tuple[Float, Float]:
        """By local reparametrisation, with fresh scales for each row."""
        net, at = self.architecture, self.split(theta)
        sizes = (net.n_layers, len(self.input_layer), net.n_units)
        normals = standard_normals(rng, (len(x), sum(sizes)))
        of_layer, of_input, of_unit = cut(normals, sizes)
        layer_mean, layer_sd = (part[:, None] for part in log_moments(*at[4:6]))
        input_mean, input_sd = (part[:, None] for part in log_moments(*at[6:8]))
        layer = layer_mean + layer_sd * of_layer
        scales = input_sd * of_input
        scales += input_mean
        scales += layer @ self.of_inputs.T
        np.exp(scales, out=scales)
        sigma, bias_sigma = at.sigma, at.bias_sigma
        spread = Spread(sigma * sigma, bias_sigma * bias_sigma, of_unit)
        way = Pass(net, at.mu, at.bias_mu, x, scales=scales, spread=spread)
        back = way.back(slope(way.eta))

        by_log, ones = back.scales, np.ones((1, len(x)), dtype=theta.dtype)
        by_log *= scales
        by_layer = by_log @ self.of_inputs
        gradient = np.empty_like(theta)
        by = self.split(gradient)
        by.mu[...], by.bias_mu[...] = back.weights, back.biases
        by.rho[...] = 2 * sigma * back.variances * at.sigma_slope
        by.bias_rho[...] = 2 * bias_sigma * back.bias_variances * at.bias_sigma_slope
        by.layer_log[...] = ones @ by_layer / 2
        by.input_log[...] = ones @ by_log / 2
        by_layer_sd = ones @ (by_layer * of_layer)
        by_log *= of_input
        by_input_sd = ones @ by_log
        by.layer_log_variance[...] = by_layer_sd * np.exp(at.layer_log_variance) / (8 * layer_sd)
        by.input_log_variance[...] = by_input_sd * np.exp(at.input_log_variance) / (8 * input_sd)
        return way.eta, gradient

    def penalty(self, theta: Float) -> Float:
        """KL of all weights, biases and scales from their priors, (replicas,)."""
        at = self.split(theta)
        parts = (
            slab_kl(at.mu, at.sigma, tau=1.0),
            gaussian_kl(at.bias_mu, at.bias_sigma, tau=BIAS_TAU),
            factors_kl(at.layer_log, at.layer_log_variance, scale=self.global_scale),
            self.scale_kl(theta),
        )
        return np.sum([part.sum(axis=1) for part in parts], axis=0)

    def scale_kl(self, theta: Float) -> Float:
        """KL of the inputs' own scales, (replicas, inputs)."""
        at = self.split(theta)
        return factors_kl(at.input_log, at.input_log_variance, scale=1.0)

    def penalty_gradient(self, theta: Float) -> Float:
        at, gradient = self.split(theta), np.empty_like(theta)
        by, sigma, bias_sigma = self.split(gradient), at.sigma, at.bias_sigma
        by.mu[...], by_sigma = slab_kl_slopes(at.mu, sigma, tau=1.0)
        by.rho[...] = by_sigma * at.sigma_slope
        by.bias_mu[...], by_sigma = slab_kl_slopes(at.bias_mu, bias_sigma, tau=BIAS_TAU)
        by.bias_rho[...] = by_sigma * at.bias_sigma_slope
        by.layer_log[...], by.layer_log_variance[...] = factors_kl_slopes(
            at.layer_log, at.layer_log_variance, scale=self.global_scale
        )
        by.input_log[...], by.input_log_variance[...] = factors_kl_slopes(
            at.input_log, at.input_log_variance, scale=1.0
        )
        return gradient

    def n_used(self, theta: Float) -> float:
        """Weights of all inputs: which of them to keep is decided at the end."""
        return float(self.architecture.n_weights)

    def distribution(self, theta: Float, likelihood: str, noise: Float) -> Horseshoe:
        """What the first replica has learned, without a threshold."""
        net, at = self.architecture, self.split(theta[:1].astype(float))
        layer_mean, layer_sd = log_moments(at.layer_log[0], at.layer_log_variance[0])
        input_mean, input_sd = log_moments(at.input_log[0], at.input_log_variance[0])
        return Horseshoe(
            architecture=net,
            mu=at.mu[0].copy(),
            sigma=at.sigma[0],
            bias_mu=at.bias_mu[0].copy(),
            bias_sigma=at.bias_sigma[0],
            layer_mean=layer_mean,
            layer_sd=layer_sd,
            input_mean=input_mean,
            input_sd=input_sd,
            threshold=np.full(net.n_layers, np.inf),
            likelihood=likelihood,
            noise=noise[0].astype(float),
            n_weights_initial=net.n_weights,
        )


def learn_horseshoe(
    plan: Plan, global_scale: float, threshold: float | str, varies: Mask | None = None
) -> Learned:
    """Learns weights and scales, and which inputs to keep; see :class:`HorseshoeClassifier`.

    The weights of covariates that do not vary are 0.
    """
    network = HorseshoeNetwork(plan.architecture, global_scale)
    start = network.start(first_guess(plan, np.random.default_rng(plan.seed)))
    descent, history = descend(network, start, plan)
    found = network.distribution(descent.theta, plan.likelihood, descent.noise)
    if varies is not None:
        for array in (found.mu, found.sigma):
            plan.architecture.covariate_matrix(array)[:, ~varies] = 0.0
        found.input_mean[: len(varies)][~varies] = -LARGEST_LAMBDA
    rng, theta = np.random.default_rng(plan.seed), descent.theta[:1].astype(float)
    elbo = -expected_nll(found, plan.problem, rng) - float(network.penalty(theta)[0])
    if isinstance(threshold, str):
        chosen = best_thresholds(found, plan.problem, network.scale_kl(theta)[0], rng)
    else:
        chosen = np.full(plan.architecture.n_layers, float(threshold))
    return Learned(replace(found, threshold=chosen), history, elbo=elbo)


# -- estimators --------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class HorseshoeEstimator(BaselineEstimator):
    """Parameters and learning of both horseshoe estimators."""

    global_scale: float = 1.0
    threshold: Any = "auto"

    weights_type = Horseshoe
    _rules: ClassVar[Rules] = {
        "global_scale": (positive, "a positive number"),
        "threshold": (auto(real), "'auto' or a number"),
    }
    _rate = 0.05

    def _learn_plan(self, plan: Plan, varies: Mask) -> Learned:
        return learn_horseshoe(plan, self.global_scale, self.threshold, varies)


class HorseshoeClassifier(HorseshoeEstimator, NetworkClassifier):
    """Fully connected network with group horseshoe priors (BNN-HORSE in the paper).

    Parameters
    ----------
    global_scale : float
        Of the half-Cauchy prior of each layer's scale; less shrinks more.
    threshold : "auto" or float
        Inputs and hidden units are pruned where ``s2_z - m_z``, minus the logarithm of the mode
        of their scale, is at least this. "auto" chooses a threshold for each layer by the ELBO of
        the pruned network; ``posterior_.threshold`` says which.
    {shared}

    Attributes
    ----------
    posterior_ : Horseshoe
        All weights and scales, before pruning.
    network_ : SparseNetwork
        The pruned network.
    n_used_weights_ : int
        Its weights on active paths.
    elbo_ : float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HorseshoeClassifier(hidden_layer_sizes=5, max_epochs=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


class HorseshoeRegressor(HorseshoeEstimator, NetworkRegressor):
    """Fully connected network with group horseshoe priors (BNN-HORSE in the paper).

    Parameters and attributes are those of :class:`HorseshoeClassifier`; the noise is learned.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HorseshoeRegressor(hidden_layer_sizes=5, max_epochs=50, random_state=0).fit(X, y)
    >>> model.n_used_weights_ < 100
    True
    """
