"""Constraints of columns: kept exactly in every draw, or refused in one message."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.core.constraints import Limits
from islab.core.network import forward
from islab.io.store import load

# Chains are short here.
pytestmark = pytest.mark.filterwarnings("ignore:Got chains that disagree")
PARAMS = {"n_restarts": 1, "random_state": 0, "max_epochs": 100, "n_draws": 200}
PARAMS |= {"hidden_layer_sizes": (6,), "posterior": "independent"}
GRID = np.linspace(-3, 3, 61)


@pytest.fixture(scope="module")
def data():
    """The target bends in a, falls and rises in b, and does not depend on c."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.standard_normal((250, 4)), columns=["a", "b", "c", "d"])
    y = 2 * np.maximum(x["a"], 0) + np.abs(x["b"]) + 0.5 * x["d"] + 0.3 * rng.standard_normal(250)
    return x, y.to_numpy()


def fitted(data, **params):
    return ISLaBRegressor(**{**PARAMS, **params}).fit(*data)


def weights_of(model, column):
    """Draws of the weights of a covariate into hidden units and into the output."""
    net = model.posterior_.architecture
    weights, _ = model.posterior_.draw(200, np.random.default_rng(0))
    sources, targets = net.ends
    own = sources == list("abcd").index(column)
    hidden = targets < net.n_units - net.n_outputs
    return weights[:, own & hidden], weights[:, own & ~hidden]


def curves(model, column, others):
    """The predictor of each draw along a column, the others as in some rows."""
    rows = pd.concat([others.assign(**{column: value}) for value in GRID])
    drawn = model.predictions(rows).predictor()[..., 0]
    return drawn.reshape(len(drawn), len(GRID), len(others))


@pytest.mark.parametrize("posterior", ["independent", "sampled"])
def test_an_excluded_column_is_never_used(data, posterior):
    model = fitted(data, posterior=posterior, constraints={"a": "exclude"})
    hidden, direct = weights_of(model, "a")
    assert not hidden.any()
    assert not direct.any()
    assert "a" not in model.get_feature_names_out()
    rows = data[0][:5]
    np.testing.assert_array_equal(model.predict(rows), model.predict(rows.assign(a=9.0)))


@pytest.mark.parametrize("posterior", ["independent", "sampled"])
def test_a_linear_column_enters_no_hidden_unit(data, posterior):
    free = fitted(data, posterior=posterior)
    assert weights_of(free, "a")[0].any()
    model = fitted(data, posterior=posterior, constraints={"a": "linear"})
    hidden, direct = weights_of(model, "a")
    assert not hidden.any()
    assert direct.any()
    bends = np.diff(curves(model, "a", data[0][:3]), n=2, axis=1)
    assert np.abs(bends).max() < 1e-9
    assert weights_of(model, "b")[0].any()


@pytest.mark.parametrize("posterior", ["independent", "sampled"])
def test_an_included_column_is_always_used(data, posterior):
    assert (
        not fitted(data, posterior=posterior, max_epochs="auto")
        .network_.covariate_counts()[2]
        .any()
    )
    model = fitted(data, posterior=posterior, constraints={"c": "include"})
    _, direct = weights_of(model, "c")
    assert (direct != 0).all()
    assert "c" in model.get_feature_names_out()


@pytest.mark.parametrize(("word", "sign"), [("increasing", 1), ("decreasing", -1)])
def test_predictors_keep_their_direction_in_every_draw(data, word, sign):
    model = fitted(data, posterior="sampled", constraints={"b": word, "a": "increasing"})
    moves = sign * np.diff(curves(model, "b", data[0][:4]), axis=1)
    assert moves.min() >= -1e-12
    assert np.diff(curves(model, "a", data[0][:4]), axis=1).min() >= -1e-12
    assert model.score(*data) > 0.5


@pytest.mark.parametrize(("word", "sign"), [("increasing", 1), ("decreasing", -1)])
@pytest.mark.parametrize("bend", [-1, 1])
def test_a_direction_leaves_curves_that_steepen_and_that_level_off(word, sign, bend):
    """The target has slope 1 on one side and 4 on the other; its noise has variance 0.01."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((250, 2))
    y = sign * (2.5 * x[:, 0] + bend * 1.5 * np.abs(x[:, 0])) + 0.1 * rng.standard_normal(250)
    model = fitted((x, y), posterior="sampled", constraints={0: word})
    assert np.mean((y - model.predict(x)) ** 2) < 0.02


def test_a_free_model_does_not_keep_a_direction(data):
    model = fitted(data, posterior="sampled")
    assert np.diff(curves(model, "b", data[0][:4]), axis=1).min() < -1e-3


def test_classes_follow_a_constraint(data):
    x, y = data
    params = {**PARAMS, "posterior": "sampled", "constraints": {"b": "decreasing"}}
    model = ISLaBClassifier(**params)
    model.fit(x, y > np.median(y))
    assert np.diff(curves(model, "b", x[:3]), axis=1).max() <= 1e-12


def test_constraints_are_in_the_file(data, tmp_path):
    constraints = {"a": ["linear", "increasing"], "d": "exclude", ("b", "c"): "no interaction"}
    model = fitted(data, posterior="sampled", constraints=constraints, hidden_layer_sizes=())
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    assert found.constraints == {**constraints, "a": ("linear", "increasing")}
    np.testing.assert_array_equal(found.predict(data[0]), model.predict(data[0]))


def test_positions_name_columns_of_arrays(data):
    x, y = data
    model = fitted((x.to_numpy(), y), constraints={0: "exclude"})
    assert 0 not in model.network_.covariates


def test_all_problems_stand_in_one_message(data):
    table = data[0].assign(kind=["x", "y"] * 125)
    constraints = {"z": "linear", "a": "rising", "kind": "increasing", "b": ["exclude", "linear"]}
    with pytest.raises(ValueError, match="cannot be kept") as caught:
        ISLaBRegressor(constraints=constraints, **PARAMS).fit(table, data[1])
    for part in ("no column 'z'", "'rising'", "'kind' is no number", "exclude each other"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"posterior": "independent"}, "try posterior='sampled'"),
        ({"posterior": "flow"}, "try posterior='sampled'"),
    ],
)
def test_directions_need_a_sampled_posterior(data, params, message):
    with pytest.raises(ValueError, match=message):
        fitted(data, constraints={"a": "increasing"}, **params)


def test_directions_need_classes_with_an_order(data):
    classes = np.digitize(data[1], np.quantile(data[1], [0.3, 0.6]))
    params = {**PARAMS, "posterior": "sampled", "constraints": {"a": "increasing"}}
    with pytest.raises(ValueError, match="try an ordered Categorical"):
        ISLaBClassifier(**params).fit(data[0], classes)
    model = ISLaBClassifier(likelihood="ordinal", **params).fit(data[0], classes)
    assert np.diff(curves(model, "a", data[0][:3]), axis=1).min() >= -1e-12


def test_something_must_be_left_to_learn_from(data):
    with pytest.raises(ValueError, match="every column is excluded"):
        fitted(data, constraints=dict.fromkeys("abcd", "exclude"))


def test_what_limits_allow_is_monotone_and_what_is_not_is_refused():
    """Random networks: those that are allowed never fall; every one that falls is refused."""
    rng = np.random.default_rng(0)
    net = Architecture(2, (2, 2), 1)
    free = np.zeros(2, dtype=bool)
    limits = Limits(free, free, np.array([1, 0], dtype=np.int8))
    x = np.column_stack([np.tile(GRID, 5), np.repeat(np.linspace(-2, 2, 5), len(GRID))])
    allowed = 0
    for _ in range(3000):
        weights = rng.standard_normal(net.n_weights) * (rng.random(net.n_weights) < 0.4)
        slots = np.flatnonzero(weights)
        biases = rng.standard_normal(net.n_units)
        rises = np.diff(forward(net, weights, biases, x).reshape(5, -1), axis=1).min() >= -1e-12
        if limits.allow(net, slots, weights[slots]):
            allowed += 1
            assert rises
        slots, kept = limits.nearest(net, slots, weights[slots])
        assert limits.allow(net, slots, kept)
    assert 300 < allowed < 2700


def test_columns_that_may_not_interact_add_up_in_every_draw():
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.standard_normal((250, 4)), columns=list("abcd"))
    y = 2 * np.maximum(x["a"] + x["b"], 0) + x["c"] + 0.2 * rng.standard_normal(250)

    def joint(constraints):
        """Second differences over a and b: 0 where their effects add up."""
        model = fitted((x, y), posterior="sampled", constraints=constraints)
        rows = pd.DataFrame(
            [(a, b, 0.0, 0.0) for a in (-1.0, 1.0) for b in (-1.0, 1.0)], columns=list("abcd")
        )
        drawn = model.predictions(rows).predictor()[..., 0]
        return np.abs(drawn[:, 0] - drawn[:, 1] - drawn[:, 2] + drawn[:, 3])

    assert np.median(joint(None)) > 0.5
    assert joint({("a", "b"): "no interaction"}).max() < 1e-9
    assert joint({(("a", "c"), ("b", "d")): "no interaction"}).max() < 1e-9


def test_impossible_pairs_are_named_with_the_other_problems(data):
    constraints = {("a", "z"): "no interaction", ("a",): "no interaction", "q": "linear"}
    with pytest.raises(ValueError, match="cannot be kept") as caught:
        fitted(data, constraints=constraints)
    for part in ("no column 'z'", "two or more columns", "no column 'q'"):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match="try posterior='sampled'"):
        fitted(data, constraints={("a", "b"): "no interaction"})
