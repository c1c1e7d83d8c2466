"""Recipes: candidates, restarts, checkpoints, networks given up, flows that join."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from islab.core.posterior import Initial
from islab.learn import session
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines import EngineChoice, Problem
from islab.learn.fit import fit
from islab.learn.loop import TrainingError
from islab.learn.prune import fixed_structure
from islab.learn.recipe import default_recipe, paper_recipe
from islab.learn.variational import train
from tests.learn.simulated import simulated, split


def diabetes():
    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    return Problem(x, y[:, None])


def small_recipe(**changes):
    recipe = default_recipe(442, hidden=(8, 8))
    short = replace(recipe.network, n_steps=1500)
    return replace(recipe, network=short, linear=replace(recipe.linear, n_steps=800), **changes)


def test_shrinking_changes_the_time_and_not_the_network():
    problem = diabetes()
    recipe = small_recipe(n_restarts=2)
    whole = replace(recipe, network=replace(recipe.network, shrink=None))
    shrunk, unshrunk = (fit(problem, "gaussian", r, seed=1) for r in (recipe, whole))
    a, b = shrunk.posterior.median(), unshrunk.posterior.median()
    assert a.covariates.tolist() == b.covariates.tolist()
    error = a.predictor(problem.x) - b.predictor(problem.x)
    assert np.sqrt((error**2).mean()) < 0.05


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_restarts_give_the_same_winner_however_they_are_run(n_jobs):
    problem = diabetes()
    one = fit(problem, "gaussian", small_recipe(n_restarts=2), seed=3)
    two = fit(problem, "gaussian", small_recipe(n_restarts=2), seed=3, n_jobs=n_jobs)
    assert one.elbos == two.elbos
    np.testing.assert_array_equal(one.posterior.mu, two.posterior.mu)


def test_the_highest_elbo_wins():
    found = fit(diabetes(), "gaussian", small_recipe(n_restarts=2), seed=3)
    assert set(found.elbos) == {"linear", "network 0", "network 1"}
    best = max(found.elbos, key=found.elbos.get)
    used_linear = found.elbo == found.elbos["linear"]
    assert found.elbo == found.elbos[best] or used_linear


def test_candidates_are_judged_by_the_weight_of_the_divergence_they_learned_with():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 2))
    y = np.abs(x[:, :1]) + 0.8 * rng.standard_normal((100, 1))
    problem, recipe = Problem(x, (y - y.mean()) / y.std()), small_recipe(n_restarts=1)
    stages = {
        name: replace(getattr(recipe, name), kl_weight=0.25) for name in ("linear", "network")
    }
    found = fit(problem, "gaussian", replace(recipe, **stages), seed=0)
    assert found.elbos["linear"] > found.elbos["network 0"]
    assert found.posterior.median().max_depth == 2


def test_density_refers_to_the_network_even_if_the_linear_model_wins():
    problem, _, _ = split(simulated("linear", 0.0, 2000), 1000)
    found = fit(problem, "bernoulli", small_recipe(n_restarts=1), seed=0)
    assert found.posterior.architecture.n_layers == 1
    assert found.posterior.n_weights_initial == 4 * 8 + 12 * 8 + 12


def test_an_interrupted_fit_can_be_resumed(tmp_path, monkeypatch):
    problem, recipe = diabetes(), small_recipe(n_restarts=2)
    whole = fit(problem, "gaussian", recipe, seed=3)
    with monkeypatch.context() as patch:
        stop_in(patch, 2)
        with pytest.raises(RuntimeError, match="power cut"):
            fit(problem, "gaussian", recipe, seed=3, checkpoint=tmp_path)
    assert {path.name for path in tmp_path.glob("*/*")} == {"linear.npz", "network-0.npz"}
    again = fit(problem, "gaussian", recipe, seed=3, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.posterior.mu, whole.posterior.mu)


def stop_in(monkeypatch, number):
    """The power is cut when this training starts."""
    count = iter(range(100))

    def maybe(*arguments, **options):
        if next(count) == number:
            raise RuntimeError("power cut")
        return train(*arguments, **options)

    monkeypatch.setattr(session, "train", maybe)


@pytest.mark.parametrize("other", ["data", "weights", "seed", "settings"])
def test_another_fit_does_not_go_on_from_the_checkpoints(tmp_path, monkeypatch, other):
    problem, recipe = diabetes(), small_recipe(n_restarts=1)
    recipe = replace(recipe, linear=replace(recipe.linear, n_steps=50))
    with monkeypatch.context() as patch:
        stop_in(patch, 1)
        with pytest.raises(RuntimeError, match="power cut"):
            fit(problem, "gaussian", recipe, seed=3, checkpoint=tmp_path)
    seed = 4 if other == "seed" else 3
    if other == "data":
        problem = replace(problem, x=problem.x + 1)
    if other == "weights":
        problem = replace(problem, sample_weight=np.linspace(0, 2, problem.n_rows))
    if other == "settings":
        recipe = replace(recipe, linear=replace(recipe.linear, rate=0.01))
    alone = fit(problem, "gaussian", recipe, seed=seed)
    found = fit(problem, "gaussian", recipe, seed=seed, checkpoint=tmp_path)
    assert found.elbos == alone.elbos
    assert len(list(tmp_path.iterdir())) == 1


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    state = {"step": np.array(1), "finished": np.array(True)}
    Checkpoint(tmp_path / "linear.npz", "one").write({}, state)
    with pytest.raises(ValueError, match=r"linear\.npz.*other data"):
        Checkpoint(tmp_path / "linear.npz", "another").read()


def given_up(monkeypatch, *numbers):
    """Trainings of these numbers fail; with a linear model, it is number 0."""
    count = iter(range(100))

    def maybe(*arguments, **options):
        if next(count) in numbers:
            raise TrainingError("The loss was not finite.")
        return train(*arguments, **options)

    monkeypatch.setattr(session, "train", maybe)


def test_a_network_that_has_to_be_given_up_does_not_take_the_others_with_it(monkeypatch):
    problem, recipe = diabetes(), small_recipe(n_restarts=2)
    whole = fit(problem, "gaussian", recipe, seed=3)
    given_up(monkeypatch, 1)
    with pytest.warns(UserWarning, match="1 of 2 networks .* not finite"):
        found = fit(problem, "gaussian", recipe, seed=3)
    assert found.elbos == {name: whole.elbos[name] for name in ("network 1", "linear")}


def test_the_linear_model_is_the_answer_if_all_networks_have_to_be_given_up(monkeypatch):
    given_up(monkeypatch, 1, 2)
    with pytest.warns(UserWarning, match="2 of 2 networks"):
        found = fit(diabetes(), "gaussian", small_recipe(n_restarts=2), seed=3)
    assert found.elbos == {"linear": found.elbo}


def test_nothing_left_is_an_error(monkeypatch):
    given_up(monkeypatch, 0, 1)
    recipe = replace(small_recipe(n_restarts=2), linear=None)
    with pytest.raises(TrainingError, match="not finite"):
        fit(diabetes(), "gaussian", recipe, seed=3)


def test_refinement_keeps_the_structure_and_does_not_lose_fit():
    problem = diabetes()
    plain = fit(problem, "gaussian", small_recipe(n_restarts=1), seed=3)
    stage = replace(small_recipe().network, n_steps=400, rate=0.005)
    refined = fit(problem, "gaussian", small_recipe(n_restarts=1, refine=stage), seed=3)
    a, b = plain.posterior.median(), refined.posterior.median()
    assert a.n_used_weights == b.n_used_weights
    assert a.covariates.tolist() == b.covariates.tolist()
    error = [np.square(n.predictor(problem.x) - problem.y).mean() for n in (a, b)]
    assert error[1] < error[0] * 1.02


def collinear():
    """Two covariates that tell nearly the same."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(300)
    x = np.column_stack([common, common]) + 0.2 * rng.standard_normal((300, 2))
    return Problem(x, (x.sum(axis=1) + rng.standard_normal(300))[:, None])


def test_a_flow_joins_the_network_that_independent_weights_have_found():
    problem, recipe = collinear(), small_recipe(n_restarts=1)
    alone = fit(problem, "gaussian", recipe, seed=3)
    recipe = replace(recipe, flow=replace(recipe.flow, n_steps=150))
    engine = EngineChoice(posterior="flow", options={"flow_width": 8})
    tied = fit(problem, "gaussian", recipe, seed=3, engine=engine)
    assert alone.posterior.multipliers is None
    assert tied.posterior.multipliers is not None
    assert tied.elbos == alone.elbos
    assert tied.elbo > alone.elbo - 2 * alone.error
    assert tied.error < alone.error
    assert tied.posterior.n_weights_initial == alone.posterior.n_weights_initial
    steps = tied.history.column("step")
    assert (np.diff(steps) > 0).all()
    assert steps[-1] == alone.history.column("step")[-1] + 150


def test_weights_dropped_before_the_flow_joins_still_count():
    problem, _, _ = split(simulated("nonlinear", 0.0, 3000), 2000)
    recipe = small_recipe(n_restarts=1, hidden=(20, 20))
    found = fit(problem, "bernoulli", recipe, seed=0)
    sizes = [block.size for block in found.posterior.architecture.blocks]
    assert found.n_initial.sum() > sum(sizes)
    stage = replace(recipe.flow, n_steps=1, rate=0.0, lambda_rate=0.0, empirical_bayes=None)
    options = {"n_rows": problem.n_rows, "seed": 0, "prior": found.prior}
    counted, forgotten = (
        train(
            EngineChoice("native").create(found.posterior.copy(), problem, stage, 0),
            stage,
            n_initial=n_initial,
            **options,
        )
        for n_initial in (found.n_initial, None)
    )
    cost = found.prior.excluded_kl(found.n_initial - sizes)
    assert cost > 0.1
    assert forgotten.elbo - counted.elbo == pytest.approx(cost)


def test_fixed_structure_is_certain_about_every_weight():
    found = fit(diabetes(), "gaussian", small_recipe(n_restarts=1), seed=3).posterior
    alpha = fixed_structure(found).alpha
    assert ((alpha < 1e-9) | (alpha > 1 - 1e-9)).all()
    assert (alpha > 0.5).sum() == found.median().n_used_weights


def test_paper_recipe_has_fixed_priors_and_halves_its_rate():
    recipe = paper_recipe(
        hidden=(5,), n_steps=10, batch_size=4, rate=0.1, tau=2.5, psi=0.01,
        covariate_inclusion=(5, 5), hidden_inclusion=(-9, -5),
    )  # fmt: skip
    assert recipe.network.empirical_bayes is None
    assert recipe.network.bias_tau == 2.5
    assert recipe.network.betas == (0.9, 0.999)
    assert recipe.network.schedule([0.4, 0.6, 0.8, 0.95]).tolist() == [1, 0.5, 0.25, 0.125]
    assert recipe.initial == Initial(
        covariate_inclusion=(5, 5), hidden_inclusion=(-9, -5), means=(-1.2, 1.2),
        output_scale=(1.0, 1.0), sigma=float(np.log1p(np.exp(-9.0))),
    )  # fmt: skip


@pytest.mark.parametrize("sparsity", [-0.1, 1.5])
def test_sparsity_outside_its_range_is_named(sparsity):
    with pytest.raises(ValueError, match=f"sparsity={sparsity}"):
        default_recipe(100, sparsity=sparsity)


def test_many_covariates_are_learned_in_smaller_steps():
    few, many = default_recipe(1000, 0, 10), default_recipe(1000, 0, 784)
    assert few.linear.rate == 0.1
    assert few.network.rate == 0.05
    assert many.linear.rate < 0.03
    assert many.network.rate < 0.015
    assert many.linear.lambda_rate == few.linear.lambda_rate


def test_a_flow_that_would_spoil_what_was_found_is_left_out():
    problem, recipe = collinear(), small_recipe(n_restarts=1)
    spoiling = replace(recipe.flow, n_steps=150, rate=1.0)
    found = fit(problem, "gaussian", recipe, seed=3)
    engine = EngineChoice(posterior="flow", options={"flow_width": 8, "flow_step": 1.0})
    left = fit(problem, "gaussian", replace(recipe, flow=spoiling), seed=3, engine=engine)
    assert left.posterior.multipliers is None
    np.testing.assert_array_equal(left.posterior.mu, found.posterior.mu)
    assert len(left.history) == len(found.history)
