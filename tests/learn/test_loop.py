"""The loop: batches, resuming, faults, stopping, dropping units."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.native import NativeEngine
from islab.learn.engines.torch.dense import TorchEngine
from islab.learn.loop import TrainingError, make_steps
from islab.learn.shrink import Shrink
from islab.learn.stage import Plateau, Schedule, Stage
from islab.learn.variational import train

STAGE = Stage(n_steps=200, batch_size=16, shrink=Shrink(start=0.2, every=50))


def regression(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 4))
    y = x[:, :1] - 0.5 * np.maximum(x[:, 1:2], 0) + 0.1 * rng.standard_normal((n_rows, 1))
    return Problem(x, y)


def make_engine(kind=NativeEngine, problem=None, hidden=(6, 5), seed=0, **initial):
    problem = problem or regression()
    net = Architecture(problem.x.shape[1], hidden, problem.y.shape[1])
    start = Posterior.initialise(net, np.random.default_rng(seed), Initial(**initial))
    return kind(start, problem, seed=seed)


def same(a, b):
    np.testing.assert_array_equal(a.posterior.mu, b.posterior.mu)
    np.testing.assert_array_equal(a.posterior.lam, b.posterior.lam)
    np.testing.assert_array_equal(a.history.to_array(), b.history.to_array())
    assert a.elbo == b.elbo


def raise_after_two_runs(error):
    runs = []

    def report(steps, record):
        runs.append(steps)
        if len(runs) == 2:
            raise error

    return report


@pytest.mark.parametrize("n_rows", [10, 13, 1])
def test_every_epoch_visits_each_row_once_and_its_last_batch_may_be_short(n_rows):
    stage = replace(STAGE, batch_size=4)
    per_epoch = -(-n_rows // 4)
    steps = make_steps(stage, 0, 2 * per_epoch, n_rows, seed=3)
    assert sorted(steps.rows[:n_rows].tolist()) == list(range(n_rows))
    assert sorted(steps.rows[n_rows:].tolist()) == list(range(n_rows))
    assert steps.sizes[:per_epoch].sum() == n_rows
    assert steps.sizes.max() <= 4


def test_steps_do_not_depend_on_how_they_are_cut():
    whole = make_steps(STAGE, 0, 30, 60, seed=1)
    parts = [make_steps(STAGE, first, 10, 60, seed=1) for first in (0, 10, 20)]
    np.testing.assert_array_equal(whole.rows, np.concatenate([part.rows for part in parts]))
    np.testing.assert_array_equal(whole.rate, np.concatenate([part.rate for part in parts]))


def test_the_divergence_ramps_up_and_lambda_has_its_own_rate():
    stage = replace(STAGE, kl_ramp=0.5, rate=0.1, lambda_rate=0.3, schedule=Schedule("constant"))
    steps = make_steps(stage, 0, 200, 60, seed=1)
    np.testing.assert_allclose(steps.kl_weight[[0, 50, 100, 199]], [0, 0.5, 1, 1])
    np.testing.assert_allclose(steps.lambda_rate / steps.rate, 3)


@pytest.mark.parametrize("kind", [NativeEngine, TorchEngine])
def test_same_seed_same_result(kind):
    one, two = (train(make_engine(kind), STAGE, n_rows=60, seed=5) for _ in range(2))
    same(one, two)


@pytest.mark.parametrize("kind", [NativeEngine, TorchEngine])
def test_resumed_run_ends_in_the_same_numbers(kind, tmp_path):
    whole = train(make_engine(kind), STAGE, n_rows=60, seed=5)
    file = Checkpoint(tmp_path / "run.npz")

    stop = raise_after_two_runs(RuntimeError("power cut"))
    with pytest.raises(RuntimeError, match="power cut"):
        train(make_engine(kind), STAGE, n_rows=60, seed=5, checkpoint=file, report=stop)
    same(train(make_engine(kind), STAGE, n_rows=60, seed=5, checkpoint=file), whole)
    again = train(make_engine(kind), STAGE, n_rows=60, seed=5, checkpoint=file)
    same(again, whole)


def test_broken_checkpoint_is_named_with_a_remedy(tmp_path):
    file = tmp_path / "run.npz"
    file.write_bytes(b"PK\x03\x04 not a checkpoint")
    with pytest.raises(ValueError, match=r"run\.npz.*delete it"):
        train(make_engine(), STAGE, n_rows=60, seed=5, checkpoint=Checkpoint(file))


@pytest.mark.parametrize("part", ["engine/theta", "loop/history", "loop/step", "engine/hidden"])
@pytest.mark.parametrize("change", ["missing", "another shape"])
def test_a_checkpoint_whose_arrays_do_not_fit_is_named_with_a_remedy(tmp_path, part, change):
    file = tmp_path / "run.npz"
    train(make_engine(), STAGE, n_rows=60, seed=5, checkpoint=Checkpoint(file))
    with np.load(file) as kept:
        arrays = dict(kept)
    found = arrays.pop(part)
    if change == "another shape":
        arrays[part] = np.zeros((3, *found.shape, 2))
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match=r"run\.npz.*delete it"):
        train(make_engine(), STAGE, n_rows=60, seed=5, checkpoint=Checkpoint(file))


def test_an_interrupt_is_raised():
    stop = raise_after_two_runs(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train(make_engine(), STAGE, n_rows=60, seed=5, report=stop)


def test_an_interrupt_keeps_the_last_good_state_on_request():
    stop = raise_after_two_runs(KeyboardInterrupt())
    options = {"report": stop, "keep_interrupted": True}
    result = train(make_engine(), STAGE, n_rows=60, seed=5, **options)
    assert result.interrupted
    assert len(result.history) == 2
    assert np.isfinite(result.elbo)


class Failing:
    """An engine whose first runs fail, or every so many-th."""

    def __init__(self, engine, failures=0, every=None):
        self._engine, self._failures, self._every = engine, failures, every
        self._runs = 0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def run(self, steps):
        nll = self._engine.run(steps)
        self._runs += 1
        fails = self._runs % self._every == 0 if self._every else self._runs <= self._failures
        return float("nan") if fails else nll


def test_non_finite_loss_backs_out_and_halves_the_rate(caplog):
    result = train(Failing(make_engine(), 2), STAGE, n_rows=60, seed=5)
    assert np.isfinite(result.elbo)
    assert "halved the learning rate" in caplog.text
    t = result.history.column("step")[0] / STAGE.n_steps
    assert result.history.column("rate")[0] == pytest.approx(STAGE.rate * STAGE.schedule(t) / 4)


def test_endless_failure_ends_in_an_error_with_a_remedy():
    with pytest.raises(TrainingError, match="smaller learning rate"):
        train(Failing(make_engine(), 100), STAGE, n_rows=60, seed=5)


def test_failures_far_apart_are_not_counted_together():
    stage = replace(STAGE, n_steps=50 * 30)
    result = train(Failing(make_engine(), every=3), stage, n_rows=60, seed=5)
    assert result.history.column("step")[-1] == stage.n_steps


def test_plateau_stops_only_when_the_smoothed_elbo_is_flat():
    plateau = Plateau(patience=5, smoothing=0.5, tolerance=1e-3)
    rising = -np.exp(-0.1 * np.arange(30.0))
    flat = np.concatenate([rising, np.full(20, rising[-1] - 0.01)])
    assert not plateau.reached(rising)
    assert plateau.reached(flat)
    assert not plateau.reached(flat[:4])


def test_a_stage_with_a_plateau_ends_early():
    flat = replace(STAGE, rate=0.0, lambda_rate=0.0, n_steps=3000, kl_ramp=0.0)
    flat = replace(flat, empirical_bayes=None, plateau=Plateau(patience=4, start=0.2))
    result = train(make_engine(), flat, n_rows=60, seed=5)
    assert result.history.column("step")[-1] < 3000


def test_constant_columns_do_no_harm():
    problem = regression()
    x = np.column_stack([problem.x, np.zeros(60)])
    result = train(make_engine(problem=Problem(x, problem.y)), STAGE, n_rows=60, seed=5)
    assert np.isfinite(result.elbo)


def test_all_hidden_units_gone_leaves_the_linear_part():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    problem = Problem(x, x[:, :1] + 0.01 * rng.standard_normal((300, 1)))
    stage = replace(STAGE, n_steps=3000, batch_size=64)
    engine = make_engine(problem=problem, hidden=(3, 3), hidden_inclusion=(-9.0, -8.0))
    result = train(engine, stage, n_rows=300, seed=1)
    assert result.posterior.architecture.hidden == (0, 0)
    network = result.posterior.median()
    assert (network.n_used_weights, network.max_depth) == (1, 1)
    np.testing.assert_allclose(network.predictor(x)[:, 0], x[:, 0], atol=0.1)


def test_pure_noise_ends_in_a_constant_prediction():
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((300, 3)), rng.standard_normal((300, 1)))
    stage = replace(STAGE, n_steps=3000, batch_size=75)
    network = train(make_engine(problem=problem), stage, n_rows=300, seed=1).posterior.median()
    assert network.n_used_weights == 0
    assert (network.max_depth, network.average_depth) == (0, 0.0)
    assert np.ptp(network.predictor(problem.x)) == 0


def test_dropped_weights_keep_their_divergence():
    """With fixed priors a dropped weight counts -log(1 - psi)."""
    stage = replace(STAGE, n_steps=2000, empirical_bayes=None, psi=0.3, kl_ramp=0.0)
    engine = make_engine(hidden=(8,), hidden_inclusion=(-9.0, -9.0))
    result = train(engine, stage, n_rows=60, seed=1)
    left = engine.architecture.n_weights
    dropped = result.posterior.n_weights_initial - left
    assert dropped > 0
    expected = -(engine.expected_nll(8, 1) + engine.kl() - dropped * np.log1p(-0.3))
    assert result.elbo == pytest.approx(expected)


def test_empirical_bayes_learns_a_prior_for_each_block():
    stage = replace(STAGE, shrink=None)
    result = train(make_engine(), stage, n_rows=60, seed=5)
    assert len(set(result.prior.tau.tolist())) == len(result.prior.tau)


def test_history_is_a_table_of_the_run():
    frame = train(make_engine(), STAGE, n_rows=60, seed=5).history.to_frame()
    assert frame["step"].tolist() == [50, 100, 150, 200]
    np.testing.assert_allclose(frame["elbo"], -(frame["nll"] + frame["kl"]))


def test_history_can_be_plotted():
    pytest.importorskip("matplotlib").use("Agg")
    axes = train(make_engine(), STAGE, n_rows=60, seed=5).history.plot()
    assert len(np.ravel(axes)) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_steps": 0}, "n_steps=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"rate": -1}, "rate=-1"),
        ({"betas": (1.0, 0.99)}, r"betas=\(1.0, 0.99\)"),
        ({"betas": (0.9,)}, r"betas=\(0.9,\)"),
    ],
)
def test_impossible_stages_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(STAGE, **change)


def test_a_stage_has_a_prior_for_biases():
    narrow, wide = (
        train(make_engine(), replace(STAGE, bias_tau=tau), n_rows=60, seed=0) for tau in (0.01, 10)
    )
    assert narrow.prior.bias_tau == 0.01
    assert np.abs(narrow.posterior.bias_mu).max() < 0.1 < np.abs(wide.posterior.bias_mu).max()


@pytest.mark.parametrize("posterior", ["independent", "flow"])
@pytest.mark.parametrize("name", ["native", "torch"])
def test_engines_have_the_memory_that_their_stage_says(name, posterior):
    problem = regression()
    start = Posterior.initialise(Architecture(4, (3,), 1), np.random.default_rng(0))
    options = {"flow_width": 4} if posterior == "flow" else {}
    choice = EngineChoice(name, posterior=posterior, options=options)
    ends = []
    for betas in ((0.9, 0.99), (0.5, 0.9)):
        stage = replace(STAGE, n_steps=20, betas=betas)
        engine = choice.create(start, problem, stage, seed=0)
        ends.append(train(engine, stage, n_rows=60, seed=0).posterior.mu)
    assert not np.allclose(*ends)


@pytest.mark.parametrize("linear_ends", [True, False])
def test_a_stage_may_end_once_no_hidden_unit_is_left(linear_ends):
    engine = make_engine(hidden_inclusion=(-25.0, -25.0))
    stage = replace(STAGE, n_steps=400, lambda_rate=0.0, linear_ends=linear_ends)
    trained = train(engine, stage, n_rows=60, seed=0)
    assert not any(trained.posterior.architecture.hidden)
    assert (trained.history.column("step")[-1] < 400) == linear_ends
