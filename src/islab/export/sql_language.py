"""SQL: a query built up of tables, and expressions, names and numbers as it spells them."""

from __future__ import annotations

from math import isnan
from typing import Any

from islab.core.arrays import Float
from islab.core.expressions import Cell, Expression, Lookup, Symbol, spell, symbols
from islab.core.names import is_number

ROW, DRAW = "islab_row", "islab_draw"
LARGEST = "1.7976931348623157e308"
LIKE_TRUE = {"True": ("true",), "False": ("false",)}


class Query:
    """A query under construction: common table expressions, and columns still to be computed."""

    def __init__(self, sql: Sql) -> None:
        self.sql = sql
        self.parts: list[str] = []
        self.stages: list[dict[str, Expression] | str] = []

    @property
    def text(self) -> str:
        return "WITH RECURSIVE\n" + ",\n".join(self.parts)

    def add(self, name: str, select: str) -> None:
        """Another table; ``MATERIALIZED`` keeps it from being computed for each use."""
        self.parts.append(f"{name} AS MATERIALIZED ({select})")

    def grouped(self, name: str, table: str, aggregates: dict[str, str]) -> str:
        listed = ", ".join(f"{value} AS {key}" for key, value in aggregates.items())
        self.add(name, f"SELECT {ROW}, {listed} FROM {table} GROUP BY {ROW}")
        return name

    def let(self, name: str, expression: Expression) -> Expression:
        """Another column, computed beside the last ones if it needs none of them."""
        last = self.stages[-1] if self.stages else None
        if isinstance(last, dict) and not symbols(expression) & set(last):
            last[name] = expression
        else:
            self.stages.append({name: expression})
        return Symbol(name)

    def let_all(self, columns: dict[str, Expression]) -> None:
        """Columns that need none of each other."""
        if columns:
            self.stages.append(dict(columns))

    def join_draws(self, constants: dict[str, Float], n_draws: int) -> None:
        """From here on there is a row for each row of the table and each draw."""
        if n_draws == 1:
            return
        rows = zip(range(n_draws), *(column.tolist() for column in constants.values()), strict=True)
        values = ",\n".join(f"({', '.join([str(d), *map(literal, row)])})" for d, *row in rows)
        names = ", ".join([DRAW, *constants])
        self.parts.append(f"islab_draws({names}) AS MATERIALIZED (VALUES\n{values})")
        self.stages.append("islab_draws")

    def flush(self, wanted: list[str]) -> str:
        """Computes all columns, each with what is needed after it; gives the table's name."""
        needed = [set(wanted)]
        for stage in reversed(self.stages):
            after = needed[-1]
            if isinstance(stage, dict):
                own = {name for e in stage.values() for name in symbols(e)}
                after = (after - set(stage)) | own
            needed.append(after)
        needed.reverse()
        source, there, have = "islab_rows AS t", {ROW}, [ROW]
        for number, stage in enumerate(self.stages):
            name, live = f"islab_{number}", needed[number + 1]
            if isinstance(stage, str):
                source, have = f"{source} CROSS JOIN {stage}", [ROW, DRAW]
                there |= {DRAW, *needed[number]}
                continue
            kept = sorted((there & live) - {ROW, DRAW})
            computed = [f"{spell(e, self.sql)} AS {n}" for n, e in stage.items() if n in live]
            self.add(name, f"SELECT {', '.join([*have, *kept, *computed])} FROM {source}")
            there = {*have, *kept, *(n for n in stage if n in live)}
            source = name
        self.stages = []
        return source


class Sql:
    """Spells expressions in SQL; cells are those of table ``t``."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def constant(self, value: float) -> str:
        return literal(value)

    def symbol(self, name: str) -> str:
        return name

    def cell(self, cell: Cell) -> str:
        # A name without its table would be text to SQLite where there is no such column.
        value = f"t.{quoted(cell.column)}"
        if cell.kind == "days":
            return self._days(value)
        if self.dialect == "sqlite":
            value = f"NULLIF({value}, '')"
        elif cell.kind == "boolean":
            # Not every database makes numbers of booleans.
            text = f"CAST({value} AS VARCHAR)"
            value = f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
        value = f"CAST({value} AS DOUBLE PRECISION)"
        # Neither NaN nor infinity is between these, whatever a database makes of NaN.
        return f"CASE WHEN {value} BETWEEN -{LARGEST} AND {LARGEST} THEN {value} END"

    def _days(self, value: str) -> str:
        if self.dialect == "sqlite":
            return f"(JULIANDAY({value}) - 2440587.5e0)"
        return f"(EXTRACT(EPOCH FROM CAST({value} AS TIMESTAMP)) / 86400e0)"

    def lookup(self, lookup: Lookup) -> str:
        value = f"t.{quoted(lookup.column)}"
        levels = [level for level, _ in lookup.values]
        cases: dict[float, list[str]] = {}
        for level, number in lookup.values:
            spellings = [level, *(s for s in _spellings(level) if s not in levels)]
            cases.setdefault(number, []).extend(map(text_literal, spellings))
        text = f"CAST({value} AS VARCHAR)"
        known = [f"WHEN {text} IN ({', '.join(c)}) THEN {literal(n)}" for n, c in cases.items()]
        missing = f"WHEN {value} IS NULL THEN {literal(lookup.missing)}"
        return f"CASE {' '.join([missing, *known])} ELSE {literal(lookup.default)} END"

    def call(self, function: str, arguments: list[str]) -> str:
        if function in ("+", "-", "*", "/"):
            return f"({arguments[0]} {function} {arguments[1]})"
        if function == "where":
            condition, then, otherwise = arguments
            return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"
        if function == "greater":
            return f"{arguments[0]} > {arguments[1]}"
        if function == "missing":
            return f"({arguments[0]}) IS NULL"
        if function == "largest" and len(arguments) == 2:
            # GREATEST leaves out what is missing.
            first, second = arguments
            return f"CASE WHEN {second} > {first} THEN {second} ELSE {first} END"
        names = {"log": "LN", "largest": "MAX" if self.dialect == "sqlite" else "GREATEST"}
        return f"{names.get(function, function.upper())}({', '.join(arguments)})"


def quoted(name: str) -> str:
    return '"' + _without_nul(name).replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + _without_nul(text).replace("'", "''") + "'"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError(
            f"Got the name or category {text!r}, expected text that SQL can hold; try to take the "
            "NUL character out of it."
        )
    return text


def literal(value: float) -> str:
    """A number as a floating-point literal: without an exponent some databases take decimals."""
    if isnan(value):
        return "NULL"
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


def label_literal(label: Any) -> str:
    """A class as a literal."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return text_literal(label) if isinstance(label, str) else repr(label)


def _spellings(level: str) -> tuple[str, ...]:
    """How else a database may spell a category that is a number or a boolean."""
    whole = is_number(level) and level.lstrip("-").isdecimal()
    return (f"{level}.0",) if whole else LIKE_TRUE.get(level, ())
