"""Horseshoe: a network in which inputs and hidden units that are not needed shrink to nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from islab.architecture import Architecture
from islab.baselines.base import BaselineEstimator, Plan
from islab.baselines.concrete import NO_SPREAD, descend, first_guess, layer_matrices
from islab.engines.base import LARGEST_LAMBDA, Problem
from islab.equations import gaussian_kl, inverse_softplus, slab_kl, softplus
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.learned import Learned
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.rules import Rules, auto, positive, real
from islab.likelihoods import get_likelihood
from islab.network import forward
from islab.optional import needed
from islab.posterior import Posterior
from islab.priors import BIAS_TAU
from islab.training import ELBO_PASSES

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from islab.sparse import SparseNetwork, Units

Array = Any
Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

FIRST_RHO = -3.0
FIRST_LOG_VARIANCE = -4.0
MOST_CANDIDATES = 25
MOST_ROWS = 2000


def gamma_kl(mean: Array, variance: Array, *, scale: float) -> Array:
    """Divergence of a log-normal from a Gamma distribution of shape 1/2.

    Parameters
    ----------
    mean, variance : array
        Of the logarithm.
    scale : float
        Of the Gamma distribution.

    Notes
    -----
    ``-(m + log s2 + 1 + log 2) / 2 + log(t) / 2 + exp(m + s2 / 2) / t``.
    """
    xp = array_namespace(mean)
    entropy = mean + xp.log(variance) + 1 + float(np.log(2))
    return xp.exp(mean + variance / 2) / scale + 0.5 * float(np.log(scale)) - entropy / 2


def inverse_gamma_kl(mean: Array, variance: Array, *, scale: float) -> Array:
    """Divergence of a log-normal from an inverse Gamma distribution of shape 1/2.

    If ``x`` is inverse Gamma with a scale ``b``, ``1 / x`` is Gamma with the scale ``1 / b``, and
    divergences do not change when both are inverted.
    """
    return gamma_kl(-mean, variance, scale=1 / scale)


def product_moments(mu: Array, sigma: Array, log_mean: Array, log_sd: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of ``z * w``, log-normal times normal.

    Notes
    -----
    ``E[z] = exp(m + s2 / 2)`` and ``E[z**2] = exp(2 m + 2 s2)``, so that
    ``Var = E[z]**2 (exp(s2) sigma**2 + (exp(s2) - 1) mu**2)``.
    """
    xp = array_namespace(mu)
    variance = log_sd**2
    scale = xp.exp(log_mean + variance / 2)
    spread = xp.exp(variance) * sigma**2 + xp.expm1(variance) * mu**2
    return scale * mu, scale * xp.sqrt(spread)


@dataclass(eq=False)
class Horseshoe:
    """Normal weights times a log-normal scale for each input of each layer.

    A weight is ``w = z * v`` with ``v ~ N(mu, sigma**2)``; ``log z`` is the sum of a normal
    variable of the layer and one of the input. An input is kept where ``s2_z - m_z`` is below
    the threshold, ``m_z`` and ``s2_z`` being mean and variance of ``log z``: where the mode of
    ``z`` is above ``exp(-threshold)``.

    Attributes
    ----------
    architecture : Architecture
    mu, sigma : (weights,)
        Of the weights before scaling; 0 for covariates without any variation.
    bias_mu, bias_sigma : (units,)
    layer_mean, layer_sd : (layers,)
        Of the layers' part of the logarithmic scales.
    input_mean, input_sd : (inputs,)
        Of the inputs' part; inputs of all layers, one layer after the other.
    threshold : (layers,)
    likelihood : str
    noise : (outputs,)
    n_weights_initial : int
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "sigma": ("weights",),
        "bias_mu": ("units",),
        "bias_sigma": ("units",),
        "layer_mean": ("layers",),
        "layer_sd": ("layers",),
        "input_mean": ("inputs",),
        "input_sd": ("inputs",),
        "threshold": ("layers",),
        "noise": ("outputs",),
    }

    architecture: Architecture
    mu: Float
    sigma: Float
    bias_mu: Float
    bias_sigma: Float
    layer_mean: Float
    layer_sd: Float
    input_mean: Float
    input_sd: Float
    threshold: Float
    likelihood: str
    noise: Float
    n_weights_initial: int

    def by_input(self, values: NDArray) -> NDArray:
        """Values of layers, one for each of their inputs, (..., inputs)."""
        net = self.architecture
        return np.repeat(values, [net.n_inputs(layer) for layer in range(net.n_layers)], axis=-1)

    @property
    def log_mean(self) -> Float:
        """Mean ``m_z`` of each input's logarithmic scale."""
        return self.input_mean + self.by_input(self.layer_mean)

    @property
    def log_sd(self) -> Float:
        """Standard deviation ``s_z`` of each input's logarithmic scale."""
        return np.hypot(self.input_sd, self.by_input(self.layer_sd))

    def shrinkage(self) -> Float:
        """How far each input is shrunk, ``s2_z - m_z``, (inputs,): minus the log of z's mode."""
        return self.log_sd**2 - self.log_mean

    def kept(self) -> Mask:
        """Inputs of all layers that are shrunk less than the threshold, (inputs,)."""
        return self.shrinkage() < self.by_input(self.threshold)

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws: the weights of an input share its scale, those of a layer its."""

        def normal(mean: Float, sd: Float) -> Float:
            return mean + sd * rng.standard_normal((n_draws, len(mean)))

        layer = normal(self.layer_mean, self.layer_sd)
        log_scale = normal(self.input_mean, self.input_sd) + self.by_input(layer)
        scale = np.exp(log_scale)[:, self.architecture.input_index]
        return scale * normal(self.mu, self.sigma), normal(self.bias_mu, self.bias_sigma)

    def median(self, *, units: Units | None = None) -> SparseNetwork:
        """The network of kept inputs; means and standard deviations are those of the products."""
        from islab.sparse import SparseNetwork

        return SparseNetwork.from_posterior(self.pruned(), units=units)

    def pruned(self) -> Posterior:
        """Independent normal weights with the same moments; kept ones are certainly in."""
        net = self.architecture
        index = net.input_index
        mean, sd = product_moments(self.mu, self.sigma, self.log_mean[index], self.log_sd[index])
        kept = self.kept()[index] & (self.sigma > 0)
        return Posterior(
            architecture=net,
            mu=mean,
            rho=_rho(sd),
            lam=np.where(kept, LARGEST_LAMBDA, -LARGEST_LAMBDA),
            bias_mu=self.bias_mu,
            bias_rho=_rho(self.bias_sigma),
            likelihood=self.likelihood,
            noise=self.noise,
            n_weights_initial=self.n_weights_initial,
        )


def _rho(sigma: Float) -> Float:
    """The ``rho`` of standard deviations that may be 0."""
    positive = sigma > 0
    return np.where(positive, inverse_softplus(np.where(positive, sigma, 1.0)), NO_SPREAD)


# -- learning -----------------------------------------------------------------------------


class HorseshoeNetwork:
    """Normal weights and log-normal scales while they are learned.

    The scale of an input is ``z = sqrt(s_a s_b a b)``: the two factors of the layer are shared
    by all its inputs. Their logarithms are normal with the means ``layer_log`` (2, layers) and
    ``input_log`` (2, inputs); variances are kept as logarithms too.
    """

    def __init__(self, guess: Posterior, global_scale: float) -> None:
        torch = needed("torch", "A horseshoe network", "islab-bnn[torch]")
        net = guess.architecture
        self.architecture, self.global_scale = net, global_scale
        inputs = torch.tensor([net.n_inputs(layer) for layer in range(net.n_layers)])
        self.n_inputs = inputs.tolist()
        self.input_layer = torch.arange(net.n_layers).repeat_interleave(inputs)
        self.input_index = torch.as_tensor(net.input_index)
        # Weights start on the scale of their prior, 1; the layers' scales make up for it.
        log_scale = 0.5 * torch.log(2 / inputs.clamp(min=1))
        scale = log_scale.exp()[self.input_layer][self.input_index]
        self.mu = torch.tensor(guess.mu, dtype=torch.float32).div_(scale)
        self.rho = torch.full_like(self.mu, FIRST_RHO)
        self.bias_mu = torch.tensor(guess.bias_mu, dtype=torch.float32)
        self.bias_rho = torch.full_like(self.bias_mu, FIRST_RHO)
        self.layer_log = log_scale.repeat(2, 1)
        self.input_log = torch.zeros(2, len(self.input_layer))
        self.layer_log_variance = torch.full_like(self.layer_log, FIRST_LOG_VARIANCE)
        self.input_log_variance = torch.full_like(self.input_log, FIRST_LOG_VARIANCE)
        self.parameters = [
            self.mu,
            self.rho,
            self.bias_mu,
            self.bias_rho,
            self.layer_log,
            self.layer_log_variance,
            self.input_log,
            self.input_log_variance,
        ]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def predictor(self, x: Tensor, generator: Generator) -> Tensor:
        """Linear predictor by local reparametrisation, with fresh scales for each row."""
        import torch

        from islab.engines.torch_engine import activate

        net = self.architecture
        sizes = [net.n_layers, len(self.input_layer), net.n_units]
        eps = torch.randn(len(x), sum(sizes), generator=generator)
        of_layer, of_input, of_unit = eps.split(sizes, dim=1)
        layer_mean, layer_sd, input_mean, input_sd = self.log_moments()
        layer = layer_mean + layer_sd * of_layer
        scales = (input_mean + input_sd * of_input + layer[:, self.input_layer]).exp()
        sigma, bias_sigma = self.sigmas()
        widths = list(net.widths)
        means, variances = layer_matrices(net, self.mu), layer_matrices(net, sigma * sigma)
        biases, spreads = self.bias_mu.split(widths), (bias_sigma * bias_sigma).split(widths)
        noise, signal = of_unit.split(widths, dim=1), x
        for k, scale in enumerate(scales.split(self.n_inputs, dim=1)):
            if k:
                signal = activate(net.activation, signal)
            scaled = signal * scale
            variance = (scaled * scaled) @ variances[k].T + spreads[k]
            signal = scaled @ means[k].T + biases[k] + variance.sqrt() * noise[k]
        return signal

    def penalty(self) -> Tensor:
        """Divergence of all weights, biases and scales from their priors."""
        sigma, bias_sigma = self.sigmas()
        weights = slab_kl(self.mu, sigma, tau=1.0).sum()
        biases = gaussian_kl(self.bias_mu, bias_sigma, tau=BIAS_TAU).sum()
        variance = self.layer_log_variance.exp()
        layers = (
            gamma_kl(self.layer_log[0], variance[0], scale=self.global_scale**2)
            + inverse_gamma_kl(self.layer_log[1], variance[1], scale=1.0)
        ).sum()
        return weights + biases + layers + self.scale_kl().sum()

    def scale_kl(self) -> Tensor:
        """Divergence of the inputs' own scales, (inputs,)."""
        variance = self.input_log_variance.exp()
        return gamma_kl(self.input_log[0], variance[0], scale=1.0) + inverse_gamma_kl(
            self.input_log[1], variance[1], scale=1.0
        )

    def sigmas(self) -> tuple[Tensor, Tensor]:
        """Standard deviations of weights before scaling, and of biases."""
        return softplus(self.rho), softplus(self.bias_rho)

    def log_moments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and standard deviation of half the log factors: of layers, then of inputs."""
        return (
            self.layer_log.sum(0) / 2,
            self.layer_log_variance.exp().sum(0).sqrt() / 2,
            self.input_log.sum(0) / 2,
            self.input_log_variance.exp().sum(0).sqrt() / 2,
        )

    def n_used(self) -> float:
        """Weights of all inputs: which of them to keep is decided at the end."""
        return float(self.architecture.n_weights)

    def distribution(self, likelihood: str, noise: Float, threshold: float) -> Horseshoe:
        """What has been learned so far, as numbers."""
        sigma, bias_sigma = self.sigmas()
        layer_mean, layer_sd, input_mean, input_sd = self.log_moments()
        return Horseshoe(
            architecture=self.architecture,
            mu=_numbers(self.mu),
            sigma=_numbers(sigma),
            bias_mu=_numbers(self.bias_mu),
            bias_sigma=_numbers(bias_sigma),
            layer_mean=_numbers(layer_mean),
            layer_sd=_numbers(layer_sd),
            input_mean=_numbers(input_mean),
            input_sd=_numbers(input_sd),
            threshold=np.full(self.architecture.n_layers, threshold),
            likelihood=likelihood,
            noise=noise,
            n_weights_initial=self.architecture.n_weights,
        )


def _numbers(tensor: Tensor) -> Float:
    return tensor.detach().double().numpy()


def learn_horseshoe(
    problem: Problem,
    likelihood: str,
    plan: Plan,
    *,
    global_scale: float,
    threshold: float | str,
    varies: Mask | None = None,
    seed: int,
    verbose: bool = False,
) -> Learned:
    """Learns weights and scales, and which inputs to keep.

    Parameters
    ----------
    problem : Problem
        Data on the scale the network shall see.
    likelihood : str
    plan : Plan
        Which network, without input skip, and how long to train it.
    global_scale : float
        Of the half-Cauchy prior of each layer's scale.
    threshold : float or "auto"
        Inputs with ``s2_z - m_z`` of at least this are pruned; see :func:`best_thresholds`.
    varies : (covariates,), optional
        Covariates that are not constant; the weights of the others are 0.
    seed : int
    verbose : bool
        Show a progress bar.
    """
    guess = first_guess(plan.architecture, problem, likelihood, seed)
    network = HorseshoeNetwork(guess, global_scale)
    noise, history = descend(network, problem, likelihood, plan, seed=seed, verbose=verbose)
    found = network.distribution(likelihood, noise, np.inf)
    if varies is not None:
        for array in (found.mu, found.sigma):
            plan.architecture.covariate_matrix(array)[:, ~varies] = 0.0
        found.input_mean[: len(varies)][~varies] = -LARGEST_LAMBDA
    rng = np.random.default_rng(seed)
    nll = expected_nll(found, problem, rng)
    kl = float(network.penalty().detach())
    if isinstance(threshold, str):
        scale_kl = _numbers(network.scale_kl())
        chosen = best_thresholds(found, problem, scale_kl, rng)
    else:
        chosen = np.full(plan.architecture.n_layers, float(threshold))
    return Learned(replace(found, threshold=chosen), history, elbo=-(nll + kl))


def best_thresholds(
    found: Horseshoe, problem: Problem, scale_kl: Float, rng: np.random.Generator
) -> Float:
    """The threshold of each layer whose pruned network has the highest ELBO.

    A pruned input costs no divergence, and what it had explained is lost. Layers are pruned one
    after the other, the last one first, and each keeps at least one input. Candidates lie halfway
    between inputs that are next to each other in shrinkage.

    Parameters
    ----------
    found : Horseshoe
    problem : Problem
        The training data.
    scale_kl : (inputs,)
        Divergence of each input's own scale.
    rng : Generator

    Returns
    -------
    thresholds : (layers,)
    """
    net, index = found.architecture, found.architecture.input_index
    used = found.sigma > 0
    cost = np.where(used, slab_kl(found.mu, np.where(used, found.sigma, 1.0), tau=1.0), 0.0)
    kl = scale_kl + np.bincount(index, weights=cost, minlength=len(scale_kl))
    weights, biases = found.draw(ELBO_PASSES, rng)
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]

    def loss(thresholds: Float) -> float:
        kept = replace(found, threshold=thresholds).kept()
        return _nll(found, problem, rows, weights * kept[index], biases) + float(kl[kept].sum())

    layer_of = found.by_input(np.arange(net.n_layers))
    best = np.full(net.n_layers, np.inf)
    for layer in reversed(range(net.n_layers)):
        trials = np.tile(best, (MOST_CANDIDATES, 1))
        trials[:, layer] = _between(found.shrinkage()[layer_of == layer])
        best = min(trials, key=loss)
    return best


def _between(shrinkage: Float) -> Float:
    """Thresholds that keep from one to all of these inputs, (candidates,)."""
    order = np.sort(shrinkage)
    middles = np.append((order[1:] + order[:-1]) / 2, order[-1] + 1)
    return middles[np.linspace(0, len(middles) - 1, MOST_CANDIDATES).round().astype(int)]


def expected_nll(found: Horseshoe, problem: Problem, rng: np.random.Generator) -> float:
    """Negative log likelihood of all rows, averaged over draws of the whole network."""
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]
    return _nll(found, problem, rows, *found.draw(ELBO_PASSES, rng))


def _nll(
    found: Horseshoe, problem: Problem, rows: NDArray[np.intp], weights: Float, biases: Float
) -> float:
    """Of all rows under known weights (draws, weights), estimated from some of the rows."""
    eta = forward(found.architecture, weights, biases, problem.x[rows])
    nll = get_likelihood(found.likelihood).nll(problem.y[rows], eta, found.noise).mean(axis=0)
    if problem.sample_weight is not None:
        nll = nll * problem.sample_weight[rows]
    return float(nll.mean()) * problem.n_rows


# -- the face -----------------------------------------------------------------------------


class HorseshoeEstimator(BaselineEstimator):
    """Parameters and learning of both horseshoe estimators."""

    weights_type = Horseshoe
    _rules: ClassVar[Rules] = {
        "global_scale": (positive, "a positive number"),
        "threshold": (auto(real), "'auto' or a number"),
    }
    _rate = 0.05

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        global_scale: float = 1.0,
        threshold: Any = "auto",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_draws: int = 1000,
        missing: str = "impute",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.global_scale = global_scale
        self.threshold = threshold
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_epochs = max_epochs
        self.n_draws = n_draws
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        return learn_horseshoe(
            problem,
            likelihood,
            self._plan(problem),
            global_scale=self.global_scale,
            threshold=self.threshold,
            varies=varies,
            seed=seed,
            verbose=self.verbose,
        )


class HorseshoeClassifier(HorseshoeEstimator, NetworkClassifier):
    """Fully connected network with group horseshoe priors (BNN-HORSE in the paper).

    Parameters
    ----------
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers; ``()`` for a linear model.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
    global_scale : float
        Of the half-Cauchy prior of each layer's scale; less shrinks more.
    threshold : "auto" or float
        Inputs and hidden units are pruned where ``s2_z - m_z``, minus the logarithm of the mode
        of their scale, is at least this. "auto" chooses a threshold for each layer by the ELBO of
        the pruned network; ``posterior_.threshold`` says which.
    batch_size : "auto" or int
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
        Passes over the data.
    n_draws : int
        Draws of the network behind each prediction.
    missing : {"impute", "error"}
    random_state : int, RandomState instance or None
    verbose : bool

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
