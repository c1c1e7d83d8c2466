"""Input-skip networks with an L1 penalty: the frequentist counterpart (IS-ANN-L1 in the paper).

The file begins with what it shares with other baselines that are fitted point by point:
:class:`Replicas`, which fits a network to all rows and to the rows of each fold at the same time,
and :func:`sparsest_near_best`, which reads the folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.architecture import Architecture
from islab.baselines.base import BaselineEstimator, Plan
from islab.engines.base import ADAM_BETAS, ADAM_EPS, LARGEST_LAMBDA, Parameters, Problem
from islab.equations import inverse_softplus
from islab.estimators.base import Mask
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.learned import Learned
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.rules import Rules, auto, one_of, positive
from islab.estimators.unused import learnable, over_all_covariates
from islab.history import History
from islab.likelihoods import get_likelihood
from islab.optional import needed
from islab.paths import active_weights, fed_units
from islab.posterior import Initial, Posterior
from islab.progress import ProgressBar
from islab.schedules import Schedule
from islab.shrink import sent_constants
from islab.training import MOST_FAILURES, STEPS_AT_ONCE, TrainingError, epoch_order

if TYPE_CHECKING:
    from torch import Tensor

Float = NDArray[np.floating]

N_FOLDS = 5
ROWS_FOR_ALL_FOLDS = 5_000
ROWS_AT_ONCE = 8_192
TOLERANCE = 0.005
LEAST_NOISE = 1e-6
SLOWEST, FASTEST, DISTANCE = 0.005, 0.05, 10.0
NO_SPREAD = -1000.0  # the rho of a sigma of 0

FEWEST_STRENGTHS, MOST_STRENGTHS, STEPS_PER_STRENGTH = 3, 14, 140
WEAKEST, STRONGEST = 2e-3, 0.5  # as shares of the strength that leaves nothing
LEAST_STRENGTH = 1e-6
ZERO = 0.005


# -- one network, fitted to all rows and to each fold ------------------------------------------


def forward(net: Architecture, weights: Tensor, biases: Tensor, x: Tensor) -> Tensor:
    """The linear predictor (..., rows, outputs) of weights (..., weights), by torch."""
    from islab.engines.torch_engine import activate

    # Split once rather than sliced: the gradient of a slice would fill zeros for each piece.
    own = biases[..., None].split(list(net.widths), dim=-2)
    widths = net.widths if net.input_skip else net.widths[:1]
    sent = (net.covariate_matrix(weights) @ x.T).split(list(widths), dim=-2)
    z = own[0] + sent[0]
    for layer in range(1, net.n_layers):
        z = own[layer] + net.hidden_block(layer).view(weights) @ activate(net.activation, z)
        if net.input_skip:
            z = z + sent[layer]
    return z.mT


class Replicas:
    """One network several times: the first learns from all rows, the others leave out a fold.

    They start from the same weights and visit the same batches, in which a row left out counts
    nothing, so that all of them cost little more than one.

    Parameters
    ----------
    problem : Problem
    likelihood : str
    plan : Plan
    n_folds : int
        0 for the first network alone.
    seed : int

    Attributes
    ----------
    theta : (replicas, weights + units) tensor
        Weights and biases.
    noise : (replicas, outputs) tensor
        Variances of Gaussian outputs.
    row_weight : (replicas, rows)
        How much each row counts; 0 where it is left out.
    judged : (replica numbers, row numbers)
        Rows and the replicas that left them out; without folds, all rows and the one network.
    """

    def __init__(
        self, problem: Problem, likelihood: str, plan: Plan, n_folds: int, seed: int
    ) -> None:
        self.torch = needed("torch", "This model", "islab-bnn[torch]")
        self.problem, self.plan, self.seed = problem, plan, seed
        self.likelihood = get_likelihood(likelihood)
        rng = np.random.default_rng(seed)
        self.row_weight = fold_weights(problem, n_folds, rng)
        self.judged = np.nonzero(self.row_weight == 0 if n_folds else self.row_weight)
        start = Posterior.initialise(plan.architecture, rng, Initial(), likelihood)
        start.bias_mu[plan.architecture.units[-1]] = self.likelihood.initial_bias(problem.y)
        flat = np.concatenate([start.mu, start.bias_mu])
        self.x, self.y = self.tensor(problem.x), self.tensor(problem.y)
        self.theta = self.tensor(np.tile(flat, (len(self.row_weight), 1)))
        self.noise = self.tensor(np.ones((len(self.row_weight), problem.y.shape[1])))
        self.share = self.tensor(self.row_weight / self.row_weight.sum(axis=1, keepdims=True))
        self.adam = ProximalAdam(self.theta)
        self.n_steps_taken, self.slow_down = 0, 1.0

    def tensor(self, array: Float) -> Tensor:
        return self.torch.as_tensor(array, dtype=self.torch.float32)

    def run(
        self,
        n_steps: int,
        schedule: Callable[[Float], Float],
        *,
        strength: float | Tensor = 0.0,
        precision: float | Tensor = 0.0,
        proximal: bool = True,
    ) -> None:
        """Minimises ``mean NLL + strength * |theta| + precision / 2 * theta**2``.

        Parameters
        ----------
        n_steps : int
        schedule : callable
            Factors on the plan's rate at shares of these steps.
        strength, precision : float or tensor
            Penalties by parameter.
        proximal : bool
            False lets the absolute value join the gradient.
        """
        factors = schedule(np.arange(n_steps) / n_steps)
        good, failures, step = self.theta.clone(), 0, 0
        while step < n_steps:
            stop = min(step + STEPS_AT_ONCE, n_steps)
            for number in range(step, stop):
                gradient = self._gradient(self._batch(self.n_steps_taken + number))
                gradient += precision * self.theta
                if not proximal:
                    gradient += strength * self.theta.sign()
                rate = self.plan.rate * self.slow_down * float(factors[number])
                self.adam.step(self.theta, gradient, rate, strength if proximal else 0.0)
            if bool(self.theta.isfinite().all()):
                good, failures, step = self.theta.clone(), 0, stop
            else:
                failures += 1
                self._back_out(good, failures)
        self.n_steps_taken += n_steps

    def predictor(self, theta: Tensor) -> Float:
        """Of all rows under weights and biases (replicas, weights + units)."""
        parts = [self._forward(theta, x).double().numpy() for x in self.x.split(ROWS_AT_ONCE)]
        return np.concatenate(parts, axis=1)

    def _forward(self, theta: Tensor, x: Tensor) -> Tensor:
        net = self.plan.architecture
        weights, biases = theta.split([net.n_weights, net.n_units], dim=1)
        return forward(net, weights, biases, x)

    def _batch(self, number: int) -> Tensor:
        n_rows, size = self.problem.n_rows, self.plan.batch_size
        epoch, place = divmod(number, -(-n_rows // size))
        order = epoch_order(self.seed, epoch, n_rows)
        return self.torch.from_numpy(order[place * size : (place + 1) * size].copy())

    def _gradient(self, rows: Tensor) -> Tensor:
        """Of the mean NLL, estimated from these rows."""
        theta = self.theta.detach().requires_grad_()
        eta = self._forward(theta, self.x[rows])
        nll = self.likelihood.nll(self.y[rows], eta, self.noise[:, None])
        loss = (self.share[:, rows] * nll).sum() * (self.problem.n_rows / len(rows))
        return self.torch.autograd.grad(loss, theta)[0]

    def _back_out(self, good: Tensor, failures: int) -> None:
        """Returns to the last finite weights with half the rate."""
        self.slow_down /= 2
        if failures > MOST_FAILURES:
            rate = 2 * self.slow_down * self.plan.rate
            raise TrainingError(
                f"The loss was not finite {failures} times in a row, the last time at a learning "
                f"rate of {rate:.2g}; look for extreme values in the data, or try a smaller "
                "learning_rate_init."
            )
        self.theta.copy_(good)
        self.adam = ProximalAdam(self.theta)


class ProximalAdam:
    """Adam for a smooth loss plus ``strength * |theta|``, with zeros that are exact.

    Adam moves each parameter by its own rate, ``rate / (sqrt(second moment) + eps)``. The
    proximal step belongs to the same metric: the soft threshold of a parameter is ``strength``
    times that very rate. A common threshold would have other fixed points than the penalised
    loss.
    """

    def __init__(self, theta: Tensor) -> None:
        self.first, self.second = theta.clone().zero_(), theta.clone().zero_()
        self.n_steps = 0

    def step(self, theta: Tensor, gradient: Tensor, rate: float, strength: float | Tensor) -> None:
        """Moves ``theta`` in place."""
        self.n_steps += 1
        beta_1, beta_2 = ADAM_BETAS
        self.first.lerp_(gradient, 1 - beta_1)
        self.second.lerp_(gradient.square(), 1 - beta_2)
        spread = (self.second / (1 - beta_2**self.n_steps)).sqrt_().add_(ADAM_EPS)
        moved = theta - rate / (1 - beta_1**self.n_steps) * self.first / spread
        threshold = rate * strength / spread
        theta.copy_(moved - moved.clamp(-threshold, threshold))


def fold_weights(problem: Problem, n_folds: int, rng: np.random.Generator) -> Float:
    """Weight of every row for all rows and without each fold, (1 + folds, rows).

    Rows are dealt to five folds in the order of their targets, so that each fold has its share
    of every class or size. With many rows one fold is enough.
    """
    rows = problem.n_rows
    weight = np.ones(rows) if problem.sample_weight is None else problem.sample_weight
    order = np.lexsort((rng.random(rows), *problem.y.T))
    fold = np.empty(rows, dtype=int)
    n_deals = max(min(N_FOLDS, rows), 1)
    dealt = rng.permuted(np.tile(np.arange(n_deals), (-(-rows // n_deals), 1)), axis=1)
    fold[order] = dealt.ravel()[:rows]
    left_out = fold == np.arange(min(n_folds, n_deals))[:, None]
    return weight * np.concatenate([np.ones((1, rows)), ~left_out])


def useful_folds(n_rows: int) -> int:
    """Folds that choosing a setting takes: with many rows one is enough."""
    return N_FOLDS if n_rows <= ROWS_FOR_ALL_FOLDS else 1


def rate_for(plan: Plan) -> float:
    """A rate that lets weights go as far in a short training as in a long one."""
    return float(np.clip(DISTANCE / plan.n_steps, SLOWEST, FASTEST))


def sparsest_near_best(losses: Float, row_weight: Float) -> int:
    """The last candidate that is about as good as the best.

    Parameters
    ----------
    losses : (candidates, rows)
        Of held-out rows; the sparsest candidate comes last.
    row_weight : (rows,)

    Notes
    -----
    About as good is within one standard error of the difference, taken row by row, or within
    0.005 nats: candidates that hardly differ have hardly an error.
    """
    share = row_weight / row_weight.sum()
    best = int((losses @ share).argmin())
    excess = losses - losses[best]
    mean = excess @ share
    spread = np.sqrt(((excess - mean[:, None]) ** 2 @ share) / max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(mean <= np.maximum(spread, TOLERANCE)).max())


def with_structure(
    architecture: Architecture,
    likelihood: str,
    noise: Float,
    *,
    mu: Float,
    sigma: Float,
    bias_mu: Float,
    bias_sigma: Float,
    kept: Mask,
) -> Posterior:
    """A posterior whose kept weights on active paths are certainly in and all others out.

    What units without any covariate send on is folded into the biases above them.
    """
    rho, bias_rho = (
        np.where(s > 0, inverse_softplus(np.where(s > 0, s, 1.0)), NO_SPREAD)
        for s in (sigma, bias_sigma)
    )
    mu = np.where(kept, mu, 0.0)
    lam = np.where(kept, LARGEST_LAMBDA, -LARGEST_LAMBDA)
    now = Parameters(mu, rho, lam, bias_mu, bias_rho, noise)
    constants = sent_constants(architecture, now, ~fed_units(architecture, kept))
    active = active_weights(architecture, kept)
    return Posterior(
        architecture=architecture,
        mu=np.where(active, mu, 0.0),
        rho=rho,
        lam=np.where(active, LARGEST_LAMBDA, -LARGEST_LAMBDA),
        bias_mu=bias_mu + constants,
        bias_rho=bias_rho,
        likelihood=likelihood,
        noise=noise,
    )


# -- the L1 penalty ----------------------------------------------------------------------------


def learn_l1(
    problem: Problem,
    likelihood: str,
    plan: Plan,
    *,
    strength: float | str = "auto",
    zeros: str = "proximal",
    seed: int,
    verbose: bool = False,
) -> Learned:
    """Fits a network with an L1 penalty on its weights; biases are free.

    Parameters
    ----------
    problem : Problem
    likelihood : str
    plan : Plan
    strength : "auto" or float
        Factor on the absolute weights beside the mean negative log likelihood of a row. For
        Gaussian outputs that is half the squared error in standard deviations of the target, so
        that a linear network is scikit-learn's Lasso.
    zeros : {"proximal", "threshold"}
        Exact zeros by a proximal step, or the paper's way: a penalty in the gradient, and weights
        up to 0.005 count as zeros.
    seed : int
    verbose : bool

    Notes
    -----
    ``auto`` fits a path of strengths from weak to strong, each started from the one before: a
    network that starts from zeros would stay there. All rows and five folds are fitted side by
    side; the strongest penalty that is about as good as the best on held-out rows stays (see
    :func:`sparsest_near_best`). Gaussian noise is the mean squared error on held-out rows, or,
    with a strength given, of the fit.
    """
    automatic = isinstance(strength, str)
    n_folds = useful_folds(problem.n_rows) if automatic else 0
    replicas = Replicas(problem, likelihood, plan, n_folds, seed)
    strengths = strength_path(problem, plan.n_steps) if automatic else np.array([strength], float)
    fits, predictors, history = [], [], History()
    with ProgressBar(plan.n_steps, enabled=verbose) as bar:
        for n_steps, value in zip(_steps(plan.n_steps, len(strengths)), strengths, strict=True):
            theta = _fit(replicas, n_steps, float(value), zeros)
            eta = replicas.predictor(theta)
            fits.append(theta[0].double().numpy())
            predictors.append(eta[replicas.judged])
            _record(history, replicas, fits[-1], eta[0], float(value))
            last = {name: history.column(name)[-1] for name in ("elbo", "used_weights")}
            bar.report(n_steps, last)
    rows = replicas.judged[1]
    y, row_weight = problem.y[rows], replicas.row_weight[0][rows]
    losses = replicas.likelihood.nll(y, np.array(predictors), np.ones(y.shape[1]))
    chosen = sparsest_near_best(losses, row_weight)
    noise = np.ones(y.shape[1])
    if replicas.likelihood.learns_noise:
        error = np.average((y - predictors[chosen]) ** 2, axis=0, weights=row_weight)
        noise = np.maximum(error, LEAST_NOISE)
    return Learned(_point(plan.architecture, likelihood, noise, fits[chosen]), history)


def strength_path(problem: Problem, n_steps: int) -> Float:
    """Strengths to try, as shares of the one that leaves only the constant model.

    That one is the steepest slope of the loss, by a weight from a covariate to an output, at the
    constant model. A path of few steps tries few strengths.
    """
    weight = fold_weights(problem, 0, np.random.default_rng(0))[0]
    error = problem.y - np.average(problem.y, axis=0, weights=weight)
    slope = np.abs(problem.x.T @ (error * (weight / weight.sum())[:, None]))
    largest = max(float(slope.max(initial=0.0)), LEAST_STRENGTH)
    number = min(max(n_steps // STEPS_PER_STRENGTH, FEWEST_STRENGTHS), MOST_STRENGTHS)
    return np.geomspace(WEAKEST * largest, STRONGEST * largest, number)


def _steps(n_steps: int, n_strengths: int) -> list[int]:
    """Steps for each strength; the first has the furthest to go and takes as many as the rest."""
    if n_strengths == 1:
        return [n_steps]
    return [max(1, n_steps // 2)] + [max(1, n_steps // (2 * n_strengths))] * (n_strengths - 1)


def _fit(replicas: Replicas, n_steps: int, strength: float, zeros: str) -> Tensor:
    """Goes on to this strength; the weights and biases there, with their zeros."""
    n_weights = replicas.plan.architecture.n_weights
    penalised = replicas.torch.arange(replicas.theta.shape[1]) < n_weights
    proximal = zeros == "proximal"
    replicas.run(n_steps, Schedule("cosine"), strength=strength * penalised, proximal=proximal)
    theta = replicas.theta.clone()
    return theta if proximal else theta.where(~penalised | (theta.abs() > ZERO), 0.0)


def _record(
    history: History, replicas: Replicas, theta: Float, eta: Float, strength: float
) -> None:
    net, row_weight = replicas.plan.architecture, replicas.row_weight[0]
    weights = theta[: net.n_weights]
    nll = float(row_weight @ replicas.likelihood.nll(replicas.problem.y, eta, np.ones(1)))
    penalty = float(row_weight.sum() * strength * np.abs(weights).sum())
    history.add(
        step=replicas.n_steps_taken,
        elbo=-(nll + penalty),
        nll=nll,
        kl=penalty,
        density=(weights != 0).sum() / max(net.n_weights, 1),
        used_weights=active_weights(net, weights != 0).sum(),
        hidden_units=sum(net.hidden),
        noise=1.0,
        rate=replicas.plan.rate * replicas.slow_down,
    )


def _point(net: Architecture, likelihood: str, noise: Float, theta: Float) -> Posterior:
    mu, bias_mu = np.split(theta, [net.n_weights])
    return with_structure(
        net,
        likelihood,
        noise,
        mu=mu,
        sigma=np.zeros_like(mu),
        bias_mu=bias_mu,
        bias_sigma=np.zeros_like(bias_mu),
        kept=mu != 0,
    )


# -- estimators --------------------------------------------------------------------------------


class L1SkipEstimator(BaselineEstimator):
    """Parameters and learning of both L1 estimators."""

    _rules: ClassVar[Rules] = {
        "penalty": (auto(positive), "'auto' or a positive number"),
        "zeros": (one_of("proximal", "threshold"), "'proximal' or 'threshold'"),
    }
    _input_skip = True

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        penalty: Any = "auto",
        zeros: str = "proximal",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_draws: int = 1,
        missing: str = "impute",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.penalty = penalty
        self.zeros = zeros
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_epochs = max_epochs
        self.n_draws = n_draws
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self, problem: Problem) -> Plan:
        plan = super()._plan(problem)
        return plan if self.learning_rate_init != "auto" else replace(plan, rate=rate_for(plan))

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        n_weights = self._plan(problem).architecture.n_weights
        problem = replace(problem, x=problem.x[:, learnable(varies)])
        learned = learn_l1(
            problem,
            likelihood,
            self._plan(problem),
            strength=self.penalty,
            zeros=self.zeros,
            seed=seed,
            verbose=self.verbose,
        )
        assert isinstance(learned.weights, Posterior)
        return replace(learned, weights=over_all_covariates(learned.weights, varies, n_weights))


class L1SkipClassifier(L1SkipEstimator, NetworkClassifier):
    """Input-skip network with an L1 penalty on its weights (IS-ANN-L1 in the paper).

    Parameters
    ----------
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers; ``()`` for the lasso.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
    penalty : "auto" or float
        Factor on the absolute weights beside the mean negative log likelihood of a row; chosen
        by cross-validation if not given.
    zeros : {"proximal", "threshold"}
        How weights become zero: exactly, by a proximal step of the optimiser, or as in the paper,
        where weights up to 0.005 are dropped after training.
    batch_size : "auto" or int
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
        Passes over the data, for all penalties together.
    n_draws : int
        Draws behind each prediction, all of them the same.
    missing : {"impute", "error"}
    random_state : int, RandomState instance or None
    verbose : bool

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = L1SkipClassifier(penalty=0.02, max_epochs=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


class L1SkipRegressor(L1SkipEstimator, NetworkRegressor):
    """Input-skip network with an L1 penalty on its weights (IS-ANN-L1 in the paper).

    Parameters
    ----------
    penalty : "auto" or float
        Factor on the absolute weights beside half the mean squared error in standard deviations
        of the target; chosen by cross-validation if not given.
    **others
        As in :class:`L1SkipClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = L1SkipRegressor(penalty=0.05, max_epochs=100, random_state=0).fit(X, y)
    >>> model.n_used_weights_ < 100
    True
    """
