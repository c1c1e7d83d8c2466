"""What the classifier and the regressor share: their parameters, and how weights are learned."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.diagnostics import Diagnostics, diagnose, disagreeing_variable, to_arviz
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.estimators.base import Learned, Mask, NetworkEstimator
from islab.estimators.learnable_covariates import learnable, over_all_covariates
from islab.estimators.sampling import (
    DRAWS,
    MOST_ROWS,
    START_SPARSITY,
    chain_architecture,
    chosen_posterior,
    sampling_plan,
    search_share,
    starting_networks,
)
from islab.estimators.screening import screened, warn_of_screening
from islab.estimators.settings import engine_choice, keeps_interrupted, make_recipe
from islab.estimators.training import Training
from islab.estimators.weight_distribution import WeightDistribution
from islab.learn.engines import Problem
from islab.learn.engines.choice import current_posterior
from islab.learn.fit import Fit
from islab.learn.fit import fit as fit_recipe
from islab.learn.recipe import Recipe
from islab.learn.sample import sample_posterior
from islab.learn.scale import (
    ArrayRows,
    Growth,
    Reading,
    Rows,
    SeenRows,
    posterior_of_all,
    sample_sizes,
    set_apart,
    shuffled,
)
from islab.learn.stacking import stacked_posterior

SEARCH_EPOCHS = 60  # on as many rows as chains may see, where there are more


class ISLaBEstimator(NetworkEstimator):
    """Parameters of both estimators, and the recipe they stand for."""

    compares_median = True
    takes_offset = True
    learns_from_streams = True

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        posterior: str = "auto",
        flow: str = "iaf",
        n_transforms: int = 2,
        input_skip: bool = True,
        constraints: dict[Any, Any] | None = None,
        sparsity: Any = "auto",
        prior_inclusion: Any = "auto",
        prior_scale: Any = "auto",
        slab_df: float | None = None,
        inclusion_init: Any = "auto",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_restarts: Any = "auto",
        training: Any = "auto",
        threshold: float = 0.5,
        n_draws: int = 1000,
        missing: str = "impute",
        shrink: bool = True,
        early_stopping: bool = False,
        engine: str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: str | Path | None = None,
        on_interrupt: str = "auto",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.posterior = posterior
        self.flow = flow
        self.n_transforms = n_transforms
        self.input_skip = input_skip
        self.constraints = constraints
        self.sparsity = sparsity
        self.prior_inclusion = prior_inclusion
        self.prior_scale = prior_scale
        self.slab_df = slab_df
        self.inclusion_init = inclusion_init
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_epochs = max_epochs
        self.n_restarts = n_restarts
        self.training = training
        self.threshold = threshold
        self.n_draws = n_draws
        self.missing = missing
        self.shrink = shrink
        self.early_stopping = early_stopping
        self.engine = engine
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        learned = problem.of_covariates(learnable(varies))
        if learned.limits is not None and learned.limits.include.any() and not self.input_skip:
            raise ValueError(
                "Got a column to include with input_skip=False, where no covariate has a weight of "
                "its own into the output, expected input_skip=True."
            )
        if current_posterior(self.posterior) in ("auto", "sampled"):
            chosen = screened(problem, varies)
            fewer = problem.of_covariates(learnable(chosen))
            if chosen_posterior(self.get_params(deep=False), likelihood, fewer) == "sampled":
                warn_of_screening(chosen, varies)
                learned, varies = fewer, chosen
        kind = chosen_posterior(self.get_params(deep=False), likelihood, learned)
        if kind == "sampled" and not varies.any():
            kind = "independent"  # There is nothing that a chain could choose.
        if kind == "sampled" and (learned.whole is not None or learned.n_rows > MOST_ROWS):
            return self._sample_some(learned, likelihood, varies, seed)
        found, recipe = self._search(learned, likelihood, kind, seed)
        whole = Architecture(len(varies), recipe.hidden, problem.y.shape[1], recipe.input_skip)
        if kind == "sampled" and not found.interrupted:
            return self._sample(learned, likelihood, found, recipe, varies, seed)
        if kind == "stacked" and not found.interrupted:
            stacked = stacked_posterior(learned, found, seed=seed, threshold=self.threshold)
            if stacked is not None:
                wide = stacked.over_columns(np.flatnonzero(learnable(varies)), len(varies))
                return Learned(wide, found.history, float(found.elbo), elbo_error=found.error)
        posterior = over_all_covariates(found.posterior, varies, whole.n_weights)
        return Learned(
            posterior,
            found.history,
            float(found.elbo),
            interrupted=found.interrupted,
            elbo_error=found.error,
        )

    def _search(
        self, problem: Problem, likelihood: str, kind: str, seed: int, **changes: Any
    ) -> tuple[Fit, Recipe]:
        """What variational runs find, for themselves or for chains to start from.

        ``changes`` are parameters with other values than the estimator's.
        """
        settings = self.get_params(deep=False) | {"posterior": kind} | changes
        if kind == "stacked":
            settings |= {"posterior": "independent"}
        if kind == "sampled":
            settings |= {"posterior": "independent", "sparsity": START_SPARSITY}
        n_covariates, n_outputs = problem.x.shape[1], problem.y.shape[1]
        n_classes = n_outputs if families.likelihood(likelihood).one_hot else 0
        recipe = make_recipe(settings, problem.n_rows, n_classes, n_covariates, n_outputs)
        if kind == "sampled" and settings["max_epochs"] == "auto":
            recipe = recipe.shortened(search_share(likelihood))
        found = fit_recipe(
            problem,
            likelihood,
            recipe,
            seed=seed,
            engine=engine_choice(settings),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            keep_interrupted=keeps_interrupted(self.on_interrupt, self.verbose),
        )
        return found, recipe

    def _best_likelihood(
        self, problem: Problem, candidates: tuple[str, ...], varies: Mask, seed: int
    ) -> str:
        """The likelihood with the highest ELBO.

        What it learns besides the weights has no prior there, so each number costs half the
        logarithm of the number of rows, as in the BIC.
        """
        learned = problem.of_covariates(learnable(varies))
        price = np.log(max(problem.row_weights.sum(), 2.0)) / 2

        def evidence(name: str) -> float:
            family = families.likelihood(name)
            found, _ = self._search(learned.with_predictors(family), name, "independent", seed)
            return found.elbo - price * len(found.posterior.noise) * family.learns_noise

        return max(candidates, key=evidence)

    def _sample(
        self,
        problem: Problem,
        likelihood: str,
        found: Fit,
        recipe: Recipe,
        varies: Mask,
        seed: int,
    ) -> Learned:
        """Chains from what variational runs found."""
        networks = starting_networks(found)
        net = chain_architecture(self.activation, found, recipe)
        posterior, interrupted = sample_posterior(
            problem,
            likelihood,
            net,
            networks,
            sampling_plan(self.get_params(deep=False), problem, networks),
            seed=seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            keep_interrupted=keeps_interrupted(self.on_interrupt, self.verbose),
        )
        wide = posterior.over_columns(np.flatnonzero(learnable(varies)), len(varies))
        return Learned(
            wide, found.history, float(found.elbo), interrupted=interrupted, elbo_error=found.error
        )

    def _median(self, weights: WeightDistribution) -> SparseNetwork:
        if isinstance(weights, Posterior):
            return weights.median(self.threshold)
        return weights.median()

    @property
    def _standardizes(self) -> bool:
        return Training.of(self.training).standardize

    def _sample_some(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        """Chains on as many rows as their structure needs; weights given all rows."""
        columns = learnable(varies)
        rows: Rows = ArrayRows(problem, self.n_jobs)
        if problem.whole is not None:
            rows = SeenRows(problem.whole, columns, likelihood)
        sample = shuffled(problem, sample_sizes()[1], seed)
        seen, fresh = set_apart(sample)
        # Chains go on where runs end, so that runs need not find the last nat.
        brief = {"max_epochs": SEARCH_EPOCHS} if self.max_epochs == "auto" else {}
        found, recipe = self._search(seen, likelihood, "sampled", seed, **brief)
        net = chain_architecture(self.activation, found, recipe)
        networks = starting_networks(found)
        plan = sampling_plan(self.get_params(deep=False), seen, networks)
        grown = Growth(
            seen,
            fresh,
            likelihood,
            net,
            plan.prior,
            seed=seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            keep_interrupted=keeps_interrupted(self.on_interrupt, self.verbose),
        ).run(networks)
        price = plan.weight_price * np.log(grown.rows.n_rows) / 2
        whole = posterior_of_all(
            grown,
            net,
            likelihood,
            sample,
            rows,
            n_draws=-(-DRAWS // len(networks)),
            reading=Reading(price, plan.threshold),
            seed=seed,
            df=plan.prior.df,
            n_jobs=self.n_jobs,
        )
        wide = whole.over_columns(np.flatnonzero(columns), len(varies))
        return Learned(wide, found.history, float(found.elbo), interrupted=grown.interrupted)

    # -- chains ---------------------------------------------------------------------------

    def diagnostics(self) -> Diagnostics:
        """Convergence of the chains: R-hat, effective draws, acceptance, agreement.

        Returns
        -------
        Diagnostics
            With the tables ``quantities``, ``moves`` and ``chains``.
        """
        return diagnose(self._sampled_posterior())

    def to_arviz(self) -> Any:
        """The draws as a data tree of ArviZ, for its plots and statistics.

        Only what has the same meaning in every draw: which variables are used, which covariates
        enter a hidden unit, the number of used weights, noise and log likelihood.
        """
        return to_arviz(self._sampled_posterior())

    def _sampled_posterior(self) -> SampledPosterior:
        check_is_fitted(self)
        if not isinstance(self.posterior_, SampledPosterior) or self.posterior_.stacked:
            raise ValueError(
                f"Got a model fitted with posterior={self.posterior!r} that holds no chains; try "
                "posterior='sampled', and a file saved without sparse=True."
            )
        return self.posterior_

    def _warn_of_chains(self) -> None:
        """Says that chains differ on whether a variable is used; of runs that is expected."""
        if not isinstance(self.posterior_, SampledPosterior) or self.posterior_.stacked:
            return
        found = disagreeing_variable(self.posterior_)
        if found is not None:
            name, lowest, highest = found
            warnings.warn(
                f"Got chains that disagree on the use of {name!r}: its probability is {lowest:.2f} "
                f"in one and {highest:.2f} in another. They found different networks, and their "
                "mixture depends on the seed; try a larger n_restarts for more chains, and see "
                "diagnostics().",
                UserWarning,
                stacklevel=5,
            )
