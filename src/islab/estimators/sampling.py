"""What the estimators' parameters mean for chains, and where chains can serve."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.sparse import SparseNetwork
from islab.learn.engines import Problem
from islab.learn.engines.choice import current_posterior
from islab.learn.fit import Fit
from islab.learn.recipe import DEFAULT_SPARSITY, Recipe
from islab.learn.sample import ChainPrior, SamplingPlan

POSTERIORS = ("auto", "sampled", "stacked", "independent", "flow")
LIKELIHOODS = (
    *("gaussian", "bernoulli", "categorical", "ordinal", "poisson", "negative_binomial"),
    *("student_t", "heteroscedastic", "zero_inflated_poisson", "zero_inflated_negative_binomial"),
)
ACTIVATIONS = ("leaky_relu", "relu", "identity", "sigmoid", "tanh")
# Beyond these a step of a chain takes too long; of more rows chains see a part.
MOST_ROWS, MOST_COVARIATES, MOST_PRODUCTS = 20_000, 1500, 2e8

# Variational runs find where chains start: they may use too many weights, but not too few.
START_SPARSITY = 0.25
# Of the steps of a run: chains go on where it ends. Networks of real numbers are larger.
SEARCH_SHARE, SEARCH_SHARE_OF_NUMBERS = 0.5, 0.75
CERTAIN = 1e6
HIDDEN_WIDTH = 20.0  # of the default network
DRAWS, MOST_DRAWS = 900, 2700  # of all chains
# Rows times columns that the steps of a chain may go through: of linear models, of networks, and of
# networks of real numbers that have not settled, which are the largest and gain most by waiting.
# Other networks that do not settle are in modes that they will not leave.
LINEAR_WORK, WORK, SETTLING_WORK = 4e7, 2e7, 6e7
FEWEST_STEPS, MOST_STEPS = 300, 2600
MOST_SETTLING_STEPS, MOST_STUCK_STEPS = 1000, 600


def chosen_posterior(params: dict[str, Any], likelihood: str, problem: Problem) -> str:
    """The kind of posterior that "auto" stands for, or the one that was asked for."""
    name = current_posterior(params["posterior"])
    limits = problem.limits
    signed = limits is not None and limits.need_chains
    if limits is not None and limits.sign.any() and families.likelihood(likelihood).one_hot:
        raise ValueError(
            "Got a column that shall be increasing or decreasing with several classes, which have "
            "no order; try an ordered Categorical."
        )
    some = problem.whole is not None or problem.n_rows > MOST_ROWS
    if signed and some and name in ("auto", "sampled"):
        raise ValueError(
            "Got a constraint on directions or interactions and more rows than chains can see "
            f"({MOST_ROWS:,}), where draws need not keep to it; try a sample of the rows."
        )
    if name not in ("auto", "sampled"):
        if signed:
            raise ValueError(
                "Got a constraint on directions or interactions with "
                f"posterior={name!r}, which cannot keep to it in every draw; try "
                "posterior='sampled'."
            )
        return name
    foreign = _foreign(params)
    if foreign is not None and name == "sampled":
        value, rule = foreign
        raise ValueError(
            f"Got {value} with posterior='sampled', {rule}; try posterior='independent', or leave "
            "it out."
        )
    reason = f"cannot take {foreign[0]}" if foreign else None
    reason = reason or _obstacle(likelihood, params["activation"], problem)
    if signed and reason:
        raise ValueError(
            "Got a constraint on directions or interactions, which needs posterior='sampled', "
            f"which {reason}; try other constraints."
        )
    if name == "sampled" and reason:
        raise ValueError(
            f"Got posterior='sampled', which {reason}; try posterior='auto' or 'independent'."
        )
    if foreign:
        return "independent"
    return "stacked" if reason else "sampled"


def _foreign(params: dict[str, Any]) -> tuple[str, str] | None:
    """A parameter that only variational posteriors can take, and why."""
    for name in ("prior_scale", "prior_inclusion"):
        if isinstance(params[name], dict):
            rule = "expected one number: the blocks of sampled networks have the same prior"
            return f"{name}={params[name]!r}", rule
    if params["training"] != "auto":
        rule = "expected 'auto': chains draw weights and do not train them"
        return f"training={params['training']!r}", rule
    return None


def _obstacle(likelihood: str, activation: Any, problem: Problem) -> str | None:
    """Why chains cannot serve, if they cannot."""
    n_rows, n_covariates = problem.x.shape
    if find_spec("islab.learn.sample.native._chains") is None:
        return "needs the compiled module, which this installation lacks"
    if likelihood not in LIKELIHOODS:
        return f"does not know the likelihood {likelihood!r}"
    names = {activation} if isinstance(activation, str) else {*activation}
    if len(names) > 1:
        return "has one activation in all layers"
    for name in names - {"auto"}:
        kernel = families.activation(name).kernel
        if kernel is None or kernel.name not in ACTIVATIONS:
            return f"does not know the activation {name!r}"
    seen = min(n_rows, MOST_ROWS)
    products = seen * n_covariates**2 * problem.y.shape[1]
    if n_covariates > MOST_COVARIATES or products > MOST_PRODUCTS * 50:
        return f"takes too long for {n_rows} rows and {n_covariates} columns"
    return None


def sampling_plan(
    params: dict[str, Any], problem: Problem, networks: list[SparseNetwork]
) -> SamplingPlan:
    """How chains run for an estimator's parameters.

    Steps are bounded by the work they make, not by the clock, so that the same data and seed give
    the same draws on every machine.

    ``sparsity`` is the log predictive density that a weight of the readable network must be worth
    and, above its default, the weight of the prior on few weights.
    """
    level = DEFAULT_SPARSITY if params["sparsity"] == "auto" else float(params["sparsity"])
    beyond = max(0.0, (level - DEFAULT_SPARSITY) / (1 - DEFAULT_SPARSITY))
    prior: dict[str, Any] = {"inclusion_b": 100.0**beyond, "hidden_width": HIDDEN_WIDTH}
    if params["prior_inclusion"] != "auto":
        share = float(params["prior_inclusion"])
        prior |= {"inclusion_a": CERTAIN * share, "inclusion_b": CERTAIN * (1 - share)}
        prior |= {"by_variable": False}  # each weight has this probability, whatever else is in
    if params["prior_scale"] != "auto":
        variance = float(params["prior_scale"]) ** 2
        prior |= {"tau_shape": CERTAIN, "tau_scale": CERTAIN * variance}
    if params["slab_df"] is not None:
        prior["df"] = float(params["slab_df"])
    units = max(sum(network.architecture.hidden) for network in networks)
    n_rows, n_covariates = problem.x.shape
    # The cross-products of the columns are swept, too.
    size = max(n_rows, n_covariates) * (n_covariates + units) * min(problem.y.shape[1], 5)
    most_steps = settling_steps = _within(LINEAR_WORK / size, MOST_STEPS)
    if units:
        most_steps = _within(WORK / size, MOST_STEPS)
        settling_steps = min(most_steps, MOST_STUCK_STEPS)
        if families.likelihood(networks[0].likelihood).scales_target:
            settling_steps = _within(SETTLING_WORK / size, MOST_SETTLING_STEPS)
    n_draws = -(-DRAWS // len(networks))
    n_warm_up = min(n_draws, most_steps) // 3
    return SamplingPlan(
        n_warm_up=n_warm_up,
        n_draws=min(n_draws, most_steps - n_warm_up),
        most_draws=-(-MOST_DRAWS // len(networks)),
        most_steps=most_steps,
        settling_steps=settling_steps,
        weight_price=(level / DEFAULT_SPARSITY) ** 3 / 2,
        threshold=float(params["threshold"]),
        prior=ChainPrior(**prior),
    )


def search_share(likelihood: str) -> float:
    """Share of the steps of a variational run that chains need."""
    real = families.likelihood(likelihood).scales_target
    return SEARCH_SHARE_OF_NUMBERS if real else SEARCH_SHARE


def _within(steps: float, most: int) -> int:
    return int(min(max(steps, FEWEST_STEPS), most))


def chain_architecture(activation: Any, found: Fit, recipe: Recipe) -> Architecture:
    """All weights that chains may use.

    Units that are off must learn in training, so that it needs a leaky rectifier; chains need none,
    and a unit that is off then has a slope of exactly 0.
    """
    net = replace(found.posterior.architecture, hidden=recipe.hidden)
    return replace(net, activation="relu") if activation == "auto" else net


def starting_networks(found: Fit) -> list[SparseNetwork]:
    """The networks that variational runs found; linear ones are those of the linear run."""
    linear = found.runs.get("linear")
    networks = []
    for name, posterior in found.runs.items():
        if name == "linear" and len(found.runs) > 1:
            continue
        network = posterior.median()
        if linear is not None and not any(network.architecture.hidden):
            network = linear.median()
        networks.append(network)
    # One start is not enough to see whether chains agree.
    return networks if len(networks) > 1 else networks * 2
