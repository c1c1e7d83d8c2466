"""Packages that only some features need, imported when those features are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, purpose: str, install: str | None = None) -> Any:
    """The module, or an error that says what to install.

    Parameters
    ----------
    module : str
        Name to import.
    purpose : str
        What needs it, as the subject of a sentence: ``"A plot"``.
    install : str, optional
        What to give to pip; the module's first name if not given.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"{purpose} needs {package}, which is not installed; "
            f"try `pip install {install or package}`.",
            name=package,
        ) from None
    except (RuntimeError, OSError) as error:
        # Compiled parts that were built for another version of what they use.
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which is installed but does not start ({error}); "
            f"try `pip install --force-reinstall {install or package}` of a build that fits.",
            name=package,
        ) from error


def own_version() -> str:
    """The version of this package."""
    from importlib.metadata import version

    return version("islab-bnn")
