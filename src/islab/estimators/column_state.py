"""The encoder of a table's columns from the record of a file, which may come from a stranger."""

from __future__ import annotations

from islab.io.schema import (
    CategoryRecord,
    ColumnsRecord,
    DateRecord,
    LeftOutRecord,
    NumberRecord,
    OrderedRecord,
    TrendRecord,
    VariableRecord,
    WeekdayRecord,
)
from islab.tables.categories import Category
from islab.tables.columns import MISSING, ColumnEncoder, Variable
from islab.tables.dates import Cycle, Moment
from islab.tables.left_out import LeftOut
from islab.tables.numbers import Number
from islab.tables.orders import Ordered
from islab.tables.spelled import SPELLINGS
from islab.tables.tails import Tails


def columns_of_record(record: ColumnsRecord) -> ColumnEncoder:
    """The encoder, or ValueError."""
    if record.missing not in MISSING:
        raise ValueError(f"'missing' is {record.missing!r}")
    variables = tuple(map(_variable, record.variables))
    names = [name for variable in variables for name in variable.covariates]
    if len(set(names)) < len(names) or len({v.name for v in variables}) < len(variables):
        raise ValueError("two columns have the same name")
    return ColumnEncoder(variables, record.missing)


def _variable(record: VariableRecord) -> Variable:
    match record:
        case LeftOutRecord():
            return LeftOut(record.name, record.reason)
        case NumberRecord():
            return _number(record)
        case CategoryRecord():
            return _category(record)
        case OrderedRecord():
            return _ordered(record)
        case DateRecord():
            return _moment(record)


def _number(record: NumberRecord | TrendRecord) -> Number:
    if not record.low <= record.fill <= record.high:
        raise ValueError(f"column {record.name!r} has a mean outside its range")
    tails = None
    if record.tails is not None:
        tails = Tails(record.tails.low, record.tails.high)
        if not tails.low < tails.high:
            raise ValueError(f"column {record.name!r} has tails that overlap")
    fields = (record.fill, record.low, record.high, record.indicator, record.gaps, tails)
    return Number(record.name, *fields, record.unit, tuple(record.words))


def _category(record: CategoryRecord | WeekdayRecord) -> Category:
    levels, shares = tuple(record.levels), tuple(record.shares)
    if len(levels) != len(shares) or len(set(levels)) < len(levels):
        raise ValueError(f"column {record.name!r} has levels without a share, or one twice")
    if abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"column {record.name!r} has shares that do not sum to 1")
    pooled = tuple(record.pooled)
    if record.n_pooled < len(pooled) or set(pooled) & set(levels):
        raise ValueError(f"column {record.name!r} has rare levels that do not add up")
    return Category(record.name, levels, shares, pooled, record.n_pooled)


def _ordered(record: OrderedRecord) -> Ordered:
    levels, steps = tuple(record.levels), tuple(record.steps)
    if len(set(levels)) < len(levels) or len(steps) != len(record.shares):
        raise ValueError(f"column {record.name!r} has steps without a share, or a level twice")
    if steps != tuple(level for level in levels[1:] if level in set(steps)):
        raise ValueError(f"column {record.name!r} has steps that are no levels, or out of order")
    shares = tuple(record.shares)
    return Ordered(record.name, levels, steps, shares, record.indicator, record.gaps)


def _moment(record: DateRecord) -> Moment:
    cycles = tuple(Cycle(cycle.name, cycle.clock) for cycle in record.cycles)
    weekday = None if record.weekday is None else _category(record.weekday)
    if record.spelling not in ("", *SPELLINGS):
        raise ValueError(f"column {record.name!r} has dates in a format that is not known")
    trend = _number(record.trend)
    return Moment(record.name, record.start, trend, cycles, weekday, record.spelling)
