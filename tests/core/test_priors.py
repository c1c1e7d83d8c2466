"""Priors by block, and empirical Bayes by hand."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.equations import inverse_softplus, kl
from islab.core.priors import EmpiricalBayes, Prior

NET = Architecture(2, (2,), 1)  # blocks of 4, 2 and 2 weights
SIZES = np.array([4, 2, 2])


def posterior_values():
    """mu, rho, lam with known sigma and alpha."""
    mu = np.array([1.0, 2.0, 0.0, -1.0, 3.0, 0.5, -2.0, 0.1])
    sigma = np.array([0.5, 0.1, 1.0, 0.2, 0.3, 0.4, 0.6, 0.7])
    alpha = np.array([0.9, 0.5, 0.1, 0.2, 0.99, 0.01, 0.6, 0.3])
    return mu, inverse_softplus(sigma), np.log(alpha / (1 - alpha))


def updated(rule, progress=1.0, prior=None, n_initial=SIZES, values=None):
    prior = prior or Prior.same(NET, tau=1.0, psi=0.1)
    return rule.update(prior, NET, *(values or posterior_values()), n_initial, progress)


def test_same_prior_has_one_entry_for_each_block():
    prior = Prior.same(NET, tau=2.0, psi=0.3)
    assert prior.tau.tolist() == [2.0] * 3
    assert prior.psi.tolist() == [0.3] * 3


@pytest.mark.parametrize("tau", [0.0, -1.0, np.inf, np.nan])
def test_impossible_tau_is_named(tau):
    with pytest.raises(ValueError, match=f"Got tau={tau}, expected a positive number"):
        Prior.same(NET, tau=tau, psi=0.1)


@pytest.mark.parametrize("tau", [0.0, -1.0, np.inf, np.nan])
def test_impossible_tau_of_biases_is_named(tau):
    with pytest.raises(ValueError, match=f"Got bias_tau={tau}, expected a positive number"):
        Prior.same(NET, tau=1.0, psi=0.1, bias_tau=tau)


@pytest.mark.parametrize("psi", [0.0, 1.0, 1.5, np.nan])
def test_impossible_psi_is_named(psi):
    with pytest.raises(ValueError, match=f"Got psi={psi}, expected a number between 0 and 1"):
        Prior.same(NET, tau=1.0, psi=psi)


@pytest.mark.parametrize("df", [0.0, -1.0, np.inf, np.nan])
def test_impossible_df_is_named(df):
    with pytest.raises(ValueError, match=f"Got df={df}, expected a positive number"):
        Prior.same(NET, tau=1.0, psi=0.1, df=df)


def test_divergence_of_dropped_weights_is_that_of_sure_exclusion():
    prior = Prior(tau=np.ones(3), psi=np.array([0.1, 0.2, 0.5]))
    dropped = np.array([3, 0, 2])
    psi = np.repeat(prior.psi, dropped)
    one, zero = np.ones(5), np.zeros(5)
    expected = kl(zero, one, zero, tau=1.0, psi=psi).sum()
    assert prior.excluded_kl(dropped) == pytest.approx(expected, rel=1e-12)


def test_tau_by_hand():
    tau = updated(EmpiricalBayes()).tau
    first = 0.9 * (0.25 + 1) + 0.5 * (0.01 + 4) + 0.1 * 1 + 0.2 * (0.04 + 1)
    second = 0.99 * (0.09 + 9) + 0.01 * (0.16 + 0.25)
    third = 0.6 * (0.36 + 4) + 0.3 * (0.49 + 0.01)
    squares = [(2 + first) / (2 + 1.7), (2 + second) / (2 + 1.0), (2 + third) / (2 + 0.9)]
    np.testing.assert_allclose(tau, np.sqrt(squares), rtol=1e-12)


def test_psi_by_hand():
    psi = updated(EmpiricalBayes(psi_shape=(2.0, 5.0))).psi
    np.testing.assert_allclose(psi, [(2 + 1.7) / 11, (2 + 1.0) / 9, (2 + 0.9) / 9], rtol=1e-12)


def test_dropped_weights_still_count_against_psi():
    psi = updated(EmpiricalBayes(psi_shape=(1.0, 1.0)), n_initial=np.array([40, 2, 2])).psi
    assert psi[0] == pytest.approx((1 + 1.7) / 42, rel=1e-12)


def test_student_slab_discounts_large_weights():
    df, tau = 3.0, 2.0
    values = (np.full(8, 4.0), inverse_softplus(np.full(8, 1.0)), np.full(8, 40.0))
    prior = updated(EmpiricalBayes(), prior=Prior.same(NET, tau=tau, psi=0.1, df=df), values=values)
    discounted = 17 * (df + 1) / (df + 17 / tau**2)
    expected = np.sqrt((2 + SIZES * discounted) / (2 + SIZES))
    np.testing.assert_allclose(prior.tau, expected, rtol=1e-12)


def test_student_slab_with_many_degrees_of_freedom_learns_the_gaussian_tau():
    student = updated(EmpiricalBayes(), prior=Prior.same(NET, tau=1.0, psi=0.1, df=1e9))
    np.testing.assert_allclose(student.tau, updated(EmpiricalBayes()).tau, rtol=1e-7)


def test_student_tau_settles_at_the_scale_of_student_weights():
    net = Architecture(5000, (), 1)
    weights = 0.7 * np.random.default_rng(0).standard_t(3, size=5000)
    values = (weights, np.full(5000, -30.0), np.full(5000, 40.0))
    prior = Prior.same(net, tau=2.0, psi=0.1, df=3.0)
    for _ in range(100):
        prior = EmpiricalBayes().update(prior, net, *values, np.array([5000]), 1.0)
    assert prior.tau[0] == pytest.approx(0.7, rel=0.05)


@pytest.mark.parametrize(("progress", "moves"), [(0.0, False), (0.05, True)])
def test_tau_is_learned_from_its_share_of_the_stage(progress, moves):
    assert (updated(EmpiricalBayes(), progress).tau != 1.0).any() == moves


@pytest.mark.parametrize(("progress", "moves"), [(0.29, False), (0.30, True)])
def test_psi_is_learned_from_its_share_of_the_stage(progress, moves):
    assert (updated(EmpiricalBayes(), progress).psi != 0.1).any() == moves


def test_psi_never_exceeds_its_bound():
    rule = EmpiricalBayes(psi_shape=(1.0, 0.0), largest_psi=0.2)
    assert updated(rule).psi.max() == 0.2


def test_updating_keeps_bias_scale_and_slab():
    prior = Prior(np.ones(3), np.full(3, 0.1), bias_tau=7.0, df=4.0)
    after = updated(EmpiricalBayes(), prior=prior)
    assert (after.bias_tau, after.df) == (7.0, 4.0)


def test_updating_leaves_the_old_prior_alone():
    prior = Prior.same(NET, tau=1.0, psi=0.1)
    updated(EmpiricalBayes(), prior=prior)
    assert prior.tau.tolist() == [1.0] * 3


def test_single_precision_parameters_are_summed_in_double():
    net = Architecture(100_000, (), 1)
    values = (np.full(100_000, v, dtype=np.float32) for v in (0.1, -30.0, 40.0))
    prior = EmpiricalBayes().update(
        Prior.same(net, tau=1.0, psi=0.1), net, *values, np.array([100_000]), 1.0
    )
    assert prior.tau.dtype == np.float64
    assert prior.tau[0] ** 2 == pytest.approx((2 + 1000) / 100_002, rel=1e-6)


def test_block_without_weights_has_a_finite_prior():
    net = Architecture(2, (0,), 1)
    nothing = np.zeros(net.n_weights)
    prior = EmpiricalBayes().update(
        Prior.same(net, tau=1.0, psi=0.1), net, nothing, nothing, nothing, np.zeros(3, int), 1.0
    )
    assert np.isfinite(prior.tau).all()
    assert ((prior.psi > 0) & (prior.psi < 1)).all()
