"""Chains against exact posteriors, and how they run."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines import Problem
from islab.learn.sample import ChainPrior, Effort, Start, sample_chains
from islab.learn.sample.chains import Sampler, make_chain
from tests.learn.sample.exact import (
    empty_start,
    linear_posterior,
    logistic_inclusion,
    structures,
)


def correlated(rng, n, v, correlation):
    shared = rng.standard_normal((n, 1))
    return np.sqrt(1 - correlation) * rng.standard_normal((n, v)) + np.sqrt(correlation) * shared


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.99])
def test_linear_models_have_the_inclusion_probabilities_of_enumeration(correlation):
    rng = np.random.default_rng(5)
    x = correlated(rng, 60, 6, correlation)
    y = 0.5 * x[:, 0] + 0.25 * x[:, 1] + rng.standard_normal(60)
    y = (y - y.mean()) / y.std()
    weight = rng.uniform(0.5, 2, 60)
    inclusion, pairs = linear_posterior(x, y, weight, ChainPrior())
    net = Architecture(6, (), 1)
    problem = Problem(x, y[:, None], weight)
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=5000, n_warm_up=200
    )
    used = draws.uses_covariate(net).astype(float)
    assert np.abs(used.mean(axis=0) - inclusion).max() < 0.02
    assert np.abs(used.T @ used / len(used) - pairs).max() < 0.03


def test_an_offset_of_a_gaussian_model_is_taken_off_the_target():
    rng = np.random.default_rng(5)
    x, offset = rng.standard_normal((60, 6)), 3 * rng.standard_normal((60, 1))
    y = 0.5 * x[:, :1] + rng.standard_normal((60, 1))
    net = Architecture(6, (2,), 1)
    moved, plain = (
        sample_chains(problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=50)[0]
        for problem in (Problem(x, y + offset, offset=offset), Problem(x, y))
    )
    np.testing.assert_array_equal(moved.slots, plain.slots)
    np.testing.assert_allclose(moved.weights, plain.weights, atol=1e-4)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_covariates_of_one_variable_have_the_inclusion_probabilities_of_enumeration(correlation):
    rng = np.random.default_rng(5)
    x = correlated(rng, 60, 6, correlation)
    y = 0.4 * x[:, 0] + 0.3 * x[:, 1] + 0.3 * x[:, 3] + rng.standard_normal(60)
    y = (y - y.mean()) / y.std()
    groups = np.array([0, 1, 1, 1, 2, 2])
    inclusion, pairs = linear_posterior(x, y, np.ones(60), ChainPrior(), groups)
    net = Architecture(6, (), 1)
    problem = Problem(x, y[:, None], groups=groups)
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=5000, n_warm_up=200
    )
    used = draws.uses_covariate(net).astype(float)
    assert np.abs(used.mean(axis=0) - inclusion).max() < 0.02
    assert np.abs(used.T @ used / len(used) - pairs).max() < 0.03


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_logistic_models_have_the_inclusion_probabilities_of_quadrature(correlation, offset):
    rng = np.random.default_rng(2)
    x = correlated(rng, 25, 2, correlation)
    shift = 2 * rng.standard_normal(25) if offset else np.zeros(25)
    y = (rng.random(25) < 1 / (1 + np.exp(-1.2 * x[:, 0] - shift))).astype(float)
    known = ChainPrior(tau_shape=1e6, tau_scale=1e6, bias_sd=1.0)
    net = Architecture(2, (), 1)
    (draws,) = sample_chains(
        Problem(x, y[:, None], offset=shift[:, None] if offset else None),
        "bernoulli",
        net,
        [empty_start(net)],
        seed=1,
        n_draws=6000,
        prior=known,
    )
    expected = logistic_inclusion(x, y, 1.0, known, shift)
    assert np.abs(draws.uses_covariate(net).mean(axis=0) - expected).max() < 0.02


def test_draws_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    net = Architecture(3, (2,), 1)
    problem = Problem(x, np.abs(x[:, :1]))
    options = {"seed": 3, "n_draws": 30, "n_warm_up": 10}
    starts = [empty_start(net)] * 3
    one, several = (
        sample_chains(problem, "gaussian", net, starts, n_jobs=n_jobs, **options)
        for n_jobs in (1, 3)
    )
    for a, b in zip(one, several, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
        np.testing.assert_array_equal(a.slots, b.slots)
    assert (one[0].ends[-1], one[0].weights.sum()) != (one[1].ends[-1], one[1].weights.sum())


def test_a_chain_goes_on_from_its_state_as_if_it_had_not_stopped():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    net = Architecture(3, (2, 2), 1)
    problem = Problem(x, np.abs(x[:, :1]))
    options = {"every": 1, "warming": False, "keep_rows": False}
    options |= {"toggles": 4, "edges": 4, "units": 2, "parts": 4, "largest_part": 40}
    whole, stopped, resumed = (
        make_chain(problem, "gaussian", net, empty_start(net), seed, ChainPrior(df=4.0))
        for seed in (1, 1, 99)
    )
    expected = whole.run(steps=40, **options)
    stopped.run(steps=15, **options)
    resumed.restore(stopped.state())
    rest = resumed.run(steps=25, **options)
    np.testing.assert_array_equal(rest["weights"], expected["weights"][-len(rest["weights"]) :])
    np.testing.assert_array_equal(rest["noise"], expected["noise"][-25:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slots": np.array([0]), "weights": np.array([1.0])}, "no active path"),
        ({"slots": np.array([99]), "weights": np.array([1.0])}, "outside the network"),
        ({"slots": np.array([4, 4]), "weights": np.ones(2)}, "stands twice"),
        ({"bias": np.zeros(7)}, "one bias for each unit"),
        ({"noise": np.zeros(1)}, "must be positive"),
    ],
)
def test_impossible_starts_are_refused(change, message):
    net = Architecture(2, (2,), 1)
    values = {**vars(empty_start(net)), **change}
    with pytest.raises(ValueError, match=message):
        make_chain(
            Problem(np.ones((3, 2)), np.ones((3, 1))),
            "gaussian",
            net,
            Start(**values),
            1,
            ChainPrior(),
        )


@pytest.mark.parametrize(
    "prior",
    [
        ChainPrior(),
        ChainPrior(inclusion_a=2.0, inclusion_b=3.0),
        ChainPrior(hidden_width=5.0),
        ChainPrior(price=0.7),
        ChainPrior(by_variable=False),
    ],
    ids=["flat", "Beta(2, 3)", "as wide as 5", "price", "no choice of variables"],
)
@pytest.mark.parametrize("hidden", [(2,), (1, 1)])
def test_without_data_structures_follow_the_prior(prior, hidden):
    net = Architecture(2, hidden, 1)
    rng = np.random.default_rng(3)
    problem = Problem(rng.standard_normal((5, 2)), np.zeros((5, 1)), np.full(5, 1e-12))
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=2, n_draws=12_000, prior=prior
    )
    masks, probabilities = structures(net, prior)
    found = (draws.dense(np.arange(draws.n_draws), net.n_weights) != 0).mean(axis=0)
    np.testing.assert_allclose(found, probabilities @ masks, atol=0.03)
    sizes = np.bincount(draws.sizes, minlength=net.n_weights + 1) / draws.n_draws
    expected = np.bincount(masks.sum(axis=1), probabilities, minlength=net.n_weights + 1)
    np.testing.assert_allclose(sizes, expected, atol=0.03)


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize(
    "prior",
    [ChainPrior(), ChainPrior(hidden_width=5.0, price=0.7), ChainPrior(by_variable=False)],
    ids=["flat", "as wide as 5, price", "no choice of variables"],
)
def test_without_data_variables_of_several_covariates_follow_the_prior(prior, likelihood):
    net, groups = Architecture(3, (1,), 1), np.array([0, 1, 1])
    rng = np.random.default_rng(3)
    problem = Problem(
        rng.standard_normal((5, 3)), np.zeros((5, 1)), np.full(5, 1e-12), groups=groups
    )
    (draws,) = sample_chains(
        problem, likelihood, net, [empty_start(net)], seed=2, n_draws=12_000, prior=prior
    )
    masks, probabilities = structures(net, prior, groups)
    found = (draws.dense(np.arange(draws.n_draws), net.n_weights) != 0).astype(float)
    expected = masks * probabilities[:, None]
    np.testing.assert_allclose(found.mean(axis=0), expected.sum(axis=0), atol=0.03)
    np.testing.assert_allclose(found.T @ found / len(found), expected.T @ masks, atol=0.03)


class Climbing:
    """Stands for a compiled chain without edges whose log likelihood goes up with each step."""

    def __init__(self, rate):
        self.rate, self.now = rate, 0

    def run(self, steps, every, **_):
        heights = self.rate * np.arange(self.now + every, self.now + steps + 1, every)
        self.now += steps
        n, none = len(heights), np.zeros(0)
        return {
            **{"slots": none.astype(np.intp), "weights": none, "ends": np.zeros(n, dtype=np.intp)},
            **{"biases": np.zeros(n), "noise": np.ones(n), "tau2": np.ones(n)},
            **{"log_likelihood": heights, "row_log_likelihood": none},
        }

    def counts(self):
        return {}


@pytest.mark.parametrize(("rate", "n_steps"), [(0.0, 50), (1.0, 130)])
def test_a_chain_that_still_climbs_may_run_on_for_longer(rate, n_steps):
    sampler = Sampler(Climbing(rate), Architecture(1, (), 1), Effort())
    sampler.settle(n_warm_up=10, n_draws=40, most_steps=60, settling_steps=200)
    assert sampler.n_steps == n_steps
    assert sampler.n_draws == 40


class Changing(Climbing):
    """One whose single edge is there in every second run of ten steps."""

    def run(self, steps, every, **options):
        times = np.arange(self.now + every, self.now + steps + 1, every)
        found = super().run(steps, every, **options)
        used = times // 10 % 2
        n = int(used.sum())
        edges = {"slots": np.zeros(n, dtype=np.intp), "weights": np.ones(n)}
        return found | edges | {"ends": np.cumsum(used)}


@pytest.mark.parametrize(("most_steps", "end"), [(100, (90, 80, 1)), (200, (170, 80, 2))])
def test_a_settled_chain_keeps_its_draws_up_to_a_number_and_then_every_second(most_steps, end):
    sampler = Sampler(Changing(0.0), Architecture(1, (), 1), Effort())
    sampler.settle(n_warm_up=10, n_draws=40, most_draws=80, most_steps=most_steps)
    assert (sampler.n_steps, sampler.n_draws, sampler.every) == end


@pytest.mark.parametrize("stop", [3, 8, 11, 15])
def test_a_chain_that_ended_in_any_round_goes_on_to_the_same_draws(stop, tmp_path, monkeypatch):
    monkeypatch.setattr("islab.learn.checkpoint.SHARE_OF_TIME", np.inf)  # every state is kept
    monkeypatch.setattr("islab.learn.sample.chains.LARGEST_ERROR", 0.0)  # all rounds are needed
    rng = np.random.default_rng(0)
    net = Architecture(4, (), 1)
    problem = Problem(rng.standard_normal((30, 4)), rng.standard_normal((30, 1)))
    plan = {"n_warm_up": 10, "n_draws": 40, "most_draws": 120}
    plan |= {"most_steps": 600, "settling_steps": 600}

    def sampler(checkpoint=None):
        start = empty_start(net)
        chain = make_chain(problem, "gaussian", net, start, 1, ChainPrior())
        return Sampler(chain, net, Effort(toggles=1), checkpoint)

    whole = sampler()
    whole.settle(**plan)
    assert whole.every > 1  # more than one kind of round
    calls = iter(range(stop))

    def interrupt(*_):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    path = tmp_path / "chain.npz"
    with pytest.raises(KeyboardInterrupt):
        sampler(Checkpoint(path)).settle(**plan, report=interrupt)
    resumed = sampler(Checkpoint(path))
    resumed.settle(**plan)
    assert (resumed.n_steps, resumed.every) == (whole.n_steps, whole.every)
    for name in ("slots", "weights", "ends", "biases", "noise"):
        own, other = getattr(resumed.draws(), name), getattr(whole.draws(), name)
        np.testing.assert_array_equal(own, other)


def test_a_chain_goes_on_where_a_proposal_has_no_curvature():
    # Twice the same columns, hardly any noise and wide slabs: sums of squares are singular in
    # double precision, so that a unit in the first of two layers cannot be proposed.
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20, 3))
    y = np.maximum(x[:, :1], 0)
    net = Architecture(6, (3, 3), 1)
    problem = Problem(np.hstack([x, x]), (y - y.mean()) / y.std())
    start = empty_start(net, tau2=1e8, noise=1e-18)
    (draws,) = sample_chains(problem, "gaussian", net, [start], seed=1, n_draws=300)
    assert draws.n_draws == 300
    assert np.isfinite(draws.log_likelihood).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_the_regression_of_an_output_follows_its_units(likelihood):
    """Columns that come, change and go leave the matrix that their cross-products give."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((200, 3))
    y = np.abs(x[:, 0]) + np.abs(x[:, 1] - x[:, 2]) - 2 + 0.3 * rng.standard_normal(200)
    y = (y > 0).astype(float) if likelihood == "bernoulli" else y
    net = Architecture(3, (8,), 1)
    chain = make_chain(Problem(x, y[:, None]), likelihood, net, empty_start(net), 1, ChainPrior())
    effort = {"toggles": 20, "edges": 40, "units": 20, "parts": 40, "largest_part": 20}
    drifts = []
    for _ in range(20):
        chain.run(steps=5, every=5, warming=True, keep_rows=False, **effort)
        drifts.append(chain.drift(output=0, **effort))
    assert chain.counts()["add unit"][0] > 4
    assert chain.counts()["weights of a unit"][0] > 20
    assert max(drifts) < 1e-5
