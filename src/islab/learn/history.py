"""What happens during training: a table, a picture, and a bar while it lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import sleep
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("step", "elbo", "nll", "kl", "density", "used_weights", "hidden_units", "noise", "rate")


@dataclass
class History:
    """Records of a training run.

    ``elbo``, ``nll`` and ``kl`` are sums over all training rows, estimated from the batches
    since the last record; ``noise`` is the mean variance of Gaussian outputs.
    """

    records: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, **values: float) -> None:
        self.records.append(tuple(float(values[name]) for name in COLUMNS))

    def __len__(self) -> int:
        return len(self.records)

    def column(self, name: str) -> NDArray[np.float64]:
        """One column of all records."""
        return np.array([record[COLUMNS.index(name)] for record in self.records])

    def last(self) -> dict[str, float]:
        """The latest record, by column."""
        return dict(zip(COLUMNS, self.records[-1], strict=True))

    def followed_by(self, later: History) -> History:
        """These records and those of a later stage, its steps counted on."""
        last = self.records[-1][0] if self.records else 0.0
        return History([*self.records, *((last + step, *rest) for step, *rest in later.records)])

    def to_array(self) -> NDArray[np.float64]:
        return np.array(self.records, dtype=float).reshape(-1, len(COLUMNS))

    @classmethod
    def from_array(cls, array: NDArray[np.float64]) -> History:
        if array.ndim != 2 or array.shape[1] != len(COLUMNS):
            raise ValueError(
                f"Got records of shape {array.shape}, expected {len(COLUMNS)} columns."
            )
        return cls([tuple(row) for row in array.tolist()])

    def to_frame(self) -> pd.DataFrame:
        """One row for each record."""
        import pandas as pd

        frame = pd.DataFrame(self.to_array(), columns=list(COLUMNS))
        return frame.astype({"step": int, "used_weights": int, "hidden_units": int})

    def plot(self, ax: Any = None) -> Any:
        """Draws each column against the steps; see :func:`islab.plots.training_history`."""
        from islab.plots import training_history

        return training_history(self.to_frame(), ax=ax)


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

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


class Together:
    """Restarts that run at the same time in one process, so that they can end together.

    Only the main thread sees an interrupt; the others learn of it here, after their present run
    of steps. In another process the object is a copy that nobody writes to.
    """

    def __init__(self, report: Callable | None) -> None:
        self.report, self.stopped = report, False
        self.started: list[int] = []
        self.ended: dict[int, Any] = {}

    def __call__(self, steps: int, record: dict[str, float]) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        if self.report is not None:
            self.report(steps, record)

    def stop(self) -> dict[int, Any]:
        """What the restarts have come to, once all of them have ended."""
        self.stopped = True
        while len(self.ended) < len(self.started):
            sleep(0.01)
        return self.ended
