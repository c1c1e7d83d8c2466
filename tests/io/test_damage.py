"""Files that are damaged, or made to do harm."""

import json
import os
from copy import deepcopy

import numpy as np
import pytest
from safetensors import SafetensorError

import islab
from islab.io.store import VERSION

from .conftest import from_state, refused, state_of, write


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
            except ValueError:
                continue
            harmless.add(place[0])
            loaded.get_params()
    free = {
        "params",
        "columns",
        "outputs",
        "elbo",
        "elbo_error",
        "seed",
        "n_weights_initial",
        "target",
    }
    assert harmless <= free | {"features", "training"}


@pytest.mark.parametrize("name", ["mu", "x_center", "noise"])
def test_arrays_of_another_shape_are_refused(model, tmp_path, sparse, name):
    description, arrays = state_of(model, sparse=sparse)
    for wrong in (arrays[name][:-1], arrays[name][None], np.zeros(0)):
        assert refused(write(tmp_path / "m", description, {**arrays, name: wrong}))


def test_every_array_is_needed(model, tmp_path, sparse):
    description, arrays = state_of(model, sparse=sparse)
    optional = {"history", "x_typical", "conformity"}  # which files of version 0.1 lack
    for name in set(arrays) - optional:
        fewer = {key: array for key, array in arrays.items() if key != name}
        assert refused(write(tmp_path / "m", description, fewer)), name


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, bool])
def test_arrays_of_another_type_are_refused(model, tmp_path, dtype):
    description, arrays = state_of(model, sparse=True)
    wrong = {**arrays, "mu": arrays["mu"].astype(dtype)}
    assert refused(write(tmp_path / "m", description, wrong))


def test_complex_numbers_are_refused(model, tmp_path):
    description, arrays = state_of(model, sparse=True)
    wrong = {**arrays, "mu": arrays["mu"].astype(np.complex64)}
    try:
        path = write(tmp_path / "m", description, wrong)
    except SafetensorError:
        pytest.skip("this version of safetensors does not write them")
    assert refused(path)


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
    with pytest.raises(ValueError, match=r"expected one of .*ISLaBClassifier, .*ISLaBRegressor"):
        islab.load(path)
