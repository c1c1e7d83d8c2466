"""Explanations of draws that have different structures, against the sampled posterior itself."""

import numpy as np
import pytest

from islab.core.scale import Scale
from islab.explain import explain_global, explain_local
from islab.explain.drawn import ExplainedNetworks
from islab.explain.importance import meetings
from tests.core.test_sampled import BENT, DEEP, LINEAR, chain, posterior
from tests.explain.test_effects import network_with

DRAWS = (DEEP, LINEAR, BENT, DEEP)


@pytest.fixture
def sampled():
    return posterior(chain(*DRAWS), chain(LINEAR, LINEAR, DEEP, BENT))


def test_probabilities_are_the_posterior_s(sampled):
    networks = ExplainedNetworks.collect(sampled, Scale.plain(3, 1), [sampled.draw(8, None)])
    used, meet = meetings(networks)
    np.testing.assert_allclose(used, sampled.to_frame()["p_used"])
    pairs = {(f"x{i}", f"x{j}"): meet[i, j] for i in range(3) for j in range(i + 1, 3)}
    expected = {(p.first, p.second): p.p for p in sampled.pairs().itertuples()}
    assert {pair: p for pair, p in pairs.items() if p} == expected


def test_the_probability_of_a_bend_is_the_posterior_s(sampled):
    net = sampled.architecture
    network = network_with(np.zeros(net.n_weights), net, scale=Scale.plain(3, 1))
    effects = explain_global(network, posterior=sampled, n_draws=8).effects
    expected = sampled.to_frame()["p_nonlinear"]
    assert effects.set_index("term")["p_nonlinear"].to_dict() == expected.to_dict()


def test_every_draw_is_explained_by_its_own_network(sampled):
    x = np.random.default_rng(0).normal(size=(6, 3))
    found = explain_local(sampled, x, n_draws=8, baseline=[-1.0, -1.0, -1.0])
    total = found.draws_intercept + found.draws_contribution.sum(axis=2)
    np.testing.assert_allclose(total, sampled.sample_predictor(x, 8), atol=1e-12)
    linear = [number for number, draw in enumerate(DRAWS) if draw is LINEAR]
    # A draw that does not use a covariate gives it nothing.
    assert not found.draws_contribution[linear][:, :, 1:].any()
    np.testing.assert_allclose(
        found.draws_contribution[linear][:, :, 0, 0], [2 * (x[:, 0] + 1)] * len(linear)
    )


def test_means_over_draws_are_those_of_the_chains_weights():
    weighted = posterior(chain(LINEAR), chain(BENT), weights=[0.75, 0.25])
    found = explain_local(weighted, np.array([[1.0, 1.0, 0.0]]), n_draws=8)
    np.testing.assert_allclose(found.contribution[0, :, 0], [0.75 * 2.0, 0.25 * 1.0, 0.0])
