"""Dates and times as what people mean by them: a trend, the season, the weekday, the time of day.

All of it belongs to one variable. A cycle is a pair of covariates that go around a circle, each
from +1 at one time to -1 at the opposite one, so that 31 December is next to 1 January. Training
rows must have seen enough of a cycle for it to be told from the trend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.expressions import Cell, Constant, Expression, call, greater, where
from islab.tables.categories import Category, learn_category
from islab.tables.numbers import MISSING_LEVEL, Number, learn_number
from islab.tables.reading import Column, Days, Labels, labelled, wrong_kind
from islab.tables.spelled import days_spelled

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
THURSDAY = 3  # 1 January 1970
DAYS_IN_YEAR = 365.2425
SHORTEST_FOR_WEEKDAYS, SHORTEST_FOR_HOURS = 14.0, 2.0
HOUR = 1 / 24


class Clock(NamedTuple):
    """A circle of time."""

    word: str  # for a place on it
    poles: tuple[str, str]  # where a covariate is +1, and where it is -1
    places: tuple[str, ...]


CLOCKS = {
    "year": Clock("month", ("January-July", "April-October"), MONTHS),
    "day": Clock("hour", ("0-12", "6-18"), tuple(map(str, range(24)))),
}


@dataclass(frozen=True)
class Cycle:
    """A time of the year or of the day, as a pair of covariates."""

    kind: ClassVar[str] = "cycle"

    name: str
    clock: str  # "year" or "day"

    @property
    def covariates(self) -> tuple[str, ...]:
        return tuple(f"{self.name} ({poles})" for poles in CLOCKS[self.clock].poles)

    @property
    def varies(self) -> tuple[bool, ...]:
        return True, True

    def choices(self) -> tuple[list[str], Float]:
        """Months or hours, and the covariates in the middle of each; last those of a gap."""
        places = CLOCKS[self.clock].places
        middle = (np.arange(len(places)) + 0.5) / len(places)
        return [*places, MISSING_LEVEL], self.around(np.append(middle, np.nan))

    def around(self, turns: NDArray[np.float64]) -> Float:
        """Covariates at these shares of a turn; 0, the middle of the circle, where missing."""
        angle = 2 * np.pi * turns
        pair = np.column_stack([np.cos(angle), np.sin(angle)])
        return np.where(np.isnan(pair), 0.0, pair)

    def encode_days(self, days: NDArray[np.float64]) -> Float:
        """The pair for each of these days since 1970."""
        return self.around(_share_of_year(days) if self.clock == "year" else days % 1)

    def expression(self, number: int, missing: str, days: Expression) -> Expression:
        """One of the pair as a formula of days since 1970, for exports."""
        of_day = days - call("floor", days)
        turns = of_day
        if self.clock == "year":
            turns = (_day_of_year(call("floor", days)) + of_day) / DAYS_IN_YEAR
        pair = call(("cos", "sin")[number], 2 * np.pi * turns)
        return where(call("missing", days), np.nan if missing == "error" else 0.0, pair)

    def natural_scale(self, covariates: Float) -> list[float]:
        return [np.nan, np.nan]


@dataclass(frozen=True)
class Moment:
    """A variable of dates or times."""

    kind: ClassVar[str] = "date"

    name: str
    start: float  # day since 1970 from which the trend counts
    trend: Number
    cycles: tuple[Cycle, ...] = ()
    weekday: Category | None = None
    spelling: str = ""  # format of text that has day and month in an order of its own

    @property
    def parts(self) -> tuple[Number | Cycle | Category, ...]:
        weekday = () if self.weekday is None else (self.weekday,)
        return (self.trend, *self.cycles, *weekday)

    @property
    def note(self) -> str:
        """What deserves to be said of it."""
        return "read as " + ", ".join(
            part.name.removeprefix(f"{self.name}: ") for part in self.parts
        )

    @property
    def covariates(self) -> tuple[str, ...]:
        names = [name for part in self.parts for name in part.covariates]
        if self.trend.indicator:
            names[1] = f"{self.name} {MISSING_LEVEL}"
        return tuple(names)

    @property
    def varies(self) -> tuple[bool, ...]:
        """For each covariate whether it did in training."""
        return tuple(varies for part in self.parts for varies in part.varies)

    def encode(self, column: Column, remarks: list[str]) -> Float:
        """The covariates of the variable, (rows, covariates); remarks on what is new are added."""
        days = self._days(column)
        found = [self.trend.encode(days - self.start, remarks)]
        found += [cycle.encode_days(days) for cycle in self.cycles]
        if self.weekday is not None:
            found.append(_weekday_covariates(self.weekday, days, remarks))
        return np.concatenate(found, axis=1)

    def expression(self, number: int, missing: str) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        days = Cell(self.name, "days")
        for part in self.parts:
            if number < len(part.covariates):
                break
            number -= len(part.covariates)
        if isinstance(part, Category):
            return _weekday_expression(part, number, missing, days)
        return part.expression(number, missing, days - self.start if part is self.trend else days)

    def natural_scale(self, covariates: Float) -> list[float]:
        """That of its parts."""
        ends = np.cumsum([len(part.covariates) for part in self.parts])
        own = np.split(covariates, ends[:-1], axis=1)
        pairs = zip(self.parts, own, strict=True)
        return [scale for part, values in pairs for scale in part.natural_scale(values)]

    def _days(self, column: Column) -> NDArray[np.float64]:
        if isinstance(column, Labels):
            spelled = days_spelled(column, self.spelling) if self.spelling else None
            column = column if spelled is None else spelled
        if isinstance(column, Days):
            return column.days
        expected = f"dates such as {date(2024, 5, 31).strftime(self.spelling or '%Y-%m-%d')}"
        if isinstance(column, Labels):
            example = column.levels[0] if column.levels else ""
            raise wrong_kind(f"text such as {example!r}", self.name, expected)
        if not np.isnan(column).all():
            raise wrong_kind("numbers", self.name, expected)
        return column


def learn_moment(column: Days, name: str, sample_weight: Float | None = None) -> Moment:
    """The variable of a training column."""
    days = column.days
    present = ~np.isnan(days)
    first = _dates(days[present].min()).astype("datetime64[Y]")
    start = float(first.astype("datetime64[D]").astype(np.int64))
    trend = learn_number(days - start, f"{name}: days since {first}-01-01", sample_weight)
    span = trend.high - trend.low
    cycles, weekday = [], None
    if len(np.unique(_months(days[present]))) == len(MONTHS):
        cycles.append(_cycle(name, "year"))
    if span >= SHORTEST_FOR_HOURS and np.ptp(days[present] % 1) >= HOUR:
        cycles.append(_cycle(name, "day"))
    if span >= SHORTEST_FOR_WEEKDAYS and _n_month_days(days[present]) >= len(WEEKDAYS):
        weekday = _learn_weekday(days[present], name, sample_weight, present)
    return Moment(name, start, trend, tuple(cycles), weekday)


def _cycle(name: str, clock: str) -> Cycle:
    return Cycle(f"{name}: {CLOCKS[clock].word}", clock)


def _learn_weekday(
    days: NDArray[np.float64],
    name: str,
    sample_weight: Float | None,
    present: NDArray[np.bool_],
) -> Category | None:
    """Weekdays in their order, if they differ; rows without a date have none."""
    weight = None if sample_weight is None else sample_weight[present]
    found = learn_category(_weekdays(days), f"{name}: weekday", weight)
    shares = dict(zip(found.levels, found.shares, strict=True))
    levels = tuple(level for level in (*WEEKDAYS, *found.levels[-1:]) if level in shares)
    levels = tuple(dict.fromkeys(levels))
    if len(levels) < 2:
        return None
    return replace(found, levels=levels, shares=tuple(shares[level] for level in levels))


def _weekday_covariates(weekday: Category, days: NDArray[np.float64], remarks: list[str]) -> Float:
    missing = np.isnan(days)
    covariates = np.empty((len(days), len(weekday.covariates)))
    covariates[~missing] = weekday.encode(_weekdays(days[~missing]), remarks)
    covariates[missing] = weekday.choices()[1][-1]
    return covariates


def _weekday_expression(
    weekday: Category, number: int, missing: str, days: Expression
) -> Expression:
    """A covariate of the weekday as a formula of days since 1970."""
    counted = call("floor", days) + THURSDAY
    place = counted - len(WEEKDAYS) * call("floor", counted / len(WEEKDAYS))
    found: Expression = Constant(weekday.value_of(WEEKDAYS[-1], number))
    for k, name in reversed(list(enumerate(WEEKDAYS[:-1]))):
        found = where(greater(k + 0.5, place), weekday.value_of(name, number), found)
    absent = np.nan if missing == "error" else float(weekday.choices()[1][-1, number])
    return where(call("missing", days), absent, found)


def _day_of_year(day: Expression) -> Expression:
    """Days since 1 January of the same year, from whole days since 1970.

    Years of this calculation begin in March, and come in eras of 400.
    """

    def whole(value: Expression, divisor: float) -> Expression:
        return call("floor", value / divisor)

    of_era = (day + 719468.0) - 146097.0 * whole(day + 719468.0, 146097.0)
    year = whole(
        of_era - whole(of_era, 1460.0) + whole(of_era, 36524.0) - whole(of_era, 146096.0), 365.0
    )
    of_year = of_era - (365.0 * year + whole(year, 4.0) - whole(year, 100.0))
    # Of the years of an era those that 4 divides are leap years, but of hundreds only the first.
    fourth, hundredth = year - 4.0 * whole(year, 4.0), year - 100.0 * whole(year, 100.0)
    leap = where(greater(fourth, 0.5), 0.0, where(greater(hundredth, 0.5), 1.0, _first(year)))
    return where(greater(of_year, 305.5), of_year - 306.0, of_year + 59.0 + leap)


def _first(year: Expression) -> Expression:
    return where(greater(0.5, year), 1.0, 0.0)


def _weekdays(days: NDArray[np.float64]) -> Labels:
    number = (np.floor(days).astype(np.int64) + THURSDAY) % len(WEEKDAYS)
    return labelled(np.array(WEEKDAYS, dtype=object)[number], declared=True)


def _months(days: NDArray[np.float64]) -> NDArray[np.int64]:
    return _dates(days).astype("datetime64[M]").astype(np.int64) % 12


def _n_month_days(days: NDArray[np.float64]) -> int:
    """How many days of the month occur; a few only in monthly data, whose weekdays mean nothing."""
    dates = _dates(days)
    return len(np.unique(dates - dates.astype("datetime64[M]").astype("datetime64[D]")))


def _share_of_year(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of its year has gone by, from 0 to 1."""
    year = _dates(np.where(np.isnan(days), 0.0, days)).astype("datetime64[Y]")
    return (days - year.astype("datetime64[D]").astype(np.int64)) / DAYS_IN_YEAR


def _dates(days: Any) -> NDArray[np.datetime64]:
    return np.floor(days).astype(np.int64).astype("datetime64[D]")
