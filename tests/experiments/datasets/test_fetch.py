import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from experiments.datasets import cache_folder, fetch
from experiments.datasets.fetch import Published, SourceError, from_debian, from_npm, run_client


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def published(**sources):
    return Published("made-up", {"a": sha256(b"first"), "b": sha256(b"second")}, sources)


def right():
    return {"a": b"first", "b": b"second"}


def wrong():
    return {"a": b"first", "b": b"other"}


def missing():
    raise SourceError("no network")


def tar_bytes(members, mode):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def test_the_cache_folder_is_the_one_of_the_environment(cache):
    assert cache_folder() == cache


def test_the_cache_folder_is_else_in_the_users_cache(monkeypatch):
    monkeypatch.delenv("ISLAB_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/islab")


def test_files_are_fetched_once():
    calls = []
    data = published(source=lambda: calls.append(1) or right())
    assert data.read() == data.read() == right()
    assert len(calls) == 1


def test_files_in_the_cache_folder_need_no_source(cache):
    (cache / "made-up").mkdir(parents=True)
    for name, content in right().items():
        (cache / "made-up" / name).write_bytes(content)
    assert published(source=missing).read() == right()


def test_the_next_source_is_tried_when_one_is_missing():
    assert published(first=missing, second=right).read() == right()


def test_the_next_source_is_tried_when_one_has_other_files():
    assert published(first=wrong, second=right).read() == right()


def test_nothing_is_kept_of_a_source_with_other_files(cache):
    with pytest.raises(FileNotFoundError, match="other checksums"):
        published(source=wrong).read()
    assert not (cache / "made-up").exists()


def test_the_error_names_sources_reasons_files_and_folder(cache):
    with pytest.raises(FileNotFoundError) as error:
        published(here=missing, there=wrong).read()
    assert str(error.value) == (
        "Could not fetch made-up from here (no network) or there (files with other checksums); "
        f"put the files a, b into {cache / 'made-up'}."
    )


def test_a_damaged_file_is_named(cache):
    data = published(source=right)
    data.read()
    (cache / "made-up" / "b").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="made-up/b with the wrong checksum; delete it"):
        data.read()


def test_a_client_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(SourceError, match="no-such-client is not installed"):
        run_client(["no-such-client"], tmp_path)


def test_what_a_client_complains_of_is_told(tmp_path):
    with pytest.raises(SourceError, match="no such package"):
        run_client([sys.executable, "-c", "raise SystemExit('no such package')"], tmp_path)


def test_a_client_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "SECONDS", 0.2)
    with pytest.raises(SourceError, match=r"longer than 0\.2 s"):
        run_client([sys.executable, "-c", "import time; time.sleep(30)"], tmp_path)


def packed_by(client, name, content):
    """A stand-in for running clients, of which one leaves a file in its folder."""

    def run(command, folder):
        if command[0] == client:
            (Path(folder) / name).write_bytes(content)
            return b""
        return Path(command[-1]).read_bytes()

    return run


def test_files_come_out_of_a_package_of_npm(monkeypatch):
    content = tar_bytes({"package/data/a": b"first", "package/x": b"not wanted"}, "w:gz")
    monkeypatch.setattr(fetch, "run_client", packed_by("npm", "made-up-1.0.tgz", content))
    assert from_npm("made-up@1.0", {"a": "package/data/a"}) == {"a": b"first"}


def test_a_package_without_the_file_is_told(monkeypatch):
    content = tar_bytes({"package/x": b"not wanted"}, "w:gz")
    monkeypatch.setattr(fetch, "run_client", packed_by("npm", "made-up-1.0.tgz", content))
    with pytest.raises(SourceError, match="no file package/data/a in it"):
        from_npm("made-up@1.0", {"a": "package/data/a"})


def test_files_come_out_of_a_debian_package_unzipped(monkeypatch):
    content = tar_bytes({"./usr/a.gz": gzip.compress(b"first"), "./usr/b": b"second"}, "w")
    monkeypatch.setattr(fetch, "run_client", packed_by("apt-get", "made-up.deb", content))
    members = {"a": "./usr/a.gz", "b": "./usr/b"}
    assert from_debian("made-up", members) == right()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb here")
def test_a_real_debian_package_is_unpacked(tmp_path, monkeypatch):
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: made-up\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n"
    )
    (tree / "a").write_bytes(b"first")
    package = tmp_path / "made-up.deb"
    subprocess.run(["dpkg-deb", "--build", tree, package], check=True, capture_output=True)
    real, download = run_client, packed_by("apt-get", "made-up.deb", package.read_bytes())
    monkeypatch.setattr(
        fetch, "run_client", lambda c, f: (download if c[0] == "apt-get" else real)(c, f)
    )
    assert from_debian("made-up", {"a": "./a"}) == {"a": b"first"}
