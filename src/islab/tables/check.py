"""A look at a table before a fit: everything that deserves a second thought, in one list."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core.arrays import Float
from islab.core.names import shortened
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder
from islab.tables.left_out import LeftOut
from islab.tables.numbers import MISSING_LEVEL, Number

if TYPE_CHECKING:
    import pandas as pd

NEAR_COPY = 0.99
LEAKS = 0.999
MISSING_SHARE = 0.05
FAR = 100.0
MOST_CORRELATED = 2000
NAMES_SHOWN = 5


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
        head = f"{self.n_rows} rows, {self.n_columns} columns, {len(self.findings)} findings"
        lines = [f"{shortened(f.column, 30)}: {f.finding} ({f.detail})" for f in self.findings]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        head = escape(str(self).partition("\n")[0])
        return f"<p>{head}</p>{self.to_frame().to_html(index=False, escape=True)}"


def check(X: Any, y: Any = None) -> TableCheck:
    """What deserves a second thought in a table, before a model is fitted.

    Columns that a fit leaves out, constants, copies and near copies, rare levels, missing values,
    numbers far from the others and, with ``y``, columns that alone tell the target.

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
    import narwhals as nw

    table = X if nw.dependencies.is_into_dataframe(X) else np.asarray(X, dtype=float)
    if isinstance(table, np.ndarray):
        names = [f"x{number}" for number in range(table.shape[1])]
    else:
        names = [str(name) for name in nw.from_native(table, eager_only=True).columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the list below says it all
        encoder, covariates = ColumnEncoder.learn(table, names)
    found = [
        *_single_columns(encoder, covariates),
        *_copies(encoder, covariates),
        *([] if y is None else _leaks(encoder, covariates, np.asarray(y))),
    ]
    return TableCheck(tuple(found), len(covariates), len(names))


def _single_columns(encoder: ColumnEncoder, covariates: Float) -> list[Finding]:
    """What is seen in a column without the others."""
    found = []
    for place, variable in enumerate(encoder.variables):
        own = covariates[:, encoder.owner_index == place]
        if isinstance(variable, LeftOut):
            found.append(Finding(variable.name, "left out", variable.reason))
        elif not any(variable.varies):
            detail = "nothing can be learned from it"
            found.append(Finding(variable.name, "constant", detail))
        elif isinstance(variable, Category):
            found += _of_category(variable)
        elif isinstance(variable, Number):
            found += _of_number(variable, own)
    return found


def _of_category(variable: Category) -> list[Finding]:
    found = []
    if variable.n_pooled:
        shown = ", ".join(shortened(level, 30) for level in variable.pooled[:NAMES_SHOWN])
        more = variable.n_pooled - NAMES_SHOWN
        detail = f"pooled: {shown}" + (f" and {more} more" if more > 0 else "")
        found.append(Finding(variable.name, "rare levels", detail))
    missing = dict(zip(variable.levels, variable.shares, strict=True)).get(MISSING_LEVEL, 0.0)
    if missing >= MISSING_SHARE:
        found.append(Finding(variable.name, "missing", f"{missing:.0%} of the rows"))
    return found


def _of_number(variable: Number, own: Float) -> list[Finding]:
    found = []
    missing = float(own[:, 1].mean()) if variable.indicator else 0.0
    if missing >= MISSING_SHARE:
        found.append(Finding(variable.name, "missing", f"{missing:.0%} of the rows"))
    distance = np.abs(own[:, 0] - np.median(own[:, 0]))
    usual = float(np.quantile(distance, 0.95))
    if usual > 0 and distance.max() > FAR * usual:
        value = own[distance.argmax(), 0]
        detail = f"{value:.6g} is {distance.max() / usual:.0f} times as far from the median as most"
        found.append(Finding(variable.name, "outlier", detail))
    return found


def _copies(encoder: ColumnEncoder, covariates: Float) -> list[Finding]:
    """Numbers that say the same as an earlier one, exactly or nearly."""
    owners, names = encoder.owners, encoder.names
    plain = [k for k, (own, name) in enumerate(zip(owners, names, strict=True)) if own == name]
    plain = [k for k in plain if encoder.varies[k]][:MOST_CORRELATED]
    if len(plain) < 2:
        return []
    correlation = np.atleast_2d(np.corrcoef(covariates[:, plain], rowvar=False))
    strongest = np.abs(np.tril(correlation, -1))
    found = []
    for later in np.flatnonzero(strongest.max(axis=1) >= NEAR_COPY):
        earlier = int(strongest[later].argmax())
        same = (covariates[:, plain[later]] == covariates[:, plain[earlier]]).all()
        detail = f"of {names[plain[earlier]]!r}, correlation {correlation[later, earlier]:.4f}"
        kind = "duplicate" if same else "near copy"
        found.append(Finding(names[plain[later]], kind, detail))
    return found


def _leaks(encoder: ColumnEncoder, covariates: Float, y: Any) -> list[Finding]:
    """Covariates whose ranks alone are almost those of the target, or of one of its classes."""
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(y.dtype) and len(np.unique(y)) > 2
    targets = y[:, None].astype(float) if numeric else pd.get_dummies(pd.Series(y)).to_numpy(float)
    found = []
    ranks = pd.DataFrame(covariates).rank().to_numpy()
    for k in np.flatnonzero(encoder.varies):
        strength = max(_agreement(ranks[:, k], target, numeric) for target in targets.T)
        if strength >= LEAKS:
            detail = f"{encoder.names[k]!r} alone tells the target; is it known beforehand?"
            found.append(Finding(encoder.owners[k], "leakage suspect", detail))
    return found


def _agreement(ranks: Float, target: Float, numeric: bool) -> float:
    """Absolute rank correlation with a number, or distance of the AUC of a class from one half."""
    from scipy.stats import rankdata

    if numeric:
        return abs(float(np.corrcoef(ranks, rankdata(target))[0, 1]))
    n, n_in = len(target), float(target.sum())
    if n_in in (0, n):
        return 0.0
    auc = (ranks @ target - n_in * (n_in + 1) / 2) / (n_in * (n - n_in))
    return 2 * abs(float(auc) - 0.5)
