import math
from itertools import product
from operator import attrgetter

import numpy as np
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators.settings import make_recipe
from islab.learn.recipe import default_recipe

N_ROWS = 1000


def recipe_of(**params):
    return make_recipe(ISLaBClassifier(**params).get_params(), N_ROWS, n_classes=0)


def test_nothing_set_is_the_default_recipe():
    assert recipe_of() == default_recipe(N_ROWS)


def test_sparsity_is_the_recipe_s():
    assert recipe_of(sparsity=0.9) == default_recipe(N_ROWS, sparsity=0.9)


@pytest.mark.parametrize(
    ("sizes", "hidden"), [(7, (7,)), ((7, 3), (7, 3)), ([7], (7,)), (np.array([7, 2]), (7, 2))]
)
def test_widths_may_come_as_number_or_sequence(sizes, hidden):
    assert recipe_of(hidden_layer_sizes=sizes).hidden == hidden


def test_no_widths_give_the_linear_model_alone():
    assert recipe_of(hidden_layer_sizes=()).hidden == ()


def test_epochs_are_passes_over_the_data():
    recipe = recipe_of(max_epochs=7, batch_size=300)
    assert recipe.network.n_steps == 7 * math.ceil(N_ROWS / 300)


def test_other_stages_keep_their_share_of_steps_and_their_ratio_of_rates():
    default, changed = recipe_of(), recipe_of(max_epochs=100, learning_rate_init=0.01)
    for stage, attribute in product(
        ("linear", "prune.stage", "flow"), ("n_steps", "rate", "lambda_rate")
    ):
        own, network = attrgetter(f"{stage}.{attribute}"), attrgetter(f"network.{attribute}")
        before, after = (own(recipe) / network(recipe) for recipe in (default, changed))
        assert after == pytest.approx(before, rel=0.02)
    assert changed.network.rate == pytest.approx(0.01)


def test_a_given_prior_is_not_learned():
    recipe = recipe_of(prior_inclusion=0.03, prior_scale=2.0)
    assert (recipe.network.psi, recipe.network.tau) == (0.03, 2.0)
    for stage in (recipe.linear, recipe.network, recipe.prune.stage, recipe.flow):
        assert stage.empirical_bayes.psi_from > 1
        assert stage.empirical_bayes.tau_from > 1


def test_the_start_of_inclusion_can_be_named():
    recipe = recipe_of(inclusion_init="sparse")
    assert recipe.initial.covariate_inclusion == recipe.initial.hidden_inclusion == "sparse"


def test_shrinking_and_stopping_are_switches():
    stage = recipe_of(shrink=False, early_stopping=True).network
    assert stage.shrink is None
    assert stage.plateau is not None


def test_a_batch_is_no_larger_than_the_data():
    assert recipe_of(batch_size=10**6).network.batch_size == N_ROWS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_layer_sizes", "many"),
        ("hidden_layer_sizes", (5, 0)),
        ("hidden_layer_sizes", 2.5),
        ("activation", "swish"),
        ("posterior", "gaussian"),
        ("input_skip", "yes"),
        ("sparsity", 1.5),
        ("sparsity", "high"),
        ("prior_inclusion", 0),
        ("prior_scale", -1),
        ("inclusion_init", "polar"),
        ("inclusion_init", 3),
        ("inclusion_init", (2, 1)),
        ("batch_size", 0),
        ("learning_rate_init", math.inf),
        ("max_epochs", 1.5),
        ("n_restarts", True),
        ("n_draws", 0),
        ("missing", "drop"),
        ("shrink", 1),
        ("early_stopping", None),
        ("engine", "jax"),
    ],
)
def test_impossible_values_are_refused_by_fit_and_named(name, value):
    model = ISLaBClassifier(**{name: value})
    shown = "inclusion" if name == "inclusion_init" else name
    with pytest.raises(ValueError, match=rf"Got {shown}.*expected"):
        model.fit([[0.0], [1.0]], [0, 1])


def test_an_unknown_likelihood_is_refused():
    with pytest.raises(
        ValueError, match="Got likelihood='cauchy', expected 'auto' or 'gaussian' or"
    ):
        ISLaBRegressor(likelihood="cauchy").fit([[0.0], [1.0]], [0, 1])


def test_draws_set_after_fitting_are_checked():
    model = ISLaBClassifier(max_epochs=1, n_restarts=1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="Got n_draws=0"):
        model.set_params(n_draws=0).predict([[0.5]])


def test_a_network_without_input_skip_does_not_start_from_a_linear_model():
    recipe = recipe_of(input_skip=False)
    assert recipe.linear is None
    assert not recipe.network.linear_ends


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match=r"Got device='gpu', expected one of cpu, cuda"):
        ISLaBClassifier(device="gpu").fit(np.eye(20), np.arange(20) % 2)


@pytest.mark.parametrize("value", [("a", "b"), (None, 1.0), (0.0, float("nan")), (1, 2, 3)])
def test_bounds_of_the_inclusion_parameters_are_numbers(value):
    with pytest.raises(ValueError, match=r"Got inclusion_init=.*expected 'auto', a keyword"):
        ISLaBRegressor(inclusion_init=value).fit(np.ones((5, 1)), np.arange(5.0))


def test_the_old_name_of_independent_weights_is_understood_with_a_warning(table, labels):
    params = {"max_epochs": 5, "n_restarts": 1, "random_state": 0}
    with pytest.warns(FutureWarning, match="posterior='lrt' is now called posterior='independent'"):
        old = ISLaBClassifier(posterior="lrt", **params).fit(table, labels)
    new = ISLaBClassifier(posterior="independent", **params).fit(table, labels)
    np.testing.assert_array_equal(old.posterior_.mu, new.posterior_.mu)
