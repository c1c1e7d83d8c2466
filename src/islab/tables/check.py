"""A look at a table before a fit: everything that deserves a second thought, in one list."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.names import counted, shortened
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder, Variable, learn_columns
from islab.tables.dates import Moment
from islab.tables.frames import is_frame, plain_table
from islab.tables.leaks import leaks
from islab.tables.left_out import NAME_OF_ID, LeftOut
from islab.tables.numbers import MISSING_LEVEL, NOTHING_TO_LEARN, Number

if TYPE_CHECKING:
    import pandas as pd

NEAR_COPY = 0.999
MISSING_SHARE = 0.05
FAR = 100.0
MOST_CORRELATED = 2000
LEAK = "leakage suspect"
# Findings about the data rather than about how columns are read.
ABOUT_DATA = (LEAK, "duplicate", "near copy", "outlier", "group id")


@dataclass(frozen=True)
class Finding:
    """One thing about one column, and what a fit makes of it."""

    column: str
    finding: str
    detail: str


@dataclass(frozen=True)
class TableCheck:
    """All findings of :func:`check`."""

    findings: tuple[Finding, ...]
    n_rows: int
    n_columns: int

    def to_frame(self) -> pd.DataFrame:
        """A line for each finding: column, finding, detail."""
        import pandas as pd

        lines = [(f.column, f.finding, f.detail) for f in self.findings]
        return pd.DataFrame(lines, columns=["column", "finding", "detail"])

    def __str__(self) -> str:
        size = counted(self.n_rows, "row"), counted(self.n_columns, "column")
        head = ", ".join([*size, counted(len(self.findings), "finding")])
        lines = [f"{shortened(f.column, 30)}: {f.finding} ({f.detail})" for f in self.findings]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        head = escape(str(self).partition("\n")[0])
        return f"<p>{head}</p>{self.to_frame().to_html(index=False, escape=True)}"


def check(X: Any, y: Any = None) -> TableCheck:
    """What deserves a second thought in a table, before a model is fitted.

    Columns that cannot be used or that a fit leaves out, constants, dates, copies and near copies,
    rare levels, missing values, numbers far from the others and, with ``y``, columns that alone
    tell the target. A fitted model has what it made of each column in ``columns_.to_frame()``.

    Parameters
    ----------
    X : DataFrame or (rows, columns)
    y : (rows,), optional
        The target.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"id": range(40), "size": [1.5, 2.5] * 20, "unit": ["m"] * 40})
    >>> print(check(X))
    40 rows, 3 columns, 2 findings
    id: left out (counts the rows)
    unit: constant (nothing can be learned from it)
    """
    table, names = plain_table(X)
    learned = learn_columns(table, names)
    encoder, covariates = ColumnEncoder(tuple(learned.variables), "impute"), learned.covariates
    targets = [] if y is None else _targets(y, len(covariates))
    found = [
        *(Finding(name, "cannot be used", words) for name, words in learned.problems.items()),
        *(Finding(name, "words", words) for name, words in learned.remarks.items()),
        *_single_columns(encoder, covariates, learned.empty),
        *_copies(encoder, covariates),
        *(finding for target in targets for finding in _suspects(encoder, covariates, target)),
    ]
    return TableCheck(tuple(found), len(covariates), len(names))


def _targets(y: Any, n_rows: int) -> list[NDArray]:
    """Each column of a target."""
    if is_frame(y):
        y = nw.from_native(y, eager_only=True).to_numpy()
    values = np.asarray(y)
    if len(values) != n_rows:
        raise ValueError(
            f"Got y of length {len(values)} for {n_rows} rows, expected one target for each."
        )
    return list(values.reshape(n_rows, -1).T)


def _single_columns(encoder: ColumnEncoder, covariates: Float, empty: list[str]) -> list[Finding]:
    """What is seen in a column without the others."""
    found = []
    for place, variable in enumerate(encoder.variables):
        own = covariates[:, encoder.owner_index == place]
        if isinstance(variable, LeftOut):
            found.append(Finding(variable.name, "left out", variable.note))
            continue
        if variable.name in empty:
            found.append(Finding(variable.name, "empty", "not a single value"))
            continue
        if not any(variable.varies):
            found.append(Finding(variable.name, "constant", NOTHING_TO_LEARN))
            continue
        if isinstance(variable, Moment):
            found.append(Finding(variable.name, "date", variable.note))
        if isinstance(variable, Category) and variable.n_pooled:
            found.append(Finding(variable.name, "rare levels", variable.note))
        missing = _missing_share(variable, own)
        if missing >= MISSING_SHARE:
            found.append(Finding(variable.name, "missing", f"{missing:.0%} of the rows"))
        if isinstance(variable, Number):
            found += [*_group_id(variable, own[:, 0]), *_outlier(variable, own[:, 0])]
    return found


def _missing_share(variable: Variable, own: Float) -> float:
    """Of the rows, as far as a covariate marks them."""
    marks = (f"{variable.name} {MISSING_LEVEL}", f"{variable.name}={MISSING_LEVEL}")
    marked = [k for k, name in enumerate(variable.covariates) if name in marks]
    return float(own[:, marked[0]].mean()) if marked else 0.0


def _group_id(variable: Number, values: Float) -> list[Finding]:
    """Whole numbers that are called an id but that rows share."""
    if not NAME_OF_ID.search(variable.name) or np.mod(values, 1).any():
        return []
    detail = "read as a number; if it names groups, declare it categorical or drop it"
    return [Finding(variable.name, "group id", detail)]


def _outlier(variable: Number, values: Float) -> list[Finding]:
    """A number much farther from the median than nearly all others."""
    if variable.tails is not None:
        values = variable.tails.restore(values)
    distance = np.abs(values - np.median(values))
    usual = float(np.quantile(distance, 0.95))
    if not usual > 0 or distance.max() <= FAR * usual:
        return []
    value = float(values[distance.argmax()])
    detail = f"{value:.6g} is {distance.max() / usual:.3g} times as far from the median as most"
    return [Finding(variable.name, "outlier", detail)]


def _copies(encoder: ColumnEncoder, covariates: Float) -> list[Finding]:
    """Columns that say the same as an earlier one: equal, or numbers that are nearly so."""
    found: list[Finding] = []
    seen: dict[bytes, str] = {}
    for place, variable in enumerate(encoder.variables):
        own = covariates[:, encoder.owner_index == place]
        if any(variable.varies):
            earlier = seen.setdefault(own.tobytes(), variable.name)
            if earlier != variable.name:
                found.append(Finding(variable.name, "duplicate", f"of {earlier!r}"))
    return found + _near_copies(encoder, covariates, {finding.column for finding in found})


def _near_copies(encoder: ColumnEncoder, covariates: Float, known: set[str]) -> list[Finding]:
    """Numbers whose correlation with an earlier one is almost perfect."""
    owners, names = encoder.owners, encoder.names
    plain = [k for k, (own, name) in enumerate(zip(owners, names, strict=True)) if own == name]
    plain = [k for k in plain if encoder.varies[k] and owners[k] not in known][:MOST_CORRELATED]
    if len(plain) < 2:
        return []
    correlation = np.atleast_2d(np.corrcoef(covariates[:, plain], rowvar=False))
    strongest = np.abs(np.tril(correlation, -1))
    found = []
    for later in np.flatnonzero(strongest.max(axis=1) >= NEAR_COPY):
        earlier = int(strongest[later].argmax())
        detail = f"of {names[plain[earlier]]!r}, correlation {correlation[later, earlier]:.4f}"
        found.append(Finding(names[plain[later]], "near copy", detail))
    return found


def _suspects(encoder: ColumnEncoder, covariates: Float, y: NDArray) -> list[Finding]:
    """Columns that alone tell a target."""
    found = leaks(encoder.variables, covariates, y)
    detail = "{!r} alone tells the target; is it known beforehand?"
    return [Finding(name, LEAK, detail.format(covariate)) for name, covariate in found.items()]
