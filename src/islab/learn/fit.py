"""From data to a posterior: a recipe carried out, linear model first, then networks from it.

A flow, if the posterior shall have one, joins at the end: it ties the weights of a network that
independent weights have found, which is small by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.checkpoint import close, own_folder
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.base import LARGEST_LAMBDA
from islab.learn.history import History, ProgressBar
from islab.learn.loop import TrainingError
from islab.learn.prune import Prune, fixed_structure, removals, uses_hidden
from islab.learn.recipe import Recipe
from islab.learn.restarts import networks
from islab.learn.session import Session
from islab.learn.tie import tie
from islab.learn.variational import Trained, expected_nll


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
    engine = (engine or EngineChoice()).serving(
        likelihood, recipe.activation, recipe.initial.biases_selected
    )
    session = Session(problem, likelihood, recipe, engine, None, keep_interrupted)
    if checkpoint is not None:
        session = replace(session, folder=own_folder(checkpoint, session.owner(str(seed))))
    best: Fit | None = None
    with ProgressBar(recipe.n_steps(engine.posterior), enabled=verbose) as bar:
        try:
            for found in _models(session, seed, n_jobs, bar):
                best = found
                if best.interrupted:
                    break
        except KeyboardInterrupt:
            if best is None or not keep_interrupted:
                raise
            best = replace(best, interrupted=True)
    assert best is not None
    close(session.folder, best.interrupted)
    return best if recipe.noise is None else _with_noise(session, best, seed)


def _models(session: Session, seed: int, n_jobs: int | None, bar: ProgressBar) -> Iterator[Fit]:
    """Ever better models, stage by stage; the last one is the answer."""
    recipe = session.recipe
    seeds = np.random.SeedSequence(seed).generate_state(recipe.n_restarts + 2).tolist()
    linear = _linear(session, seeds[0], bar.report) if recipe.linear else None
    if linear is not None and (linear.interrupted or np.isfinite(linear.objective)):
        yield _choose({"linear": linear}, session.n_weights)
    n_runs = recipe.n_restarts if recipe.hidden else 1
    candidates = networks(session, linear, seeds[1:-1][:n_runs], n_jobs, bar)
    if linear is not None:
        candidates["linear"] = linear
    best = _choose(candidates, session.n_weights)
    yield best
    if recipe.prune:
        for smaller in _prune(session, best, recipe.prune, seeds[-1]):
            best = smaller
            yield best
    if recipe.refine:
        best = best.continued(_refine(session, best, seeds[-1], bar.report))
        yield best
    if session.flow_joins:
        best = _better_known(session, best, seeds[-1])
        found = _flow(session, best, seeds[-1], bar.report)
        if found is not None:
            best = best.continued(found) if found.is_clearly_above(best) else best
            best = replace(best, interrupted=found.interrupted)
        yield best


def _linear(session: Session, seed: int, report: Callable | None) -> Trained:
    assert session.recipe.linear is not None
    start = session.start((), session.recipe.linear_initial, seed)
    return session.independent().train(start, session.recipe.linear, seed, report, "linear")


def _prune(session: Session, best: Fit, how: Prune, seed: int) -> Iterator[Fit]:
    """The winner without the weights it can do without, smaller and smaller.

    All that promise a gain leave at once; if that is too much, half of them, and so on.
    """
    if not how.linear and not any(best.posterior.architecture.hidden):
        return
    session = session.before_flow
    weight, failures, n_trials = how.stage.kl_weight, 0, 0
    while failures < how.patience and n_trials < how.n_trials:
        sets = removals(
            best.posterior, best.prior, session.problem, kl_weight=weight, skip=failures
        )
        if session.problem.limits is not None:
            forced = session.problem.limits.forced(best.posterior.architecture)
            sets = [each for each in sets if not np.isin(each, forced).any()]
        if not sets:
            break
        smaller, size = None, len(sets)
        while smaller is None and size and n_trials < how.n_trials:
            chosen = np.concatenate(sets[:size])
            smaller = _without(session, chosen, best, how, seed, f"prune-{n_trials}")
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
    session: Session, weights: NDArray[np.intp], best: Fit, how: Prune, seed: int, name: str
) -> Trained | None:
    """Training without these weights, or None if that is no better."""
    start = best.posterior.copy()
    start.lam[weights] = -LARGEST_LAMBDA
    trial = session.train(start, how.stage, seed, None, name, best.prior, best.n_initial)
    n_fewer = best.posterior.used_weights().sum() - trial.posterior.used_weights().sum()
    fits = trial.nll <= best.nll + how.tolerance * n_fewer
    better = fits and trial.objective > best.objective
    return trial if better or trial.interrupted else None


def _refine(session: Session, best: Fit, seed: int, report: Callable | None) -> Trained:
    assert session.recipe.refine is not None
    stage = replace(
        session.recipe.refine, lambda_rate=0.0, empirical_bayes=None, shrink=None, kl_ramp=0.0
    )
    start = fixed_structure(best.posterior, session.recipe.threshold)
    return session.before_flow.train(
        start, stage, seed, report, "refine", best.prior, best.n_initial
    )


def _better_known(session: Session, best: Fit, seed: int) -> Fit:
    """The same, its ELBO with a smaller error: what a flow adds is a nat or two."""
    stage, likelihood = session.recipe.network, -best.nll
    engine = session.independent().engine.create(best.posterior, session.problem, stage, seed)
    engine.set_prior(best.prior, np.ones_like(best.prior.tau))
    nll, error = expected_nll(engine, session.problem.n_rows, seed)
    gain = -nll - likelihood
    elbo, objective = best.elbo + gain, best.objective + gain
    return replace(best, nll=nll, elbo=elbo, objective=objective, error=error)


def _flow(session: Session, best: Fit, seed: int, report: Callable | None) -> Trained | None:
    """The winner with a flow along the directions of its curvature; None if it has none."""
    stage, tied = session.recipe.flow, tie(best.posterior, best.prior, session.problem)
    if stage is None or not any(tied.factors):
        return None
    engine = replace(session.engine, options=tied.options(session.engine))
    session = replace(session, engine=engine)
    start = tied.posterior
    return session.train(start, stage, seed, report, "flow", best.prior, best.n_initial)


def _with_noise(session: Session, best: Fit, seed: int) -> Fit:
    """The same with the best noise given the weights."""
    if not families.likelihood(session.likelihood).scales_target:
        return best
    runs = {name: session.with_noise(run, seed) for name, run in best.runs.items()}
    return replace(best, posterior=session.with_noise(best.posterior, seed), runs=runs)


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
