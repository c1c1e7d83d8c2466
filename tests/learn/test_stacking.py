"""Runs that are kept: their draws stand in one architecture and are weighted by stacking."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.compaction import places_in
from islab.core.drawn import DrawnNetworks
from islab.core.folding import folded_draws
from islab.core.leave_one_out import leave_one_out, mixture_density, stacking_weights
from islab.core.network import forward
from islab.core.paths import active_weights
from islab.learn.engines import Problem
from islab.learn.fit import fit
from islab.learn.recipe import default_recipe
from islab.learn.stacking import stacked_posterior

N_ROWS = 400


def bent_problem(n_rows=N_ROWS, seed=0):
    """A product and a bend: restarts find different networks."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    y = x[:, :1] * x[:, 1:2] + np.abs(x[:, :1]) + 0.2 * rng.normal(size=(n_rows, 1))
    return Problem(x, (y - y.mean()) / y.std())


def recipe_of(n_rows=N_ROWS, **changes):
    return default_recipe(n_rows, hidden=(6,), **changes)


@pytest.fixture(scope="module")
def found():
    return fit(bent_problem(), "gaussian", recipe_of(), seed=0)


@pytest.fixture(scope="module")
def posterior(found):
    return stacked_posterior(bent_problem(), found, seed=0)


def row_densities(posterior, problem):
    """Log density of each row under each draw of each run."""
    densities = []
    for chain in posterior.chains:
        eta = chain.predictor(posterior.architecture, problem.x)
        noise = chain.noise[:, None]
        square = (problem.y - eta) ** 2 / noise
        densities.append(-0.5 * (square + np.log(2 * np.pi * noise))[..., 0])
    return densities


@pytest.mark.parametrize(
    ("hidden", "input_skip"),
    [((), True), ((3,), True), ((2, 2), True), ((0, 2), True), ((3,), False), ((2, 2), False)],
)
def test_a_network_predicts_the_same_inside_a_larger_one(hidden, input_skip):
    rng = np.random.default_rng(0)
    small = Architecture(3, hidden, 2, input_skip)
    large = Architecture(3, (5,) if len(hidden) == 1 else (4, 3), 2, input_skip)
    weights, biases = rng.normal(size=(4, small.n_weights)), rng.normal(size=(4, small.n_units))
    slots, units = places_in(small, large)
    wide, all_biases = np.zeros((4, large.n_weights)), np.zeros((4, large.n_units))
    wide[:, slots], all_biases[:, units] = weights, biases
    x = rng.normal(size=(7, 3))
    found = forward(large, wide, all_biases, x)
    np.testing.assert_allclose(found, forward(small, weights, biases, x), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_folded_draws_predict_the_same_over_active_paths(seed):
    rng = np.random.default_rng(seed)
    net = Architecture(3, (4, 3, 3), 2, activation="tanh")
    weights = rng.normal(size=(30, net.n_weights)) * (rng.random((30, net.n_weights)) < 0.2)
    biases, x = rng.normal(size=(30, net.n_units)), rng.normal(size=(6, 3))
    folded, shifted = folded_draws(net, weights, biases)
    assert (folded != weights).any()
    np.testing.assert_array_equal(active_weights(net, folded != 0), folded != 0)
    np.testing.assert_allclose(
        forward(net, folded, shifted, x), forward(net, weights, biases, x), atol=1e-12
    )


def test_the_draws_of_a_run_are_those_of_its_posterior(found, posterior):
    """Their seeds are those of the runs, in their order; the winner is pruned."""
    x = bent_problem().x[:20]
    runs = found.runs | {found.winner: found.posterior}
    seeds = np.random.SeedSequence(0).spawn(len(runs) + 1)
    for run, chain, seed in zip(runs.values(), posterior.chains, seeds, strict=False):
        expected = run.sample_predictor(x, chain.n_draws, np.random.default_rng(seed))
        drawn = chain.predictor(posterior.architecture, x)
        np.testing.assert_allclose(drawn.mean(axis=0), expected.mean(axis=0), atol=0.05)
        np.testing.assert_allclose(drawn.std(axis=0), expected.std(axis=0), atol=0.05)
        np.testing.assert_array_equal(chain.noise, np.tile(run.noise, (chain.n_draws, 1)))


def test_the_mixture_predicts_no_worse_than_the_best_run_left_one_out(posterior):
    densities = row_densities(posterior, bent_problem())
    elpd = np.array([leave_one_out(each)[0] for each in densities])
    mixed = mixture_density(elpd, posterior.chain_weights).sum()
    assert mixed > elpd.sum(axis=1).max() + 5
    np.testing.assert_allclose(posterior.chain_weights, stacking_weights(elpd), atol=1e-9)


def test_the_mixture_predicts_new_rows_better_than_the_winner(found, posterior):
    new = bent_problem(2000, seed=1)
    one = found.posterior.sample_predictor(new.x, 500, np.random.default_rng(0))
    noise = found.posterior.noise
    alone = -0.5 * ((new.y - one) ** 2 / noise + np.log(2 * np.pi * noise))[..., 0]
    each = row_densities(posterior, new)
    means = np.array([np.log(np.exp(own).mean(axis=0)) for own in each])
    mixed = mixture_density(means, posterior.chain_weights).mean()
    assert mixed > np.log(np.exp(alone).mean(axis=0)).mean()


def test_the_readable_network_is_the_winner_with_its_price(found, posterior):
    network, expected = posterior.median(), found.posterior.median()
    x = bent_problem().x
    np.testing.assert_array_equal(network.predictor(x), expected.predictor(x))
    assert posterior.price.n_rows == N_ROWS
    assert posterior.stacked


def test_the_log_likelihood_is_that_of_all_rows_where_some_are_looked_at(found, monkeypatch):
    monkeypatch.setattr("islab.learn.stacking.FEWEST_ROWS", 100)
    monkeypatch.setattr("islab.learn.stacking.WORK", 1.0)
    some = stacked_posterior(bent_problem(), found, seed=0)
    assert some.price.n_rows == 100
    densities = row_densities(some, bent_problem())
    for chain, own in zip(some.chains, densities, strict=True):
        np.testing.assert_allclose(chain.log_likelihood, 4 * own[:, ::4].sum(axis=1))


def test_large_networks_have_fewer_draws(found, monkeypatch):
    monkeypatch.setattr("islab.learn.stacking.MOST_EDGES", 1)
    few = stacked_posterior(bent_problem(), found, seed=0)
    assert {chain.n_draws for chain in few.chains} == {100}


def test_one_run_is_not_stacked():
    linear = fit(bent_problem(), "gaussian", default_recipe(N_ROWS, hidden=()), seed=0)
    assert stacked_posterior(bent_problem(), linear, seed=0) is None


def test_without_skips_the_linear_model_is_left_out():
    recipe = replace(recipe_of(), input_skip=False)
    found = fit(bent_problem(), "gaussian", recipe, seed=0)
    posterior = stacked_posterior(bent_problem(), found, seed=0)
    assert len(posterior.chains) == sum(name != "linear" for name in found.runs)


def test_rows_that_count_double_count_double(found):
    problem = bent_problem()
    weights = np.ones(N_ROWS)
    weights[:50] = 2
    weighted = Problem(problem.x, problem.y, weights)
    densities = row_densities(stacked_posterior(weighted, found, seed=0), problem)
    found_chains = stacked_posterior(weighted, found, seed=0).chains
    for chain, own in zip(found_chains, densities, strict=True):
        np.testing.assert_allclose(chain.log_likelihood, own @ weights)


def test_drawn_networks_use_active_paths_only(posterior):
    networks = DrawnNetworks.joined(
        [chain.networks(posterior.architecture) for chain in posterior.chains]
    )
    kept = networks.dense()[0] != 0
    np.testing.assert_array_equal(active_weights(posterior.architecture, kept), kept)
