import io
import os
import signal
import stat
import subprocess
import sys

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


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    write(tmp_path / "m", b"old")
    (tmp_path / "m").chmod(mode)
    write(tmp_path / "m", b"new")
    assert mode_of(tmp_path / "m") == mode


def test_what_replaces_a_private_file_is_private_from_the_start(tmp_path):
    write(tmp_path / "m", b"old")
    (tmp_path / "m").chmod(0o600)
    with replacing(tmp_path / "m"):
        (part,) = tmp_path.glob(".*.part")
        assert mode_of(part) == 0o600


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "m", b"new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "m") == 0o640


KILLED = """
import os, signal, sys
from islab.io.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(path):
    ran = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert ran.returncode == -signal.SIGKILL


def test_what_a_killed_process_left_is_removed_at_the_next_save(tmp_path):
    killed_while_writing(tmp_path / "m")
    assert len(list(tmp_path.iterdir())) == 1
    write(tmp_path / "m", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


def test_what_others_are_writing_is_left_alone(tmp_path):
    killed_while_writing(tmp_path / "other")
    (tmp_path / ".own.part").write_bytes(b"somebody else's")
    with replacing(tmp_path / "m") as file:
        file.write(b"first")
        write(tmp_path / "m", b"second")
    assert (tmp_path / "m").read_bytes() == b"first"
    assert len(list(tmp_path.glob(".*.part"))) == 2


@pytest.mark.skipif(os.name != "posix", reason="folders are synced where the system can")
def test_the_folder_is_synced_after_the_file_has_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    write(tmp_path / "m", b"new")
    assert synced == [(tmp_path / "m").stat().st_ino, tmp_path.stat().st_ino]


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


def checkpoint_of(path, content):
    path.write_bytes(content)
    return Checkpoint(path)


def npz(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def bare_array():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 cut off",
        bare_array(),
        npz(mu=np.zeros(3)),
        npz(np.savez_compressed, owner=np.array(""), mu=np.zeros(10**6)),
        npz(owner=np.array(""), mu=np.zeros(1000))[:-300],
        npz(owner=np.array(""), mu=np.zeros(1000)).replace(b"(1000,)", b"(9**9,)"),
        npz(owner=np.array(""), mu=np.zeros(1000)).replace(b"(1000,)", b"(1001,)"),
    ],
    ids=["empty", "cut", "bare", "no owner", "compressed", "truncated", "no shape", "too large"],
)
def test_a_file_that_is_no_checkpoint_is_refused_with_a_remedy(tmp_path, content):
    checkpoint = checkpoint_of(tmp_path / "stage.npz", content)
    with pytest.raises(ValueError, match=r"Got checkpoint=.*delete it to start again"):
        checkpoint.read()
