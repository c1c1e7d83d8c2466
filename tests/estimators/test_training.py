"""Priors and starts by block, and how variational posteriors are trained: public parameters."""

import numpy as np
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.estimators.settings import engine_choice, make_recipe
from islab.learn.recipe import paper_recipe

QUICK = {"max_epochs": 20, "n_restarts": 1, "posterior": "independent", "random_state": 0}
N_ROWS = 1000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 4))
    return x, x[:, 0] - np.maximum(x[:, 1], 0) + 0.1 * rng.standard_normal(200)


def recipe_of(**params):
    return make_recipe(ISLaBRegressor(**params).get_params(), N_ROWS)


# -- by block -----------------------------------------------------------------------------------

BLOCKS = [(0, "covariates"), (1, "covariates"), (2, "covariates"), (1, "hidden"), (2, "hidden")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3.0, 3.0),
        ({"hidden": 3.0}, (1.0, 1.0, 1.0, 3.0, 3.0)),
        ({1: 3.0, (1, "hidden"): 4.0}, (1.0, 3.0, 1.0, 4.0, 1.0)),
        ({-1: 3.0, "covariates": 2.0}, (2.0, 2.0, 3.0, 1.0, 3.0)),
    ],
)
def test_priors_by_block_go_to_the_blocks_they_name(given, expected):
    recipe = recipe_of(prior_scale=given)
    assert recipe.network.tau == expected
    net = Architecture(4, recipe.hidden, 1)
    prior = recipe.network.prior(net)
    np.testing.assert_array_equal(prior.tau, np.broadcast_to(expected, len(BLOCKS)))


def test_blocks_that_are_given_stay_and_others_are_learned():
    recipe = recipe_of(prior_scale={(0, "covariates"): 3.0}, prior_inclusion={"hidden": 0.01})
    stage, net = recipe.network, Architecture(4, recipe.hidden, 1)
    start = Posterior.initialise(net, np.random.default_rng(0))
    n_initial = np.array([block.size for block in net.blocks])
    learned = stage.empirical_bayes.update(
        stage.prior(net), net, start.mu, start.rho, start.lam, n_initial, 0.9
    )
    assert learned.tau[0] == 3.0
    assert (learned.tau[1:] != 1.0).all()
    np.testing.assert_array_equal(learned.psi[3:], 0.01)
    assert (learned.psi[:3] != stage.psi[0]).all()


def test_the_linear_model_has_the_prior_of_the_output_layer():
    recipe = recipe_of(prior_scale={0: 3.0, -1: 2.0}, prior_inclusion={0: 0.3})
    assert recipe.linear.tau == 2.0
    assert recipe.linear.empirical_bayes.tau_from == np.inf
    assert recipe.linear.psi == 0.5
    assert recipe.linear.empirical_bayes.psi_from == 0.3


def test_covariate_and_hidden_weights_start_apart():
    recipe = recipe_of(inclusion_init={"covariates": (5, 6), "hidden": "sparse"})
    start = Posterior.initialise(Architecture(4, (3,), 1), np.random.default_rng(0), recipe.initial)
    net = start.architecture
    covariates, hidden = (
        start.lam[net.block(1, source).weights] for source in ("covariate", "hidden")
    )
    assert ((covariates >= 5) & (covariates <= 6)).all()
    assert ((hidden >= -2.5) & (hidden <= -1.5)).all()
    assert recipe_of(inclusion_init={"hidden": "sparse"}).initial.covariate_inclusion == (2.0, 2.0)


def test_a_narrow_slab_in_one_block_keeps_its_weights_small(data):
    x, y = data
    wide, narrow = (
        ISLaBRegressor(**QUICK, hidden_layer_sizes=(), prior_scale={-1: scale}).fit(x, y)
        for scale in (10.0, 0.01)
    )
    assert abs(narrow.posterior_.mu).max() < abs(wide.posterior_.mu).max() / 2


# -- training -----------------------------------------------------------------------------------


def test_the_papers_recipe_is_that_of_the_library():
    found = recipe_of(training="paper", batch_size=100, hidden_layer_sizes=(5,), max_epochs=3)
    expected = paper_recipe(
        hidden=(5,),
        n_steps=30,
        batch_size=100,
        rate=0.01,
        tau=1.0,
        psi=0.1,
        covariate_inclusion=(5.0, 5.0),
        hidden_inclusion=(-9.0, -5.0),
    )
    assert found == expected


def test_settings_reach_the_stages():
    recipe = recipe_of(
        training={
            "inclusion_rate": 0.5,
            "milestones": (0.5,),
            "drop": 0.1,
            "means": (-0.2, 0.2),
            "sigma": 0.3,
            "bias_scale": 7.0,
            "shrink_from": 0.9,
        }
    )
    stage = recipe.network
    assert (stage.lambda_rate, stage.bias_tau, stage.shrink.start) == (0.5, 7.0, 0.9)
    np.testing.assert_allclose(stage.schedule([0.4, 0.6]), [1.0, 0.1])
    assert (recipe.initial.means, recipe.initial.sigma) == ((-0.2, 0.2), 0.3)
    # Other stages keep their proportion to the network's.
    default = recipe_of()
    share = default.prune.stage.lambda_rate / default.network.lambda_rate
    assert recipe.prune.stage.lambda_rate == pytest.approx(0.5 * share)


def test_the_width_of_flows_reaches_the_engine():
    params = ISLaBRegressor(posterior="flow", training={"flow_width": 7}).get_params()
    assert engine_choice(params).options["flow_width"] == 7


def test_a_refined_network_keeps_its_structure_and_fits_better(data):
    x, y = data
    plain, refined = (
        ISLaBRegressor(
            **QUICK, hidden_layer_sizes=(4,), training={"refine": epochs}, sparsity=0.5
        ).fit(x, y)
        for epochs in (0, 200)
    )
    np.testing.assert_array_equal(refined.network_.edges, plain.network_.edges)
    assert (refined.network_.alpha == 1).all() or refined.network_.alpha.min() > 1 - 1e-12
    errors = [np.mean((m.predict(x, model="median") - y) ** 2) for m in (plain, refined)]
    assert errors[1] < errors[0]


def test_noise_that_is_not_learned_along_is_that_of_the_residuals(data):
    x, y = data
    model = ISLaBRegressor(
        **{**QUICK, "max_epochs": 200}, hidden_layer_sizes=(4,), training={"noise": 0.5}
    ).fit(x, y)
    residual = np.mean((model.predict(x) - y) ** 2)
    assert model.network_.noise_in_units()[0] == pytest.approx(residual, rel=0.5)


def test_the_noise_that_is_given_is_that_of_training():
    assert recipe_of(training={"noise": 0.5}).noise == 0.5
    assert recipe_of(training={"noise": 0.5}).network.noise_rate == 0.0


def test_columns_and_targets_may_be_left_as_they_are(data):
    x, y = data
    model = ISLaBRegressor(**QUICK, training={"standardize": False}).fit(10 * x, 3 * y)
    scale = model.network_.scale
    assert (scale.x_scale == 1).all()
    assert (scale.y_scale == 1).all()


# -- threshold ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_median_network_has_the_weights_above_the_threshold(data, tmp_path):
    x, y = data
    model = ISLaBRegressor(**QUICK, threshold=0.05, sparsity=0.0).fit(x, y)
    np.testing.assert_array_equal(
        np.sort(model.network_.alpha),
        np.sort(model.posterior_.alpha[model.posterior_.used_weights(0.05)]),
    )
    assert (
        model.n_used_weights_
        > ISLaBRegressor(**QUICK, threshold=0.999, sparsity=0.0).fit(x, y).n_used_weights_
    )
    model.save(tmp_path / "m.islab")
    again = islab.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(again.network_.edges, model.network_.edges)
    assert again.threshold == 0.05


def test_candidates_of_the_readable_network_are_above_the_threshold(data):
    x, y = data
    few = {"max_epochs": 20, "n_restarts": 1, "random_state": 0, "posterior": "sampled"}
    strict = ISLaBRegressor(**few, threshold=0.99).fit(x, y)
    assert (strict.network_.alpha > 0.99).all()


# -- values that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"prior_scale": {"hidden": -1.0}}, "prior_scale="),
        ({"prior_scale": {}}, "prior_scale="),
        ({"prior_scale": {"bias": 1.0}}, "prior_scale="),
        ({"prior_scale": {7: 1.0}}, "not 7; its blocks are"),
        ({"prior_inclusion": {"hidden": 1.0}}, "prior_inclusion="),
        ({"inclusion_init": {"output": "dense"}}, "inclusion_init="),
        ({"inclusion_init": {"hidden": "denser"}}, "inclusion='denser'"),
        ({"threshold": 1.0}, "threshold=1.0"),
        ({"training": "fast"}, "training='fast'"),
        ({"training": {"rate": 0.1}}, "training with the key 'rate', expected some of recipe"),
        ({"training": {"drop": 2}}, "training={'drop': 2}, expected a factor"),
        ({"training": {"means": "zero"}}, "training={'means': 'zero'}"),
        ({"training": {"refine": -1}}, "training={'refine': -1}, expected a number of epochs"),
    ],
)
def test_values_that_no_fit_can_use_are_named(data, params, words):
    with pytest.raises(ValueError, match="Got") as caught:
        ISLaBRegressor(**QUICK, **params).fit(*data)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"prior_scale": {"hidden": 2.0}}, "expected one number"),
        ({"prior_inclusion": {"hidden": 0.2}}, "expected one number"),
        ({"training": {"refine": 5}}, "expected 'auto'"),
        ({"training": "paper"}, "expected 'auto'"),
    ],
)
def test_what_chains_cannot_take_names_value_rule_and_remedy(data, params, rule):
    name, value = next(iter(params.items()))
    with pytest.raises(ValueError, match="try posterior='independent'") as caught:
        ISLaBRegressor(posterior="sampled", **params).fit(*data)
    assert f"Got {name}={value!r} with posterior='sampled', {rule}" in str(caught.value)


def test_auto_is_variational_where_chains_cannot_take_a_parameter(data):
    x, y = data
    model = ISLaBRegressor(
        max_epochs=5, n_restarts=1, training={"inclusion_rate": 0.1}, random_state=0
    ).fit(x, y)
    assert isinstance(model.posterior_, Posterior)


def test_parameters_come_back_from_files(data, tmp_path):
    x, y = data
    params = {
        "prior_scale": {(0, "covariates"): 2.0, "hidden": 1.5},
        "inclusion_init": {"covariates": (5, 5), "hidden": (-9, -5)},
        "training": {"recipe": "paper", "milestones": (0.5, 0.9), "means": (-0.1, 0.1)},
        "threshold": 0.4,
    }
    model = ISLaBClassifier(**QUICK, **params).fit(x, y > 0)
    model.save(tmp_path / "m.islab")
    again = islab.load(tmp_path / "m.islab")
    assert {name: again.get_params()[name] for name in params} == params
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


# -- biases that are selected ---------------------------------------------------------------------

SELECTED = {"posterior": "independent", "training": {"bias_inclusion": 0.1, "standardize": False}}


@pytest.fixture(scope="module")
def shifted():
    """Two slopes of centred columns; the second target has an intercept besides."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((150, 2))
    x -= x.mean(axis=0)
    y = x.sum(axis=1) + 0.3 * rng.standard_normal(150)
    return x, np.column_stack([y - y.mean(), y + 3])


def fitted(x, y, **params):
    pytest.importorskip("torch")
    training = SELECTED | {"hidden_layer_sizes": (), "max_epochs": 600, "random_state": 0}
    return ISLaBRegressor(**training | params).fit(x, y)


@pytest.mark.parametrize("number", [0, 1])
def test_a_bias_is_in_where_it_is_needed(shifted, number):
    x, y = shifted
    model = fitted(x, y[:, number])
    assert (model.posterior_.bias_alpha > 0.5) == [number == 1]
    at_zero = model.network_.predictor(np.zeros((1, 2)))
    biases = model.posterior_.draw(50, np.random.default_rng(0))[1]
    if number:
        assert at_zero == pytest.approx(3, abs=0.1)
        assert (biases != 0).all()
    else:
        assert at_zero == 0
        assert (biases == 0).mean() > 0.5
        _, median = model.network_.draw(50, np.random.default_rng(0))
        assert (median == 0).all()


def test_selected_biases_come_back_from_files(shifted, tmp_path):
    x, y = shifted
    model = fitted(x, y[:, 0], hidden_layer_sizes=(3,), max_epochs=30, n_restarts=1)
    model.save(tmp_path / "model.islab")
    again = islab.load(tmp_path / "model.islab")
    assert again.training == SELECTED["training"]
    np.testing.assert_array_equal(again.posterior_.bias_alpha, model.posterior_.bias_alpha)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


@pytest.mark.filterwarnings("ignore:Got a readable network")  # so few epochs
@pytest.mark.parametrize("posterior", ["stacked", "flow"])
def test_biases_are_selected_with_other_variational_posteriors(shifted, posterior):
    x, y = shifted
    model = fitted(x, y[:, 1], posterior=posterior, max_epochs=60, hidden_layer_sizes="auto")
    assert np.isfinite(model.predict(x)).all()
    assert np.sqrt(np.mean((model.predict(x) - y[:, 1]) ** 2)) < 0.5


def test_a_sure_bias_has_no_inclusion_parameter(data):
    model = ISLaBRegressor(**QUICK).fit(*data)
    assert model.posterior_.bias_lam is None
    assert (model.posterior_.bias_alpha == 1).all()


@pytest.mark.parametrize("value", [0, 1, 1.5, "often", True])
def test_a_prior_inclusion_of_biases_is_a_probability(data, value):
    with pytest.raises(ValueError, match=r"bias_inclusion.*expected a number between 0 and 1"):
        ISLaBRegressor(training={"bias_inclusion": value}).fit(*data)
