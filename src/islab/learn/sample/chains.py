"""Chains from several starts, run side by side in compiled code.

A chain starts from a network that training has found and visits others: it adds, drops and swaps
weights, adds and drops hidden units, and draws weights, slab variances and noise. Every move is
accepted by Metropolis-Hastings, so the draws follow the posterior whatever the start. Chains from
different starts seldom visit each other's networks; their draws are pooled with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.dependencies import needed
from islab.core.mixing import mean_error
from islab.core.priors import BIAS_TAU
from islab.core.sparse import SparseNetwork
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines.base import Problem

Float = NDArray[np.floating]
State = dict[str, NDArray]

STEPS_AT_ONCE = 10
LARGEST_ERROR = 0.02  # of a probability that a covariate is used, in one chain


@dataclass(frozen=True)
class ChainPrior:
    """The prior of a chain; that of each block of weights is the same and independent.

    A unit reads a variable or not, whatever the number of its covariates (levels of a category);
    if it does, it reads any number of them with the same probability, and any choice of so many.

    Parameters
    ----------
    inclusion_a, inclusion_b : float
        Beta prior of the inclusion probability, which is integrated out.
    hidden_width : float
        Narrower layers of hidden units count as if they had this width: what a wider network would
        have left out makes inclusion less probable in a narrow one too.
    by_variable : bool
        Whether each hidden layer has a choice of variables that its units may read. Each number of
        them is equally probable, and so is each choice of so many; it is integrated out, too.
        Otherwise a covariate has a chance in each unit, whatever other units read.
    price : float
        Log density that each weight must be worth besides.
    tau_shape, tau_scale : float
        Inverse gamma prior of the slab variance.
    noise_shape, noise_scale : float
        Inverse gamma prior of the noise variance of Gaussian outputs.
    bias_sd : float
        Standard deviation of the biases' Gaussian prior.
    df : float
        Degrees of freedom of a Student-t slab; 0 for the Gaussian.
    """

    inclusion_a: float = 1.0
    inclusion_b: float = 1.0
    hidden_width: float = 0.0
    by_variable: bool = True
    price: float = 0.0
    tau_shape: float = 1.0
    tau_scale: float = 1.0
    noise_shape: float = 1.0
    noise_scale: float = 0.01
    bias_sd: float = BIAS_TAU
    df: float = 0.0


@dataclass(frozen=True)
class Effort:
    """Moves in one step of a chain.

    Parameters
    ----------
    toggles : int
        Structure moves of each Gaussian output, whose weights are integrated out.
    edges : int
        Weights to add, drop or swap anywhere, by reversible jumps.
    units : int
        Hidden units to add or drop.
    parts : int
        Hidden units whose weights move, alone or with those they reach.
    largest_part : int
        Parameters that may move together.
    """

    toggles: int = 40
    edges: int = 4
    units: int = 2
    parts: int = 4
    largest_part: int = 20


@dataclass(frozen=True, eq=False)
class Start:
    """Where a chain starts: edges of the whole architecture, on active paths.

    Attributes
    ----------
    slots : (edges,) int
        Flat positions of the weights.
    weights : (edges,)
    bias : (units,)
    tau2 : (blocks,)
        Slab variances.
    noise : (numbers,)
        What the likelihood learns besides.
    """

    slots: NDArray[np.intp]
    weights: Float
    bias: Float
    tau2: Float
    noise: Float

    @classmethod
    def at(cls, network: SparseNetwork, architecture: Architecture) -> Start:
        """A small network, its units in the first places of each layer of the architecture."""
        small = network.architecture
        # A linear model is the output layer of any network.
        above = architecture.units[-small.n_layers :]
        places = np.concatenate(
            [own.start + np.arange(width) for own, width in zip(above, small.widths, strict=True)]
        )
        sources = np.concatenate([network.covariates, architecture.n_covariates + places])
        ends = (sources[small.ends[0][network.edges]], places[small.ends[1][network.edges]])
        slots = _slots(architecture)[ends]
        bias = np.zeros(architecture.n_units)
        bias[places] = network.bias_mu
        weights = network.edge_means()
        tau2 = np.ones(len(architecture.blocks))
        for number, block in enumerate(architecture.blocks):
            inside = (slots >= block.start) & (slots < block.start + block.size)
            tau2[number] = (2 + (weights[inside] ** 2).sum()) / (2 + inside.sum())
        return cls(slots, weights, bias, tau2, np.maximum(network.noise, 1e-6))


def _slots(architecture: Architecture) -> NDArray[np.intp]:
    """Flat position of the weight from each source to each unit; -1 where there is none."""
    sources, targets = architecture.ends
    slots = np.full((architecture.n_covariates + architecture.n_units, architecture.n_units), -1)
    slots[sources, targets] = np.arange(architecture.n_weights)
    return slots


class Sampler:
    """One chain and what it has drawn so far; it can stop at any time and go on later.

    Parameters
    ----------
    chain : Chain
        Of compiled code.
    architecture : Architecture
    effort : Effort
    checkpoint : Checkpoint, optional
        Where the state is kept; the chain goes on from what is there.
    """

    def __init__(
        self,
        chain: Any,
        architecture: Architecture,
        effort: Effort,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.chain, self.architecture, self.effort = chain, architecture, effort
        self.checkpoint, self.running = checkpoint, False
        self.n_warm_up, self.n_steps, self.every, self.parts = 0, 0, 1, list[State]()
        self.wanted = 0  # draws at the end of the round that goes on
        if checkpoint is not None and (saved := checkpoint.read()):
            with checkpoint.readable():
                state, drawn = saved
                counts = (int(n) for n in drawn.pop("counts"))
                self.n_warm_up, self.n_steps, self.every, self.wanted = counts
                drawn.pop("finished")
                chain.restore(state)
                self.parts = [drawn] if drawn else []

    @property
    def n_draws(self) -> int:
        return _n_draws(self.parts)

    def settle(
        self,
        n_warm_up: int,
        n_draws: int,
        most_draws: int = 0,
        most_steps: int = 0,
        settling_steps: int = 0,
        report: Callable | None = None,
    ) -> None:
        """Runs, and runs on until the draws suffice.

        Draws that still moved away from the start count as warm-up, and the chain may take
        ``settling_steps``. Others are kept, up to ``most_draws``, and then every second of them,
        with twice as many steps between draws; and the chain may take ``most_steps``.
        """
        self.running = True
        try:
            self.wanted = self.wanted or n_draws
            self.run(n_warm_up, self.wanted, report)
            while True:
                draws = self.draws()
                settled = draws.settled()
                if settled and self._is_precise(draws):
                    break
                parts, every, wanted = self._next_round(draws, settled, n_draws, most_draws)
                steps = (wanted - _n_draws(parts)) * every
                if self.n_steps + steps > (most_steps if settled else settling_steps):
                    break
                self.parts, self.every, self.wanted = parts, every, wanted
                self.run(n_warm_up, wanted, report)
        finally:
            self.running = False

    def _next_round(
        self, draws: ChainDraws, settled: bool, n_draws: int, most_draws: int
    ) -> tuple[list[State], int, int]:
        """Draws to keep, steps between draws, and how many draws there shall be."""
        if not settled:
            return [], 2 * self.every, n_draws
        if draws.n_draws + n_draws <= most_draws:
            return self.parts, self.every, draws.n_draws + n_draws
        return [_every_second(draws)], 2 * self.every, draws.n_draws

    def run(self, n_warm_up: int, n_draws: int, report: Callable | None = None) -> Sampler:
        """Goes on until there were so many steps of warm-up and there are so many draws."""
        while self.n_warm_up < n_warm_up:
            size = min(STEPS_AT_ONCE, n_warm_up - self.n_warm_up)
            self._steps(size, warming=True)
            self.n_warm_up += size
            self._pause(size, report)
        while self.n_draws < n_draws:
            size = min(STEPS_AT_ONCE, n_draws - self.n_draws)
            self.parts.append(self._steps(size * self.every, warming=False))
            self._pause(size * self.every, report)
        return self

    def _is_precise(self, draws: ChainDraws) -> bool:
        """Whether the draws say how probable the use of each covariate is."""
        used = draws.uses_covariate(self.architecture)[None].astype(float)
        return bool((mean_error(used) <= LARGEST_ERROR).all())

    def draws(self) -> ChainDraws:
        """All draws so far."""
        return _joined(self.parts, self.architecture, self.chain.counts())

    def _steps(self, steps: int, *, warming: bool) -> State:
        self.n_steps += steps
        return self.chain.run(
            steps=steps,
            every=self.every,
            warming=warming,
            keep_rows=not warming,
            **asdict(self.effort),
        )

    def _pause(self, steps: int, report: Callable | None) -> None:
        if self.checkpoint is not None:
            drawn = _as_part(self.draws()) if self.parts else {}
            self.checkpoint.write(
                self.chain.state(),
                {
                    **drawn,
                    "counts": np.array([self.n_warm_up, self.n_steps, self.every, self.wanted]),
                    "finished": np.array(False),
                },
            )
        if report is not None:
            report(steps, self.chain.counts())


def run_side_by_side(
    samplers: Sequence[Sampler],
    n_warm_up: int,
    n_draws: int,
    most_draws: int = 0,
    most_steps: int = 0,
    settling_steps: int = 0,
    *,
    n_jobs: int | None = None,
    report: Callable | None = None,
) -> None:
    """Runs chains in threads. Their draws do not depend on how many run at once."""
    how = (n_warm_up, n_draws, most_draws, most_steps, settling_steps, report)
    jobs = (delayed(sampler.settle)(*how) for sampler in samplers)
    # Chains of compiled code cannot leave the process, whatever backend the caller runs on.
    Parallel(n_jobs=n_jobs, require="sharedmem")(jobs)


def sample_chains(
    problem: Problem,
    likelihood: str,
    architecture: Architecture,
    starts: Sequence[Start],
    *,
    seed: int,
    n_draws: int = 500,
    n_warm_up: int = 250,
    every: int = 1,
    prior: ChainPrior | None = None,
    effort: Effort | None = None,
    n_jobs: int | None = None,
) -> list[ChainDraws]:
    """Draws of a chain for each start.

    Parameters
    ----------
    problem : Problem
        Data on the scale the network shall see.
    likelihood : str
    architecture : Architecture
        All weights that may be used.
    starts : sequence of Start
    seed : int
        Same seed, same draws, for any number of threads.
    n_draws, n_warm_up : int
        Draws to keep and steps before the first.
    every : int
        Steps between draws.
    n_jobs : int, optional
        Chains to run at the same time, in threads.
    """
    prior, effort = prior or ChainPrior(), effort or Effort()
    samplers = [
        Sampler(
            make_chain(problem, likelihood, architecture, start, own, prior), architecture, effort
        )
        for start, own in zip(starts, chain_seeds(seed, len(starts)), strict=True)
    ]
    for sampler in samplers:
        sampler.every = every
    run_side_by_side(samplers, n_warm_up, n_draws, n_jobs=n_jobs)
    return [sampler.draws() for sampler in samplers]


def chain_seeds(seed: int, n_chains: int) -> list[int]:
    """A seed for each chain."""
    return np.random.SeedSequence(seed).generate_state(n_chains, np.uint64).tolist()


def make_chain(
    problem: Problem,
    likelihood: str,
    architecture: Architecture,
    start: Start,
    seed: int,
    prior: ChainPrior,
) -> Any:
    """A chain of compiled code that has not moved yet."""
    native = needed("islab.learn.sample.native._chains", "Sampling", "islab-bnn")
    weight, offset, limits = problem.sample_weight, problem.offset, problem.limits
    kernel = architecture.kernel
    assert kernel is not None
    return native.Chain(
        x=_rounded(problem.x.T),
        y=_rounded(problem.y.T),
        weight=np.zeros(0) if weight is None else _rounded(weight),
        offset=np.zeros(0) if offset is None else _rounded(offset.T),
        hidden=list(architecture.hidden),
        input_skip=architecture.input_skip,
        activation=kernel.name,
        leak=kernel.constant,
        likelihood=likelihood,
        prior=asdict(prior),
        seed=seed,
        slots=start.slots,
        weights=start.weights,
        bias=start.bias,
        tau2=start.tau2,
        noise=start.noise,
        linear=[] if limits is None else limits.linear.astype(int).tolist(),
        include=[] if limits is None else limits.include.astype(int).tolist(),
        sign=[] if limits is None else limits.sign.astype(int).tolist(),
        limited_outputs=0 if limits is None else limits.n_outputs,
        apart=[]
        if limits is None or limits.apart is None
        else limits.apart.astype(int).ravel().tolist(),
        group=[] if problem.groups is None else _numbered(problem.groups),
    )


def _numbered(groups: NDArray[np.intp]) -> list[int]:
    """Groups counted from 0 without gaps."""
    return np.unique(groups, return_inverse=True)[1].tolist()


def _rounded(values: Float) -> Float:
    """Data in single precision, so that rounding on the way here does not change the draws.

    A chain makes other decisions for other numbers, however little they differ: the same table in
    another unit would have other draws.
    """
    return np.ascontiguousarray(np.asarray(values, dtype=np.float32), dtype=float)


def _joined(
    parts: list[dict[str, NDArray]], architecture: Architecture, counts: dict[str, Any]
) -> ChainDraws:
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    sizes = np.concatenate([np.diff(part["ends"], prepend=0) for part in parts])
    n_draws = len(sizes)
    return ChainDraws(
        slots=whole["slots"],
        weights=whole["weights"],
        ends=np.cumsum(sizes),
        biases=whole["biases"].reshape(n_draws, architecture.n_units),
        noise=whole["noise"].reshape(n_draws, -1),
        tau2=whole["tau2"].reshape(n_draws, len(architecture.blocks)),
        log_likelihood=whole["log_likelihood"],
        row_log_likelihood=whole["row_log_likelihood"].reshape(n_draws, -1),
        moves={name: (int(a), int(b)) for name, (a, b) in counts.items()},
    )


def _n_draws(parts: Sequence[State]) -> int:
    return sum(len(part["ends"]) for part in parts)


def _every_second(draws: ChainDraws) -> State:
    return _as_part(draws.take(np.arange(1, draws.n_draws, 2)))


def _as_part(draws: ChainDraws) -> State:
    """Draws in the form of the compiled code."""
    return {
        "slots": draws.slots,
        "weights": draws.weights,
        "ends": draws.ends,
        "biases": draws.biases.ravel(),
        "noise": draws.noise.ravel(),
        "tau2": draws.tau2.ravel(),
        "log_likelihood": draws.log_likelihood,
        "row_log_likelihood": draws.row_log_likelihood.ravel(),
    }
