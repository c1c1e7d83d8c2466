"""The paper's way of training, behind the estimators' face."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.paper.cells import plan
from experiments.paper.methods import make_estimator
from experiments.paper.tasks import Task, load_task


def numbers_task(name="abalone", n=400):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    y = 10 + 2 * x[:, 0] + rng.standard_normal(n)
    return Task(name, x[: n // 2], y[: n // 2], x[n // 2 :], y[n // 2 :], classes=False)


@pytest.fixture(scope="module")
def fitted():
    task = numbers_task()
    estimator = make_estimator("blr", task, "paper", 0)
    return estimator.fit(task.x_train, task.y_train), task


def test_columns_go_to_the_network_as_they_are(fitted):
    scale = fitted[0].network_.scale
    assert (scale.x_center == 0).all()
    assert (scale.x_scale == 1).all()
    assert (scale.y_scale == 1).all()


def test_a_linear_model_finds_its_signal(fitted):
    model, task = fitted
    error = model.predict(task.x_test) - (10 + 2 * task.x_test[:, 0])
    assert np.abs(error).max() < 0.6


def test_noise_is_that_of_the_residuals(fitted):
    assert fitted[0].network_.noise_in_units() == pytest.approx(1.0, abs=0.3)


def test_densities_refer_to_the_network_before_training():
    task = load_task("wbc", "paper", quick=True)
    model = make_estimator("islab", task, "paper", 0, quick=True)
    model.fit(task.x_train, task.y_train)
    assert model.network_.n_weights_initial == 5_580


def test_the_same_seed_gives_the_same_model():
    task = load_task("wbc", "paper", quick=True)
    one, other = (
        make_estimator("blr", task, "paper", 3, quick=True).fit(task.x_train, task.y_train)
        for _ in range(2)
    )
    assert (one.posterior_.mu == other.posterior_.mu).all()


def test_the_paper_scales_breast_cancer_from_0_to_1():
    x = load_task("wbc", "paper").x_train
    assert x.min().min() == 0
    assert x.max().max() == 1


def test_scaling_looks_at_training_rows_only():
    assert load_task("wbc", "paper").x_test.max().max() != 1


def test_by_default_tables_are_not_touched():
    assert load_task("wbc").x_train.max().max() > 1000


def test_the_paper_learns_from_512_rows_of_breast_cancer():
    task = load_task("wbc")
    assert (len(task.x_train), len(task.x_test)) == (512, 57)


def test_the_l1_penalty_stands_beside_the_sum_over_a_batch():
    classes = make_estimator("l1-skip", load_task("wbc", "paper"), "paper", 0)
    numbers = make_estimator("l1-skip", numbers_task(), "paper", 0)
    assert (classes.batch_size, classes.penalty) == (64, 1 / 64)
    # Half the squared error is the loss of a row, and 40 rows are a batch.
    assert (numbers.batch_size, numbers.penalty) == (40, 1 / 80)
    assert classes.zeros == "threshold"


def test_the_l1_network_sees_columns_as_they_are_and_starts_within_bounds():
    task = load_task("wbc", "paper", quick=True)
    model = make_estimator("l1-skip", task, "paper", 0, learning_rate_init=1e-9, quick=True)
    model.fit(task.x_train, task.y_train)
    assert (model.network_.scale.x_scale == 1).all()
    net, mu = model.posterior_.architecture, model.posterior_.mu
    for block in net.blocks:
        bound = 1 / np.sqrt(net.n_inputs(block.layer))
        assert 0.9 * bound < np.abs(mu[block.weights]).max() <= bound


@pytest.mark.parametrize(
    ("method", "strength"),
    [("l1-skip", 1.0), ("l1-skip-0.2", 0.2), ("l1-skip-0.1", 0.1), ("l1-skip-0.01", 0.01)],
)
def test_the_l1_networks_of_mnist_differ_in_their_strength_alone(method, strength):
    task = replace(load_task("wbc", "paper"), name="mnist")
    model = make_estimator(method, task, "paper", 0)
    assert model.penalty * model.batch_size == pytest.approx(strength)
    rest = {"hidden_layer_sizes": (600, 600), "learning_rate_init": 0.01, "max_epochs": 250}
    assert {name: getattr(model, name) for name in rest} == rest


def test_weaker_penalties_are_planned_on_mnist_with_the_papers_settings_only():
    cells = plan(["mnist", "wbc"], ["l1-skip", "l1-skip-0.1"], ["paper", "default"], [0])
    found = {(cell.dataset, cell.method, cell.settings) for cell in cells}
    both = {(name, "l1-skip", kind) for name in ("mnist", "wbc") for kind in ("paper", "default")}
    assert found == {*both, ("mnist", "l1-skip-0.1", "paper")}


def test_with_nothing_set_the_l1_network_chooses_its_penalty():
    model = make_estimator("l1-skip", load_task("wbc"), "default", 0)
    assert (model.penalty, model.zeros) == ("auto", "proximal")


def test_l1_networks_train_as_in_the_authors_scripts():
    training = make_estimator("l1-skip", load_task("wbc", "paper"), "paper", 0)._training
    assert training.biases_too
    assert training.betas == (0.9, 0.999)
    assert training.schedule([0.0, 0.9]).tolist() == [1.0, 1.0]
    simulated = make_estimator("l1-skip", numbers_task("linear-0.0"), "paper", 0)._training
    assert simulated.schedule([0.2, 0.4, 0.6]).tolist() == pytest.approx([1.0, 0.1, 0.01])
