"""A progress bar that appears only where a person can see it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """Counts training steps; shows ELBO, used weights and the time left on a terminal.

    Parameters
    ----------
    n_steps : int
        Steps in all.
    enabled : bool
        False shows nothing; True shows a bar on a terminal or in a notebook.
    """

    def __init__(self, n_steps: int, *, enabled: bool) -> None:
        self.n_steps, self.enabled = n_steps, enabled
        self.bar: Any = None

    def __enter__(self) -> ProgressBar:
        if self.enabled:
            from tqdm.auto import tqdm

            self.bar = tqdm(
                total=self.n_steps, unit="step", desc="islab", leave=False, file=sys.stderr
            )
        return self

    def report(self, steps: int, record: dict[str, float]) -> None:
        """Moves the bar on."""
        if self.bar is not None:
            used = round(record["used_weights"])
            self.bar.set_postfix_str(f"elbo {record['elbo']:.1f}, {used} weights", refresh=False)
            self.bar.update(steps)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.close()
