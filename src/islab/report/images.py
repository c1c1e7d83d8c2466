"""A fitted classifier of images as one HTML file: scores, layers, maps of pixels, examples."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.arrays import Float
from islab.core.names import printable
from islab.io.files import replacing, writable
from islab.plots import style
from islab.report.environment import render
from islab.scores import score_classes

if TYPE_CHECKING:
    from islab.estimators.images import ISLaBImageClassifier

SCORES = {
    "accuracy": "accuracy",
    "auc": "ROC AUC",
    "nll": "negative log-likelihood",
    "ece": "calibration error",
    "brier": "Brier score",
}
DOTS_PER_INCH = 100


@dataclass(frozen=True)
class Example:
    """One image: what it is, and what the median network makes of it."""

    row: int
    label: str
    # Name, probability, low and high of the class predicted and its own; of two, of the second.
    answers: tuple[tuple[str, float, float, float], ...]
    picture: str  # a map for each answer, as a data URI


def write_image_report(
    path: str | Path,
    model: ISLaBImageClassifier,
    images: Any,
    labels: ArrayLike,
    *,
    n_examples: int = 6,
    n_draws: int = 100,
    level: float = 0.95,
    title: str | None = None,
) -> None:
    """Writes a fitted classifier and what it makes of some images to one HTML file.

    The file needs no network and no other file.

    Parameters
    ----------
    path : path
        Replaced in one move if it exists.
    model : ISLaBImageClassifier
        Fitted.
    images : (n, height, width) or (n, channels, height, width)
        To score and to explain, best some that the model has not seen.
    labels : (n,)
        Their classes.
    n_examples : int
        Images to explain: half of them those whose class the model finds least probable, the
        others sure ones of several classes.
    n_draws : int
        Behind the intervals of the examples.
    level : float
        Of these intervals.
    title : str, optional
    """
    writable(path)
    found = model.predictions(images)
    labels = found.observed(labels)
    if n_examples < 1:
        raise ValueError(f"Got n_examples={n_examples}, expected at least 1; try 6.")
    probability = {kind: found.mean(kind) for kind in reversed(found.models)}
    rows = telling_rows(probability["median"], np.searchsorted(model.classes_, labels), n_examples)
    summary = model.summary()
    table = summary.layers.astype("string").fillna("")
    content = render(
        "images.html",
        title=printable(title or "Image classifier"),
        facts={name: printable(value) for name, value in summary.facts.items()},
        n_images=len(labels),
        headings=SCORES,
        scores={
            kind: score_classes(labels, each, model.classes_) for kind, each in probability.items()
        },
        layers=(list(table.columns), table.to_numpy().tolist()),
        maps=_picture(model.plot_pixels()),
        level=level,
        examples=[
            _example(model, found.covariates, row, str(labels[row]), n_draws=n_draws, level=level)
            for row in rows
        ],
    )
    with replacing(path) as file:
        file.write(content.encode())


def telling_rows(probability: Float, codes: NDArray[np.intp], n_rows: int) -> list[int]:
    """Rows whose own class is least probable, then the surest row of each class in turn.

    Parameters
    ----------
    probability : (rows, classes)
    codes : (rows,)
        Positions of the rows' own classes.
    """
    own = probability[np.arange(len(codes)), codes]
    doubtful = np.argsort(own, kind="stable")[: n_rows // 2].tolist()
    sure = [
        int(members[own[members].argmax()])
        for members in (np.flatnonzero(codes == code) for code in np.unique(codes))
    ]
    return list(dict.fromkeys([*doubtful, *sure]))[:n_rows]


def _example(
    model: ISLaBImageClassifier, images: Any, row: int, label: str, **options: Any
) -> Example:
    image = images[row : row + 1]
    offered = model.network_.head.scale.outputs
    predicted = str(model.predict(image, model="median")[0])
    chosen = [name for name in dict.fromkeys([predicted, label]) if name in offered]
    explanation = model.explain_local(image, output=chosen or list(offered), **options)
    summary = explanation.response_summary
    answers = zip(
        map(printable, explanation.outputs),
        explanation.response[0].tolist(),
        summary.lower[0].tolist(),
        summary.upper[0].tolist(),
        strict=True,
    )
    return Example(row, printable(label), tuple(answers), _picture(explanation.plot()))


def _picture(axes: Any) -> str:
    """A figure as a PNG inside the page."""
    figure = np.atleast_1d(np.asarray(axes, dtype=object)).flat[0].figure
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", dpi=DOTS_PER_INCH)
    style.pyplot().close(figure)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
