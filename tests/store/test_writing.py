"""How a file is written, and what its parameters are worth."""

import json
import os

import pytest

import islab
from islab import ISLaBClassifier
from islab.estimators.state import state_of
from islab.store import read

from .conftest import refused, write


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
