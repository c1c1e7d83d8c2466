"""Calls side by side, on whatever backend joblib has been told to use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0


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
    result is given. Processes that this one starts end soon after it does, even if it is killed.
    """
    from joblib import Parallel

    style = "generator" if ordered else "generator_unordered"
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as=style, **options)
    except ValueError:
        # Whatever else is wrong with the options is raised again here.
        parallel = Parallel(n_jobs=n_jobs, return_as="list", **options)
    owner = os.getpid()
    return iter(parallel((_watching, (owner, call, *args), kw) for call, args, kw in calls))


def _watching(owner: int, call: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """The call, in a process that ends with its owner if that has started it."""
    if os.getppid() == owner:
        _end_with(owner)
    return call(*args, **options)


@cache
def _end_with(owner: int) -> None:
    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
