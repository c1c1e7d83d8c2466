"""What the native engine refuses."""

from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

torch = pytest.importorskip("torch")
native = pytest.importorskip("islab.learn.engines.native")

from islab.learn.engines import Steps  # noqa: E402
from islab.learn.engines.native import NativeEngine  # noqa: E402
from tests.learn.engines.native_cases import Case, flat, make_case  # noqa: E402


def broken(case: Case, **changes) -> Steps:
    return replace(case.steps, **changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.full(60, 60)}, "row 60, expected rows from 0 to 59"),
        ({"rows": np.full(60, -1)}, "row -1"),
        ({"rows": np.zeros(59, int)}, "add up to 60"),
        ({"sizes": np.array([16, 16, 9, 19, 0])}, "a batch of 0 rows"),
        ({"sizes": np.array([60, 60, 60, 60, -180])}, "a batch of -180 rows"),
        ({"sizes": np.array([60])}, r"rate of shape \(5,\), expected shape \(1,\)"),
        ({"rate": np.ones(4)}, r"rate of shape \(4,\)"),
        ({"lambda_rate": np.ones(6)}, r"lambda_rate of shape \(6,\)"),
        ({"kl_weight": np.ones((5, 1))}, r"kl_weight of shape \(5, 1\)"),
        ({"rows": np.zeros((60, 1), int)}, "rows of shape"),
    ],
)
def test_steps_that_do_not_fit_are_refused(change, message):
    case = make_case()
    engine = case.native()
    before = flat(engine)
    with pytest.raises(ValueError, match=message):
        engine.run(broken(case, **change))
    np.testing.assert_array_equal(flat(engine), before)


def test_no_steps_at_all_are_refused():
    none, no_rows = np.empty(0), np.empty(0, dtype=int)
    with pytest.raises(ValueError, match="at least one"):
        make_case().native().run(Steps(no_rows, no_rows, none, none, none))


def test_noise_of_the_wrong_shape_is_refused():
    case = make_case()
    with pytest.raises(ValueError, match="noise of shape"):
        case.native().run(case.steps, case.noise[:, 1:])


def test_a_run_without_a_prior_is_refused():
    case = make_case()
    with pytest.raises(ValueError, match="call set_prior"):
        NativeEngine(case.posterior, case.problem, seed=0).run(case.steps)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": np.ones(2)}, "tau of shape"),
        ({"tau": np.full(5, -1.0)}, "tau=-1"),
        ({"psi": np.full(5, 1.0)}, "psi=1"),
        ({"bias_tau": 0.0}, "bias_tau=0"),
        ({"df": -1.0}, "df=-1"),
    ],
)
def test_priors_that_are_none_are_refused(change, message):
    case = make_case()
    with pytest.raises(ValueError, match=message):
        case.native().set_prior(replace(case.prior, **change), case.mu_step)


def test_data_of_another_width_are_refused():
    case = make_case()
    problem = replace(case.problem, x=case.problem.x[:, 1:])
    with pytest.raises(ValueError, match="Got x with 4 columns, expected the 5"):
        NativeEngine(case.posterior, problem, seed=0)


def test_sample_weights_of_another_length_are_refused():
    case = make_case()
    problem = replace(case.problem, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="sample_weight of shape"):
        NativeEngine(case.posterior, problem, seed=0)


def test_half_precision_is_refused():
    case = make_case()
    with pytest.raises(ValueError, match="dtype=float16"):
        NativeEngine(case.posterior, case.problem, seed=0, dtype=np.float16)


def test_a_posterior_with_a_flow_is_refused():
    case = make_case()
    case.posterior.multipliers = np.ones((1, 3))
    with pytest.raises(ValueError, match="NativeFlowEngine"):
        case.native()


def test_a_state_of_another_network_is_refused():
    case = make_case()
    engine = case.native()
    state = engine.state() | {"theta": np.zeros(3)}
    with pytest.raises(ValueError, match="theta of shape"):
        engine.restore(state)


def test_one_engine_in_two_threads_is_refused():
    case = make_case(hidden=(20, 20), sizes=(60,) * 5000)
    engine = case.native()
    thread = Thread(target=engine.run, args=(case.steps,))
    thread.start()
    with pytest.raises(RuntimeError, match="one engine for each thread"):
        call_while(thread, engine.kl)
    thread.join()


def call_while(thread, function):
    while thread.is_alive():
        function()


def test_a_missing_kernel_says_what_to_install(monkeypatch):
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "islab.learn.engines.native._kernel", None)
    monkeypatch.delitem(sys.modules, "islab.learn.engines.native")
    with pytest.raises(ImportError, match=r"C\+\+ compiler"):
        importlib.import_module("islab.learn.engines.native")
