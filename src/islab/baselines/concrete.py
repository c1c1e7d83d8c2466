"""Concrete dropout: a network that learns how much of each layer's input to drop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from islab.baselines.base import BaselineEstimator, Plan
from islab.baselines.batched_networks import Pass, input_layers
from islab.baselines.descent import Slope, cut, descend, first_guess
from islab.baselines.dropout import TEMPERATURE, ConcreteDropout, drop_gate, dropout_penalty
from islab.core import families
from islab.core.architecture import Architecture
from islab.core.equations import sigmoid
from islab.core.network import forward
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.parameter_checks import Rules, auto, positive
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned, WeightDistribution
from islab.learn.engines.base import Problem

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

FIRST_DROPOUT = 0.1
LEAST_UNIFORM = 1e-7
LENGTH_SCALES = (1.0, 2.0, 4.0, 8.0)
TRIAL_DRAWS = 100


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


def learn_concrete(
    problem: Problem,
    likelihood: str,
    plan: Plan,
    *,
    length_scale: float | str,
    varies: Mask | None = None,
    seed: int,
    verbose: bool = False,
) -> Learned:
    """Learns weights and dropout probabilities.

    Parameters
    ----------
    problem : Problem
        Data on the scale the network shall see.
    likelihood : str
    plan : Plan
        Which network, without input skip, and how long to train it.
    length_scale : float or "auto"
        One over the prior's standard deviation of a weight; see :func:`best_length_scale`.
    varies : (covariates,), optional
        Covariates that are not constant; the weights of the others are 0.
    seed : int
    verbose : bool
        Show a progress bar.
    """
    chosen = {}
    if isinstance(length_scale, str):
        length_scale = best_length_scale(problem, likelihood, plan, seed)
        chosen = {"length_scale": length_scale}
    guess = first_guess(plan.architecture, problem, likelihood, np.random.default_rng(seed))
    network = DropoutNetwork(plan.architecture, length_scale)
    descent, history = descend(
        network, network.start(guess), problem, likelihood, plan, seed=seed, verbose=verbose
    )
    found = network.distributions(descent.theta, likelihood, descent.noise, varies)
    return Learned(found[0], history, chosen=chosen)


def best_length_scale(problem: Problem, likelihood: str, plan: Plan, seed: int) -> float:
    """The length scale that predicts a fifth of the rows best, learned from the others.

    Weights have no variance of their own here, so no bound on the evidence says how strong
    their prior should be. The candidates train side by side, half as long as the network itself
    will.
    """
    rng = np.random.default_rng(seed)
    judges, learners = np.split(rng.permutation(problem.n_rows), [max(1, problem.n_rows // 5)])
    held_out, rest = rows_of(problem, judges), rows_of(problem, learners)
    trial = replace(
        plan,
        n_steps=max(1, plan.n_steps // 2),
        batch_size=min(plan.batch_size, rest.n_rows),
    )
    guess = first_guess(plan.architecture, rest, likelihood, np.random.default_rng(seed))
    network = DropoutNetwork(plan.architecture, np.array(LENGTH_SCALES))
    theta = np.tile(network.start(guess), (len(LENGTH_SCALES), 1))
    descent, _ = descend(network, theta, rest, likelihood, trial, seed=seed)
    losses = [
        held_out_loss(found, held_out, np.random.default_rng(seed))
        for found in network.distributions(descent.theta, likelihood, descent.noise)
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


# -- the face -----------------------------------------------------------------------------


class ConcreteDropoutEstimator(BaselineEstimator):
    """Parameters and learning of both concrete dropout estimators."""

    weights_type = ConcreteDropout
    _rules: ClassVar[Rules] = {"length_scale": (auto(positive), "'auto' or a positive number")}
    _rate = 0.03

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        length_scale: Any = "auto",
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
        self.length_scale = length_scale
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_epochs = max_epochs
        self.n_draws = n_draws
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        return learn_concrete(
            problem,
            likelihood,
            self._plan(problem),
            length_scale=self.length_scale,
            varies=varies,
            seed=seed,
            verbose=self.verbose,
        )

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
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers; ``()`` for a linear model.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
    length_scale : "auto" or float
        One over the prior's standard deviation of a weight: more makes smoother functions, and
        far too much a constant. "auto" tries four on a fifth of the rows, held out.
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
