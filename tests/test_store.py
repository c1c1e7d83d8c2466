import json
import os
from copy import copy, deepcopy

import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators.restore import BadState, from_state
from islab.estimators.state import state_of
from islab.store import VERSION, read, to_bytes

QUICK = {
    "max_epochs": 30,
    "n_restarts": 1,
    "n_draws": 50,
    "hidden_layer_sizes": (3,),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": np.where(rng.random(60) < 0.1, np.nan, rng.normal(5, 2, 60)),
            "c": rng.choice(["u", "v", "w"], 60),
        }
    )


@pytest.fixture(scope="module")
def model(table):
    """A network with a hidden unit."""
    far = np.where(np.abs(table["a"]) > 0.7, "yes", "no")
    return ISLaBClassifier(**{**QUICK, "max_epochs": 300}).fit(table, far)


@pytest.fixture(scope="module")
def regressor(table):
    return ISLaBRegressor(**QUICK).fit(table, table["a"] * 3 + 100)


@pytest.fixture(params=[False, True], ids=["full", "sparse"])
def sparse(request):
    return request.param


def held(sparse):
    """The model that a file of this kind predicts with."""
    return "median" if sparse else "full"


def write(path, description, arrays):
    path.write_bytes(to_bytes(description, arrays))
    return path


def test_the_model_at_hand_is_a_network(model):
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
    for attribute in ("slope", "draws_link"):
        np.testing.assert_array_equal(
            getattr(loaded.explain_local(table[:3]), attribute),
            getattr(model.explain_local(table[:3]), attribute),
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
    targets = np.column_stack([table["a"], -table["a"]])
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


# -- damage ---------------------------------------------------------------------------------


def refused(path):
    """Whether loading ends in one ValueError that names the file."""
    try:
        islab.load(path)
    except ValueError as error:
        return str(path) in str(error)
    return False


def test_a_flipped_byte_anywhere_is_noticed(model, tmp_path, sparse):
    path = tmp_path / "m.islab"
    model.save(path, sparse=sparse)
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(content):
            file.seek(position)
            file.write(bytes([byte ^ (0x01, 0x20, 0x80)[position % 3]]))
            assert refused(path), position
            file.seek(position)
            file.write(bytes([byte]))
    assert not refused(path)


def test_a_file_cut_anywhere_is_noticed(model, tmp_path):
    path = tmp_path / "m.islab"
    model.save(path, sparse=True)
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        assert refused(path), length


def test_bytes_after_the_end_are_noticed(model, tmp_path):
    path = tmp_path / "m.islab"
    model.save(path)
    path.write_bytes(path.read_bytes() + b"\0")
    assert refused(path)


def test_random_bytes_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "m.islab"
    for _ in range(200):
        path.write_bytes(rng.bytes(int(rng.integers(0, 300))))
        assert refused(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is none"):
        islab.load(tmp_path / "nothing.islab")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a regular file"):
        islab.load(tmp_path)


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        islab.load(tmp_path / "pipe")


def test_a_file_that_is_too_new_says_so(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    path = write(tmp_path / "m", {**description, "version": VERSION + 1}, arrays)
    with pytest.raises(ValueError, match=rf"version is {VERSION + 1}.*pip install --upgrade"):
        islab.load(path)


# -- malice ---------------------------------------------------------------------------------

ODD = [None, True, -1, 0, 2**31, 2**63, 10**30, 1.5, "", "os.system", [], [1], {}, {"a": 1}]


def places(value, path=()):
    """Every place in a description, as a path of keys."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))
        else:
            yield (*path, key)


def changed(description, place, value):
    copy = deepcopy(description)
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copy


def test_odd_descriptions_are_refused_or_harmless(model, sparse):
    description, arrays = state_of(model, sparse=sparse)
    description = json.loads(json.dumps(description))
    harmless = set()
    for place in places(description):
        for odd in ODD:
            altered = changed(description, place, odd)
            if altered == description:
                continue
            try:
                loaded = from_state(altered, arrays)
            except BadState:
                continue
            harmless.add(place[0])
            loaded.get_params()
    free = {"params", "columns", "outputs", "elbo", "seed", "n_weights_initial", "target"}
    assert harmless <= free | {"features"}


@pytest.mark.parametrize("name", ["mu", "x_center", "noise"])
def test_arrays_of_another_shape_are_refused(model, tmp_path, sparse, name):
    description, arrays = state_of(model, sparse=sparse)
    for wrong in (arrays[name][:-1], arrays[name][None], np.zeros(0)):
        assert refused(write(tmp_path / "m", description, {**arrays, name: wrong}))


def test_every_array_is_needed(model, tmp_path, sparse):
    description, arrays = state_of(model, sparse=sparse)
    for name in set(arrays) - {"history"}:
        fewer = {key: array for key, array in arrays.items() if key != name}
        assert refused(write(tmp_path / "m", description, fewer)), name


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, bool, np.complex64])
def test_arrays_of_another_type_are_refused(model, tmp_path, dtype):
    description, arrays = state_of(model, sparse=True)
    wrong = {**arrays, "mu": arrays["mu"].astype(dtype)}
    assert refused(write(tmp_path / "m", description, wrong))


def test_numbers_that_are_not_finite_are_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    wrong = {**arrays, "mu": np.full_like(arrays["mu"], np.nan)}
    assert refused(write(tmp_path / "m", description, wrong))


@pytest.mark.parametrize("name", ["edges", "covariates"])
def test_positions_outside_the_network_are_refused(model, tmp_path, name):
    description, arrays = state_of(model, sparse=True)
    for wrong in (arrays[name] + 10**6, arrays[name] - 10**6):
        assert refused(write(tmp_path / "m", description, {**arrays, name: wrong}))


def test_a_weight_that_stands_twice_is_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    twice = {**arrays, "edges": np.zeros_like(arrays["edges"])}
    assert refused(write(tmp_path / "m", description, twice))


def test_a_huge_network_is_refused_before_it_is_built(model, tmp_path, sparse):
    description, arrays = state_of(model, sparse=sparse)
    for hidden in ([2**30, 2**30], [2**30], [1] * 10**5):
        shape = {**description["architecture"], "hidden": hidden}
        assert refused(write(tmp_path / "m", {**description, "architecture": shape}, arrays))


def test_a_header_that_claims_to_be_huge_is_refused(tmp_path):
    path = tmp_path / "m"
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    assert refused(path)


def test_a_deeply_nested_header_is_refused(tmp_path):
    header = b"[" * 200_000
    path = tmp_path / "m"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert refused(path)


def test_a_safetensors_file_of_something_else_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"weight": np.ones(3)}, tmp_path / "m")
    assert refused(tmp_path / "m")


def test_classes_of_other_modules_are_never_looked_for(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    path = write(tmp_path / "m", {**description, "estimator": "os.system"}, arrays)
    with pytest.raises(ValueError, match="expected one of ISLaBClassifier, ISLaBRegressor"):
        islab.load(path)


# -- writing --------------------------------------------------------------------------------


def test_a_crash_while_writing_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "m.islab"
    model.save(path)
    before = path.read_bytes()

    def fail(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        model.save(path, sparse=True)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.islab"]


def test_a_folder_is_not_overwritten(model, tmp_path):
    with pytest.raises(ValueError, match="a folder, expected a file"):
        model.save(tmp_path)


def test_a_folder_that_does_not_exist_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="whose folder does not exist"):
        model.save(tmp_path / "nowhere" / "m.islab")


def test_what_is_read_is_what_was_written(model, tmp_path):
    model.save(tmp_path / "m.islab")
    description, arrays = read(tmp_path / "m.islab")
    expected, expected_arrays = state_of(model, sparse=False)
    assert {key: description[key] for key in expected} == json.loads(json.dumps(expected))
    assert arrays.keys() == expected_arrays.keys()


def test_parameters_that_a_file_does_not_name_have_their_defaults(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    fewer = {key: value for key, value in description["params"].items() if key != "n_draws"}
    path = write(tmp_path / "m", {**description, "params": fewer}, arrays)
    assert islab.load(path).n_draws == ISLaBClassifier().n_draws


def test_parameters_that_nobody_knows_are_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    more = {**description["params"], "magic": 1}
    assert refused(write(tmp_path / "m", {**description, "params": more}, arrays))


def with_flow(model):
    """The same estimator with draws of a flow's multipliers around its posterior."""
    posterior = model.posterior_
    index = posterior.architecture.input_index
    bank = np.random.default_rng(0).normal(1, 0.3, (40, index.max() + 1))
    other = copy(model)
    other.posterior_ = posterior.copy(multipliers=bank, input_index=index)
    other.network_ = other.posterior_.median(units=model.network_.units)
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
