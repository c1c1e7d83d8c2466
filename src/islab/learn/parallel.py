"""Calls side by side, on whatever backend joblib has been told to use."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing import current_process, parent_process
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0
WORKERS = "LokyProcess"


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
    return _handed_over(parallel((_watching, (call, *args), kw) for call, args, kw in calls))


def _handed_over(results: Any) -> Iterator[Any]:
    """The results; who stops early knows that calls were cancelled, and is not told again."""
    try:
        # Not `yield from`, which would close the results before the warning is silenced.
        for result in results:  # noqa: UP028
            yield result
    finally:
        if hasattr(results, "close"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()


def _watching(call: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    end_with_parent()
    return call(*args, **options)


def end_with_parent() -> None:
    """Lets a worker of joblib's own processes end soon after the process that has started it.

    Without, one whose parent was killed would finish its call and wait for others for minutes.
    """
    parent = parent_process()
    if parent is not None and parent.pid is not None and current_process().name.startswith(WORKERS):
        _end_with(parent.pid)


@cache
def _end_with(owner: int) -> None:
    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
