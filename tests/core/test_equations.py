"""The formulas against sampling, quadrature, finite differences and their own limits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from islab.core.equations import (
    gaussian_kl,
    gradients,
    inverse_softplus,
    kl,
    kl_from_lambda,
    moments,
    sigmoid,
    slab_kl,
    slab_kl_slopes,
    softplus,
    student_log_constant,
)

SLABS = [None, 3.0]  # degrees of freedom; None is the Gaussian
WEIGHTS = [(0.0, 1.0, 0.5), (0.7, 0.2, 0.1), (-1.3, 0.5, 0.9), (2.0, 0.05, 0.999)]
N_DRAWS = 200_000


def slab(tau, df):
    return stats.norm(scale=tau) if df is None else stats.t(df, scale=tau)


def as_arrays(*values, dtype=np.float64):
    return [np.array([value], dtype=dtype) for value in values]


def from_lambda(mu, sigma, lam, *, tau, psi, df=None):
    """``kl_from_lambda`` with everything that the caller computes, in the type of ``lam``."""
    number = lam.dtype.type
    return kl_from_lambda(
        mu,
        sigma,
        sigmoid(lam),
        lam,
        softplus(lam),
        tau=number(tau),
        logit_psi=number(special.logit(psi)),
        log_not_psi=number(np.log1p(-psi)),
        df=df,
    )


@pytest.mark.parametrize(("mu", "sigma", "alpha"), WEIGHTS)
def test_moments_match_draws(mu, sigma, alpha):
    rng = np.random.default_rng(1)
    included = rng.random(N_DRAWS) < alpha
    draws = included * rng.normal(mu, sigma, N_DRAWS)
    mean, variance = (float(m[0]) for m in moments(*as_arrays(mu, sigma, alpha)))
    squared = (draws - draws.mean()) ** 2
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / N_DRAWS)
    assert abs(squared.mean() - variance) < 5 * squared.std() / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("df", SLABS)
@pytest.mark.parametrize(("mu", "sigma", "alpha"), WEIGHTS)
def test_kl_matches_the_mean_log_density_ratio_of_draws(mu, sigma, alpha, df):
    rng = np.random.default_rng(2)
    tau, psi = 1.5, 0.2
    included = rng.random(N_DRAWS) < alpha
    draws = rng.normal(mu, sigma, N_DRAWS)
    log_slabs = stats.norm.logpdf(draws, mu, sigma) - slab(tau, df).logpdf(draws)
    ratio = np.where(included, log_slabs + np.log(alpha / psi), np.log((1 - alpha) / (1 - psi)))
    value = float(kl(*as_arrays(mu, sigma, alpha), tau=tau, psi=psi, df=df)[0])
    assert abs(ratio.mean() - value) < 5 * ratio.std() / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("df", SLABS)
@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("mu", [0.0, 1.0, -4.0])
def test_slab_kl_matches_numerical_integration(mu, sigma, df):
    z = np.linspace(-12, 12, 20_001)
    log_ratio = stats.norm.logpdf(z) - np.log(sigma) - slab(1.0, df).logpdf(mu + sigma * z)
    expected = integrate.trapezoid(stats.norm.pdf(z) * log_ratio, z)
    value = float(slab_kl(*as_arrays(mu, sigma), tau=1.0, df=df)[0])
    assert value == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("df", [1.0, 3.0, 10.0])
@pytest.mark.parametrize(("sigma", "error"), [(1.0, 2e-4), (2.0, 0.01), (5.0, 0.1)])
def test_error_of_the_student_slab_is_what_its_notes_say(sigma, error, df):
    z = np.linspace(-12, 12, 20_001)
    log_ratio = stats.norm.logpdf(z) - np.log(sigma) - stats.t.logpdf(sigma * z, df)
    expected = integrate.trapezoid(stats.norm.pdf(z) * log_ratio, z)
    value = float(slab_kl(*as_arrays(0.0, sigma), tau=1.0, df=df)[0])
    assert value == pytest.approx(expected, abs=error)


def test_student_slab_with_many_degrees_of_freedom_is_the_gaussian_slab():
    mu, sigma = as_arrays(0.8, 0.6)
    gaussian = slab_kl(mu, sigma, tau=1.2)
    np.testing.assert_allclose(slab_kl(mu, sigma, tau=1.2, df=1e7), gaussian, atol=1e-6)


@pytest.mark.parametrize("df", [1.0, 3.0, 30.0])
def test_student_log_constant_is_the_log_density_at_zero(df):
    assert student_log_constant(df) == pytest.approx(stats.t.logpdf(0, df), abs=1e-12)


@pytest.mark.parametrize("function", [softplus, sigmoid, inverse_softplus])
def test_numpy_and_torch_transforms_agree(function):
    values = np.geomspace(1e-6, 50, 40)
    np.testing.assert_allclose(
        function(torch.from_numpy(values)).numpy(), function(values), rtol=1e-13
    )


@pytest.mark.parametrize("df", SLABS)
def test_numpy_and_torch_divergences_agree(df):
    rng = np.random.default_rng(3)
    mu, sigma, alpha = rng.normal(size=9), rng.uniform(0.1, 2, 9), rng.random(9)
    alpha[:2] = 0, 1
    tau, psi = rng.uniform(0.5, 2, 9), rng.uniform(0.01, 0.5, 9)
    tensors = [torch.from_numpy(a) for a in (mu, sigma, alpha)]
    in_torch = kl(*tensors, tau=torch.from_numpy(tau), psi=torch.from_numpy(psi), df=df)
    in_numpy = kl(mu, sigma, alpha, tau=tau, psi=psi, df=df)
    np.testing.assert_allclose(in_torch.numpy(), in_numpy, rtol=1e-12)


def test_numpy_and_torch_moments_agree():
    rng = np.random.default_rng(4)
    arrays = rng.normal(size=9), rng.uniform(0.1, 2, 9), rng.random(9)
    in_torch = moments(*(torch.from_numpy(a) for a in arrays))
    for tensor, array in zip(in_torch, moments(*arrays), strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-14)


def test_kl_of_a_weight_surely_excluded_is_minus_log_of_one_minus_psi():
    value = kl(*as_arrays(3.0, 0.1, 0.0), tau=1.0, psi=0.2)
    assert value[0] == pytest.approx(-np.log(0.8), rel=1e-14)


def test_kl_of_a_weight_surely_included_is_the_slab_and_minus_log_psi():
    mu, sigma, alpha = as_arrays(3.0, 0.1, 1.0)
    slab_alone = slab_kl(mu, sigma, tau=1.0)
    np.testing.assert_allclose(
        kl(mu, sigma, alpha, tau=1.0, psi=0.2), slab_alone - np.log(0.2), rtol=1e-14
    )


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_kl_is_continuous_as_alpha_nears_certainty(edge):
    near = abs(edge - 1e-13)
    values = [kl(*as_arrays(0.5, 0.3, alpha), tau=1.0, psi=0.1)[0] for alpha in (edge, near)]
    assert values[0] == pytest.approx(values[1], abs=1e-11)


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_kl_has_no_nan_gradient_at_certainty(edge):
    alpha = torch.tensor([edge], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, dtype=torch.float64)
    kl(one, one, alpha, tau=1.0, psi=0.1).sum().backward()
    assert torch.isfinite(alpha.grad).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_variance_at_certainty_is_exact(alpha):
    _, variance = moments(*as_arrays(1e4, 1e-3, alpha, dtype=np.float32))
    assert variance[0] == np.float32(alpha) * np.float32(1e-3) ** 2


@given(st.floats(-1e6, 1e6, width=32), st.floats(0, 1e3, width=32), st.floats(0, 1, width=32))
@settings(max_examples=200, deadline=None)
def test_variance_is_never_negative_in_single_precision(mu, sigma, alpha):
    assert moments(*as_arrays(mu, sigma, alpha, dtype=np.float32))[1][0] >= 0


@given(st.floats(-3, 3), st.floats(0.01, 3), st.floats(0, 1), st.floats(1e-4, 0.999))
@settings(max_examples=200, deadline=None)
def test_kl_is_never_negative(mu, sigma, alpha, psi):
    assert kl(*as_arrays(mu, sigma, alpha), tau=1.0, psi=psi)[0] >= -1e-14


def test_kl_is_zero_at_the_prior():
    tau, psi = np.array([0.3, 2.0]), np.array([0.01, 0.5])
    np.testing.assert_allclose(kl(np.zeros(2), tau, psi, tau=tau, psi=psi), 0, atol=1e-15)


def test_kl_from_lambda_is_zero_at_the_prior():
    lam = special.logit(np.array([0.01, 0.5, 0.9]))
    for number, psi in zip(lam, [0.01, 0.5, 0.9], strict=True):
        value = from_lambda(*as_arrays(0.0, 0.7, number), tau=0.7, psi=psi)
        np.testing.assert_allclose(value, 0, atol=1e-15)


@pytest.mark.parametrize("df", SLABS)
def test_kl_from_lambda_equals_kl(df):
    rng = np.random.default_rng(5)
    mu, sigma, lam = rng.normal(size=50), rng.uniform(0.05, 2, 50), rng.uniform(-15, 15, 50)
    direct = kl(mu, sigma, special.expit(lam), tau=1.3, psi=0.07, df=df)
    np.testing.assert_allclose(
        from_lambda(mu, sigma, lam, tau=1.3, psi=0.07, df=df), direct, rtol=1e-9
    )


@pytest.mark.parametrize("df", SLABS)
@pytest.mark.parametrize("lam", [-31.0, 31.0])
def test_kl_from_lambda_is_right_in_single_precision_at_the_largest_lambda(lam, df):
    single = from_lambda(*as_arrays(0.5, 0.3, lam, dtype=np.float32), tau=1.0, psi=0.1, df=df)
    double = from_lambda(*as_arrays(0.5, 0.3, lam), tau=1.0, psi=0.1, df=df)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_bias_divergence_is_that_of_two_normals():
    mu, sigma, tau = 0.4, 0.3, 2.5
    between = torch.distributions.kl_divergence(
        torch.distributions.Normal(torch.tensor(mu).double(), torch.tensor(sigma).double()),
        torch.distributions.Normal(torch.tensor(0.0).double(), torch.tensor(tau).double()),
    )
    assert gaussian_kl(*as_arrays(mu, sigma), tau=tau)[0] == pytest.approx(float(between), rel=1e-6)


def parameters():
    generator = torch.Generator().manual_seed(6)
    mu, rho, lam = torch.randn((3, 6), generator=generator, dtype=torch.float64)
    return [p.clone().requires_grad_() for p in (mu, rho, 2 * lam)]


@pytest.mark.parametrize("df", SLABS)
def test_gradient_of_kl_matches_finite_differences(df):
    def divergence(mu, rho, lam):
        return kl(mu, softplus(rho), sigmoid(lam), tau=1.3, psi=0.1, df=df)

    assert torch.autograd.gradcheck(divergence, parameters())


@pytest.mark.parametrize("df", SLABS)
def test_gradient_of_kl_from_lambda_matches_finite_differences(df):
    def divergence(mu, rho, lam):
        tau, logit_psi, log_not_psi = torch.tensor([1.3, -2.0, np.log(0.88)], dtype=torch.float64)
        return kl_from_lambda(
            mu,
            softplus(rho),
            sigmoid(lam),
            lam,
            softplus(lam),
            tau=tau,
            logit_psi=logit_psi,
            log_not_psi=log_not_psi,
            df=df,
        )

    assert torch.autograd.gradcheck(divergence, parameters())


def test_gradient_of_moments_matches_finite_differences():
    def both(mu, rho, lam):
        return moments(mu, softplus(rho), sigmoid(lam))

    assert torch.autograd.gradcheck(both, parameters())


@pytest.mark.parametrize("df", SLABS)
def test_slopes_of_the_slab_divergence_match_autograd(df):
    mu, rho, scale = parameters()
    sigma, tau = (softplus(p).detach() for p in (rho, scale))
    sigma.requires_grad_()
    expected = torch.autograd.grad(slab_kl(mu, sigma, tau=tau, df=df).sum(), (mu, sigma))
    found = slab_kl_slopes(mu.detach(), sigma.detach(), tau=tau, df=df)
    for slope, by_autograd in zip(found, expected, strict=True):
        np.testing.assert_allclose(slope.numpy(), by_autograd.numpy(), rtol=1e-11, atol=1e-13)


def gradient_arguments(mu, rho, lam):
    """Arguments of ``gradients`` that follow from the parameters."""
    return mu, softplus(rho), sigmoid(lam), lam, sigmoid(rho)


@pytest.mark.parametrize("df", SLABS)
def test_closed_form_gradients_match_autograd(df):
    mu, rho, lam = parameters()
    tau, logit_psi = torch.linspace(0.5, 2, 6).double(), torch.linspace(-4, 0, 6).double()

    def loss(mean, variance):
        return (torch.sin(mean) + mean * torch.sqrt(variance)).sum()

    both = moments(mu, softplus(rho), sigmoid(lam))
    leaves = [m.detach().requires_grad_() for m in both]  # the variance is computed from the mean
    by_moments = torch.autograd.grad(loss(*leaves), leaves)
    divergence = kl_from_lambda(
        mu,
        softplus(rho),
        sigmoid(lam),
        lam,
        softplus(lam),
        tau=tau,
        logit_psi=logit_psi,
        log_not_psi=-softplus(logit_psi),
        df=df,
    )
    expected = torch.autograd.grad(loss(*both) + 0.3 * divergence.sum(), (mu, rho, lam))
    values = gradient_arguments(*(p.detach() for p in (mu, rho, lam)))
    found = gradients(*values, *by_moments, 0.3, tau=tau, logit_psi=logit_psi, df=df)
    for slope, by_autograd in zip(found, expected, strict=True):
        np.testing.assert_allclose(slope.numpy(), by_autograd.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("df", SLABS)
def test_numpy_and_torch_gradients_agree(df):
    tensors = [p.detach() for p in (*gradient_arguments(*parameters()), *parameters()[:2])]
    tau = torch.tensor(1.3, dtype=torch.float64)
    in_torch = gradients(*tensors, 0.3, tau=tau, logit_psi=-2.0, df=df)
    arrays = [tensor.numpy() for tensor in tensors]
    in_numpy = gradients(*arrays, 0.3, tau=1.3, logit_psi=-2.0, df=df)
    for tensor, array in zip(in_torch, in_numpy, strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-12)


@pytest.mark.parametrize("df", SLABS)
def test_closed_form_gradients_vanish_at_the_best_gaussian_and_inclusion(df):
    sigma = np.array([0.7])
    if df is not None:
        best = optimize.brentq(
            lambda s: slab_kl_slopes(*as_arrays(0.0, s), tau=0.7, df=df)[1][0], 0.1, 5
        )
        sigma = np.array([best])
    lam = special.logit(0.1) - slab_kl(np.zeros(1), sigma, tau=0.7, df=df)
    values = gradient_arguments(np.zeros(1), inverse_softplus(sigma), lam)
    found = gradients(
        *values, np.zeros(1), np.zeros(1), 1.0, tau=0.7, logit_psi=special.logit(0.1), df=df
    )
    np.testing.assert_allclose(found, 0, atol=1e-12)


def gradient_by_lambda(lam, dtype):
    values = gradient_arguments(*as_arrays(1.0, -1.0, lam, dtype=dtype))
    one = np.ones(1, dtype=dtype)
    found = gradients(*values, one, one, one, tau=one, logit_psi=-2 * one)
    assert all(np.isfinite(gradient).all() for gradient in found)
    return found[2][0]


@pytest.mark.parametrize("lam", [-31.0, -20.0, 0.0, 8.0])
def test_gradient_by_lambda_is_right_in_single_precision(lam):
    single, double = (gradient_by_lambda(lam, dtype) for dtype in (np.float32, np.float64))
    assert single.dtype == np.float32
    assert single == pytest.approx(double, rel=1e-3)


def test_gradient_by_lambda_of_a_sure_weight_is_right_in_single_precision():
    single, double = (gradient_by_lambda(20.0, dtype) for dtype in (np.float32, np.float64))
    assert single == pytest.approx(double, rel=1e-3)


@pytest.mark.parametrize("sigma", [1e-30, 1e-6, 0.5, 20.0, 1e5])
def test_softplus_undoes_its_inverse(sigma):
    value = np.array([sigma])
    np.testing.assert_allclose(softplus(inverse_softplus(value)), value, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_match_scipy_over_their_whole_range(dtype):
    values = np.array([-800, -90, -31, -1, 0, 1, 31, 90, 800], dtype=dtype)
    tolerance = 20 * np.finfo(dtype).eps
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(sigmoid(values), special.expit(values), tolerance, tiny)
    np.testing.assert_allclose(softplus(values), np.logaddexp(values, 0), tolerance, tiny)


@pytest.mark.parametrize("function", [softplus, sigmoid])
def test_transforms_keep_single_precision(function):
    assert function(np.ones(2, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize(("function", "slope"), [(softplus, 0.5), (sigmoid, 0.25)])
def test_slope_of_transforms_at_zero(function, slope):
    value = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    function(value).sum().backward()
    assert value.grad.item() == pytest.approx(slope)


def test_softplus_of_minus_infinity_is_zero():
    assert softplus(np.array([-np.inf]))[0] == 0


def test_kl_takes_integer_means():
    sigma, alpha = as_arrays(2.0, 0.1)
    whole, real = (kl(np.zeros(1, dtype), sigma, alpha, tau=2.5, psi=0.1) for dtype in (int, float))
    np.testing.assert_allclose(whole, real)
