"""Experiments that are no table of scores: each keeps JSON lines or pictures in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.paper.cells import keep_memory
from experiments.paper.names import METHODS


def run_study(
    name: str,
    folder: Path,
    *,
    methods: Sequence[str] = METHODS,
    jobs: int = 1,
    quick: bool = False,
    force: bool = False,
) -> Iterator[str]:
    """Runs a study; lines to print as they come.

    Parameters
    ----------
    name : str
        One of ``STUDIES`` in :mod:`experiments.paper.names`.
    folder : path
        For results and pictures.
    methods : sequence of str
        Those of the study's methods to run.
    jobs : int
        Processes, where a study has many fits.
    quick : bool
        A few rows and epochs.
    force : bool
        Run also what is stored.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keep_memory()
    if name == "initialisation":
        from experiments.paper.initialisation import study

        return study(folder, methods=methods, jobs=jobs, quick=quick, force=force)
    if name == "cost":
        from experiments.paper.cost import study as cost_study

        return cost_study(folder, methods=methods, quick=quick, force=force)
    if name == "choices":
        from experiments.paper.choices import study as choices_study

        return choices_study(folder, methods=methods, quick=quick, force=force)
    if name == "image-maps":
        from experiments.paper.images import draw_digits

        return draw_digits(folder, quick=quick, force=force)
    from experiments.paper.pictures import explanations, structures

    draw = explanations if name == "explanations" else structures
    return draw(folder, quick=quick, force=force)
