"""Normalizing flows: log-determinants, masks and the auxiliary model."""

import numpy as np
import pytest
import torch

from islab.core.priors import Prior
from islab.learn.engines.flows import FlowGroup, Transform
from islab.learn.engines.torch.flow import FlowEngine, log_r, push, sample, transformed
from tests.learn.engines.problems import make_posterior, make_problem, make_steps


def random_pieces(group, rng):
    """Parameters far from the identity, with forbidden weights at zero."""
    flat = rng.standard_normal(group.size) * group.free()
    parts = torch.as_tensor(flat).split(group.sizes)
    return [part.reshape(shape) for part, shape in zip(parts, group.shapes, strict=True)]


def moved_entries(group):
    return [torch.as_tensor(transform.moved, dtype=torch.float64) for transform in group.transforms]


@pytest.mark.parametrize("kind", ["iaf", "rnvp"])
@pytest.mark.parametrize("n_inputs", [1, 2, 5])
@pytest.mark.parametrize("number", [0, 1])
def test_log_determinant_of_a_transform_is_that_of_its_jacobian(kind, n_inputs, number):
    rng = np.random.default_rng(n_inputs)
    group = FlowGroup((0,), n_inputs, kind, 2, width=7)
    pieces = random_pieces(group, rng)[7 + 6 * number : 13 + 6 * number]
    moved = moved_entries(group)[number]
    z = torch.as_tensor(rng.standard_normal(n_inputs))

    def transform(z):
        return transformed(z[None, None], pieces, moved)[0][0, 0]

    jacobian = torch.autograd.functional.jacobian(transform, z)
    _, log_det = transformed(z[None, None], pieces, moved)
    assert float(log_det) == pytest.approx(float(torch.linalg.slogdet(jacobian)[1]), abs=1e-10)


@pytest.mark.parametrize("kind", ["iaf", "rnvp"])
def test_log_density_of_a_flow_follows_from_the_jacobian_of_all_its_transforms(kind):
    rng = np.random.default_rng(0)
    group = FlowGroup((0, 1), 4, kind, 3, width=6)
    pieces = random_pieces(group, rng)
    moved = moved_entries(group)
    eps = torch.as_tensor(rng.standard_normal((2, 1, 4)))
    z, log_q = sample(pieces, eps, moved)
    for layer in range(2):

        def push(e, layer=layer):
            full = eps.clone()
            full[layer, 0] = e
            return sample(pieces, full, moved)[0][layer, 0]

        jacobian = torch.autograd.functional.jacobian(push, eps[layer, 0])
        standard = torch.distributions.Normal(0.0, 1.0).log_prob(eps[layer, 0]).sum()
        expected = standard - torch.linalg.slogdet(jacobian)[1]
        assert float(log_q[layer, 0]) == pytest.approx(float(expected), abs=1e-9)
    assert z.shape == (2, 1, 4)


def test_autoregressive_transform_never_looks_ahead():
    transform = Transform.make("iaf", 6, 9, 0)
    reach = transform.first.astype(int) @ transform.middle.astype(int) @ transform.last.astype(int)
    assert (np.tril(reach[:, :6]) == 0).all()
    assert reach[:, :6].any()


def test_auxiliary_density_is_a_gaussian_of_the_whole_pulled_back_vector():
    rng = np.random.default_rng(1)
    group = FlowGroup((0,), 5, "iaf", 2, width=6)
    pieces = random_pieces(group, rng)
    moved = moved_entries(group)
    z = torch.as_tensor(rng.standard_normal((1, 1, 5)))
    statistic = torch.full((1, 1, 1), 0.3, dtype=torch.float64)
    density = log_r(pieces, z, statistic, moved)
    z_b, log_det = push(z, pieces[7 + 12 :], moved)
    normal = torch.distributions.Normal(
        pieces[2] + 0.3 * pieces[5], (0.5 * (pieces[3] + 0.3 * pieces[6])).exp()
    )
    expected = normal.log_prob(z_b).sum() + log_det.sum()
    assert float(density) == pytest.approx(float(expected), abs=1e-10)


def make_engine(rng, **options):
    problem = make_problem(rng, "gaussian")
    start = make_posterior(rng, problem)
    engine = FlowEngine(start, problem, seed=1, flow_width=8, dtype=torch.float64, **options)
    engine.set_prior(Prior.same(start.architecture, tau=1.0, psi=0.3), np.ones(5))
    return engine


def test_prior_inclusion_is_counted_once():
    """A posterior equal to its prior has no divergence apart from the flow's own terms."""
    rng = np.random.default_rng(0)
    engine = make_engine(rng)
    psi, sigma = 0.3, np.log(np.expm1(1.0))
    with torch.no_grad():
        mu, rho, lam, bias_mu, bias_rho = engine.parts(engine.theta)
        mu.zero_()
        rho.fill_(sigma)
        lam.fill_(np.log(psi / (1 - psi)))
        bias_mu.zero_()
        bias_rho.fill_(np.log(np.expm1(2.5)))
        parts = engine.parts(engine.theta)
        _, _, divergence = engine._spike_and_slab(*parts, value=True)
    assert float(divergence) == pytest.approx(0.0, abs=1e-9)


def test_forbidden_weights_stay_at_zero_in_training():
    rng = np.random.default_rng(2)
    engine = make_engine(rng)
    engine.run(make_steps(rng, 40))
    flows = engine.state()["flow_parameters"]
    free = np.concatenate([group.free() for group in engine.groups])
    assert (flows[~free] == 0).all()
    assert (flows[free] != 0).any()


@pytest.mark.parametrize("kind", ["iaf", "rnvp"])
def test_gradient_by_weights_and_flows_matches_finite_differences(kind):
    rng = np.random.default_rng(3)
    engine = make_engine(rng, flow=kind)
    rows = torch.arange(6)
    eps = torch.as_tensor(rng.standard_normal((engine.architecture.n_units, 6)))

    def loss():
        generator = torch.Generator().manual_seed(5)
        mean, variance, kl = engine.weights(generator, value=True)
        eta = engine.forward(engine.x[rows], mean, variance, eps)
        return engine._nll(rows, eta).sum() + 0.3 * kl

    with torch.no_grad():
        for piece in engine.flows:
            piece += 0.1 * torch.as_tensor(rng.standard_normal(piece.shape))
    loss().backward()
    for vector in (engine.theta, *engine.flows):
        gradient = vector.grad.clone()
        for _ in range(2):
            direction = torch.as_tensor(rng.standard_normal(vector.shape))
            with torch.no_grad():
                vector += 1e-6 * direction
                up = float(loss())
                vector -= 2e-6 * direction
                down = float(loss())
                vector += 1e-6 * direction
            assert (up - down) / 2e-6 == pytest.approx(
                float((gradient * direction).sum()), rel=1e-4, abs=1e-6
            )


def test_bank_of_multipliers_starts_near_one():
    engine = make_engine(np.random.default_rng(0))
    found = engine.posterior()
    assert found.multipliers.shape == (1000, sum(engine.architecture.n_inputs(i) for i in range(3)))
    np.testing.assert_allclose(found.multipliers.mean(axis=0), 1.0, atol=0.3)


def test_restored_engine_goes_on_bit_for_bit():
    rng = np.random.default_rng(6)
    engine = make_engine(rng)
    first, second = make_steps(rng, 40), make_steps(rng, 40)
    engine.run(first)
    state = engine.state()
    nll = engine.run(second)
    flows = engine.state()["flow_parameters"]
    engine.restore(state)
    assert engine.run(second) == nll
    np.testing.assert_array_equal(engine.state()["flow_parameters"], flows)


def test_at_the_start_the_flow_costs_next_to_nothing():
    """r starts equal to q, so that training begins like without a flow."""
    engine = make_engine(np.random.default_rng(0))
    with torch.no_grad():
        _, _, weights = engine._spike_and_slab(*engine.parts(engine.theta), value=True)
    assert engine.kl() == pytest.approx(float(weights), abs=0.02 * float(weights))


def test_dropping_units_keeps_the_multipliers_of_the_others():
    rng = np.random.default_rng(4)
    engine = make_engine(rng)
    before = engine.posterior()
    masks = [np.array([True, False, True, True, False]), np.array([True, True, False, True])]
    kept = engine.architecture.keep_units(masks)
    engine.keep_units(masks, np.zeros(engine.architecture.n_units))
    after = engine.posterior()
    np.testing.assert_allclose(
        after.mean_multiplier(), before.mean_multiplier()[kept.weights], rtol=1e-12
    )
    engine.set_prior(Prior.same(kept.architecture, tau=1.0, psi=0.3), np.ones(5))
    assert np.isfinite(engine.run(make_steps(rng, 40)))
