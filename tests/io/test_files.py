import os

import numpy as np
import pytest

from islab.io.files import replacing, writable
from islab.learn.checkpoint import Checkpoint


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def test_a_new_file_appears_only_when_it_is_whole(tmp_path):
    with replacing(tmp_path / "m") as file:
        file.write(b"half")
        assert not (tmp_path / "m").exists()
    assert (tmp_path / "m").read_bytes() == b"half"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "m", b"old")
    with pytest.raises(TypeError):
        write(tmp_path / "m", "no bytes")
    assert (tmp_path / "m").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


def test_what_a_link_points_to_is_replaced(tmp_path):
    write(tmp_path / "m", b"old")
    (tmp_path / "link").symlink_to("m")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m").read_bytes() == b"new"


def test_a_device_stays_a_device():
    write(os.devnull, b"gone")
    assert os.path.exists(os.devnull)
    assert not os.path.isfile(os.devnull)


def test_a_folder_that_is_read_only_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path)
    with pytest.raises(PermissionError, match="this user may not write"):
        writable(tmp_path / "m")


def test_names_as_long_as_the_system_allows_are_fine(tmp_path):
    write(tmp_path / ("m" * 255), b"new")
    assert len(list(tmp_path.iterdir())) == 1


def test_checkpoints_replace_the_old_one_in_one_move(tmp_path, monkeypatch):
    path = tmp_path / "run" / "stage.npz"
    checkpoint = Checkpoint(path)
    checkpoint.write({"mu": np.zeros(3)}, {"step": np.array(1)})

    def fail(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        checkpoint.write({"mu": np.ones(3)}, {"step": np.array(2)})
    engine, loop = checkpoint.read()
    assert (engine["mu"].sum(), loop["step"]) == (0, 1)
    assert [entry.name for entry in path.parent.iterdir()] == ["stage.npz"]
