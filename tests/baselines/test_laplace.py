"""Laplace's approximation against laplace-torch, closed forms and its own definitions."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from islab.baselines.laplace import (
    Laplace,
    approximate,
    ggn_diagonal,
    prior_groups,
    prune,
)
from islab.core import families
from islab.core.architecture import Architecture
from islab.learn.engines import Problem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def make_target(rng, likelihood, n_rows, n_outputs):
    return {
        "gaussian": lambda: rng.standard_normal((n_rows, n_outputs)),
        "bernoulli": lambda: rng.integers(2, size=(n_rows, n_outputs)).astype(float),
        "student_t": lambda: rng.standard_t(3, size=(n_rows, n_outputs)),
        "poisson": lambda: rng.poisson(2.0, size=(n_rows, n_outputs)).astype(float),
        "negative_binomial": lambda: rng.poisson(2.0, size=(n_rows, n_outputs)).astype(float),
        "categorical": lambda: np.eye(n_outputs)[rng.integers(n_outputs, size=n_rows)],
    }[likelihood]()


def jacobian_of_torch(net, theta, x):
    """Derivatives of the predictor by weights and biases, (rows, outputs, weights + units)."""
    x = torch.as_tensor(x)

    def predictor(flat):
        z = None
        for layer, units in enumerate(net.units):
            parts = [] if layer == 0 else [families.activation(net.activation).torch(z)]
            parts += [x] if layer == 0 or net.input_skip else []
            where = torch.as_tensor(net.weight_index(layer))
            z = torch.cat(parts, dim=1) @ flat[where].T + flat[net.n_weights :][units]
        return z

    return torch.autograd.functional.jacobian(predictor, torch.as_tensor(theta)).numpy()


# -- curvature -----------------------------------------------------------------------------------


# Families whose Hessian at the expected target is the expected one.
EXACT = ["gaussian", "bernoulli", "categorical", "poisson", "negative_binomial"]


def test_outer_products_of_the_roots_are_the_information_of_student_noise(rng):
    family, noise = families.likelihood("student_t"), np.array([0.5, 2.0, 3.0])
    eta = np.zeros((200_000, 3))
    slope = family.gradient(family.sample(eta, noise, rng), eta, noise)
    roots = family.hessian_roots(eta[:1], noise)
    np.testing.assert_allclose((roots**2).sum(axis=(0, 1)), (slope**2).mean(axis=0), rtol=0.02)


@pytest.mark.parametrize("name", EXACT)
def test_outer_products_of_the_roots_are_the_hessian(rng, name):
    family, noise = families.likelihood(name), np.array([1.0, 1.0, 1.0])
    if family.learns_noise:
        noise = np.array([0.5, 2.0, 3.0])
    eta = rng.standard_normal((4, 3))
    y = family.mean(eta)  # where the Hessian is the expected one
    roots = family.hessian_roots(eta, noise)
    found = np.einsum("cni,cnj->nij", roots, roots)
    tensors = [torch.as_tensor(array) for array in (y, noise)]
    for row in range(4):

        def nll(predictor, row=row):
            return family.nll(tensors[0][row], predictor, tensors[1])

        hessian = torch.autograd.functional.hessian(nll, torch.as_tensor(eta[row]))
        np.testing.assert_allclose(found[row], hessian.numpy(), atol=1e-10)


@pytest.mark.parametrize("input_skip", [True, False])
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_diagonal_is_the_sum_of_squared_derivatives(rng, input_skip, hidden, activation):
    net = Architecture(3, hidden, 2, input_skip, activation)
    theta = rng.standard_normal(net.n_weights + net.n_units)
    x, roots = rng.standard_normal((6, 3)), rng.standard_normal((4, 6, 2))

    jacobian = jacobian_of_torch(net, theta, x)
    expected = (np.einsum("cno,nop->cnp", roots, jacobian) ** 2).sum(axis=1)
    np.testing.assert_allclose(ggn_diagonal(net, theta, x, roots), expected, atol=1e-10)


def test_sample_weights_repeat_rows(rng):
    net = Architecture(3, (4,), 3)
    theta = rng.standard_normal(net.n_weights + net.n_units)
    x, y = rng.standard_normal((9, 3)), make_target(rng, "categorical", 9, 3)
    counts = rng.integers(1, 4, size=9)
    problems = (
        Problem(x, y, counts.astype(float)),
        Problem(np.repeat(x, counts, axis=0), np.repeat(y, counts, axis=0)),
    )
    prior, family = np.ones_like(theta), families.likelihood("categorical")
    one, other = (approximate(net, family, theta, prior, np.ones(3), each) for each in problems)
    np.testing.assert_allclose(one.curvature, other.curvature)
    assert one.nll == pytest.approx(other.nll)


# -- against laplace-torch -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def oracle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("laplace")


def as_module(net, theta):
    """The network without skip as a torch module, and the order of its parameters in ours."""
    layers, order = [], []
    for layer, units in enumerate(net.units):
        where = net.weight_index(layer)
        linear = torch.nn.Linear(where.shape[1], where.shape[0]).double()
        own = net.n_weights + np.arange(units.start, units.stop)
        linear.weight.data = torch.as_tensor(theta[where])
        linear.bias.data = torch.as_tensor(theta[own])
        order += [where.ravel(), own]
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1]), np.concatenate(order)


@pytest.mark.parametrize("name", ["gaussian", "categorical"])
@pytest.mark.filterwarnings("ignore")
def test_curvature_and_marginal_likelihood_are_those_of_laplace_torch(oracle, rng, name):
    from laplace.curvature import BackPackGGN

    net = Architecture(3, (5, 4), 3, input_skip=False, activation="tanh")
    theta = 0.5 * rng.standard_normal(net.n_weights + net.n_units)
    x, y = rng.standard_normal((30, 3)), make_target(rng, name, 30, 3)
    noise = np.full(3, 0.49 if name == "gaussian" else 1.0)
    prior = rng.uniform(0.2, 3.0, size=len(theta))
    ours = approximate(net, families.likelihood(name), theta, prior, noise, Problem(x, y))

    module, order = as_module(net, theta)
    target = torch.as_tensor(y if name == "gaussian" else y.argmax(axis=1))
    data = torch.utils.data.TensorDataset(torch.as_tensor(x), target)
    theirs = oracle.Laplace(
        module,
        "regression" if name == "gaussian" else "classification",
        subset_of_weights="all",
        hessian_structure="diag",
        backend=BackPackGGN,
        prior_precision=torch.as_tensor(prior[order]),
        sigma_noise=float(noise[0] ** 0.5),
    )
    theirs.fit(torch.utils.data.DataLoader(data, batch_size=30))
    precision = theirs.posterior_precision.detach().numpy()
    np.testing.assert_allclose(ours.precision[order], precision, rtol=1e-6)
    expected = float(theirs.log_marginal_likelihood())
    assert ours.log_marginal_likelihood == pytest.approx(expected, rel=1e-6)


# -- marginal likelihood -------------------------------------------------------------------------


def orthogonal_regression(rng, n_rows=40, noise=0.3):
    """A linear model whose posterior is independent by weight, fitted exactly."""
    basis = np.linalg.qr(np.column_stack([np.ones(n_rows), rng.standard_normal((n_rows, 3))]))[0]
    x = basis[:, 1:] * np.sqrt(n_rows) * np.array([1.0, 2.0, 0.5])
    y = x @ np.array([1.0, 0.0, -0.5]) + 0.4 + np.sqrt(noise) * rng.standard_normal(n_rows)
    prior = np.array([0.5, 4.0, 1.5, 0.2])
    design = np.column_stack([x, np.ones(n_rows)])
    theta = design.T @ y / ((design**2).sum(axis=0) + noise * prior)
    return Architecture(3, (), 1), x, y, design, theta, prior, np.array([noise])


def test_marginal_likelihood_of_a_linear_model_is_exact(rng):
    net, x, y, design, theta, prior, noise = orthogonal_regression(rng)
    problem = Problem(x, y[:, None])
    found = approximate(net, families.likelihood("gaussian"), theta, prior, noise, problem)
    covariance = noise * np.eye(len(y)) + design / prior @ design.T
    expected = multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    assert found.log_marginal_likelihood == pytest.approx(expected, rel=1e-10)


def test_the_posterior_of_a_linear_model_is_exact(rng):
    net, x, y, design, theta, prior, noise = orthogonal_regression(rng)
    problem = Problem(x, y[:, None])
    found = approximate(net, families.likelihood("gaussian"), theta, prior, noise, problem)
    exact = design.T @ design / noise + np.diag(prior)
    np.testing.assert_allclose(np.diag(found.precision), exact, atol=1e-8)


def random_laplace(rng, n_weights=30):
    curvature = rng.gamma(0.5, 20.0, size=(1, n_weights + 2))
    prior = rng.uniform(1.0, 50.0, size=n_weights + 2)
    return Laplace(rng.standard_normal(n_weights + 2), prior, curvature, 12.0, np.array([8.0]))


@pytest.mark.parametrize("prior", ["weight", "layer", "network"])
def test_a_step_of_the_priors_never_lowers_the_marginal_likelihood(rng, prior):
    groups = {"weight": np.arange(30), "layer": np.arange(30) % 3, "network": np.zeros(30, int)}
    laplace = random_laplace(rng)
    if prior != "weight":
        start = np.array([2.0, 30.0, 5.0])[groups[prior]]
        laplace.prior_precision[:30] = start
    values = []
    for _ in range(12):
        values.append(laplace.log_marginal_likelihood)
        better = laplace.better_prior(groups[prior])
        laplace = Laplace(laplace.theta, better, laplace.curvature, laplace.nll, laplace.error)
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0] + 0.1


def test_priors_settle_where_the_marginal_likelihood_is_level(rng):
    laplace = random_laplace(rng)
    laplace.theta[:30] *= 0.1  # away from the bounds
    laplace.curvature[0, :30] += 50
    for _ in range(60):
        better = laplace.better_prior(np.zeros(30, dtype=int))
        laplace = Laplace(laplace.theta, better, laplace.curvature, laplace.nll, laplace.error)

    def value(factor):
        prior = np.concatenate([better[:30] * factor, better[30:]])
        moved = Laplace(laplace.theta, prior, laplace.curvature, laplace.nll, laplace.error)
        return moved.log_marginal_likelihood

    assert (value(1.001) - value(0.999)) / 0.002 == pytest.approx(0.0, abs=1e-4)


def test_biases_keep_their_prior(rng):
    laplace = random_laplace(rng)
    better = laplace.better_prior(np.arange(30))
    np.testing.assert_array_equal(better[30:], laplace.prior_precision[30:])


def test_noise_of_a_linear_model_settles_at_the_best_marginal_likelihood(rng):
    net, x, y, design, _, prior, noise = orthogonal_regression(rng)
    family, problem = families.likelihood("gaussian"), Problem(x, y[:, None])

    def laplace(noise):
        theta = design.T @ y / ((design**2).sum(axis=0) + noise * prior)
        return approximate(net, family, theta, prior, noise, problem)

    for _ in range(100):
        noise = laplace(noise).better_noise(noise, len(y))
    values = [laplace(noise * factor).log_marginal_likelihood for factor in (0.98, 1.0, 1.02)]
    assert values[1] > max(values[0], values[2])


def test_groups_of_priors_are_weights_layers_or_one(rng):
    net = Architecture(2, (3,), 1, input_skip=False)
    sizes = {name: np.bincount(prior_groups(net, name)) for name in ("weight", "layer", "network")}
    assert sizes["weight"].tolist() == [1] * 9
    assert sizes["layer"].tolist() == [6, 3]
    assert sizes["network"].tolist() == [9]


# -- pruning -------------------------------------------------------------------------------------


def test_the_least_damaging_weights_go_first(rng):
    net = Architecture(3, (4, 2), 1, input_skip=False)
    damage = rng.permutation(net.n_weights).astype(float)
    before_last = np.flatnonzero(net.by_block([b.layer for b in net.blocks]) < 2)
    for sparsity in (0.0, 0.25, 0.5, 0.9):
        kept = prune(net, damage, sparsity)
        pruned = np.flatnonzero(~kept)
        n_pruned = round(sparsity * len(before_last))
        expected = before_last[np.argsort(damage[before_last])][:n_pruned]
        np.testing.assert_array_equal(pruned, np.sort(expected))


def test_the_last_layer_is_kept_whatever_its_damage():
    net = Architecture(3, (4,), 2)
    damage = np.where(net.by_block([b.layer for b in net.blocks]) == 1, 0.0, 1.0)
    kept = prune(net, damage, 0.99)
    assert kept[damage == 0].all()
    assert kept[damage == 1].sum() == 1


def test_damage_is_precision_times_squared_weight(rng):
    laplace = random_laplace(rng)
    expected = (laplace.curvature[0] + laplace.prior_precision) * laplace.theta**2
    np.testing.assert_allclose(laplace.damage, expected)
