"""The native engine takes the same steps as the torch engine."""

from dataclasses import replace
from itertools import product
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
native = pytest.importorskip("islab.learn.engines.native")

from islab.core import families  # noqa: E402
from islab.learn.engines import Steps  # noqa: E402
from islab.learn.engines.native import NativeEngine  # noqa: E402
from tests.learn.engines.native_cases import SHAPES, assert_same_steps, flat, make_case  # noqa: E402

INSTRUCTIONS = native._kernel.instruction_sets()


# -- the same steps as torch ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "likelihood"), list(product(families.activations(), families.likelihoods()))
)
@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=list(SHAPES))
def test_steps_equal_torch(shape, activation, likelihood):
    assert_same_steps(make_case(**shape, activation=activation, likelihood=likelihood))


@pytest.mark.parametrize("likelihood", families.likelihoods())
def test_steps_with_sample_weights_equal_torch(likelihood):
    assert_same_steps(make_case(likelihood=likelihood, weighted=True))


@pytest.mark.parametrize("likelihood", families.likelihoods())
def test_steps_with_an_offset_equal_torch(likelihood):
    case = make_case(likelihood=likelihood, offset=True)
    assert_same_steps(case)
    without = replace(case, problem=replace(case.problem, offset=None))
    assert without.native().run(case.steps, case.noise) != case.native().run(case.steps, case.noise)


@pytest.mark.parametrize("df", [1.0, 4.5])
def test_steps_with_a_student_slab_equal_torch(df):
    assert_same_steps(make_case(df=df))


def test_steps_with_another_memory_equal_torch():
    assert_same_steps(replace(make_case(), betas=(0.8, 0.999)))


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
@pytest.mark.parametrize("likelihood", families.likelihoods())
def test_every_instruction_set_takes_the_same_steps(instructions, likelihood):
    kind = type("Variant", (NativeEngine,), {"instructions": instructions})
    assert_same_steps(make_case(likelihood=likelihood, df=3.0), kind)


@pytest.mark.parametrize("hidden", [(130, 120), (1, 2100, 1)])
def test_products_large_enough_for_blas_equal_torch(hidden):
    rows = 4_100_000 // (hidden[0] * hidden[1])
    assert_same_steps(make_case(hidden=hidden, covariates=20, n_rows=rows, sizes=(rows, rows - 3)))


def test_poisson_steps_beyond_the_largest_log_rate_equal_torch():
    case = make_case(hidden=(), likelihood="poisson")
    case.posterior.bias_mu[...] = 22.0
    assert_same_steps(case)


def test_steps_at_the_clamps_equal_torch():
    case = make_case()
    case.posterior.lam[::3] = 31.0
    case.posterior.lam[1::3] = -31.0
    case.posterior.rho[::4] = 12.0
    case.posterior.rho[1::4] = -30.0
    assert_same_steps(replace(case, steps=replace(case.steps, rate=np.full(5, 0.5))))


def test_no_noise_rate_keeps_the_noise():
    case = make_case(likelihood="gaussian")
    engine = NativeEngine(case.posterior, case.problem, seed=0, noise_rate=0.0)
    engine.set_prior(case.prior, case.mu_step)
    engine.run(case.steps)
    np.testing.assert_array_equal(engine.parameters().noise, case.posterior.noise)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    hidden=st.lists(st.integers(0, 14), max_size=4),
    covariates=st.integers(0, 20),
    outputs=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    likelihood=st.sampled_from(sorted(families.likelihoods())),
    activation=st.sampled_from(families.activations()),
    input_skip=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_steps_of_any_shape_equal_torch(hidden, sizes, **rest):
    assert_same_steps(make_case(hidden=tuple(hidden), sizes=tuple(sizes), **rest))


# -- single precision -------------------------------------------------------------------------


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
@pytest.mark.parametrize("likelihood", families.likelihoods())
@pytest.mark.parametrize("activation", families.activations())
def test_single_precision_gradients_are_right_to_five_digits(activation, likelihood, instructions):
    case = make_case(activation=activation, likelihood=likelihood, sizes=(40,), weighted=True)
    kind = type("Variant", (NativeEngine,), {"instructions": instructions})
    oracle, engine = case.torch(), case.native(np.float32, kind)
    expected = oracle.run(case.steps, case.noise)
    assert engine.run(case.steps, case.noise) == pytest.approx(expected, rel=1e-6)
    gradient = engine.state()["first"]
    exact = oracle.state()["exp_avg"]
    np.testing.assert_allclose(gradient, exact, rtol=1e-5, atol=1e-6 * abs(exact).max())


@pytest.mark.parametrize("likelihood", families.likelihoods())
@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=list(SHAPES))
def test_five_single_precision_steps_are_right_to_five_digits(shape, likelihood):
    # Adam divides by the size of the gradient: where rounding decides a gradient's sign, any
    # two single precision programs part. Those are few.
    case = make_case(**shape, likelihood=likelihood)
    oracle, engine = case.torch(), case.native(np.float32)
    oracle.run(case.steps, case.noise)
    engine.run(case.steps, case.noise)
    error = abs(flat(engine) - flat(oracle)) / (1 + abs(flat(oracle)))
    assert np.quantile(error, 0.99) < 1e-5


@pytest.mark.parametrize("value", [-80.0, -30.0, -9.0, -1e-3, 0.0, 1e-3, 5.0, 12.0])
def test_single_precision_divergence_is_right_for_extreme_spreads(value):
    case = make_case()
    case.posterior.rho[...] = value
    assert case.native(np.float32).kl() == pytest.approx(case.native().kl(), rel=2e-6)


# -- the rest of the protocol -----------------------------------------------------------------


@pytest.mark.parametrize("df", [None, 2.5])
@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=list(SHAPES))
def test_divergence_equals_torch(shape, df):
    case = make_case(**shape, df=df)
    assert case.native().kl() == pytest.approx(case.torch().kl(), rel=1e-12)


@pytest.mark.parametrize("likelihood", families.likelihoods())
def test_expected_nll_equals_torch_on_average(likelihood):
    case = make_case(likelihood=likelihood, weighted=True)
    ours = [case.native().expected_nll(20, seed) for seed in range(30)]
    theirs = [case.torch().expected_nll(20, seed) for seed in range(30)]
    spread = np.hypot(np.std(ours), np.std(theirs)) / np.sqrt(30)
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=4 * spread)


def test_expected_nll_without_spread_is_the_nll_of_all_rows():
    case = make_case(n_rows=2500)
    case.posterior.lam[...] = 60.0
    case.posterior.rho[...] = -40.0
    case.posterior.bias_rho[...] = -40.0
    nll = families.likelihood("bernoulli").nll
    eta = case.posterior.sample_predictor(case.problem.x, 1, np.random.default_rng(0))[0]
    expected = nll(case.problem.y, eta, case.posterior.noise).sum()
    assert case.native().expected_nll(2, 0) == pytest.approx(expected, rel=1e-9)


def test_expected_nll_changes_nothing():
    engine = make_case().native()
    before = engine.state()
    engine.expected_nll(3, 5)
    for name, array in engine.state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("input_skip", [True, False])
def test_dropping_units_equals_torch_and_so_do_later_steps(input_skip):
    case = make_case(hidden=(7, 4, 6), input_skip=input_skip)
    oracle, engine = case.torch(), case.native()
    rng = np.random.default_rng(3)
    masks = [rng.random(width) < 0.6 for width in case.posterior.architecture.hidden]
    masks[1][...] = False
    shift = rng.standard_normal(case.posterior.architecture.n_units)
    for one in (oracle, engine):
        one.run(case.steps, case.noise)
        one.keep_units(masks, shift)
        one.set_prior(case.prior, case.mu_step)
    assert engine.architecture == oracle.architecture
    noise = case.noise[:, : engine.architecture.n_units]
    assert engine.run(case.steps, noise) == pytest.approx(oracle.run(case.steps, noise), rel=1e-9)
    np.testing.assert_allclose(flat(engine), flat(oracle), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_restored_engine_continues_bit_for_bit(dtype):
    case = make_case(hidden=(7, 4), likelihood="gaussian")
    engine = case.native(dtype)
    engine.run(case.steps)
    saved = engine.state()
    engine.run(case.steps)
    expected = engine.state()
    engine.keep_units([np.arange(7) < 3, np.ones(4, bool)], np.zeros(13))
    other = replace(case, posterior=engine.posterior()).native(dtype)
    for one in (engine, other):
        one.restore(saved)
        one.set_prior(case.prior, case.mu_step)
        one.run(case.steps)
        for name, array in one.state().items():
            np.testing.assert_array_equal(array, expected[name])


def test_a_state_is_a_copy():
    case = make_case()
    engine = case.native()
    saved = engine.state()
    theta = saved["theta"].copy()
    engine.run(case.steps)
    np.testing.assert_array_equal(saved["theta"], theta)
    engine.restore(saved)
    engine.run(case.steps)
    np.testing.assert_array_equal(saved["theta"], theta)


def test_two_short_runs_equal_one_long_run():
    case = make_case()
    whole, parts = case.native(), case.native()
    whole.run(case.steps)
    for steps in split_steps(case.steps):
        parts.run(steps)
    np.testing.assert_array_equal(flat(whole), flat(parts))


def split_steps(steps: Steps) -> list[Steps]:
    ends = np.cumsum(steps.sizes)
    parts = []
    for number, (stop, size) in enumerate(zip(ends, steps.sizes, strict=True)):
        one = slice(number, number + 1)
        parts.append(
            Steps(
                steps.rows[stop - size : stop],
                steps.sizes[one],
                steps.rate[one],
                steps.lambda_rate[one],
                steps.kl_weight[one],
            )
        )
    return parts


def test_engines_in_threads_learn_what_they_learn_alone():
    cases = [make_case(seed=seed, hidden=(20, 20), sizes=(30,) * 300) for seed in (1, 2)]
    alone = [case.native(np.float32) for case in cases]
    together = [case.native(np.float32) for case in cases]
    for engine, case in zip(alone, cases, strict=True):
        engine.run(case.steps)
    threads = [
        Thread(target=engine.run, args=(case.steps,))
        for engine, case in zip(together, cases, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(flat(one), flat(other))


def test_parameters_are_views_of_the_live_numbers():
    case = make_case()
    engine = case.native()
    now = engine.parameters()
    before = now.mu.copy()
    engine.run(case.steps)
    assert (now.mu != before).all()


def test_the_posterior_is_a_copy_in_double_precision():
    case = make_case()
    engine = case.native(np.float32)
    posterior = engine.posterior()
    engine.run(case.steps)
    assert posterior.mu.dtype == np.float64
    np.testing.assert_array_equal(posterior.mu, case.posterior.mu.astype(np.float32))


@pytest.mark.parametrize("name", ["mu", "rho", "lam", "bias_mu", "bias_rho"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("activation", families.activations())
def test_a_parameter_that_is_no_number_gives_a_loss_that_is_none(name, dtype, activation):
    case = make_case(activation=activation)
    engine = case.native(dtype)
    getattr(engine.parameters(), name)[0] = np.nan
    assert not np.isfinite(engine.run(case.steps))


def test_numbers_too_small_for_full_precision_count_as_zero():
    case = make_case(hidden=(), outputs=1)
    case.problem.x[:, 0] = 1e-40
    case.posterior.mu[...] = 0.0
    engine = case.native(np.float32)
    engine.run(replace(case.steps, kl_weight=np.zeros(5)), case.noise)
    assert engine.state()["first"][0] == 0
    assert (engine.state()["first"][1:5] != 0).all()


def test_a_run_leaves_small_numbers_to_others():
    case = make_case()
    case.native(np.float32).run(case.steps, case.noise)
    assert np.float32(1e-40) * np.float32(0.5) > 0


def test_an_overflowing_loss_is_not_finite():
    case = make_case(hidden=(), likelihood="gaussian")
    case.posterior.bias_mu[...] = 1e25
    assert not np.isfinite(case.native(np.float32).run(case.steps))
