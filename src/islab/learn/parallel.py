"""Calls side by side, on whatever backend joblib has been told to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def in_parallel(
    calls: Iterable[Any], *, n_jobs: int | None = None, ordered: bool = True, **options: Any
) -> Iterator[Any]:
    """Results of delayed calls, as they come where the backend can hand them over one by one.

    Parameters
    ----------
    calls : iterable
        Of :func:`joblib.delayed`.
    n_jobs : int, optional
        What :func:`joblib.parallel_config` says if not given.
    ordered : bool
        In the order of the calls, or whichever is ready first.
    **options
        Of :class:`joblib.Parallel`.

    Notes
    -----
    The backends of Ray and Spark refuse generators. There all calls are made before the first
    result is given.
    """
    from joblib import Parallel

    style = "generator" if ordered else "generator_unordered"
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as=style, **options)
    except ValueError:
        # Whatever else is wrong with the options is raised again here.
        parallel = Parallel(n_jobs=n_jobs, return_as="list", **options)
    return iter(parallel(calls))
