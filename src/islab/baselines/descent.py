"""Descent: how the networks of the baselines are fitted in the loop, several replicas at a time.

Replicas start from the same weights and visit the same batches. They differ in how much each row
counts, or in their penalties; all of them cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from islab.baselines.base import Plan
from islab.baselines.batched_networks import Pass
from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.paths import active_weights
from islab.core.posterior import Initial, Posterior
from islab.learn.engines.base import ADAM_BETAS, ADAM_EPS, State, Steps
from islab.learn.history import History, ProgressBar
from islab.learn.loop import Report, epoch_order, run_stage
from islab.learn.stage import Rates, Schedule, Stage

Slope = Callable[[Float], Float]

NOISE_RATE = 0.02
LEAST_NOISE = 1e-6
ROWS_AT_ONCE = 8_192
WARM_UP, RAMP = 0.02, 0.25


class Descending(Protocol):
    """A network whose parameters (replicas, parameters) are fitted."""

    architecture: Architecture

    def gradient(
        self, theta: Float, x: Float, slope: Slope, rng: np.random.Generator
    ) -> tuple[Float, Float]:
        """The predictor under fresh random numbers, and the gradient of the loss by ``theta``.

        ``slope`` is the derivative of the loss by the predictor (replicas, rows, outputs).
        """

    def penalty_gradient(self, theta: Float) -> Float:
        """Of what the parameters cost, on the scale of the log likelihood of all rows."""


class Penalised(Descending, Protocol):
    """A network whose penalty is also known by its value."""

    def penalty(self, theta: Float) -> Float:
        """What the parameters of each replica cost, (replicas,)."""

    def n_used(self, theta: Float) -> float:
        """Weights in use in the first replica."""


class PlainNetwork:
    """Weights and biases, known numbers under a normal prior.

    Parameters
    ----------
    architecture : Architecture
    precision : float or (replicas, weights + units)
        Of the prior; 0 leaves the parameters free.
    """

    def __init__(self, architecture: Architecture, precision: float | Float = 0.0) -> None:
        self.architecture, self.precision = architecture, precision

    def gradient(
        self, theta: Float, x: Float, slope: Slope, rng: np.random.Generator
    ) -> tuple[Float, Float]:
        way = self._pass(theta, x)
        back = way.back(slope(way.eta))
        return way.eta, np.concatenate([back.weights, back.biases], axis=1)

    def penalty_gradient(self, theta: Float) -> Float:
        return self.precision * theta

    def predictor(self, theta: Float, x: Float) -> Float:
        """Linear predictor (replicas, rows, outputs) of all rows."""
        starts = range(0, len(x), ROWS_AT_ONCE)
        parts = [self._pass(theta, x[start : start + ROWS_AT_ONCE]).eta for start in starts]
        return np.concatenate(parts, axis=1)

    def _pass(self, theta: Float, x: Float) -> Pass:
        net = self.architecture
        weights, biases = cut(theta, (net.n_weights, net.n_units))
        return Pass(net, weights, biases, x)


class Descent:
    """Replicas on their way down, in single precision.

    Parameters
    ----------
    network : Descending
    theta : (parameters,) or (replicas, parameters)
        Where to start.
    plan : Plan
    recorded : Penalised, optional
        The network, if the history shall have its penalty and its weights in use.
    row_weight : (replicas, rows), optional
        How much each row counts; the problem's ``sample_weight`` for one replica if not given.
    noise_rate : float
        Speed at which noise variances follow the squared errors; 0 leaves them as they are.
    betas : (float, float)
        How long Adam remembers gradients and their squares.

    Attributes
    ----------
    theta : (replicas, parameters)
    noise : (replicas, numbers)
        Variances of Gaussian outputs, 1 to begin with.
    n_steps_taken : int
    slow_down : float
        Factor on the rate, halved whenever numbers were not finite.
    """

    def __init__(
        self,
        network: Descending,
        theta: Float,
        plan: Plan,
        *,
        recorded: Penalised | None = None,
        row_weight: Float | None = None,
        noise_rate: float = 0.0,
        betas: tuple[float, float] = ADAM_BETAS,
    ) -> None:
        self.network, self.plan, self.problem = network, plan, plan.problem
        self.recorded, problem = recorded, plan.problem
        self.likelihood, self.noise_rate = families.likelihood(plan.likelihood), noise_rate
        self.row_weight = problem.row_weights[None] if row_weight is None else row_weight
        n_replicas = max(len(self.row_weight), len(np.atleast_2d(theta)))
        self.x, self.y = problem.x.astype(np.float32), problem.y.astype(np.float32)
        self.total = self.row_weight.sum(axis=1, keepdims=True).astype(np.float32)
        self.share = (self.row_weight / self.total).astype(np.float32)
        self.theta = np.empty((n_replicas, theta.shape[-1]), dtype=np.float32)
        self.theta[...] = theta
        n_noise = self.likelihood.n_noise(problem.y.shape[1])
        self.noise = np.ones((n_replicas, n_noise or 1), dtype=np.float32)
        # Uniform numbers of this generator take less time than the usual one's.
        self.rng = np.random.Generator(np.random.SFC64(plan.seed))
        self.adam = ProximalAdam(self.theta, betas)
        self.n_steps_taken, self.slow_down = 0, 1.0
        self.threshold: float | Float = 0.0
        self.strength: float | Float = 0.0

    def train(
        self,
        n_steps: int,
        schedule: Rates,
        *,
        ramp: float = 0.0,
        strength: float | Float = 0.0,
        proximal: bool = True,
        report: Report | None = None,
    ) -> History:
        """Minimises ``mean NLL + penalty / rows + strength * |theta|``; the history of it.

        Parameters
        ----------
        n_steps : int
        schedule : callable
            Factors on the plan's rate at shares of these steps.
        ramp : float
            Share of the steps over which the penalty rises from 0.
        strength : float or (parameters,)
        proximal : bool
            False lets the absolute value join the gradient.
        report : callable, optional
            Takes the steps since the last report and the latest record.
        """
        self.threshold, self.strength = (strength, 0.0) if proximal else (0.0, strength)
        stage = Stage(
            n_steps=n_steps,
            batch_size=self.plan.batch_size,
            rate=self.plan.rate * self.slow_down,
            schedule=schedule,
            kl_ramp=ramp,
        )
        n_rows, seed = self.problem.n_rows, self.plan.seed
        progress = run_stage(self, stage, n_rows=n_rows, seed=seed, shuffle=False, report=report)
        self.slow_down *= progress.slow_down
        return progress.history

    def note(self, history: History, kept: Mask, **numbers: float) -> None:
        """Adds a record of the kept weights (weights,) and of the other numbers of a history."""
        net = self.plan.architecture
        history.add(
            step=self.n_steps_taken,
            density=kept.sum() / max(net.n_weights, 1),
            used_weights=active_weights(net, kept).sum(),
            hidden_units=sum(net.hidden),
            rate=self.plan.rate * self.slow_down,
            **numbers,
        )

    # -- what the loop asks -----------------------------------------------------------------

    def run(self, steps: Steps) -> float:
        nll = 0.0
        # What is not finite shows in the parameters in the end.
        with np.errstate(all="ignore"):
            for rate, ramp in zip(steps.rate.tolist(), steps.kl_weight.tolist(), strict=True):
                rows = self._batch(self.n_steps_taken)
                eta = self._step(rows, rate, ramp)
                if self.recorded is not None:
                    nll += self._nll(rows, eta) / len(steps)
                self.n_steps_taken += 1
        return nll / self.problem.n_rows if np.isfinite(self.theta).all() else np.nan

    def kl(self) -> float:
        """The penalty of the first replica, where there is a record of it."""
        return float(self.recorded.penalty(self.theta)[0]) if self.recorded is not None else 0.0

    def adapt(self, before: int, step: int) -> bool:
        """Nothing changes between the steps."""
        return False

    def record(self) -> dict[str, float] | None:
        if self.recorded is None:
            return None
        net, used = self.network.architecture, self.recorded.n_used(self.theta)
        return {
            "density": used / max(net.n_weights, 1),
            "used_weights": used,
            "hidden_units": sum(net.hidden),
            "noise": float(self.noise[0].mean()),
        }

    def state(self) -> State:
        adam, random = self.adam, self.rng.bit_generator.state
        words = [*random["state"]["state"], random["has_uint32"], random["uinteger"]]
        return {
            "theta": self.theta.copy(),
            "noise": self.noise.copy(),
            "first": adam.first.copy(),
            "second": adam.second.copy(),
            "n_steps": np.array([adam.n_steps, self.n_steps_taken]),
            "random": np.array(words, dtype=np.uint64),
        }

    def restore(self, state: State) -> None:
        self.theta[...], self.noise[...] = state["theta"], state["noise"]
        self.adam.first[...], self.adam.second[...] = state["first"], state["second"]
        self.adam.n_steps, self.n_steps_taken = state["n_steps"].tolist()
        *words, has_uint32, uinteger = state["random"]
        self.rng.bit_generator.state = {
            "bit_generator": "SFC64",
            "state": {"state": np.array(words, dtype=np.uint64)},
            "has_uint32": int(has_uint32),
            "uinteger": int(uinteger),
        }

    # -- one step ---------------------------------------------------------------------------

    def _batch(self, number: int) -> NDArray[np.intp]:
        n_rows, size = self.problem.n_rows, self.plan.batch_size
        epoch, place = divmod(number, -(-n_rows // size))
        return epoch_order(self.plan.seed, epoch, n_rows)[place * size : (place + 1) * size]

    def _step(self, rows: NDArray[np.intp], rate: float, ramp: float) -> Float:
        """Moves the parameters by one batch; the predictor that the batch had before."""
        share, y = self.share[:, rows, None], self.y[rows]
        # The last batch of an epoch may be short: it counts by its rows, penalties included.
        size = min(self.plan.batch_size, self.problem.n_rows)
        larger, part = np.float32(self.problem.n_rows / size), len(rows) / size

        def slope(eta: Float) -> Float:
            return larger * share * self.likelihood.gradient(y, eta, self.noise[:, None])

        eta, gradient = self.network.gradient(self.theta, self.x[rows], slope, self.rng)
        gradient += part * ramp / self.total * self.network.penalty_gradient(self.theta)
        if np.any(self.strength):
            gradient += part * self.strength * np.sign(self.theta)
        self.adam.step(self.theta, gradient, rate, part * self.threshold)
        if self.noise_rate and self.likelihood.learns_noise:
            terms = self.likelihood.noise_terms(y, eta, self.noise[:, None])
            error = (share * terms).sum(axis=1) / share.sum(axis=1)
            self.noise += part * self.noise_rate * (error - self.noise)
            np.maximum(self.noise, LEAST_NOISE, out=self.noise)
        return eta

    def _nll(self, rows: NDArray[np.intp], eta: Float) -> float:
        """Of all rows under the first replica, as these rows suggest it."""
        nll = self.likelihood.nll(self.y[rows], eta[0], self.noise[0])
        return float(self.row_weight[0, rows] @ nll) * self.problem.n_rows / len(rows)


class ProximalAdam:
    """Adam for a smooth loss plus ``strength * |theta|``, with zeros that are exact.

    Adam moves each parameter by its own rate, ``rate / (sqrt(second moment) + eps)``. The
    proximal step belongs to the same metric: the soft threshold of a parameter is ``strength``
    times that very rate. A common threshold would have other fixed points than the penalised
    loss.
    """

    def __init__(self, theta: Float, betas: tuple[float, float] = ADAM_BETAS) -> None:
        self.betas = betas
        self.first, self.second = np.zeros_like(theta), np.zeros_like(theta)
        self.n_steps = 0

    def step(self, theta: Float, gradient: Float, rate: float, strength: float | Float) -> None:
        """Moves ``theta`` in place."""
        self.n_steps += 1
        beta_1, beta_2 = self.betas
        self.first += (1 - beta_1) * (gradient - self.first)
        self.second += (1 - beta_2) * (gradient * gradient - self.second)
        spread = np.sqrt(self.second / (1 - beta_2**self.n_steps)) + ADAM_EPS
        theta -= rate / (1 - beta_1**self.n_steps) * self.first / spread
        if np.any(strength):
            threshold = rate * strength / spread
            theta -= np.clip(theta, -threshold, threshold)


def descend(network: Penalised, theta: Float, plan: Plan) -> tuple[Descent, History]:
    """One run over all steps of a plan, on record.

    The penalty's weight rises from 0 over the first quarter; Gaussian noise follows its optimum.
    """
    descent = Descent(network, theta, plan, recorded=network, noise_rate=NOISE_RATE)
    schedule = Schedule("cosine", warm_up=WARM_UP)
    with ProgressBar(plan.n_steps, enabled=plan.verbose) as bar:
        history = descent.train(plan.n_steps, schedule, ramp=RAMP, report=bar.report)
    return descent, history


def first_guess(plan: Plan, rng: np.random.Generator) -> Float:
    """Weights and biases to begin with, (weights + units,).

    The outputs' biases are those of the model without covariates.

    Notes
    -----
    A sigmoid passes on a quarter of what it receives around 0, and one half besides. Weights and
    biases make up for both, so that units are ``2 tanh(z / 2)`` to those that they feed; otherwise
    a deep network would start on a plateau.
    """
    net, likelihood = plan.architecture, families.likelihood(plan.likelihood)
    guess = Posterior.initialise(net, rng, Initial(), plan.likelihood)
    guess.bias_mu[net.units[-1]] = likelihood.initial_bias(plan.problem.y)
    for layer in range(1, net.n_layers):
        activation = net.activations[layer - 1]
        weights = net.hidden_block(layer).view(guess.mu)
        weights *= activation.gain
        guess.bias_mu[net.units[layer]] -= activation.rest * weights.sum(axis=1)
    return np.concatenate([guess.mu, guess.bias_mu])


def cut(theta: Float, lengths: Sequence[int]) -> list[Float]:
    """Views of parameters (replicas, parameters), one after the other."""
    return [theta[:, stop - n : stop] for n, stop in zip(lengths, accumulate(lengths), strict=True)]
