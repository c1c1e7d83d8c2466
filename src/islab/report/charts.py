"""Small pictures as shapes in pixels, which the page draws as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from islab.core.arrays import Float, Index
from islab.plots.predictive import Calibration
from islab.plots.style import number, on_one_line

if TYPE_CHECKING:
    from islab.learn.history import History

LEFT, RIGHT, TOP, BOTTOM = 46, 26, 10, 38
LETTER, CAPITAL = 6.4, 9.0  # pixels of a letter of a label, at most
MOST_TICKS = 6
CUT = 4  # pixels around the axes that marks may use
MOST_POINTS = 400
MOST_ROWS = 120
HISTORY = {
    "elbo": "ELBO, by batches",
    "used_weights": "used weights",
    "hidden_units": "hidden units",
    "noise": "noise variance (standardised)",
}


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` laid out from pixel ``start`` to pixel ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: ArrayLike) -> Float:
        share = (np.asarray(values, dtype=float) - self.low) / (self.high - self.low)
        return np.round(self.start + share * (self.end - self.start), 2)

    def ticks(self, count: int = 4) -> list[tuple[float, str]]:
        """Places and labels of about that many round values."""
        raw = (self.high - self.low) / count
        power = 10.0 ** floor(log10(raw))
        step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * (1 - 1e-9))
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        values = [k * step for k in range(first, last + 1)]
        if len(values) < 2 and count < MOST_TICKS:
            return self.ticks(count + 1)
        return [(float(self(value)), number(value)) for value in values]

    def labels(self, count: int = 4) -> list[str]:
        """Words of the ticks alone."""
        return [label for _, label in self.ticks(count)]


@dataclass(frozen=True)
class Mark:
    """A ``line``, an ``area``, a ``segment``, ``dot``, ``box`` or ``rug``, of CSS classes."""

    kind: str
    css: str
    numbers: tuple[float, ...]

    @property
    def points(self) -> str:
        """The numbers as SVG's points."""
        pairs = zip(self.numbers[::2], self.numbers[1::2], strict=True)
        return " ".join(f"{x:g},{y:g}" for x, y in pairs)

    @property
    def rug(self) -> str:
        """A short upright stroke at each point, as SVG's path."""
        pairs = zip(self.numbers[::2], self.numbers[1::2], strict=True)
        return "".join(f"M{x:g} {y:g}v-6" for x, y in pairs)


@dataclass(frozen=True)
class Chart:
    """A picture: its size, ticks, words and marks.

    ``label`` says in words what the picture shows, for those who cannot see it. ``cut``: marks may
    leave the axes, and are cut there.
    """

    title: str
    label: str
    width: int
    height: int
    x: Scale
    y: Scale
    x_name: str
    y_name: str = ""
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    key: list[tuple[str, str]] = field(default_factory=list)
    cut: bool = False

    @property
    def window(self) -> str:
        """The part of the picture that shows marks: left, top, width and height."""
        if not self.cut:
            return f"0 0 {self.width} {self.height}"
        left, top = self.x.start - CUT, self.y.end - CUT
        return f"{left:g} {top:g} {self.x.end + CUT - left:g} {self.y.start + CUT - top:g}"


def left_of(labels: Iterable[str], y_name: str = "") -> float:
    """Where an axis starts, so that its labels and its name have room."""
    return max(LEFT, 12 + max(map(width_of, labels), default=0) + (16 if y_name else 0))


def width_of(label: str) -> float:
    """Pixels of a label, at most."""
    return sum(CAPITAL if letter.isupper() else LETTER for letter in label)


def apart(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The ticks, from the left, whose labels do not touch the one before."""
    found: list[tuple[float, str]] = []
    end = -np.inf
    for place, label in sorted(ticks):
        half = width_of(label) / 2
        if place - half > end + LETTER:
            found.append((place, label))
            end = place + half
    return found


def calibration_chart(found: Calibration, what: str) -> Chart:
    """Predicted probability against the observed frequency."""
    size = 330
    x = Scale(0, 1, LEFT, size - RIGHT)
    y = Scale(0, 1, size - BOTTOM, TOP)
    px, py = x(found.predicted), y(found.observed)
    low, high = y(found.lower), y(found.upper)
    counts, edges = np.histogram(found.stated, bins=25, range=(0, 1))
    heights = 0.14 * counts / max(int(counts.max()), 1)
    marks = [
        Mark("box", "faint", (*x([edges[k], edges[k + 1]]), *y([heights[k], 0])))
        for k in np.flatnonzero(counts)
    ]
    marks.append(Mark("line", "rule", (x.start, y.start, x.end, y.end)))
    marks += [
        Mark("segment", "interval", (a, b, a, c)) for a, b, c in zip(px, low, high, strict=True)
    ]
    marks.append(Mark("line", "trace", tuple(np.column_stack([px, py]).ravel())))
    marks += [Mark("dot", "point", (a, b)) for a, b in zip(px, py, strict=True)]
    return Chart(
        title="Calibration",
        label=f"Calibration curve of the probability of {what}; on the diagonal, predicted "
        "probabilities equal observed frequencies.",
        width=size,
        height=size,
        x=x,
        y=y,
        x_name=f"predicted probability of {what}",
        y_name="observed frequency",
        x_ticks=x.ticks(),
        y_ticks=y.ticks(),
        marks=marks,
    )


def roc_chart(codes: Index, probability: Float, what: str) -> Chart:
    """True against false positives for all thresholds of the probability of one class."""
    from sklearn.metrics import roc_auc_score, roc_curve

    false, true, _ = roc_curve(codes, probability)
    return _threshold_chart(
        f"ROC: AUC {number(float(roc_auc_score(codes, probability)))}",
        f"ROC curve of the probability of {what}; chance is the diagonal.",
        (false, true),
        ("false positive rate", "true positive rate"),
        (0.0, 1.0),
    )


def precision_chart(codes: Index, probability: Float, what: str) -> Chart:
    """Precision against recall for all thresholds of the probability of one class."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(codes, probability)
    base = float(np.mean(codes))
    average = float(average_precision_score(codes, probability))
    return _threshold_chart(
        f"Precision and recall of {what}: average precision {number(average)}",
        f"Precision against recall of {what}; the base rate is the dashed line.",
        (recall, precision),
        ("recall", "precision"),
        (base, base),
    )


def _threshold_chart(
    title: str,
    label: str,
    curve: tuple[Float, Float],
    names: tuple[str, str],
    chance: tuple[float, float],
) -> Chart:
    """A curve in the unit square; ``chance`` are the heights of the dashed line's ends."""
    size = 330
    x, y = Scale(0, 1, LEFT, size - RIGHT), Scale(0, 1, size - BOTTOM, TOP)
    few = np.unique(np.linspace(0, len(curve[0]) - 1, MOST_POINTS).astype(int))
    line = np.column_stack([x(curve[0][few]), y(curve[1][few])])
    first, last = (float(end) for end in y(chance))
    return Chart(
        title=title,
        label=label,
        width=size,
        height=size,
        x=x,
        y=y,
        x_name=names[0],
        y_name=names[1],
        x_ticks=x.ticks(),
        y_ticks=y.ticks(),
        marks=[
            Mark("line", "rule", (x.start, first, x.end, last)),
            Mark("line", "trace", tuple(line.ravel())),
        ],
    )


def interval_chart(
    observed: Float, mean: Float, lower: Float, upper: Float, name: str, level: float
) -> Chart:
    """Predictive intervals in order of their means, and the values they caught."""
    width, height = 500, 270
    order = np.argsort(mean, kind="stable")
    if len(order) > MOST_ROWS:
        order = order[np.linspace(0, len(order) - 1, MOST_ROWS).astype(int)]
    every = np.concatenate([part[order] for part in (observed, lower, upper)])
    y = around(every, height - BOTTOM, TOP)
    x = Scale(-0.5, len(order) - 0.5, left_of(y.labels()), width - RIGHT)
    place = x(np.arange(len(order)))
    inside = (observed >= lower) & (observed <= upper)
    marks = [
        Mark("segment", "band", (a, b, a, c))
        for a, b, c in zip(place, y(lower[order]), y(upper[order]), strict=True)
    ]
    marks.append(Mark("line", "trace", tuple(np.column_stack([place, y(mean[order])]).ravel())))
    marks += [
        Mark("dot", "inside" if caught else "outside", (a, b))
        for a, b, caught in zip(place, y(observed[order]), inside[order], strict=True)
    ]
    what, percent = on_one_line(name), f"{100 * level:g} %"
    return Chart(
        title=f"{100 * inside.mean():.1f} % of the values of {what} lie inside their {percent} "
        "intervals",
        label=f"Predictions of {what} with {percent} intervals, and the values observed.",
        width=width,
        height=height,
        x=x,
        y=y,
        x_name=f"{len(order)} of {len(observed)} rows in order of their prediction",
        y_ticks=y.ticks(),
        marks=marks,
        key=[("trace", "prediction"), ("inside", "value inside"), ("outside", "value outside")],
    )


def history_charts(history: History, noise: str = HISTORY["noise"]) -> list[Chart]:
    """ELBO, sizes of the network and what ``noise`` calls its noise over the steps of training."""
    if len(history) < 2:
        return []
    steps = history.column("step")
    return [
        _history_chart(steps, history.column(column), title)
        for column, title in (HISTORY | {"noise": noise}).items()
        if column == "elbo" or np.ptp(history.column(column)) > 0
    ]


def _history_chart(steps: Float, values: Float, title: str) -> Chart:
    width, height = 330, 190
    few = np.unique(np.linspace(0, len(steps) - 1, MOST_POINTS).astype(int))
    steps, values = steps[few], values[few]
    known = np.isfinite(values)
    y = around(_settled(values[known]), height - BOTTOM, TOP)
    x = Scale(float(steps[0]), float(steps[-1]), left_of(y.labels(3)), width - RIGHT)
    shown = np.clip(values[known], y.low, y.high)
    line = np.column_stack([x(steps[known]), y(shown)])
    return Chart(
        title=f"{title}: {number(float(values[known][-1]))} at the end",
        label=f"{title} over the steps of training.",
        width=width,
        height=height,
        x=x,
        y=y,
        x_name="step",
        x_ticks=x.ticks(3),
        y_ticks=y.ticks(3),
        marks=[Mark("line", "trace", tuple(line.ravel()))],
    )


def _settled(values: Float) -> Float:
    """Without the first tenth, whose leaps would flatten all that follows."""
    return values[len(values) // 10 :]


def around(values: Float, start: float, end: float) -> Scale:
    """A scale with some room about the values, which may be all the same."""
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(low - room, high + room, start, end)
