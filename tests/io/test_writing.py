"""How a file is written, and what its parameters are worth."""

import copy
import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

import islab
from islab import ISLaBClassifier
from islab.io.store import read

from .conftest import refused, state_of, write


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


def test_a_full_disk_is_told_with_the_path(model, tmp_path, monkeypatch):
    path = tmp_path / "m.islab"

    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        model.save(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_device_is_told_with_the_path(model):
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        model.save("/dev/full")


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


def changed(model, **attributes):
    """A copy of the model with other attributes."""
    other = copy.copy(model)
    vars(other).update(attributes)
    return other


def never_written(model, path):
    """The error of a model that is not written."""
    with pytest.raises(ValueError, match="Got a model that could not be read again") as error:
        model.save(path)
    assert not path.exists()
    return str(error.value)


def test_parameters_that_no_fit_could_use_are_not_written(model, tmp_path):
    assert "Got n_draws=0" in never_written(changed(model, n_draws=0), tmp_path / "m")


def test_parameters_that_are_no_json_are_not_written(model, tmp_path):
    odd = changed(model, class_weight={"yes": float("nan")})
    assert "JSON" in never_written(odd, tmp_path / "m")


def test_a_likelihood_that_was_not_learned_is_not_written(regressor, tmp_path):
    other = changed(regressor, likelihood="poisson")
    assert "does not fit 1 gaussian outputs" in never_written(other, tmp_path / "m")


def test_classes_too_large_for_a_file_are_not_written(model, tmp_path):
    classes = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert "too large" in never_written(changed(model, classes_=classes), tmp_path / "m")


def test_weights_that_are_not_finite_are_not_written(model, tmp_path):
    posterior = model.posterior_.copy(mu=np.full_like(model.posterior_.mu, np.inf))
    other = changed(model, posterior_=posterior)
    assert "array 'mu' holds numbers that are not finite" in never_written(other, tmp_path / "m")


def test_classes_of_one_s_own_are_not_written(model, tmp_path):
    class Own(ISLaBClassifier):
        pass

    other = copy.copy(model)
    other.__class__ = Own
    assert "it holds a 'Own'" in never_written(other, tmp_path / "m")


def test_a_model_that_is_not_written_leaves_the_old_file(model, tmp_path):
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(ValueError, match="could not be read again"):
        changed(model, n_draws=0).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
