"""The model as one SQL query over a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from islab.core.arrays import Float
from islab.core.expressions import Call, Constant, Expression, Symbol, call, spell
from islab.export.portable import NEWTON_STEPS, Portable, portable
from islab.export.sql_counts import add_count_ends, share_columns
from islab.export.sql_language import DRAW, ROW, Query, Sql, label_literal, literal, quoted

DIALECTS = ("standard", "sqlite")
MOST_COLUMNS = 1900  # SQLite has 2000 in a result
EACH_ROW = f"OVER (PARTITION BY {ROW})"


def to_sql(
    source: Any,
    *,
    table: str = "data",
    model: str | None = None,
    n_draws: int | None = None,
    level: float | None = 0.9,
    dialect: str = "standard",
) -> str:
    """One query that gives all rows of a table with their predictions.

    The columns that it adds are those of ``islab predict``: ``prediction`` and, with draws, ``sd``,
    ``lower`` and ``upper`` of numbers; ``prediction``, a ``probability_...`` for each class and,
    with draws, ``lower_...`` and ``upper_...`` of classes.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
        The columns of a network are its covariates.
    table : str
        Name of the table, with columns named and typed as in training. NULL, and a NaN in a column
        of numbers, is a missing value. Dates are of a type for dates, or text such as 2024-05-31;
        durations are days.
    model : {"full", "median"}, optional
        Average over draws of the full posterior, or the readable network.
    n_draws : int, optional
        Draws to write down, 100 of the full posterior if not given; as many as the model has
        (``model.n_draws``) give the numbers of ``predict``. The readable network is written at the
        mean of its weights, unless draws of these are asked for.
    level : float, optional
        Of the interval; None for a shorter and faster query without one.
    dialect : {"standard", "sqlite"}
        Standard SQL is for DuckDB and PostgreSQL.

    Notes
    -----
    Names and categories are quoted, whatever they hold. SQLite must be 3.35 or newer and have its
    mathematical functions.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"Got dialect={dialect!r}, expected one of {', '.join(DIALECTS)}.")
    if level is not None and not 0 < level < 1:
        raise ValueError(f"Got level={level!r}, expected a number between 0 and 1, or None.")
    content = portable(source, model, n_draws)
    query = Query(Sql(dialect))
    rows = f"SELECT t.*, ROW_NUMBER() OVER () AS {ROW} FROM {quoted(table)} AS t"
    query.add("islab_rows", rows)
    responses = _responses(content, query)
    if content.n_draws == 1:
        results = query.flush(responses)
        means = dict(zip(_keys(content, "mean"), responses, strict=True))
        return _final(content, query, results, means)
    return _averaged(content, query, responses, level)


# -- from cells to responses ------------------------------------------------------------------


def _responses(content: Portable, query: Query) -> list[str]:
    """Names of the columns ``p`` that hold each response, for each row and draw.

    With draws of numbers or counts there are ``v``, the variances of the targets, and where
    exports have their intervals ``s`` and ``q``: the roots and draws of the standard noise.
    """
    read = {cell: Symbol(f"c{number}") for number, cell in enumerate(content.cells)}
    query.let_all({symbol.name: cell for cell, symbol in read.items()})
    covariates = [_with_cells(each, read) for each in content.covariates.values()]
    query.let_all({f"x{number}": each for number, each in enumerate(covariates)})
    offset: Expression = Constant(0.0)
    if content.offset is not None:
        query.let_all({"shift": _with_cells(content.offset, read)})
        offset = Symbol("shift")
    constants = _Constants(content.n_draws)
    inputs: list[Expression] = [Symbol(f"x{number}") for number in range(len(covariates))]
    below: list[Expression] = []
    sums: list[dict[str, Expression]] = []
    for number, layer in enumerate(content.layers):
        last = number == len(content.layers) - 1
        here = {}
        for unit in range(layer.bias.shape[1]):
            terms = [constants.of(layer.bias[:, unit])]
            terms += _products(constants, layer.covariate[:, unit], inputs)
            terms += _products(constants, layer.hidden[:, unit], below)
            shifted = last and unit < content.n_targets
            here[f"z{number}_{unit}"] = _sum([*terms, offset] if shifted else terms)
        sums.append(here)
        below = [Symbol(name if last else f"h{name[1:]}") for name in here]
    spread = content.classes is None and content.n_draws > 1
    noise = [constants.of(own) for own in content.noise.T]
    standard: dict[str, Expression] = {}
    if spread and content.family.standard_noise is not None:
        standard["q"] = constants.of(content.standard_draws())
    constants.check()
    query.join_draws(constants.columns, content.n_draws)
    for number, here in enumerate(sums):
        query.let_all(here)
        if number < len(sums) - 1:
            activation = content.activations[number]
            query.let_all({f"h{z[1:]}": activation.expression(Symbol(z)) for z in here})
    found = content.responses(below, noise, query.let)
    names = [f"p{number}" for number in range(len(found))]
    query.let_all(dict(zip(names, found, strict=True)))
    if spread:
        query.let_all(_spread(content, names, content.family.noise_expressions(below, noise)))
        query.let_all(share_columns(content, names, content.family.noise_expressions(below, noise)))
    query.let_all(standard)
    return names


def _spread(
    content: Portable, names: list[str], noise: list[tuple[Expression, ...]]
) -> dict[str, Expression]:
    """The variance of each target and the root of its standard noise."""
    found: dict[str, Expression] = {}
    for number, (name, own) in enumerate(zip(names, noise, strict=True)):
        found[f"v{number}"] = content.family.variance_expression(Symbol(name), own)
        if content.family.standard_noise is not None:
            found[f"s{number}"] = call("sqrt", own[0])
    return found


def _with_cells(expression: Expression, read: dict[Any, Symbol]) -> Expression:
    """The expression with the names of what was read in place of cells."""
    if expression in read:
        return read[expression]
    if not isinstance(expression, Call):
        return expression
    return call(expression.function, *(_with_cells(each, read) for each in expression.arguments))


class _Constants:
    """Numbers of each draw: columns of a table, or a literal if all draws share one."""

    def __init__(self, n_draws: int) -> None:
        self.n_draws = n_draws
        self.columns: dict[str, Float] = {}

    def of(self, values: Float) -> Expression:
        if (values == values[0]).all():
            return Constant(float(values[0]))
        name = f"w{len(self.columns)}"
        self.columns[name] = values
        return Symbol(name)

    def check(self) -> None:
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(
                f"Got networks with {len(self.columns)} weights that differ between draws, "
                f"expected at most {MOST_COLUMNS} for one query; try model='median', or "
                "export('onnx')."
            )


def _products(
    constants: _Constants, weights: Float, values: Sequence[Expression]
) -> list[Expression]:
    used = np.flatnonzero(weights.any(axis=0)).tolist()
    return [constants.of(weights[:, k]) * values[k] for k in used]


def _sum(terms: list[Expression]) -> Expression:
    """The sum, halved again and again: databases limit how deep a formula is nested."""
    terms = [term for term in terms if term != Constant(0.0)] or [Constant(0.0)]
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return _sum(terms[:half]) + _sum(terms[half:])


# -- from draws to predictions ----------------------------------------------------------------


def _averaged(content: Portable, query: Query, responses: list[str], level: float | None) -> str:
    """Means over draws and, if there is a level, intervals."""
    means = dict(zip(_keys(content, "mean"), responses, strict=True))
    aggregates = {key: f"AVG({p})" for key, p in means.items()}
    if content.classes is not None:
        drawn = query.flush(responses)
        if level is not None:
            drawn, ends = _ranked(query, drawn, responses, level, content.n_draws)
            aggregates |= ends
        results = query.grouped("islab_means", drawn, aggregates)
        return _final(content, query, results, {key: key for key in aggregates})
    interval = level is not None and content.family.standard_noise is not None
    shares = [] if level is None else _share_names(query)
    drawn = _centred(query, responses, interval, shares)
    for number, p in enumerate(responses):
        error = Symbol(p) - Symbol(f"m{number}")
        variance = Symbol(f"v{number}") + error * error
        aggregates[f"sd{number}"] = f"SQRT(AVG({spell(variance, query.sql)}))"
    results = query.grouped("islab_means", drawn, aggregates)
    if level is not None and interval:
        results = _quantiles(content, query, drawn, results, level)
        aggregates |= {f"{end}{n}": "" for end in ("lower", "upper") for n in range(len(responses))}
    if level is not None and shares:
        tables = add_count_ends(query, drawn, shares, range(len(responses)), level)
        ends = {f"{end}{n}": "" for end in ("lower", "upper") for n in range(len(responses))}
        joined = " ".join(f"JOIN {name} ON m.{ROW} = {name}.{ROW}" for name in tables)
        query.add("islab_results", f"SELECT m.*, {', '.join(ends)} FROM {results} AS m {joined}")
        results = "islab_results"
        aggregates |= ends
    return _final(content, query, results, {key: key for key in aggregates})


def _ranked(
    query: Query, drawn: str, responses: list[str], level: float, n_draws: int
) -> tuple[str, dict[str, str]]:
    """Draws numbered by size, and the aggregates that interpolate between two of them."""
    ranks = [
        f"ROW_NUMBER() OVER (PARTITION BY {ROW} ORDER BY {p}) AS r{number}"
        for number, p in enumerate(responses)
    ]
    query.add("islab_ranked", f"SELECT *, {', '.join(ranks)} FROM {drawn}")
    ends = {}
    for end, share in (("lower", (1 - level) / 2), ("upper", (1 + level) / 2)):
        place = share * (n_draws - 1)
        first = int(place)
        for number, p in enumerate(responses):
            below = f"WHEN {first + 1} THEN {p} * {literal(1 - (place - first))}"
            above = f"WHEN {first + 2} THEN {p} * {literal(place - first)}"
            ends[f"{end}{number}"] = f"SUM(CASE r{number} {below} {above} ELSE 0e0 END)"
    return "islab_ranked", ends


def _share_names(query: Query) -> list[str]:
    """The columns of :func:`share_columns` that the query has."""
    kept = (stage for stage in query.stages if isinstance(stage, dict) and "o0" in stage)
    return [name for stage in kept for name in stage if name[0] in "obeg"]


def _centred(query: Query, responses: list[str], interval: bool, shares: list[str]) -> str:
    """Draws with the mean of their row, from which squares lose no digits.

    For an interval also a sample of new targets, ``y``, and its ranks, ``r``.
    """
    spread = [f"{what}{n}" for what in ("vs" if interval else "v") for n in range(len(responses))]
    sample = {f"y{n}": Symbol(p) + Symbol(f"s{n}") * Symbol("q") for n, p in enumerate(responses)}
    if interval:
        query.let_all(sample)
    columns = [*responses, *spread, *(sample if interval else ()), *shares]
    drawn = query.flush(columns)
    added = [f"AVG({p}) {EACH_ROW} AS m{n}" for n, p in enumerate(responses)]
    if interval:
        ranks = f"ROW_NUMBER() OVER (PARTITION BY {ROW} ORDER BY"
        added += [f"{ranks} {y}) AS r{y[1:]}" for y in sample]
    query.add("islab_drawn", f"SELECT {', '.join([ROW, DRAW, *columns, *added])} FROM {drawn}")
    return "islab_drawn"


def _quantiles(content: Portable, query: Query, drawn: str, results: str, level: float) -> str:
    """Ends of the interval by Newton's steps, kept in a bracket that shrinks.

    Each is the quantile of an equal mixture of the draws' distributions.
    """
    noise = content.family.standard_noise
    assert noise is not None
    levels = {"lower": (1 - level) / 2, "upper": (1 + level) / 2}
    numbers = range(content.n_targets)
    ends = {f"{end}{n}": (n, share) for end, share in levels.items() for n in numbers}
    kept = ", ".join([ROW, *(f"p{n}, s{n}" for n in numbers)])
    parts = []
    for end, (n, share) in ends.items():
        reach = f"p{n} + {literal(noise.quantile(share))} * s{n}"
        parts += [f"MIN({reach}) {EACH_ROW} AS low_{end}", f"MAX({reach}) {EACH_ROW} AS high_{end}"]
        rank = 1 + int(share * content.n_draws)
        parts.append(f"MAX(CASE WHEN r{n} = {rank} THEN y{n} END) {EACH_ROW} AS {end}")
    query.add("islab_end0", f"SELECT {kept}, {', '.join(parts)} FROM {drawn}")
    for step in range(NEWTON_STEPS):
        _newton_step(query, ends, noise, kept, step)
    found = ", ".join(f"MIN({end}) AS {end}" for end in ends)
    query.add("islab_ends", f"SELECT {ROW}, {found} FROM islab_end{NEWTON_STEPS} GROUP BY {ROW}")
    query.add(
        "islab_results",
        f"SELECT m.*, {', '.join(f'e.{end}' for end in ends)} FROM {results} AS m "
        f"JOIN islab_ends AS e ON m.{ROW} = e.{ROW}",
    )
    return "islab_results"


def _newton_step(query: Query, ends: dict, noise: Any, kept: str, step: int) -> None:
    """Another step, of all draws of all rows.

    Tables are not joined and none is read twice: SQLite would search the one for each row of the
    other, and plan the query twice.
    """
    scores = []
    for end, (n, _) in ends.items():
        inside = (
            f"CASE WHEN {end} BETWEEN low_{end} AND high_{end} THEN {end} "
            f"ELSE (low_{end} + high_{end}) / 2e0 END"
        )
        scores.append(
            f"low_{end}, high_{end}, {inside} AS {end}, ({inside} - p{n}) / s{n} AS z_{end}"
        )
    query.add(f"islab_score{step}", f"SELECT {kept}, {', '.join(scores)} FROM islab_end{step}")
    sums = []
    for end, (n, share) in ends.items():
        z = Symbol(f"z_{end}")
        below = spell(noise.share(z), query.sql)
        density = spell(noise.density(z) / Symbol(f"s{n}"), query.sql)
        sums.append(f"low_{end}, high_{end}, {end}")
        sums.append(f"AVG({below}) {EACH_ROW} - {literal(share)} AS excess_{end}")
        sums.append(f"AVG({density}) {EACH_ROW} AS density_{end}")
    query.add(f"islab_sum{step}", f"SELECT {kept}, {', '.join(sums)} FROM islab_score{step}")
    moved = []
    for end in ends:
        moved.append(f"CASE WHEN excess_{end} < 0e0 THEN {end} ELSE low_{end} END AS low_{end}")
        moved.append(f"CASE WHEN excess_{end} < 0e0 THEN high_{end} ELSE {end} END AS high_{end}")
        # A density that underflows gives no step; the next one halves the bracket.
        moved.append(f"{end} - excess_{end} / NULLIF(density_{end}, 0e0) AS {end}")
    query.add(f"islab_end{step + 1}", f"SELECT {kept}, {', '.join(moved)} FROM islab_sum{step}")


# -- the result -------------------------------------------------------------------------------


def _keys(content: Portable, what: str) -> list[str]:
    return [f"{what}{number}" for number in range(len(content.results))]


def _final(content: Portable, query: Query, results: str, names: dict[str, str]) -> str:
    """The whole query: rows of the table, each with what is predicted."""
    chosen = {key: f"p.{name}" for key, name in names.items()}
    columns: dict[str, str] = {}
    if content.classes is not None:
        means = [chosen[key] for key in _keys(content, "mean")]
        if content.two_classes:
            means = [f"1e0 - {means[0]}", *means]
        columns["prediction"] = _most_probable(means, content.classes)
        for label, mean in zip(content.classes, means, strict=True):
            columns[f"probability_{label}"] = mean
    suffixes = [f"_{name}" for name in content.results]
    if content.classes is None:
        suffixes = [""] if content.flat else suffixes
        for number, suffix in enumerate(suffixes):
            columns[f"prediction{suffix}"] = chosen[f"mean{number}"]
            columns |= {f"sd{suffix}": chosen[key] for key in [f"sd{number}"] if key in chosen}
    for number, suffix in enumerate(suffixes):
        for end in ("lower", "upper"):
            if f"{end}{number}" in chosen:
                columns[f"{end}{suffix}"] = chosen[f"{end}{number}"]
    listed = ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in columns.items())
    return (
        f"{query.text}\nSELECT r.*,\n  {listed}\nFROM islab_rows AS r JOIN {results} AS p "
        f"ON r.{ROW} = p.{ROW}\nORDER BY r.{ROW};\n"
    )


def _most_probable(means: list[str], classes: tuple[Any, ...]) -> str:
    """The first class of largest probability; NULL where nothing is known."""
    cases = []
    for number, label in enumerate(classes):
        conditions = [f"{means[number]} >= {other}" for k, other in enumerate(means) if k != number]
        cases.append(f"WHEN {' AND '.join(conditions)} THEN {label_literal(label)}")
    return f"CASE {' '.join(cases)} END"
