"""The page of a model for tables: what the other modules found, put into its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from islab.core import families
from islab.core.arrays import Float, Index
from islab.core.diagnostics import diagnose
from islab.core.fitted import FittedModel
from islab.core.names import printable
from islab.core.sampled import SampledPosterior
from islab.plots.style import number, on_one_line
from islab.report.charts import history_charts
from islab.report.effects import effects_of
from islab.report.environment import own_script, render
from islab.report.graph import path_graph
from islab.report.rows import RowStory, chosen_rows, tell_rows
from islab.report.scores import score
from islab.report.variables import Setting, settings_of, training_ranges
from islab.report.whatif import family_script, network_data, page_models, used_covariates
from islab.tables.check import ABOUT_DATA, check

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.sparse import SparseNetwork

MOST_LINES = 100
MOST_OPEN = 30  # lines of effects before the rest is folded away
MOST_COVARIATES = 40
MOST_SETTINGS = 40
MODELS = {
    "full": "full model",
    "median": "median network",
}


def write_report(
    path: str | Path,
    model: FittedModel,
    X: Any,
    y: ArrayLike | None = None,
    *,
    rows: Sequence[int] | None = None,
    n_draws: int = 200,
    level: float = 0.95,
    title: str | None = None,
) -> None:
    """Writes a fitted model and what it makes of some rows to one HTML file.

    The file needs no network and no other file.

    Parameters
    ----------
    path : path
        Replaced in one move if it exists.
    model : ISLaBClassifier or ISLaBRegressor
        Fitted.
    X : DataFrame or (rows, columns)
        Rows to score and to explain, best some that the model has not seen.
    y : (rows,) or (rows, outputs), optional
        Their targets; without them nothing is scored.
    rows : sequence of int, optional
        Positions of rows to explain; a few informative ones by default.
    n_draws : int
        Draws of the posterior in the page, and behind its intervals; fewer of large networks.
    level : float
        Of the intervals.
    title : str, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from islab import ISLaBClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ISLaBClassifier(max_epochs=20, n_restarts=1, random_state=0).fit(X, y)
    >>> write_report(getfixture("tmp_path") / "iris.html", model, X, y)
    """
    from islab.io.files import replacing

    page = render_report(model, X, y, rows=rows, n_draws=n_draws, level=level, title=title)
    with replacing(path) as file:
        file.write(page.encode())


def _findings(X: Any, y: Any) -> list[tuple[str, str]]:
    """What a look at the rows finds that no reading of columns mends: column, words."""
    found = (each for each in check(X, y).findings if each.finding in ABOUT_DATA)
    return [(printable(each.column), printable(f"{each.finding}, {each.detail}")) for each in found]


def render_report(
    model: FittedModel,
    X: Any,
    y: ArrayLike | None = None,
    *,
    rows: Sequence[int] | None = None,
    n_draws: int = 200,
    level: float = 0.95,
    title: str | None = None,
) -> str:
    """The page as text; parameters are those of :func:`write_report`."""
    if not 0 < level < 1:
        raise ValueError(f"Got level={level}, expected a number between 0 and 1; try 0.95.")
    if n_draws < 2:
        raise ValueError(f"Got n_draws={n_draws}, expected at least 2; try 200.")
    predictions, network = model.predictions(X), model.network_
    if predictions.n_draws < n_draws:
        predictions = model.predictions(predictions, n_draws=n_draws)
    covariates = predictions.covariates
    y = None if y is None else predictions.observed(y)
    models = page_models(predictions, n_draws)
    read = used_covariates(models)
    summary = model.summary(predictions, y, level=level)
    everything = summary.explanation
    scores = None if y is None else score(predictions, y, level)
    settings = settings_of(read, model.columns_, covariates)
    response = predictions.mean()
    surprise = None if scores is None else scores.surprise
    chosen = chosen_rows(rows, response, surprise, hasattr(model, "classes_"))
    middle = _most_ordinary(network.standardise(covariates))
    used = everything.covariates[everything.covariates["count"] > 0]
    used = used.sort_values("contribution", ascending=False, kind="stable")
    offered = _most_telling(settings, everything.variables)[:MOST_SETTINGS]
    outside, posterior = _rows_outside(model.outside_range(X)), model.posterior_
    lines = summary.shown_effects(MOST_LINES)
    script = family_script([network.likelihood], network.architecture.activation_names)
    return render(
        "model.html",
        **own_script("network.js", "page.js", first=script),
        likelihood=families.likelihood(network.likelihood),
        title=printable(title or f"{type(model).__name__}: what it learned"),
        summary=summary,
        effects=effects_of(everything, summary.effects, training_ranges(model.columns_)),
        table=lines,
        n_open=MOST_OPEN if len(lines) > MOST_OPEN + 5 else len(lines),
        n_lines=sum(line is not None for line, _ in lines),
        network=network,
        classes=[printable(str(name)) for name in _classes(model)],
        columns=[printable(variable.name) for variable in model.columns_.variables],
        left_out=[
            (printable(variable.name), variable.note)
            for variable in model.columns_.variables
            if not variable.covariates
        ],
        findings=[] if type(X) is type(predictions) else _findings(X, y),
        n_rows=len(covariates),
        level=level,
        models={name: MODELS[name] for name in models},
        n_draws=len(next(iter(models.values())).networks),
        scores=scores,
        disagreement=predictions.disagreement(),
        everything=everything,
        used=used.head(MOST_COVARIATES),
        n_used=len(used),
        largest=float(used["contribution"].max()) if len(used) else 1.0,
        graph=path_graph(network, everything.covariates),
        edges=everything.edges if network.n_used_weights <= MOST_LINES else None,
        stories=_stories(model, predictions, chosen, y, level, outside),
        outside=outside,
        of_training=_are_training_rows(model, covariates),
        diagnostics=diagnose(posterior) if _from_chains(posterior) else None,
        stacking=getattr(posterior, "stacking", None),
        price=getattr(posterior, "price", None),
        has_offset=predictions.offset is not None,
        history=history_charts(model.history_, **_noise_name(network)),
        params={name: printable(repr(value)) for name, value in model.get_params().items()},
        n_settings=len(settings),
        n_offered=len(offered),
        starts=[f"an ordinary row ({middle})", *(f"row {row}" for row in chosen)],
        data={
            "network": network_data(network, models, level, predictions.ranges),
            "settings": [setting.to_dict() for setting in offered],
            "rows": [_start(covariates[row], read, offered) for row in (middle, *chosen)],
            "range": _range(network, response),
            "scale": families.likelihood(network.likelihood).words.predictor,
        },
    )


def _stories(
    model: FittedModel,
    predictions: Any,
    chosen: dict[int, str],
    y: Any,
    level: float,
    outside: _Outside,
) -> list[RowStory]:
    """The chosen rows, explained by the posterior average."""
    if not chosen:
        return []
    rows = predictions.of_rows(list(chosen))
    ends = rows.interval(level)
    far = {
        row: f"{outside.rows[row]}. {_extrapolation(rows, ends[place], place, level)}"
        for place, row in enumerate(chosen)
        if row in outside.rows
    }
    explanation = model.explain_local(rows, level=level, approximate=True)
    return tell_rows(explanation, chosen, y, predictions.offset, far)


def _extrapolation(rows: Any, ends: Float, place: int, level: float) -> str:
    """What a prediction beyond the training data is worth, from its interval (outputs, 2)."""
    output = int(rows.mean()[place].argmax()) if rows.kind == "classes" else 0
    low, high = (number(float(end)) for end in ends[output])
    of = "its probability" if rows.kind == "classes" else "a new value"
    if rows.kind == "numbers" and len(ends) > 1:
        of += f" of {on_one_line(rows.targets[0])}"
    return f"The prediction is an extrapolation: {of} may be {low} to {high} ({level:.0%})."


@dataclass(frozen=True)
class _Outside:
    """Rows outside the range of training: how many, in what variables, and each one's."""

    count: int
    variables: str
    rows: dict[int, str]


def _rows_outside(frame: pd.DataFrame) -> _Outside:
    places = np.flatnonzero(frame["outside"])
    lists = {int(row): frame["variables"].iloc[row] for row in places}
    names = Counter(name for each in lists.values() for name in each)
    return _Outside(
        count=len(lists),
        variables=_listed([name for name, _ in names.most_common()]),
        rows={row: _listed(each) for row, each in lists.items()},
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(on_one_line(name) for name in names[:most]) + more


def _from_chains(posterior: Any) -> bool:
    return isinstance(posterior, SampledPosterior) and not posterior.stacked


def _are_training_rows(model: FittedModel, covariates: Float) -> bool:
    """Whether the rows have the means that training found, to rounding, and are as many."""
    price = getattr(model.posterior_, "price", None)
    same_number = price is None or price.n_rows == len(covariates)
    center = model.network_.scale.x_center
    return same_number and np.allclose(covariates.mean(axis=0), center, rtol=1e-9, atol=1e-300)


def _noise_name(network: SparseNetwork) -> dict[str, str]:
    """What the noise is called where it is no variance."""
    likelihood = families.likelihood(network.likelihood)
    return {} if likelihood.scales_target else {"noise": f"mean of {likelihood.noise_name}"}


def _classes(model: FittedModel) -> Any:
    """The classes of a classifier, from the lowest to the highest if they have an order."""
    levels = getattr(model, "levels_", None)
    return getattr(model, "classes_", ()) if levels is None else levels


def _start(covariates: Float, read: Index, offered: list[Setting]) -> dict[str, Any]:
    """A row to start changes from."""
    return {
        "x": covariates[read].tolist(),
        "states": [setting.state(covariates) for setting in offered],
    }


def _range(network: SparseNetwork, response: Float) -> list[float]:
    """Where predicted numbers lie, with room for noise."""
    likelihood = network.known_likelihood()
    room = 2 * float(np.sqrt(network.noise_in_units().max())) if likelihood.scales_target else 0.0
    low, high = float(response.min()) - room, float(response.max()) + room
    least, most = likelihood.support
    if likelihood.ordered:
        return [least, most]
    return [max(low, least), min(high, most)]


def _most_ordinary(columns: Float) -> int:
    """The row that lies nearest to the median of all rows, (rows, standardised columns)."""
    return int(((columns - np.median(columns, axis=0)) ** 2).sum(axis=1).argmin())


def _most_telling(settings: list[Setting], variables: pd.DataFrame) -> list[Setting]:
    """The settings in order of their variable's contribution."""
    sizes = dict(zip(variables["variable"], variables["contribution"], strict=True))
    return sorted(settings, key=lambda setting: -sizes.get(setting.owner, 0.0))
