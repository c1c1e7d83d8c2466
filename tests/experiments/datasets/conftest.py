import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, so that no test reads or fetches a real data set."""
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"
