"""Packages that may be missing or broken."""

import pytest

from islab.core.dependencies import needed


def test_a_missing_package_is_named_with_its_remedy():
    with pytest.raises(ModuleNotFoundError, match=r"A plot needs nosuchpackage, .*pip install"):
        needed("nosuchpackage.part", "A plot")


def test_a_package_that_does_not_start_is_named_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "brokenpackage.py").write_text("raise RuntimeError('operator does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"does not start \(operator does not exist\)"):
        needed("brokenpackage", "A backbone")
