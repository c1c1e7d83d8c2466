"""The sampled posterior, on draws written by hand."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.network import forward
from islab.core.sampled import SampledPosterior

NET = Architecture(n_covariates=3, hidden=(2, 2), n_outputs=1, activation="relu")


def chain(*draws, noise=1.0):
    """Draws given as {(source, target): weight}; sources are x0, x1, x2, then units."""
    sources, targets = NET.ends
    number = {ends: slot for slot, ends in enumerate(zip(sources, targets, strict=True))}
    return ChainDraws(
        slots=np.array([number[ends] for draw in draws for ends in draw], dtype=np.intp),
        weights=np.array([weight for draw in draws for weight in draw.values()]),
        ends=np.cumsum([len(draw) for draw in draws]),
        biases=np.zeros((len(draws), NET.n_units)),
        noise=np.full((len(draws), 1), noise),
        tau2=np.ones((len(draws), len(NET.blocks))),
        log_likelihood=np.zeros(len(draws)),
        row_log_likelihood=np.zeros((len(draws), 0)),
        moves={},
    )


LINEAR = {(0, 4): 2.0}
BENT = {(1, 2): 1.0, (5, 4): 1.0}
DEEP = {(0, 0): 1.0, (3, 2): 1.0, (2, 2): 1.0, (5, 4): 1.0}


def posterior(*chains, weights=None):
    weights = np.full(len(chains), 1 / len(chains)) if weights is None else np.array(weights)
    return SampledPosterior(NET, "gaussian", tuple(chains), weights)


def test_a_covariate_is_used_as_often_as_draws_have_it():
    frame = posterior(chain(LINEAR, BENT), chain(LINEAR, LINEAR)).to_frame()
    assert frame["p_used"].tolist() == [0.75, 0.25, 0.0]
    assert frame["p_nonlinear"].tolist() == [0.0, 0.25, 0.0]
    assert (frame["lowest_chain"]["x0"], frame["highest_chain"]["x0"]) == (0.5, 1.0)


def test_covariates_meet_in_a_unit_that_both_reach():
    pairs = posterior(chain(DEEP, LINEAR)).pairs()
    assert pairs.to_dict("records") == [{"first": "x0", "second": "x2", "p": 0.5}]


def test_chains_count_by_their_weights():
    frame = posterior(chain(LINEAR), chain(BENT), weights=[0.8, 0.2]).to_frame()
    np.testing.assert_allclose(frame["p_used"], [0.8, 0.2, 0.0])


def test_chosen_draws_stand_for_the_weights():
    chosen = posterior(chain(LINEAR), chain(BENT), weights=[0.75, 0.25]).numbers(8)
    assert np.bincount(chosen).tolist() == [6, 2]


@pytest.mark.parametrize("n_draws", [1, 3, 10])
def test_predictors_are_those_of_the_drawn_networks(n_draws):
    sampled = posterior(chain(LINEAR, BENT), chain(DEEP))
    x = np.random.default_rng(0).standard_normal((5, 3))
    weights, biases = sampled.draw(n_draws, np.random.default_rng(1))
    expected = forward(NET, weights, biases, x)
    np.testing.assert_allclose(sampled.sample_predictor(x, n_draws), expected)


def test_noise_goes_with_the_draws():
    sampled = posterior(chain(LINEAR, noise=0.5), chain(BENT, noise=2.0))
    assert sampled.noise_of(sampled.numbers(4)).ravel().tolist() == [0.5, 0.5, 2.0, 2.0]
