"""One table that a reader takes in within a minute, from what the benchmarks have stored.

``python -m experiments.benchmarks.overview`` prints the page of the documentation: readable methods
and black boxes on the tables of ``many_tables``, UCI in a line, where we lose, how to repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.benchmarks import many_tables, uci
from islab.evaluate import Comparison, Ranking, rank_methods
from islab.evaluate.runner import Record, read_cells

READABLE = ("islab readable", "ridge", "lasso", "gam", "ebm")
TITLES = {
    "islab": "**islab**, posterior average",
    "islab readable": "**islab**, readable network",
    "ridge": "linear or logistic, ridge",
    "lasso": "linear or logistic, lasso",
    "gam": "splines (pyGAM)",
    "ebm": "EBM",
    "boosting": "boosting",
    "boosting-tuned": "boosting, tuned",
    "forest": "random forest",
    "gp": "Gaussian process",
    "bart": "BART",
    "ensemble": "deep ensemble",
    "lassonet": "LassoNet",
}
CLEAR_LOSS = 0.02  # nats


def with_readable(found: dict[str, Comparison]) -> dict[str, Comparison]:
    """The same, the readable network as a method of its own."""
    more = {}
    for name, comparison in found.items():
        records = list(comparison.records)
        for record in comparison.records:
            if "median" in record["models"]:
                own = {"full": record["models"]["median"]}
                records.append({**record, "method": "islab readable", "models": own})
        more[name] = Comparison(tuple(records), comparison.task, comparison.columns)
    return more


def of_kind(records: list[Record], classes: bool) -> dict[str, Comparison]:
    """Comparisons on tables where islab has a result."""
    found = many_tables.comparisons(records, classes)
    return with_readable({name: each for name, each in found.items() if "islab" in each.methods})


def facts(found: dict[str, Comparison], ranking: Ranking, classes: bool) -> pd.DataFrame:
    """Of methods with a result on all tables: rank, NLL above ridge, calibration, size, time."""
    frames = [each.of_model().assign(table=name) for name, each in found.items()]
    means = pd.concat(frames).groupby(["method", "table"]).mean(numeric_only=True)
    cpu = pd.DataFrame(
        [
            {"method": r["method"], "table": name, "cpu": r["cpu_seconds"]}
            for name, each in found.items()
            for r in each.records
        ]
    ).groupby(["method", "table"])
    means["cpu"] = cpu["cpu"].mean()
    if not classes:
        means["coverage"] = (means["coverage"] - 0.9).abs()
    rows = {}
    for method in ranking.complete:
        own = means.loc[method]
        rows[method] = {
            "rank": ranking.mean_ranks()[method],
            "nll": (own["nll"] - means.loc["ridge"]["nll"]).median(),
            "calibration": own["ece" if classes else "coverage"].mean(),
            "weights": own["used_weights"].median(),
            "cpu": own["cpu"].median(),
        }
    return pd.DataFrame(rows).T


def page(records: list[Record], uci_records: list[Record]) -> Iterator[str]:
    """The page, as Markdown."""
    found = {classes: of_kind(records, classes) for classes in (True, False)}
    rankings = {kind: rank_methods(each) for kind, each in found.items() if each}
    tables = {kind: facts(found[kind], ranking, kind) for kind, ranking in rankings.items()}
    splits = {
        len({r["seed"] for r in each.records if r["method"] == "islab"})
        for kind in rankings
        for each in found[kind].values()
    }
    yield INTRODUCTION.format(
        n_classes=len(found[True]),
        n_numbers=len(found[False]),
        splits=f"{min(splits)} to {max(splits)} splits" if len(splits) > 1 else _splits(splits),
    )
    yield (
        "| method | one can read it | rank: classes | numbers | NLL above ridge: classes | numbers "
        "| ECE | off 90 % coverage | weights | CPU s |"
    )
    yield "| --- | --- |" + " --- |" * 8
    everyone = pd.concat([table["rank"] for table in tables.values()], axis=1).mean(axis=1)
    for method in everyone.sort_values().index:
        yield _row(method, tables)
    widths = {k: r.critical_difference() for k, r in rankings.items() if len(r.complete) > 1}
    names = {True: "classes", False: "numbers"}
    limits = " and ".join(f"{w:.2f} ({names[k]})" for k, w in widths.items())
    yield f"\nMean ranks of two methods differ by chance up to {limits} (Nemenyi, 95 %).\n"
    yield from _losses(rankings)
    if uci_records:
        yield _uci(uci_records)
    yield END


def _splits(splits: set[int]) -> str:
    number = next(iter(splits))
    return "one split" if number == 1 else f"{number} splits"


def _row(method: str, tables: dict[bool, pd.DataFrame]) -> str:
    def cell(kind: bool, name: str, form: str) -> str:
        table = tables.get(kind)
        known = table is not None and method in table.index and not np.isnan(table[name][method])
        return form.format(table[name][method]) if known and table is not None else ""

    cells = [
        TITLES[method],
        "yes" if method in READABLE else "no",
        cell(True, "rank", "{:.1f}"),
        cell(False, "rank", "{:.1f}"),
        cell(True, "nll", "{:+.3f}"),
        cell(False, "nll", "{:+.3f}"),
        cell(True, "calibration", "{:.3f}"),
        cell(False, "calibration", "{:.1%}"),
        " / ".join(filter(None, (cell(kind, "weights", "{:,.0f}") for kind in (True, False)))),
        " / ".join(filter(None, (cell(kind, "cpu", "{:.1f}") for kind in (True, False)))),
    ]
    return f"| {' | '.join(cells)} |"


def _losses(rankings: dict[bool, Ranking]) -> Iterator[str]:
    """Tables on which the posterior average is clearly behind the best of the others."""
    yield "## Where it loses\n"
    lines = []
    for ranking in rankings.values():
        others = ranking.scores.drop(columns=["islab", "islab readable"], errors="ignore")
        behind = ranking.scores["islab"] - others.min(axis=1)
        for name in behind[behind > CLEAR_LOSS].sort_values(ascending=False).index:
            best = TITLES[str(others.loc[name].idxmin())]
            lines.append(f"{name} ({behind[name]:.3f}, {best})")
    n_tables = sum(len(ranking.scores) for ranking in rankings.values())
    yield (
        f"On {len(lines)} of {n_tables} tables some other method has an NLL that is lower by more "
        f"than {CLEAR_LOSS:g} than that of the posterior average; in brackets by how much, and "
        f"which: {'; '.join(lines) or 'none'}.\n"
    )


def _uci(records: list[Record]) -> str:
    found = uci.means(records)
    sets = [name for name in uci.SETS if (name, "full") in found.index]
    ours, small = found["ll"].xs("full", level=1), found["weights"].xs("median", level=1)
    numbers = "; ".join(f"{name} {ours[name]:.2f} ({small[name]:.0f})" for name in sets)
    return (
        "## UCI regression\n\nLog likelihood (weights of the readable network): "
        f"{numbers}. [Beside published numbers](uci.md).\n"
    )


INTRODUCTION = """\
# Overview

Readable methods and black boxes on {n_classes} tables with classes and {n_numbers} with numbers,
the smallest of thirty each, which served to choose nothing: packages of R, KEEL and others, at most
2,000 rows, {splits} with a quarter held out. All methods by default, the same splits; those
that have no result on some table are left out.

- *rank*: mean rank by NLL, 1 is best. *NLL above ridge*: median over tables, in nats a row, targets
  standardised; below 0 is better.
- *ECE*: expected calibration error of classes. *off 90 % coverage*: distance of intervals from it.
- *weights*: median over tables, classes / numbers; of the posterior average those of one draw.
  *CPU s*: of a fit, likewise. Regressors without a spread of their own are fitted six times, as
  theirs is found by cross-validation.

![NLL against used weights](accuracy-size.svg)
"""
END = """## Repeat it

```console
$ python -m experiments.benchmarks.many_tables
$ python -m experiments.benchmarks.many_tables --summary --picture accuracy-size.svg
$ python -m experiments.benchmarks.overview
```"""


def main() -> None:
    records = list(read_cells(many_tables.FILE).values())
    print("\n".join(page(records, list(read_cells(uci.FILE).values()))))


if __name__ == "__main__":
    main()
