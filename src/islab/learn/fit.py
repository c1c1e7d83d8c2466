"""From data to a posterior: a recipe carried out, linear model first, then networks from it.

A flow, if the posterior shall have one, joins at the end: it ties the weights of a network that
independent weights have found, which is small by then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.priors import Prior
from islab.learn.checkpoint import Checkpoint, close, own_folder
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.base import LARGEST_LAMBDA
from islab.learn.history import History, ProgressBar, Together
from islab.learn.loop import TrainingError
from islab.learn.parallel import in_parallel
from islab.learn.prune import Prune, fixed_structure, removals, uses_hidden
from islab.learn.recipe import Recipe
from islab.learn.stage import Stage
from islab.learn.tie import tie
from islab.learn.variational import Trained, expected_nll, train

# For a noise variance that is found after the weights.
NOISE_DRAWS, NOISE_ROWS = 50, 20_000


@dataclass(frozen=True)
class Fit:
    """What a recipe made of the data.

    Attributes
    ----------
    posterior : Posterior
        The winner.
    nll, elbo, objective, error : float
        See :class:`~islab.learn.variational.Trained`.
    prior : Prior
        The winner's prior at the end.
    history : History
        Of the winner.
    n_initial : (blocks,)
        Weights of the winner's blocks before units were dropped.
    runs : dict
        Posterior of each candidate: ``linear``, ``network 0`` and so on.
    elbos : dict
        Of the same.
    winner : str
        Name of the winner among them.
    interrupted : bool
        Whether the user interrupted training.
    """

    posterior: Posterior
    nll: float
    elbo: float
    objective: float
    prior: Prior
    history: History
    n_initial: NDArray[np.intp]
    runs: dict[str, Posterior]
    elbos: dict[str, float]
    winner: str
    interrupted: bool = False
    error: float = 0.0

    def continued(self, later: Trained) -> Fit:
        """The same with a further stage behind it."""
        n_weights = self.posterior.n_weights_initial
        return replace(
            self,
            posterior=later.posterior.copy(n_weights_initial=n_weights),
            nll=later.nll,
            elbo=later.elbo,
            objective=later.objective,
            error=later.error,
            prior=later.prior,
            history=self.history.followed_by(later.history),
            interrupted=later.interrupted,
        )


def fit(
    problem: Problem,
    likelihood: str,
    recipe: Recipe,
    *,
    seed: int,
    engine: EngineChoice | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    checkpoint: str | Path | None = None,
    keep_interrupted: bool = False,
) -> Fit:
    """Learns a posterior.

    Parameters
    ----------
    problem : Problem
        Data on the scale the network shall see.
    likelihood : str
        Name of a likelihood; see :mod:`islab.core.families`.
    seed : int
        Same seed, same result.
    engine : EngineChoice, optional
        What computes; by default the fastest that can.
    n_jobs : int, optional
        Restarts to train at the same time.
    verbose : bool
        Show a progress bar.
    checkpoint : path, optional
        Folder for checkpoints: a later call with the same arguments goes on from there. Each fit
        has a folder of its own in it, which is removed when the fit is done.
    keep_interrupted : bool
        Whether KeyboardInterrupt ends training with the best model so far, a warning and a mark,
        instead of being raised. It is raised in any case if there is no model yet.
    """
    engine = (engine or EngineChoice()).serving(likelihood, recipe.activation)
    session = _Session(problem, likelihood, recipe, engine, None, keep_interrupted)
    if checkpoint is not None:
        session = replace(session, folder=own_folder(checkpoint, session.owner(str(seed))))
    best: Fit | None = None
    with ProgressBar(recipe.n_steps(engine.posterior), enabled=verbose) as bar:
        try:
            for found in session.models(seed, n_jobs, bar):
                best = found
                if best.interrupted:
                    break
        except KeyboardInterrupt:
            if best is None or not keep_interrupted:
                raise
            best = replace(best, interrupted=True)
    assert best is not None
    close(session.folder, best.interrupted)
    return best if recipe.noise is None else session.with_noise(best, seed)


@dataclass(frozen=True)
class _Session:
    """The parts that all stages of a fit share."""

    problem: Problem
    likelihood: str
    recipe: Recipe
    engine: EngineChoice
    folder: Path | None
    keep_interrupted: bool = False

    def models(self, seed: int, n_jobs: int | None, bar: ProgressBar) -> Iterator[Fit]:
        """Ever better models, stage by stage; the last one is the answer."""
        recipe = self.recipe
        seeds = np.random.SeedSequence(seed).generate_state(recipe.n_restarts + 2).tolist()
        linear = self.linear(seeds[0], bar.report) if recipe.linear else None
        if linear is not None and (linear.interrupted or np.isfinite(linear.objective)):
            yield _choose({"linear": linear}, self.n_weights)
        n_runs = recipe.n_restarts if recipe.hidden else 1
        candidates = self.networks(linear, seeds[1:-1][:n_runs], n_jobs, bar)
        if linear is not None:
            candidates["linear"] = linear
        best = _choose(candidates, self.n_weights)
        yield best
        if recipe.prune:
            for smaller in self.prune(best, recipe.prune, seeds[-1]):
                best = smaller
                yield best
        if recipe.refine:
            best = best.continued(self.refine(best, seeds[-1], bar.report))
            yield best
        if self.flow_joins:
            best = self.better_known(best, seeds[-1])
            found = self.flow(best, seeds[-1], bar.report)
            if found is not None:
                best = best.continued(found) if found.is_clearly_above(best) else best
                best = replace(best, interrupted=found.interrupted)
            yield best

    def linear(self, seed: int, report: Callable | None) -> Trained:
        assert self.recipe.linear is not None
        start = self._start((), self.recipe.linear_initial, seed)
        return self._independent()._train(start, self.recipe.linear, seed, report, "linear")

    def networks(
        self, linear: Trained | None, seeds: list[int], n_jobs: int | None, bar: ProgressBar
    ) -> dict[str, Trained]:
        """A network for each seed, by name; those that failed are left out."""
        runs: dict[str, Trained] = {}
        given_up: list[TrainingError] = []
        for number, run in enumerate(self._restarts(linear, seeds, n_jobs, bar)):
            if isinstance(run, TrainingError):
                given_up.append(run)
            elif run is not None:
                runs[f"network {number}"] = run
        if given_up and not runs and linear is None:
            raise given_up[0]
        if given_up:
            warnings.warn(
                f"{len(given_up)} of {len(seeds)} networks failed to train and are left out. "
                f"{given_up[0]}",
                UserWarning,
                stacklevel=4,
            )
        return runs

    def _restarts(
        self, linear: Trained | None, seeds: list[int], n_jobs: int | None, bar: ProgressBar
    ) -> list[Trained | TrainingError | None]:
        """What each seed has come to; None for those that an interrupt left without a result."""
        session = self._before_flow
        style = session.engine.resolve().parallel
        shared = n_jobs in (None, 1) or style == "threads"
        together = Together(bar.report if shared else None)
        jobs = (
            delayed(session.network)(linear, number, seed, together)
            for number, seed in enumerate(seeds)
        )
        runs: list[Trained | TrainingError | None] = []
        try:
            # Runs that share the machine must not each take all of it for their matrix products.
            with threadpool_limits(None if n_jobs in (None, 1) else 1, user_api="blas"):
                for run in in_parallel(jobs, n_jobs=n_jobs, prefer=style):
                    runs.append(run)
                    if isinstance(run, Trained) and run.interrupted:
                        break
        except KeyboardInterrupt:
            ended = together.stop()
            if not (self.keep_interrupted and any(isinstance(e, Trained) for e in ended.values())):
                raise
            runs = [ended.get(number) for number in range(len(seeds))]
        return runs

    def network(
        self, linear: Trained | None, number: int, seed: int, together: Together
    ) -> Trained | TrainingError | None:
        """What training gave, or why it was given up; None if another thread was interrupted."""
        if together.stopped:
            return None
        together.started.append(number)
        ended: Trained | TrainingError | None = None
        try:
            ended = self._network(linear, number, seed, together)
        except KeyboardInterrupt:
            if not together.stopped:
                raise
        finally:
            together.ended[number] = ended
        return ended

    def _network(
        self, linear: Trained | None, number: int, seed: int, report: Callable
    ) -> Trained | TrainingError:
        recipe = self.recipe
        start = self._start(recipe.hidden, recipe.initial, seed)
        stage = recipe.network
        prior = stage.prior(start.architecture)
        if linear is not None:
            prior = _continue_from(linear, start, prior)
        try:
            return self._train(start, stage, seed, report, f"network-{number}", prior)
        except TrainingError as error:
            return error

    def prune(self, best: Fit, how: Prune, seed: int) -> Iterator[Fit]:
        """The winner without the weights it can do without, smaller and smaller.

        All that promise a gain leave at once; if that is too much, half of them, and so on.
        """
        if not how.linear and not any(best.posterior.architecture.hidden):
            return
        session = self._before_flow
        weight, failures, n_trials = how.stage.kl_weight, 0, 0
        while failures < how.patience and n_trials < how.n_trials:
            sets = removals(
                best.posterior, best.prior, self.problem, kl_weight=weight, skip=failures
            )
            if self.problem.limits is not None:
                forced = self.problem.limits.forced(best.posterior.architecture)
                sets = [each for each in sets if not np.isin(each, forced).any()]
            if not sets:
                break
            smaller, size = None, len(sets)
            while smaller is None and size and n_trials < how.n_trials:
                chosen = np.concatenate(sets[:size])
                smaller = session._without(chosen, best, how, seed, f"prune-{n_trials}")
                size, n_trials = size // 2, n_trials + 1
            if smaller is None:
                failures += 1
            elif smaller.interrupted:
                yield replace(best, interrupted=True)
                return
            else:
                best, failures = best.continued(smaller), 0
                yield best

    def _without(
        self, weights: NDArray[np.intp], best: Fit, how: Prune, seed: int, name: str
    ) -> Trained | None:
        """Training without these weights, or None if that is no better."""
        start = best.posterior.copy()
        start.lam[weights] = -LARGEST_LAMBDA
        trial = self._train(start, how.stage, seed, None, name, best.prior, best.n_initial)
        n_fewer = best.posterior.used_weights().sum() - trial.posterior.used_weights().sum()
        fits = trial.nll <= best.nll + how.tolerance * n_fewer
        better = fits and trial.objective > best.objective
        return trial if better or trial.interrupted else None

    def refine(self, best: Fit, seed: int, report: Callable | None) -> Trained:
        assert self.recipe.refine is not None
        stage = replace(
            self.recipe.refine, lambda_rate=0.0, empirical_bayes=None, shrink=None, kl_ramp=0.0
        )
        start = fixed_structure(best.posterior, self.recipe.threshold)
        session = self._before_flow
        return session._train(start, stage, seed, report, "refine", best.prior, best.n_initial)

    @property
    def flow_joins(self) -> bool:
        """Whether a flow comes in after the choice of a network."""
        return self.engine.posterior == "flow" and self.recipe.flow is not None

    @property
    def _before_flow(self) -> _Session:
        """What learns up to there: independent weights, if a flow is to come in."""
        return self._independent() if self.flow_joins else self

    def better_known(self, best: Fit, seed: int) -> Fit:
        """The same, its ELBO with a smaller error: what a flow adds is a nat or two."""
        stage, likelihood = self.recipe.network, -best.nll
        engine = self._independent().engine.create(best.posterior, self.problem, stage, seed)
        engine.set_prior(best.prior, np.ones_like(best.prior.tau))
        nll, error = expected_nll(engine, self.problem.n_rows, seed)
        gain = -nll - likelihood
        elbo, objective = best.elbo + gain, best.objective + gain
        return replace(best, nll=nll, elbo=elbo, objective=objective, error=error)

    def flow(self, best: Fit, seed: int, report: Callable | None) -> Trained | None:
        """The winner with a flow along the directions of its curvature; None if it has none."""
        stage, tied = self.recipe.flow, tie(best.posterior, best.prior, self.problem)
        if stage is None or not any(tied.factors):
            return None
        session = replace(self, engine=replace(self.engine, options=tied.options(self.engine)))
        start = tied.posterior
        return session._train(start, stage, seed, report, "flow", best.prior, best.n_initial)

    def _independent(self) -> _Session:
        """The same with independent weights, which learn far faster."""
        return replace(self, engine=self.engine.with_independent_weights())

    def with_noise(self, best: Fit, seed: int) -> Fit:
        """The same with the best noise given the weights."""
        if not families.likelihood(self.likelihood).scales_target:
            return best
        runs = {name: self._with_noise(run, seed) for name, run in best.runs.items()}
        return replace(best, posterior=self._with_noise(best.posterior, seed), runs=runs)

    def _with_noise(self, posterior: Posterior, seed: int) -> Posterior:
        problem = self.problem
        rows = slice(None, None, 1 + problem.n_rows // NOISE_ROWS)
        rng = np.random.default_rng(seed)
        eta = posterior.sample_predictor(problem.x[rows], NOISE_DRAWS, rng)
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        weight = np.broadcast_to(problem.row_weights[rows, None], eta.shape[1:])
        error = ((problem.y[rows] - eta) ** 2).mean(axis=0)
        return posterior.copy(noise=np.average(error, axis=0, weights=weight))

    @property
    def n_weights(self) -> int:
        return self._architecture(self.recipe.hidden).n_weights

    def _architecture(self, hidden: tuple[int, ...]) -> Architecture:
        return Architecture(
            n_covariates=self.problem.x.shape[1],
            hidden=hidden,
            n_outputs=self.problem.y.shape[1],
            input_skip=self.recipe.input_skip,
            activation=self.recipe.activation,
        )

    def _start(self, hidden: tuple[int, ...], initial: Initial, seed: int) -> Posterior:
        rng = np.random.default_rng(seed)
        start = Posterior.initialise(self._architecture(hidden), rng, initial, self.likelihood)
        likelihood = families.likelihood(self.likelihood)
        bias = self.problem.initial_bias(likelihood)
        start.bias_mu[start.architecture.units[-1]] = bias
        start.noise = likelihood.start_noise(self.problem.y)
        if self.recipe.noise is not None and likelihood.scales_target:
            start.noise = np.full_like(start.noise, self.recipe.noise)
        limits = self.problem.limits
        if limits is not None:
            start.lam[limits.forbidden(start.architecture)] = -LARGEST_LAMBDA
            start.lam[limits.forced(start.architecture)] = LARGEST_LAMBDA
        return start

    def _train(
        self,
        start: Posterior,
        stage: Stage,
        seed: int,
        report: Callable | None,
        name: str,
        prior: Prior | None = None,
        n_initial: NDArray[np.intp] | None = None,
    ) -> Trained:
        engine = self.engine.create(start, self.problem, stage, seed)
        return train(
            engine,
            stage,
            n_rows=self.problem.n_rows,
            seed=seed,
            prior=prior,
            n_initial=n_initial,
            report=report,
            checkpoint=self._checkpoint(name, stage, seed),
            keep_interrupted=self.keep_interrupted,
        )

    def _checkpoint(self, name: str, stage: Stage, seed: int) -> Checkpoint | None:
        if self.folder is None:
            return None
        return Checkpoint(self.folder / f"{name}.npz", self.owner(repr((stage, seed))))

    def owner(self, part: str) -> str:
        """What stands for the data, the settings and a part of the fit."""
        settings = (self.likelihood, self.recipe, self.engine, part)
        owner = sha256(repr(settings).encode())
        data: list[NDArray | None] = [self.problem.x, self.problem.y, self.problem.row_weights]
        data.append(self.problem.offset)
        if (limits := self.problem.limits) is not None:
            data += limits.arrays
        for array in (each for each in data if each is not None):
            owner.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return owner.hexdigest()


def _continue_from(linear: Trained, start: Posterior, prior: Prior) -> Prior:
    """Puts the linear model into the output layer of a network, with the prior of its weights."""
    net = start.architecture
    block = net.block(net.n_layers - 1, "covariate")
    found = linear.posterior
    output = net.units[-1]
    start.bias_mu[output], start.bias_rho[output] = found.bias_mu, found.bias_rho
    start.noise = found.noise.copy()
    if block is None:
        return prior
    start.mu[block.weights], start.rho[block.weights] = found.mu, found.rho
    start.lam[block.weights] = np.maximum(found.lam, 2.0)
    tau = prior.tau.copy()
    tau[net.blocks.index(block)] = linear.prior.tau[0]
    return replace(prior, tau=tau)


def _choose(candidates: dict[str, Trained], n_weights: int) -> Fit:
    """The candidate with the highest ELBO; the linear one if no hidden unit is used anyway.

    Where the KL had less weight in training it has less here: candidates are judged by what they
    were made for. Densities refer to the ``n_weights`` of the network, whichever wins.
    """
    finite = {name: run for name, run in candidates.items() if np.isfinite(run.objective)}
    if not finite:
        raise TrainingError(
            "No model ended with a finite ELBO; look for extreme values in the data, or try a "
            "smaller learning rate."
        )
    name = max(finite, key=lambda name: finite[name].objective)
    if "linear" in finite and not uses_hidden(finite[name].posterior):
        name = "linear"
    winner = finite[name]
    return Fit(
        posterior=winner.posterior.copy(n_weights_initial=n_weights),
        nll=winner.nll,
        elbo=winner.elbo,
        objective=winner.objective,
        error=winner.error,
        prior=winner.prior,
        history=winner.history,
        n_initial=winner.n_initial,
        runs={key: run.posterior for key, run in finite.items()},
        elbos={name: run.elbo for name, run in candidates.items()},
        winner=name,
        interrupted=any(run.interrupted for run in candidates.values()),
    )
