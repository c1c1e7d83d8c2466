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
from islab.core.sparse import SparseNetwork
from islab.explain import LocalExplanation, explain_local
from islab.plots.bars import largest_bars
from islab.plots.style import number, on_one_line
from islab.report.variables import Setting

MOST_BARS = 10
MOST_OUTPUTS = 3
MOST_ROWS = 50


@dataclass(frozen=True)
class Bar:
    """A contribution with its interval, as numbers and as places in percent of the panel."""

    name: str
    size: float
    lower: float
    upper: float
    left: float
    width: float
    low: float
    high: float

    @property
    def sign(self) -> str:
        return "positive" if self.size >= 0 else "negative"


@dataclass(frozen=True)
class Panel:
    """The contributions to one output: ``sum`` says what they add up to, ``zero`` is in percent."""

    output: str
    sum: str
    zero: float
    bars: list[Bar]


@dataclass(frozen=True)
class RowStory:
    """One row: its number, why it was chosen, prediction, observed target, contributions."""

    number: int
    reason: str
    prediction: str
    observed: str | None
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
    names = ("the highest prediction", "the lowest prediction")
    certain = response[:, 0]
    if classes:
        names = ("the surest prediction", "the most uncertain prediction")
        certain = response.max(axis=1)
    reasons: dict[int, str] = {}
    if surprise is not None:
        reasons[int(surprise.argmax())] = "the largest error"
    for row, reason in zip((int(certain.argmax()), int(certain.argmin())), names, strict=True):
        reasons.setdefault(row, reason)
    middle = int(np.argsort(certain, kind="stable")[len(certain) // 2])
    reasons.setdefault(middle, "a typical row")
    return reasons


def tell_rows(
    network: SparseNetwork,
    covariates: Float,
    rows: dict[int, str],
    settings: list[Setting],
    y: NDArray | None,
    drawn: tuple[Float, Float],
    level: float,
    offset: Float | None = None,
) -> list[RowStory]:
    """Prediction and contributions of the chosen rows; predictions are those at offset 0."""
    if not rows:
        return []
    log_link = families.likelihood(network.likelihood).log_link
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    explanation, mean = (
        explain_local(
            network,
            covariates[list(rows)],
            level=level,
            draws=draws,
            approximate=True,
            baseline="center",
            kind="linear",
        )
        for draws in (drawn, at_mean)
    )
    observed = None if y is None else y[list(rows)]
    stories = []
    for place, (row, reason) in enumerate(rows.items()):
        outputs = _outputs_to_tell(explanation, place)
        stories.append(
            RowStory(
                number=row,
                reason=reason,
                prediction="; ".join(_prediction(explanation, place, k) for k in outputs),
                observed=(
                    None
                    if observed is None
                    else _observed(observed[place])
                    + ("" if offset is None else _at(offset[row], log_link))
                ),
                panels=[_panel(explanation, mean, place, k, settings) for k in outputs],
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


def _panel(
    explanation: LocalExplanation,
    mean: LocalExplanation,
    row: int,
    output: int,
    settings: list[Setting],
) -> Panel:
    """Bars of the network with its mean weights, as the page's own script draws them."""
    draws = explanation.covariate_draws(row)[..., output]
    point = mean.covariate_draws(row)[0, :, output]
    names = [setting.words(explanation.x[row]) for setting in settings]
    sizes = np.array([point[setting.used].sum() for setting in settings])
    spread = np.array([draws[:, setting.used].sum(axis=1) for setting in settings]).T
    placed: dict[str, Any] = {"zero": 50.0, "bars": []}
    if settings:
        placed = _placed(*largest_bars(names, sizes, MOST_BARS, spread, explanation.level))
    predictor, intercept = mean.predictor[row, output], mean.intercept[row, output]
    scale = families.likelihood(explanation.likelihood).words.predictor
    scale = scale or on_one_line(explanation.outputs[output])
    bars = predictor - intercept
    sign = "+" if bars >= 0 else "\N{MINUS SIGN}"
    start, note = "at the center", ""
    if mean.bends[row, output]:
        start = f"on its line {start}"
        note = f" (the network has {number(mean.baseline_predictor[output])} there)"
    total = f"{scale} {number(predictor)} = {number(intercept)} {start}"
    text = f"{total} {sign} {number(abs(bars))}{note}"
    return Panel(
        output=on_one_line(explanation.outputs[output]),
        sum=text,
        **placed,
    )


def _placed(names: list[str], sizes: Float, lower: Any, upper: Any) -> dict[str, Any]:
    """Zero and bars of a panel, in percent of its width."""
    every = np.concatenate([sizes, lower, upper, [0.0]])
    low, reach = every.min(), float(np.ptp(every)) or 1.0

    def percent(values: Float | float) -> Any:
        return np.round((values - low) / reach * 100, 2)

    zero = float(percent(0.0))
    ends = percent(sizes)
    bars = [
        Bar(
            name=name,
            size=float(sizes[k]),
            lower=float(lower[k]),
            upper=float(upper[k]),
            left=min(zero, float(ends[k])),
            width=round(abs(float(ends[k]) - zero), 2),
            low=float(percent(lower[k])),
            high=float(percent(upper[k])),
        )
        for k, name in enumerate(names)
    ]
    return {"zero": zero, "bars": bars}
