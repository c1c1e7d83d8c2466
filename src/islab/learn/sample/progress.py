"""A bar while chains run: draws, acceptance and the time left."""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

STRUCTURE = ("toggle output edge", "add edge", "drop edge", "add unit", "drop unit")


class SamplingBar:
    """Counts the steps of all chains; shows how many moves of structure were accepted.

    Parameters
    ----------
    n_steps : int
        Of all chains.
    enabled : bool
        False shows nothing; True shows a bar on a terminal or in a notebook.
    """

    def __init__(self, n_steps: int, *, enabled: bool) -> None:
        self.n_steps, self.enabled, self.stopped = n_steps, enabled, False
        self._bar: Any = None
        self._lock = Lock()

    def __enter__(self) -> SamplingBar:
        if self.enabled:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=self.n_steps, unit="draw", desc="sampling", leave=False, file=sys.stderr
            )
        return self

    def report(self, steps: int, counts: dict[str, tuple[int, int]]) -> None:
        """Moves the bar on; raises KeyboardInterrupt in chains whose run another thread ended."""
        if self.stopped:
            raise KeyboardInterrupt
        if self._bar is None:
            return
        accepted, proposed = (sum(counts[name][k] for name in STRUCTURE) for k in (0, 1))
        with self._lock:
            self._bar.set_postfix_str(f"{accepted / max(proposed, 1):.0%} accepted", refresh=False)
            self._bar.update(steps)

    def __exit__(self, *error: object) -> None:
        self.stopped = True
        if self._bar is not None:
            self._bar.close()
