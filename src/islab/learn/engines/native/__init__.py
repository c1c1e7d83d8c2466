"""The native engine: whole runs of training steps in C++, for dense networks on a CPU.

``kernel.h`` describes how the C++ side works. This side owns all memory: parameters and Adam's
moments are numpy arrays that the kernel changes in place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.equations import quadrature, student_log_constant
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines.base import (
    ADAM_BETAS,
    ADAM_EPS,
    LARGEST_LAMBDA,
    LARGEST_RHO,
    DenseParameters,
    Parameters,
    Problem,
    State,
    Steps,
    flat_parameters,
)

try:
    from islab.learn.engines.native import _kernel
except ImportError as error:
    raise ImportError(
        "The compiled native engine is missing; install a C++ compiler and reinstall islab-bnn, "
        "or use the torch engine (pip install 'islab-bnn[torch]')."
    ) from error

__all__ = ["NativeEngine"]

LEARNERS = {np.dtype(np.float32): _kernel.Learner32, np.dtype(np.float64): _kernel.Learner64}


class NativeEngine(DenseParameters):
    """Learns a dense posterior with the local reparametrisation trick, in compiled code.

    Parameters
    ----------
    posterior, problem, seed, noise_rate, betas
        See :class:`~islab.learn.engines.base.DenseParameters`.
    dtype : dtype
        float32, or float64 for tests.

    Notes
    -----
    One engine belongs to one thread at a time; different engines run in parallel. A run uses one
    thread, except that BLAS may use more for the products of large layers. To fit several such
    networks at once, limit BLAS to one thread before the fits start (``threadpoolctl``).
    """

    parallel: ClassVar[str] = "threads"
    instructions: ClassVar[str] = _kernel.instruction_sets()[0]
    ties_weights: ClassVar[bool] = False

    def __init__(
        self,
        posterior: Posterior,
        problem: Problem,
        *,
        seed: int,
        noise_rate: float = 0.02,
        betas: tuple[float, float] = ADAM_BETAS,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.dtype = np.dtype(dtype)
        super().__init__(posterior, problem, noise_rate)
        self._check(posterior, problem)
        self.noise = self._array(posterior.noise)
        self.generator = _generator(seed)
        weight = problem.sample_weight
        likelihood = self.likelihood.given(posterior.noise)
        self._learner = LEARNERS[self.dtype](
            self._array(problem.x),
            self._array(problem.y),
            None if weight is None else self._array(weight),
            self._constant(problem),
            None if problem.offset is None else self._array(problem.offset),
            likelihood=_compiled(likelihood.name, likelihood.kernel),
            rules=_kernel.Rules(
                beta1=betas[0],
                beta2=betas[1],
                epsilon=ADAM_EPS,
                largest_rho=LARGEST_RHO,
                largest_lambda=LARGEST_LAMBDA,
                noise_rate=self.noise_rate,
            ),
            instructions=self.instructions,
            **_wiring(posterior.architecture),
        )
        self._allocate(posterior.architecture, flat_parameters(posterior))

    # -- protocol -----------------------------------------------------------------------

    def set_prior(self, prior: Prior, mu_step: NDArray) -> None:
        if prior.df is not None and not prior.df > 0:
            raise ValueError(f"Got df={prior.df}, expected a positive number or None.")
        student = [] if prior.df is None else quadrature()
        self._learner.set_prior(
            tau=_doubles(prior.tau),
            psi=_doubles(prior.psi),
            mu_step=_doubles(mu_step),
            bias_tau=prior.bias_tau,
            df=prior.df or 0.0,
            log_constant=0.0 if prior.df is None else student_log_constant(prior.df),
            nodes=_doubles([node for node, _ in student]),
            node_weights=_doubles([weight for _, weight in student]),
        )

    def run(self, steps: Steps, random_normals: NDArray | None = None) -> float:
        return self._run(steps, random_normals, self._flow())

    def _run(
        self, steps: Steps, random_normals: NDArray | None, flow: _kernel.FlowArrays | None
    ) -> float:
        total = self._learner.run(
            theta=self.theta,
            first=self.first,
            second=self.second,
            noise=self.noise,
            generator=self.generator,
            n_steps=self.n_steps,
            rows=np.ascontiguousarray(steps.rows, dtype=np.int64),
            sizes=np.ascontiguousarray(steps.sizes, dtype=np.int64),
            rate=_doubles(steps.rate),
            lambda_rate=_doubles(steps.lambda_rate),
            kl_weight=_doubles(steps.kl_weight),
            given=None if random_normals is None else self._array(random_normals),
            flow=flow,
        )
        self.n_steps += len(steps)
        return total / len(steps.rows)

    def parameters(self) -> Parameters:
        ends = np.cumsum(self._sizes())[:-1]
        mu, rho, lam, bias_mu, bias_rho = np.split(self.theta, ends)
        return Parameters(mu, rho, lam, bias_mu, bias_rho, self.noise)

    def kl(self) -> float:
        return self._learner.divergence(
            theta=self.theta, generator=self.generator.copy(), flow=self._flow()
        )

    def expected_nll(self, passes: int, seed: int) -> float:
        return self._learner.expected_nll(
            theta=self.theta,
            noise=self.noise,
            generator=_generator(seed),
            passes=passes,
            flow=self._flow(),
        )

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: NDArray) -> None:
        kept = self.architecture.keep_units(masks)
        bias_mu = self.parameters().bias_mu
        bias_mu += np.asarray(bias_shift, dtype=self.dtype)
        where = self._places(kept)
        moments = (self.first[where], self.second[where])
        self._allocate(kept.architecture, self.theta[where], moments, self.n_steps)

    def state(self) -> State:
        names = ("theta", "first", "second", "noise", "generator")
        state = {name: getattr(self, name).copy() for name in names}
        state["n_steps"] = np.array(self.n_steps)
        state["hidden"] = np.array(self.architecture.hidden, dtype=np.int64)
        return state

    def restore(self, state: State) -> None:
        hidden = tuple(int(width) for width in state["hidden"])
        architecture = replace(self.architecture, hidden=hidden)
        moments = (state["first"], state["second"])
        self._allocate(architecture, state["theta"], moments, int(state["n_steps"].item()))
        self.noise = self._array(state["noise"])
        self.generator = np.array(state["generator"], dtype=np.uint32)

    # -- memory -------------------------------------------------------------------------

    def _flow(self) -> _kernel.FlowArrays | None:
        """Parameters of flows: there are none here."""
        return None

    def _allocate(
        self,
        architecture: Architecture,
        theta: NDArray,
        moments: tuple[NDArray, NDArray] | None = None,
        n_steps: int = 0,
    ) -> None:
        w, u = architecture.n_weights, architecture.n_units
        first, second = moments or (np.zeros_like(theta), np.zeros_like(theta))
        for name, vector in (("theta", theta), ("first", first), ("second", second)):
            if vector.shape != (3 * w + 2 * u,):
                raise ValueError(
                    f"Got {name} of shape {vector.shape}, expected ({3 * w + 2 * u},) for a "
                    f"network with {w} weights and {u} units."
                )
        self._learner.set_network(**_wiring(architecture))
        self.architecture = architecture
        self.theta, self.first, self.second = map(self._array, (theta, first, second))
        self.n_steps = n_steps

    def _array(self, values: NDArray) -> NDArray:
        """A copy in the engine's precision."""
        return np.array(values, dtype=self.dtype, order="C")

    def _constant(self, problem: Problem) -> NDArray | None:
        """The part of each row's NLL that no parameter moves and the kernel leaves out."""
        constant = self.likelihood.nll_constant(problem.y)
        return None if constant is None else self._array(constant)

    def _check(self, posterior: Posterior, problem: Problem) -> None:
        if self.dtype not in LEARNERS:
            raise ValueError(f"Got dtype={self.dtype}, expected float32 or float64.")
        if posterior.multipliers is not None and not self.ties_weights:
            raise ValueError(
                "Got a posterior with a flow, expected independent weights; use NativeFlowEngine."
            )
        if posterior.bias_lam is not None:
            raise ValueError(
                "Got biases that are selected with the native engine, where all are certain; try "
                "engine='torch'."
            )
        net = posterior.architecture
        for name, table, columns in (
            ("x", problem.x, net.n_covariates),
            ("y", problem.y, net.n_outputs),
        ):
            if table.shape[1] != columns:
                raise ValueError(
                    f"Got {name} with {table.shape[1]} columns, expected the {columns} of the "
                    "posterior's architecture."
                )


def _wiring(architecture: Architecture) -> dict:
    return {
        "widths": architecture.widths,
        "input_skip": architecture.input_skip,
        "activation": _compiled(architecture.activation, architecture.kernel),
    }


def _compiled(name: str | tuple[str, ...], kernel: families.Kernel | None) -> tuple[str, float]:
    """Name and constant of a family's compiled version."""
    if kernel is None:
        raise ValueError(
            f"Got {name!r} with the native engine, expected one family that is compiled; try "
            "engine='torch'."
        )
    return kernel.name, kernel.constant


def _generator(seed: int) -> NDArray[np.uint32]:
    """Seeds of the kernel's eight random streams, four words each."""
    words = np.random.SeedSequence(seed).generate_state(32, np.uint32)
    return words.astype(np.uint32).reshape(4, 8)


def _doubles(values: ArrayLike) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)
