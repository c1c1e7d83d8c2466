"""Concrete dropout: a network that learns how much of each layer's input to drop.

The file begins with what it shares with other fully connected networks that torch trains by a
penalised likelihood: :class:`Descending` and :func:`descend`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from islab.architecture import Architecture
from islab.baselines.base import BaselineEstimator, Plan
from islab.engines.base import ADAM_BETAS, ADAM_EPS, Problem, Steps
from islab.equations import sigmoid
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.learned import Learned, WeightDistribution
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.rules import Rules, auto, positive
from islab.history import History
from islab.likelihoods import get_likelihood
from islab.network import forward
from islab.optional import needed
from islab.posterior import Initial, Posterior
from islab.progress import ProgressBar
from islab.training import MOST_FAILURES, STEPS_AT_ONCE, Stage, TrainingError, make_steps

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from islab.sparse import SparseNetwork, Units

Array = Any
Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

NOISE_RATE = 0.02
LEAST_NOISE = 1e-6
TEMPERATURE = 0.1
FIRST_DROPOUT = 0.1
LEAST_UNIFORM = 1e-7
LENGTH_SCALES = (1.0, 2.0, 4.0, 8.0)
TRIAL_DRAWS = 100
NO_SPREAD = -1000.0  # the rho of a sigma of 0


# -- training by descent ------------------------------------------------------------------


class Descending(Protocol):
    """What :func:`descend` asks of a network without input skip."""

    architecture: Architecture
    parameters: list[Tensor]

    def predictor(self, x: Tensor, generator: Generator) -> Tensor:
        """Linear predictor (rows, outputs) under fresh noise."""

    def penalty(self) -> Tensor:
        """What the parameters cost, on the scale of the log likelihood of all rows."""

    def n_used(self) -> float:
        """Weights in use."""


@dataclass(eq=False)
class Descent:
    """A network on its way: the data, Adam, and the noise of Gaussian outputs."""

    network: Descending
    problem: Problem
    likelihood: str
    seed: int

    def __post_init__(self) -> None:
        torch = needed("torch", "This model", "islab-bnn[torch]")
        self.family = get_likelihood(self.likelihood)
        self.generator = torch.Generator().manual_seed(self.seed)
        n_rows, n_outputs = self.problem.y.shape
        weight = self.problem.sample_weight
        weight = np.ones(n_rows) if weight is None else weight
        arrays = (self.problem.x, self.problem.y, weight)
        self.x, self.y, self.weight = (torch.as_tensor(a, dtype=torch.float32) for a in arrays)
        self.noise = torch.ones(n_outputs)
        self.adam = torch.optim.Adam(
            self.network.parameters, betas=ADAM_BETAS, eps=ADAM_EPS, fused=True
        )

    def take(self, steps: Steps) -> float:
        """Takes the steps; returns the negative log likelihood of all rows that they suggest."""
        total = 0.0
        starts = np.cumsum(steps.sizes) - steps.sizes
        for start, size, rate, ramp in zip(
            starts, steps.sizes, steps.rate, steps.kl_weight, strict=True
        ):
            rows = steps.rows[start : start + size]
            x, y, weight = self.x[rows], self.y[rows], self.weight[rows]
            eta = self.network.predictor(x, self.generator)
            nll = (weight * self.family.nll(y, eta, self.noise)).sum()
            loss = nll + float(ramp) * float(size) / self.problem.n_rows * self.network.penalty()
            self.adam.zero_grad()
            loss.backward()
            self.adam.param_groups[0]["lr"] = float(rate)
            self.adam.step()
            if self.family.learns_noise:
                error = (weight[:, None] * (y - eta.detach()).square()).sum(0) / weight.sum()
                self.noise.lerp_(error, NOISE_RATE).clamp_(min=LEAST_NOISE)
            total = total + nll.detach()
        return float(total) * self.problem.n_rows / float(steps.sizes.sum())

    def state(self) -> list[Tensor]:
        """Copies of all that the loss depends on."""
        return [part.detach().clone() for part in (*self.network.parameters, self.noise)]

    def restore(self, state: list[Tensor]) -> None:
        for part, copy in zip((*self.network.parameters, self.noise), state, strict=True):
            part.data.copy_(copy)
        self.adam.state.clear()


def descend(
    network: Descending,
    problem: Problem,
    likelihood: str,
    plan: Plan,
    *,
    seed: int,
    verbose: bool = False,
) -> tuple[Float, History]:
    """Minimises negative log likelihood plus penalty.

    The loss of a batch is ``sum NLL + (batch rows / all rows) * penalty``; the penalty's weight
    rises from 0 over the first quarter. Gaussian noise follows its optimum. Numbers that are not
    finite take the network back to where it last was and halve the rate.

    Returns
    -------
    noise : (outputs,)
        Noise variance of Gaussian outputs, 1 for others.
    history : History
    """
    stage = Stage(n_steps=plan.n_steps, batch_size=plan.batch_size, rate=plan.rate)
    descent = Descent(network, problem, likelihood, seed)
    history, step, slow_down, failures = History(), 0, 1.0, 0
    good = descent.state()
    with ProgressBar(stage.n_steps, enabled=verbose) as bar:
        while step < stage.n_steps:
            size = min(STEPS_AT_ONCE, stage.n_steps - step)
            steps = make_steps(stage, step, size, problem.n_rows, seed, slow_down)
            nll, kl = descent.take(steps), float(network.penalty().detach())
            if not np.isfinite(nll + kl):
                failures, slow_down = failures + 1, slow_down / 2
                if failures > MOST_FAILURES:
                    raise TrainingError(_not_finite(failures, plan.rate * slow_down * 2))
                descent.restore(good)
                continue
            good, failures, step = descent.state(), 0, step + size
            used = network.n_used()
            history.add(
                step=step,
                elbo=-(nll + kl),
                nll=nll,
                kl=kl,
                density=used / max(network.architecture.n_weights, 1),
                used_weights=used,
                hidden_units=sum(network.architecture.hidden),
                noise=float(descent.noise.mean()),
                rate=float(steps.rate[-1]),
            )
            bar.report(size, {"elbo": -(nll + kl), "used_weights": used})
    return descent.noise.double().numpy(), history


def layer_matrices(net: Architecture, weights: Tensor) -> list[Tensor]:
    """The weights of each layer of a network without input skip, (out, in).

    They are split once rather than sliced: the gradient of each slice would be a vector of all
    weights.
    """
    parts = weights.split([block.size for block in net.blocks])
    shapes = [(block.n_targets, block.n_sources) for block in net.blocks]
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def first_guess(net: Architecture, problem: Problem, likelihood: str, seed: int) -> Posterior:
    """Means to begin with; the outputs' biases are those of the model without covariates."""
    guess = Posterior.initialise(net, np.random.default_rng(seed), Initial(), likelihood)
    guess.bias_mu[net.units[-1]] = get_likelihood(likelihood).initial_bias(problem.y)
    return guess


def _not_finite(failures: int, rate: float) -> str:
    return (
        f"The loss was not finite {failures} times in a row, the last time at a learning rate of "
        f"{rate:.2g}; look for extreme values in the data, standardise them, or try a smaller "
        "learning rate."
    )


# -- the method ---------------------------------------------------------------------------


def drop_gate(logit_p: Array, u: Array) -> Array:
    """Nearly 1 where an input is dropped, nearly 0 where it stays; differentiable by ``p``.

    Parameters
    ----------
    logit_p : array
        Of the dropout probability.
    u : array
        Uniform random numbers between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> drop_gate(np.zeros(3), np.array([0.01, 0.5, 0.99])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    xp = array_namespace(u)
    return sigmoid((logit_p + xp.log(u) - xp.log1p(-u)) / TEMPERATURE)


def dropout_penalty(square: Array, p: Array, n_inputs: Array, *, length_scale: float) -> Array:
    """Divergence of each layer from its prior, up to a constant.

    Parameters
    ----------
    square : array
        Sum of a layer's squared weights and biases.
    p, n_inputs : array
        Its dropout probability and number of inputs.
    length_scale : float
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
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "bias": ("units",),
        "dropout": ("layers",),
        "noise": ("outputs",),
    }

    architecture: Architecture
    mu: Float
    bias: Float
    dropout: Float
    likelihood: str
    noise: Float
    n_weights_initial: int

    def keep_probability(self) -> Float:
        """Probability that each weight is not dropped, (weights,)."""
        kept = self.architecture.by_block(1 - self.dropout[: len(self.architecture.blocks)])
        return np.where(self.mu != 0, kept, 0.0)

    def n_expected_weights(self) -> float:
        """Expected number of weights that are not dropped, ``sum (1 - p_l) * in_l * out_l``."""
        return float(self.keep_probability().sum())

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws: one set of dropped inputs for all rows."""
        net = self.architecture
        p = np.repeat(self.dropout, [net.n_inputs(layer) for layer in range(net.n_layers)])
        kept = (rng.random((n_draws, len(p))) >= p) / (1 - p)
        return self.mu * kept[:, net.input_index], np.tile(self.bias, (n_draws, 1))

    def median(self, *, units: Units | None = None) -> SparseNetwork:
        """The network of mean weights.

        One probability for all inputs of a layer singles out no weight, so all stay, each with
        its probability of not being dropped as ``alpha``.
        """
        from islab.sparse import SparseNetwork

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
        return SparseNetwork.from_posterior(posterior, threshold=0.0, units=units)


class DropoutNetwork:
    """Weights, biases and dropout probabilities while they are learned."""

    def __init__(self, guess: Posterior, length_scale: float) -> None:
        torch = needed("torch", "Concrete dropout", "islab-bnn[torch]")
        self.architecture, self.length_scale = guess.architecture, length_scale
        net = guess.architecture
        inputs = torch.tensor([net.n_inputs(layer) for layer in range(net.n_layers)])
        layers = torch.arange(net.n_layers)
        self.n_inputs, self.input_layer = inputs, layers.repeat_interleave(inputs)
        self.layer_sizes = torch.tensor([block.size for block in net.blocks])
        weight_layer = layers.repeat_interleave(self.layer_sizes)
        self.layer = torch.cat([weight_layer, layers.repeat_interleave(torch.tensor(net.widths))])
        logit = float(np.log(FIRST_DROPOUT) - np.log1p(-FIRST_DROPOUT))
        self.weights = torch.tensor(guess.mu, dtype=torch.float32, requires_grad=True)
        self.biases = torch.tensor(guess.bias_mu, dtype=torch.float32, requires_grad=True)
        self.logit_p = torch.full((net.n_layers,), logit, requires_grad=True)
        self.parameters = [self.weights, self.biases, self.logit_p]

    def predictor(self, x: Tensor, generator: Generator) -> Tensor:
        """Linear predictor with inputs dropped for each row and layer anew."""
        from islab.engines.torch_engine import activate

        net = self.architecture
        matrices = layer_matrices(net, self.weights)
        biases = self.biases.split(list(net.widths))
        logit_p = self.logit_p[self.input_layer]
        u = x.new_empty(len(x), len(logit_p)).uniform_(LEAST_UNIFORM, 1, generator=generator)
        factors = (1 - drop_gate(logit_p, u)) * (1 + logit_p.exp())  # 1 / (1 - p) = 1 + odds
        signal = x
        for layer, factor in enumerate(factors.split(self.n_inputs.tolist(), dim=1)):
            if layer:
                signal = activate(net.activation, signal)
            signal = (signal * factor) @ matrices[layer].T + biases[layer]
        return signal

    def penalty(self) -> Tensor:
        import torch

        squares = torch.cat([self.weights, self.biases]).square()
        square = torch.zeros_like(self.logit_p).index_add(0, self.layer, squares)
        p = self.logit_p.sigmoid()
        return dropout_penalty(square, p, self.n_inputs, length_scale=self.length_scale).sum()

    def n_used(self) -> float:
        return float(((1 - self.logit_p.detach().sigmoid()) * self.layer_sizes).sum())


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
    if isinstance(length_scale, str):
        length_scale = best_length_scale(problem, likelihood, plan, seed)
    guess = first_guess(plan.architecture, problem, likelihood, seed)
    network = DropoutNetwork(guess, length_scale)
    noise, history = descend(network, problem, likelihood, plan, seed=seed, verbose=verbose)
    mu, bias, logit_p = (part.detach().double().numpy() for part in network.parameters)
    if varies is not None:
        plan.architecture.covariate_matrix(mu)[:, ~varies] = 0.0
    found = ConcreteDropout(
        architecture=plan.architecture,
        mu=mu,
        bias=bias,
        dropout=sigmoid(logit_p),
        likelihood=likelihood,
        noise=noise,
        n_weights_initial=plan.architecture.n_weights,
    )
    return Learned(found, history)


def best_length_scale(problem: Problem, likelihood: str, plan: Plan, seed: int) -> float:
    """The length scale that predicts a fifth of the rows best, learned from the others.

    Weights have no variance of their own here, so no bound on the evidence says how strong
    their prior should be. Each candidate trains half as long as the network itself will.
    """
    order = np.random.default_rng(seed).permutation(problem.n_rows)
    judges, learners = np.split(order, [max(1, problem.n_rows // 5)])
    held_out, rest = rows_of(problem, judges), rows_of(problem, learners)
    trial = replace(
        plan,
        n_steps=max(1, plan.n_steps // 2),
        batch_size=min(plan.batch_size, rest.n_rows),
    )

    def loss(length_scale: float) -> float:
        found = learn_concrete(rest, likelihood, trial, length_scale=length_scale, seed=seed)
        return held_out_loss(found.weights, held_out, np.random.default_rng(seed))

    return min(LENGTH_SCALES, key=loss)


def rows_of(problem: Problem, rows: NDArray[np.intp]) -> Problem:
    """Some of the rows."""
    weight = problem.sample_weight
    return Problem(problem.x[rows], problem.y[rows], None if weight is None else weight[rows])


def held_out_loss(weights: WeightDistribution, problem: Problem, rng: np.random.Generator) -> float:
    """Negative log of the predictive density of these rows, averaged over them."""
    eta = forward(weights.architecture, *weights.draw(TRIAL_DRAWS, rng), problem.x)
    scores = get_likelihood(weights.likelihood).log_score(problem.y, eta, weights.noise)
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
