"""The Student-t slab and the kinds of flows, asked for by parameters."""

import numpy as np
import pytest

import islab
from islab import ISLaBRegressor
from islab.estimators.settings import engine_choice, make_recipe

QUICK = {"hidden_layer_sizes": (3,), "max_epochs": 30, "n_restarts": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 3))
    return x, 2 * x[:, 0] + np.abs(x[:, 1]) + 0.1 * rng.standard_normal(80)


def test_every_stage_has_the_slab_that_was_asked_for():
    recipe = make_recipe(ISLaBRegressor(slab_df=3).get_params(), 100)
    stages = (recipe.linear, recipe.network, recipe.flow, recipe.prune.stage)
    assert [stage.df for stage in stages] == [3.0] * 4


def test_by_default_the_slab_is_gaussian():
    assert make_recipe(ISLaBRegressor().get_params(), 100).network.df is None


def test_the_student_slab_shrinks_large_weights_less(data):
    gaussian, student = (
        ISLaBRegressor(**QUICK, prior_scale=0.1, slab_df=df).fit(*data) for df in (None, 2)
    )
    assert np.abs(student.network_.mu).max() > 1.05 * np.abs(gaussian.network_.mu).max()


@pytest.mark.parametrize("n_transforms", [1, 2])
@pytest.mark.parametrize("flow", ["iaf", "rnvp"])
def test_the_engine_gets_the_flow_that_was_asked_for(flow, n_transforms):
    params = ISLaBRegressor(posterior="flow", flow=flow, n_transforms=n_transforms).get_params()
    assert engine_choice(params).options == {"flow": flow, "n_transforms": n_transforms}


def test_another_flow_is_another_model():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((200, 1))
    x = common + 0.2 * rng.standard_normal((200, 2))
    y = x.sum(axis=1) + rng.standard_normal(200)
    one, two = (
        ISLaBRegressor(hidden_layer_sizes=(), random_state=0, posterior="flow", flow=flow).fit(x, y)
        for flow in ("iaf", "rnvp")
    )
    assert one.elbo_ != two.elbo_
    assert "left out" not in str(one.summary())


def test_a_flow_that_does_not_raise_the_bound_is_left_out_and_the_summary_says_so(data):
    model = ISLaBRegressor(**QUICK, posterior="flow").fit(*data)
    assert model.posterior_.multipliers is None
    assert "left out" in str(model.summary())


def test_the_error_of_the_bound_is_printed_and_comes_back_from_a_file(data, tmp_path):
    model = ISLaBRegressor(**QUICK, posterior="independent").fit(*data)
    assert model.elbo_error_ > 0
    assert f"{model.elbo_:.2f} ± {model.elbo_error_:.2f}" in str(model.summary())
    model.save(tmp_path / "m.islab")
    assert islab.load(tmp_path / "m.islab").elbo_error_ == model.elbo_error_


def test_slab_and_flow_come_back_from_a_file(data, tmp_path):
    options = {"posterior": "flow", "flow": "rnvp", "n_transforms": 1, "slab_df": 4.0}
    model = ISLaBRegressor(**QUICK, **options).fit(*data)
    model.save(tmp_path / "m.islab")
    loaded = islab.load(tmp_path / "m.islab")
    assert {name: loaded.get_params()[name] for name in options} == options
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))


@pytest.mark.parametrize(
    ("name", "value"),
    [("slab_df", 0), ("slab_df", "auto"), ("flow", "planar"), ("n_transforms", 0)],
)
def test_impossible_values_are_named(name, value, data):
    with pytest.raises(ValueError, match=f"Got {name}={value!r}"):
        ISLaBRegressor(**{name: value}).fit(*data)
