"""What was saved comes back."""

import json
from copy import copy

import numpy as np
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior

from .conftest import QUICK, from_state, held, state_of


def test_the_fitted_model_is_a_network(model):
    assert model.posterior_.architecture.hidden
    assert sum(model.network_.architecture.hidden) > 0


def test_a_loaded_classifier_predicts_the_same_numbers(model, table, tmp_path, sparse):
    model.save(tmp_path / "m.islab", sparse=sparse)
    loaded = islab.load(tmp_path / "m.islab")
    kept = {"model": held(sparse)}
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table, **kept))
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table, **kept))


def test_a_loaded_regressor_predicts_the_same_numbers(regressor, table, tmp_path, sparse):
    regressor.save(tmp_path / "m.islab", sparse=sparse)
    loaded = islab.load(tmp_path / "m.islab")
    kept = {"model": held(sparse)}
    np.testing.assert_array_equal(loaded.predict(table), regressor.predict(table, **kept))
    np.testing.assert_array_equal(
        loaded.predict_interval(table, 0.9), regressor.predict_interval(table, 0.9, **kept)
    )


def test_the_full_posterior_comes_back(model, table, tmp_path):
    model.save(tmp_path / "m.islab")
    loaded = islab.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(
        loaded.predict_proba(table, model="full"), model.predict_proba(table, model="full")
    )
    assert loaded.history_.records == model.history_.records


def test_parameters_names_and_classes_come_back(model, tmp_path, sparse):
    model.save(tmp_path / "m.islab", sparse=sparse)
    loaded = islab.load(tmp_path / "m.islab")
    assert loaded.get_params() == model.get_params()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert (loaded.elbo_, loaded.seed_) == (model.elbo_, model.seed_)


def test_explanations_come_back(model, table, tmp_path, sparse):
    model.save(tmp_path / "m.islab", sparse=sparse)
    loaded = islab.load(tmp_path / "m.islab")
    kind = "median" if sparse else "full"
    for attribute in ("slope", "contribution", "draws_predictor"):
        np.testing.assert_array_equal(
            getattr(loaded.explain_local(table[:3]), attribute),
            getattr(model.explain_local(table[:3], model=kind), attribute),
        )


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 7]),
        np.array([0.5, 2.0]),
        np.array([False, True]),
        np.array(["x", "y", "z"]),
        np.array(["x", "y", "z"], dtype=object),
    ],
    ids=str,
)
def test_classes_of_any_plain_type_come_back(table, tmp_path, classes):
    y = classes[np.arange(60) % len(classes)]
    if y.dtype.kind == "f":
        y = np.where(y == 0.5, 0.0, y)
    model = ISLaBClassifier(**QUICK).fit(table, y)
    model.save(tmp_path / "m.islab")
    loaded = islab.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype.kind == model.classes_.dtype.kind


def test_unusual_parameters_come_back(table, tmp_path):
    settings = {
        **QUICK,
        "class_weight": {0: 1.0, 1: np.float64(2.0)},
        "hidden_layer_sizes": [np.int64(2), 2],
        "inclusion_init": (-1.0, 1.0),
        "random_state": np.random.RandomState(1),
    }
    model = ISLaBClassifier(**settings).fit(table, np.arange(60) % 2)
    model.save(tmp_path / "m.islab")
    loaded = islab.load(tmp_path / "m.islab")
    assert loaded.class_weight == {0: 1.0, 1: 2.0}
    assert loaded.hidden_layer_sizes == (2, 2)
    assert loaded.inclusion_init == (-1.0, 1.0)
    assert loaded.random_state is None


def test_several_outputs_come_back(table, tmp_path, sparse):
    targets = np.column_stack([table["a"] + (table["c"] == "u"), table["b"].isna() - table["a"]])
    model = ISLaBRegressor(**QUICK).fit(table, targets)
    model.save(tmp_path / "m.islab", sparse=sparse)
    np.testing.assert_array_equal(
        islab.load(tmp_path / "m.islab").predict(table), model.predict(table, model=held(sparse))
    )


def test_a_sparse_file_is_small(model, tmp_path):
    model.save(tmp_path / "m.islab", sparse=True)
    assert (tmp_path / "m.islab").stat().st_size < 8000


def test_a_sparse_file_has_no_full_model(model, table, tmp_path):
    model.save(tmp_path / "m.islab", sparse=True)
    loaded = islab.load(tmp_path / "m.islab")
    assert loaded.posterior_ is None
    with pytest.raises(ValueError, match="saved with sparse=True"):
        loaded.predict(table, model="full")


def test_a_sparse_model_can_be_saved_again_only_as_one(model, table, tmp_path):
    model.save(tmp_path / "m.islab", sparse=True)
    loaded = islab.load(tmp_path / "m.islab")
    with pytest.raises(ValueError, match="try sparse=True"):
        loaded.save(tmp_path / "n.islab")
    loaded.save(tmp_path / "n.islab", sparse=True)
    assert (tmp_path / "m.islab").read_bytes() == (tmp_path / "n.islab").read_bytes()


def test_saving_twice_gives_the_same_bytes(model, tmp_path, sparse):
    for name in "ab":
        model.save(tmp_path / name, sparse=sparse)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_file_is_an_ordinary_safetensors_file(model, tmp_path):
    from safetensors.numpy import load_file

    model.save(tmp_path / "m.islab")
    arrays = load_file(tmp_path / "m.islab")
    np.testing.assert_array_equal(arrays["mu"], model.posterior_.mu)


def test_an_unfitted_model_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ISLaBClassifier().save(tmp_path / "m.islab")


def with_flow(model):
    """The same estimator with draws of a flow's multipliers around its posterior."""
    posterior = model.posterior_
    index = posterior.architecture.input_index
    bank = np.random.default_rng(0).normal(1, 0.3, (40, index.max() + 1))
    other = copy(model)
    other.posterior_ = posterior.copy(multipliers=bank, input_index=index)
    other.network_ = other.posterior_.median(scale=model.network_.scale)
    return other


@pytest.mark.parametrize("which", ["median", "full"])
def test_flow_posteriors_come_back(model, table, tmp_path, which):
    flow = with_flow(model)
    flow.save(tmp_path / "m.islab")
    loaded = islab.load(tmp_path / "m.islab")
    expected = flow.predict_proba(table, model=which)
    np.testing.assert_array_equal(loaded.predict_proba(table, model=which), expected)
    assert np.abs(expected - model.predict_proba(table, model=which)).max() > 1e-3


def test_flow_networks_come_back(model, table, tmp_path):
    flow = with_flow(model)
    flow.save(tmp_path / "m.islab", sparse=True)
    loaded = islab.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(
        loaded.predict_proba(table), flow.predict_proba(table, model="median")
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("multipliers", lambda bank: bank[0]),
        ("multipliers", lambda bank: bank[:0]),
        ("multipliers", lambda bank: bank[:, :-1]),
        ("input_index", lambda index: index[:-1]),
        ("input_index", lambda index: index - 1),
    ],
)
def test_draws_of_a_flow_that_do_not_fit_are_refused(model, sparse, name, change):
    description, arrays = state_of(with_flow(model), sparse=sparse)
    description = json.loads(json.dumps(description))
    from_state(description, arrays)
    with pytest.raises(ValueError, match="array"):
        from_state(description, {**arrays, name: change(arrays[name])})


@pytest.mark.parametrize("flow", [False, True])
def test_units_that_no_covariate_feeds_come_back(model, sparse, tmp_path, flow):
    net = Architecture(len(model.columns_.names), (2, 2), 1)
    kept = np.ones(net.n_weights, dtype=bool)
    net.covariate_matrix(kept)[0] = False  # the first unit sends its bias on
    rng = np.random.default_rng(0)
    posterior = Posterior.initialise(net, rng, likelihood="bernoulli").copy(
        lam=np.where(kept, 9.0, -9.0), bias_mu=rng.normal(size=net.n_units)
    )
    if flow:
        n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
        bank = rng.normal(1, 0.5, (5, n_inputs))
        posterior = posterior.copy(multipliers=bank, input_index=net.input_index)
    posterior.scale = model.posterior_.scale
    changed = copy(model)
    changed.posterior_, changed.network_ = posterior, posterior.median()
    changed.save(tmp_path / "m.islab", sparse=sparse)
    found = islab.load(tmp_path / "m.islab").network_
    assert changed.network_.folded is not None
    x, seeds = np.zeros((1, net.n_covariates)), [np.random.default_rng(1) for _ in range(2)]
    expected, again = (
        each.sample_predictor(x, 20, seed)
        for each, seed in zip((changed.network_, found), seeds, strict=True)
    )
    np.testing.assert_array_equal(again, expected)
