"""Single rows: which are informative, what is predicted for them, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.arrays import Float
from islab.explain import LocalExplanation
from islab.plots.bars import largest_bars, variable_labels
from islab.plots.style import number, on_one_line
from islab.report.bars import Bar, placed

MOST_BARS = 10
MOST_OUTPUTS = 3
MOST_ROWS = 50
NEGLIGIBLE = 1e-4  # of the longest way from the typical row: nothing that a bar could show


@dataclass(frozen=True)
class Panel:
    """The contributions to one output: ``sum`` says what they add up to, ``zero`` is in percent."""

    output: str
    sum: str
    zero: float
    bars: list[Bar]


@dataclass(frozen=True)
class RowStory:
    """One row: its number, why it was chosen, prediction, observed target, contributions.

    ``outside`` tells of variables whose values training did not see.
    """

    number: int
    reason: str
    prediction: str
    observed: str | None
    outside: str | None
    panels: list[Panel]


def chosen_rows(
    rows: Sequence[int] | None, response: Float, surprise: Float | None, classes: bool
) -> dict[int, str]:
    """Rows to explain, and why: those asked for, or a few informative ones.

    Parameters
    ----------
    response : (rows, outputs)
        Predictions; of a classifier, the probability of each class.
    surprise : (rows,), optional
        How badly each row was predicted.
    classes : bool
        Whether predictions are probabilities of classes.
    """
    n_rows = len(response)
    if rows is not None:
        numbers = [index(row) for row in rows]
        for row in numbers:
            if not 0 <= row < n_rows:
                raise ValueError(f"Got row {row} in rows, expected 0 to {n_rows - 1}.")
        if len(numbers) > MOST_ROWS:
            raise ValueError(f"Got {len(numbers)} rows, expected at most {MOST_ROWS}.")
        return dict.fromkeys(numbers, "")
    names = ("the highest prediction", "the lowest prediction", "the median prediction")
    certain = response[:, 0]
    if classes:
        names = ("the surest prediction", "the most uncertain prediction", "of median certainty")
        certain = response.max(axis=1)
    reasons: dict[int, str] = {}
    if surprise is not None:
        reasons[int(surprise.argmax())] = "the largest error"
    middle = int(np.argsort(certain, kind="stable")[len(certain) // 2])
    places = (int(certain.argmax()), int(certain.argmin()), middle)
    for row, reason in zip(places, names, strict=True):
        reasons.setdefault(row, reason)
    return reasons


def tell_rows(
    explanation: LocalExplanation,
    rows: dict[int, str],
    y: NDArray | None,
    offset: Float | None,
    outside: dict[int, str],
) -> list[RowStory]:
    """Prediction and contributions of the chosen rows; predictions are those at offset 0.

    Parameters
    ----------
    explanation : LocalExplanation
        Of the chosen rows.
    rows : dict
        Their numbers, and why they were chosen.
    y : (all rows,) or (all rows, outputs), optional
    offset : (all rows, outputs), optional
    outside : dict
        For the numbers of rows outside the range of training, what to say of it.
    """
    log_link = families.likelihood(explanation.likelihood).log_link
    stories = []
    for place, (row, reason) in enumerate(rows.items()):
        outputs = _outputs_to_tell(explanation, place)
        at = "" if offset is None else _at(offset[row], log_link)
        stories.append(
            RowStory(
                number=row,
                reason=reason,
                prediction="; ".join(_prediction(explanation, place, k) for k in outputs),
                observed=None if y is None else _observed(y[row]) + at,
                outside=outside.get(row),
                panels=[_panel(explanation, place, k) for k in outputs],
            )
        )
    return stories


def _outputs_to_tell(explanation: LocalExplanation, row: int) -> list[int]:
    """All outputs of a regression, of classes the most probable."""
    if families.likelihood(explanation.likelihood).one_hot:
        return [int(explanation.response_summary.mean[row].argmax())]
    return list(range(min(len(explanation.outputs), MOST_OUTPUTS)))


def _prediction(explanation: LocalExplanation, row: int, output: int) -> str:
    summary = explanation.response_summary
    mean, low, high = (part[row, output] for part in (summary.mean, summary.lower, summary.upper))
    name = on_one_line(explanation.outputs[output])
    words, likelihood = number, families.likelihood(explanation.likelihood)
    if likelihood.ordered:
        name = f"{likelihood.words.response} ({name})"
    if likelihood.words.symbol == "P":
        name, words = f"P({name})", _probability
    value = words(mean)
    relation = " " if value[0] in "<>" else " = "
    return f"{name}{relation}{value} ({words(low)} to {words(high)})"


def _probability(value: float) -> str:
    if value < 0.0005:
        return "<0.001"
    return ">0.999" if value > 0.9995 else f"{value:.3f}"


def _observed(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return ", ".join(_observed(each) for each in value.tolist())
    is_number = isinstance(value, float | np.floating)
    return number(float(value)) if is_number else on_one_line(str(value))


def _at(offset: Float, log_link: bool) -> str:
    """The offset, or the exposure, that a target was observed at."""
    name, values = ("exposure", np.exp(offset)) if log_link else ("offset", offset)
    return f" at {name} {', '.join(number(float(value)) for value in np.unique(values))}"


def _panel(explanation: LocalExplanation, row: int, output: int) -> Panel:
    """Bars of the variables, from the typical row to this one."""
    drawn = explanation.variable_draws(row)[..., output]
    ways = explanation.predictor[:, output] - explanation.intercept[:, output]
    nothing = np.sqrt(np.mean(drawn**2, axis=0)) < NEGLIGIBLE * np.abs(ways).max()
    drawn = np.where(nothing, 0.0, drawn)
    bars: dict[str, Any] = {"zero": 50.0, "bars": []}
    if drawn.shape[1]:
        names = variable_labels(explanation, row)
        sizes = drawn.mean(axis=0)
        bars = placed(*largest_bars(names, sizes, MOST_BARS, drawn, explanation.level))
    end, start = explanation.predictor[row, output], explanation.intercept[row, output]
    name = on_one_line(explanation.outputs[output])
    scale = families.likelihood(explanation.likelihood).words.predictor or name
    sign = "+" if end >= start else "\N{MINUS SIGN}"
    change = f"{sign} {number(abs(end - start))} (the bars)"
    text = f"{scale} {number(end)} = {number(start)} at the typical row {change}"
    return Panel(output=name, sum=text, **bars)
