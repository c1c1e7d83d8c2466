"""Concrete dropout: a network that learns how much of each layer's input to drop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from islab.baselines.base import BaselineEstimator, Plan
from islab.baselines.batched_networks import Pass, input_layers
from islab.baselines.descent import Slope, cut, descend, first_guess
from islab.baselines.kept_weights import NO_SPREAD
from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.equations import sigmoid
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.parameter_checks import Rules, auto, positive
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned, WeightDistribution
from islab.learn.engines.base import Problem

Array = Any

FIRST_DROPOUT = 0.1
LEAST_UNIFORM = 1e-7
LENGTH_SCALES = (1.0, 2.0, 4.0, 8.0)
TRIAL_DRAWS = 100
TEMPERATURE = 0.1


# -- what is learned ------------------------------------------------------------------------------


def drop_gate(logit_p: Array, u: Array) -> Array:
    """Nearly 1 where an input is dropped, nearly 0 where it stays; differentiable by ``p``.

    Parameters
    ----------
    logit_p : array
        Of the dropout probability.
    u : array
        Uniform random numbers between 0 and 1.

    Notes
    -----
    ``sigmoid((logit p + logit u) / temperature)``. A temperature of 1/10 makes its exponential
    the tenth power of a ratio, which takes multiplications only.

    Examples
    --------
    >>> import numpy as np
    >>> drop_gate(np.zeros(3), np.array([0.01, 0.5, 0.99])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    xp = array_namespace(u)
    ratio = (1 / u - 1) * xp.exp(-logit_p)
    fifth = ratio * ratio * ratio * ratio * ratio
    return 1 / (1 + fifth * fifth)


def dropout_penalty(square: Array, p: Array, n_inputs: Array, *, length_scale: Array) -> Array:
    """KL of each layer from its prior, up to a constant.

    Parameters
    ----------
    square : array
        Sum of a layer's squared weights and biases.
    p, n_inputs : array
        Its dropout probability and number of inputs.
    length_scale : float or array
        One over the prior's standard deviation of a weight.

    Notes
    -----
    ``length_scale**2 / 2 * square / (1 - p) + inputs * (p log p + (1 - p) log(1 - p))``: Gal,
    Hron and Kendall (2017) with weights on the scale of their means, that is, multiplied by
    ``1 - p`` when they stay.
    """
    xp = array_namespace(p)
    entropy = p * xp.log(p) + (1 - p) * xp.log1p(-p)
    return 0.5 * length_scale**2 * square / (1 - p) + n_inputs * entropy


@dataclass(eq=False)
class ConcreteDropout:
    """A network whose inputs are dropped, layer by layer, with probabilities of their own.

    A draw is ``w = mu * keep / (1 - p)`` with ``keep ~ Bernoulli(1 - p)`` for each input of each
    layer, so that ``mu`` is the mean. Training relaxes ``keep`` to a concrete distribution.

    Attributes
    ----------
    architecture : Architecture
    mu : (weights,)
        Weights of covariates without any variation are 0.
    bias : (units,)
    dropout : (layers,)
        Probability ``p`` that an input of the layer is dropped.
    likelihood : str
    noise : (outputs,)
    n_weights_initial : int
    scale : Scale, optional
        Of the data.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "bias": ("units",),
        "dropout": ("layers",),
        "noise": ("noise",),
    }

    architecture: Architecture
    mu: Float
    bias: Float
    dropout: Float
    likelihood: str
    noise: Float
    n_weights_initial: int
    scale: Scale | None = None

    def keep_probability(self) -> Float:
        """Probability that each weight is not dropped, (weights,)."""
        kept = self.architecture.by_block(1 - self.dropout[: len(self.architecture.blocks)])
        return np.where(self.mu != 0, kept, 0.0)

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws: one set of dropped inputs for all rows."""
        net = self.architecture
        p = self.dropout[input_layers(net)]
        kept = (rng.random((n_draws, len(p))) >= p) / (1 - p)
        return self.mu * kept[:, net.input_index], np.tile(self.bias, (n_draws, 1))

    def median(self) -> SparseNetwork:
        """The network of mean weights.

        One probability for all inputs of a layer singles out no weight, so all stay, each with
        its probability of not being dropped as ``alpha``.
        """
        with np.errstate(divide="ignore"):
            lam = np.log(self.keep_probability()) - np.log(self.architecture.by_block(self.dropout))
        posterior = Posterior(
            architecture=self.architecture,
            mu=self.mu,
            rho=np.full_like(self.mu, NO_SPREAD),
            lam=lam,
            bias_mu=self.bias,
            bias_rho=np.full_like(self.bias, NO_SPREAD),
            likelihood=self.likelihood,
            noise=self.noise,
            n_weights_initial=self.n_weights_initial,
        )
        return SparseNetwork.from_posterior(posterior, threshold=0.0, scale=self.scale)


# -- learning -------------------------------------------------------------------------------------


class DropoutNetwork:
    """Weights, biases and logits of dropout probabilities while they are learned.

    Parameters
    ----------
    architecture : Architecture
    length_scale : float or (replicas,)
        One over the prior's standard deviation of a weight.
    """

    def __init__(self, architecture: Architecture, length_scale: float | Float) -> None:
        self.architecture = net = architecture
        self.length_scale = np.reshape(length_scale, (-1, 1)).astype(np.float32)
        layers, self.input_layer = np.arange(net.n_layers), input_layers(net)
        self.n_inputs = np.bincount(self.input_layer, minlength=net.n_layers)
        weight_layer = net.by_block([block.layer for block in net.blocks])
        self.layer_sizes = np.bincount(weight_layer, minlength=net.n_layers)
        self.layer = np.concatenate([weight_layer, np.repeat(layers, net.widths)])
        # Products with these sum over the inputs or the parameters of each layer.
        self.of_inputs = (self.input_layer[:, None] == layers).astype(np.float32)
        self.of_layers = (self.layer[:, None] == layers).astype(np.float32)

    def start(self, guess: Float) -> Float:
        """Parameters to begin with, from weights and biases."""
        logit_p = np.log(FIRST_DROPOUT) - np.log1p(-FIRST_DROPOUT)
        return np.concatenate([guess, np.full(self.architecture.n_layers, logit_p)])

    def split(self, theta: Float) -> list[Float]:
        """Weights, biases and logits, each (replicas, ...)."""
        net = self.architecture
        return cut(theta, (net.n_weights, net.n_units, net.n_layers))

    def gradient(
        self, theta: Float, x: Float, slope: Slope, rng: np.random.Generator
    ) -> tuple[Float, Float]:
        """With inputs dropped for each row and layer anew, the same for all replicas."""
        weights, biases, logit_p = self.split(theta)
        u = rng.random((len(x), len(self.input_layer)), dtype=np.float32)
        by_input = logit_p[:, None, self.input_layer]
        gate = drop_gate(by_input, np.maximum(u, LEAST_UNIFORM, out=u))
        stays, odds = 1 - gate, np.exp(by_input)
        grown = 1 + odds  # 1 / (1 - p)
        way = Pass(self.architecture, weights, biases, x, scales=stays * grown)
        back = way.back(slope(way.eta))
        by_logit = back.scales * stays * (odds - gate * (grown / TEMPERATURE))
        by_layer = by_logit.sum(axis=1) @ self.of_inputs
        return way.eta, np.concatenate([back.weights, back.biases, by_layer], axis=1)

    def penalty(self, theta: Float) -> Float:
        logit_p = self.split(theta)[2]
        p, square = sigmoid(logit_p), self._square(theta)
        return dropout_penalty(square, p, self.n_inputs, length_scale=self.length_scale).sum(axis=1)

    def penalty_gradient(self, theta: Float) -> Float:
        logit_p = self.split(theta)[2]
        p, decay = sigmoid(logit_p), self.length_scale**2 * (1 + np.exp(logit_p))
        by_layer = 0.5 * decay * p * self._square(theta) + self.n_inputs * logit_p * p * (1 - p)
        shrunk = decay[:, self.layer] * theta[:, : len(self.layer)]
        return np.concatenate([shrunk, by_layer.astype(theta.dtype)], axis=1)

    def _square(self, theta: Float) -> Float:
        """Sum of each layer's squared weights and biases, (replicas, layers)."""
        return np.square(theta[:, : len(self.layer)]) @ self.of_layers

    def n_used(self, theta: Float) -> float:
        kept = 1 - sigmoid(self.split(theta)[2][0])
        return float(kept @ self.layer_sizes)

    def distributions(
        self, theta: Float, likelihood: str, noise: Float, varies: Mask | None = None
    ) -> list[ConcreteDropout]:
        """What the replicas have learned, without the covariates that do not vary."""
        net, found = self.architecture, []
        for weights, bias, logit_p, own in zip(
            *self.split(theta.astype(float)), noise, strict=True
        ):
            mu = weights.copy()
            if varies is not None:
                net.covariate_matrix(mu)[:, ~varies] = 0.0
            found.append(
                ConcreteDropout(
                    architecture=net,
                    mu=mu,
                    bias=bias.copy(),
                    dropout=sigmoid(logit_p),
                    likelihood=likelihood,
                    noise=own.astype(float),
                    n_weights_initial=net.n_weights,
                )
            )
        return found


def learn_concrete(plan: Plan, length_scale: float | str, varies: Mask | None = None) -> Learned:
    """Learns weights and dropout probabilities; see :class:`ConcreteDropoutClassifier`.

    The weights of covariates that do not vary are 0.
    """
    chosen = {}
    if isinstance(length_scale, str):
        length_scale = best_length_scale(plan)
        chosen = {"length_scale": length_scale}
    network = DropoutNetwork(plan.architecture, length_scale)
    start = network.start(first_guess(plan, np.random.default_rng(plan.seed)))
    descent, history = descend(network, start, plan)
    found = network.distributions(descent.theta, plan.likelihood, descent.noise, varies)
    return Learned(found[0], history, chosen=chosen)


def best_length_scale(plan: Plan) -> float:
    """The length scale that predicts a fifth of the rows best, learned from the others.

    Weights have no variance of their own here, so no bound on the evidence says how strong
    their prior should be. The candidates train side by side, half as long as the network itself
    will.
    """
    problem, rng = plan.problem, np.random.default_rng(plan.seed)
    judges, learners = np.split(rng.permutation(problem.n_rows), [max(1, problem.n_rows // 5)])
    held_out, rest = rows_of(problem, judges), rows_of(problem, learners)
    trial = replace(
        plan,
        problem=rest,
        n_steps=max(1, plan.n_steps // 2),
        batch_size=min(plan.batch_size, rest.n_rows),
        verbose=False,
    )
    network = DropoutNetwork(plan.architecture, np.array(LENGTH_SCALES))
    start = network.start(first_guess(trial, np.random.default_rng(plan.seed)))
    descent, _ = descend(network, np.tile(start, (len(LENGTH_SCALES), 1)), trial)
    losses = [
        held_out_loss(found, held_out, np.random.default_rng(plan.seed))
        for found in network.distributions(descent.theta, plan.likelihood, descent.noise)
    ]
    return LENGTH_SCALES[int(np.argmin(losses))]


def rows_of(problem: Problem, rows: NDArray[np.intp]) -> Problem:
    """Some of the rows."""
    weight = problem.sample_weight
    return Problem(problem.x[rows], problem.y[rows], None if weight is None else weight[rows])


def held_out_loss(weights: WeightDistribution, problem: Problem, rng: np.random.Generator) -> float:
    """Negative log of the predictive density of these rows, averaged over them."""
    eta = forward(weights.architecture, *weights.draw(TRIAL_DRAWS, rng), problem.x)
    scores = families.likelihood(weights.likelihood).log_score(problem.y, eta, weights.noise)
    return float(np.average(scores, weights=problem.sample_weight))


# -- estimators --------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class ConcreteDropoutEstimator(BaselineEstimator):
    """Parameters and learning of both concrete dropout estimators."""

    length_scale: Any = "auto"

    weights_type = ConcreteDropout
    _rules: ClassVar[Rules] = {"length_scale": (auto(positive), "'auto' or a positive number")}
    _rate = 0.03

    def _learn_plan(self, plan: Plan, varies: Mask) -> Learned:
        return learn_concrete(plan, self.length_scale, varies)

    @property
    def n_expected_weights_(self) -> float:
        """Expected number of weights that are not dropped, ``sum (1 - p_l) * in_l * out_l``."""
        check_is_fitted(self)
        return float(self.network_.alpha.sum())

    @property
    def n_used_weights_(self) -> int:
        """The expected number of weights, as in the paper, rounded."""
        return round(self.n_expected_weights_)


class ConcreteDropoutClassifier(ConcreteDropoutEstimator, NetworkClassifier):
    """Fully connected network with learned dropout (BNN-CONCRETE in the paper).

    Parameters
    ----------
    length_scale : "auto" or float
        One over the prior's standard deviation of a weight: more makes smoother functions, and
        far too much a constant. "auto" tries four on a fifth of the rows, held out.
    {shared}

    Attributes
    ----------
    posterior_ : ConcreteDropout
        Its ``dropout`` holds the probability of each layer.
    network_ : SparseNetwork
        The network of mean weights. Dropout of whole layers selects no covariates: all are used.
    n_expected_weights_ : float
        Expected number of weights that are not dropped.
    n_used_weights_ : int
        The same, rounded.
    chosen_ : dict
        The length scale by held-out rows, if it was "auto".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConcreteDropoutClassifier(length_scale=1.0, max_epochs=100, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """


class ConcreteDropoutRegressor(ConcreteDropoutEstimator, NetworkRegressor):
    """Fully connected network with learned dropout (BNN-CONCRETE in the paper).

    Parameters and attributes are those of :class:`ConcreteDropoutClassifier`; the noise is
    learned.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConcreteDropoutRegressor(length_scale=4.0, max_epochs=50, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.3
    True
    """
