"""Intervals of counts in SQL: shares of all counts are added up until they reach the level."""

from __future__ import annotations

from math import sqrt

from islab.core.expressions import Expression, Symbol
from islab.export.portable import Portable
from islab.export.sql_language import DRAW, ROW, Query


def share_columns(
    content: Portable, names: list[str], noise: list[tuple[Expression, ...]]
) -> dict[str, Expression]:
    """Columns of each draw from which :func:`add_count_ends` finds the shares of counts.

    ``o``, the logarithm of the share of 0; ``b``, what each step adds to it; ``e``, the size, and
    ``g``, the part of the targets that are counts, where a likelihood has them.
    """
    found: dict[str, Expression] = {}
    for number, (name, own) in enumerate(zip(names, noise, strict=True)):
        shares = content.family.count_shares(Symbol(name), own)
        if shares is None:
            return {}
        found |= {f"o{number}": shares.start, f"b{number}": shares.ratio}
        if shares.size is not None:
            found[f"e{number}"] = shares.size
        if shares.part is not None:
            found[f"g{number}"] = shares.part
    return found


def add_count_ends(
    query: Query, drawn: str, columns: list[str], numbers: range, level: float
) -> list[str]:
    """Tables that hold the ends of each target's interval, (row, lower, upper); their names.

    No draw has more than the upper share above its mean and so many standard deviations
    (Cantelli's inequality), so that no larger count need be looked at.
    """
    shares = {"lower": (1 - level) / 2, "upper": (1 + level) / 2}
    reach = sqrt(shares["upper"] / (1 - shares["upper"]))
    tops = [
        f"MAX(p{n} + {reach!r} * SQRT(v{n})) OVER (PARTITION BY {ROW}) + 1e0 AS t{n}"
        for n in numbers
    ]
    query.add("islab_topped", f"SELECT *, {', '.join(tops)} FROM {drawn}")
    most = " UNION ALL ".join(f"SELECT MAX(t{n}) AS most FROM islab_topped" for n in numbers)
    query.add("islab_most", f"SELECT MAX(most) AS most FROM ({most}) AS each_most")
    query.parts.append(
        "islab_counts(k) AS (SELECT 0 UNION ALL SELECT c.k + 1 FROM islab_counts AS c "
        "CROSS JOIN islab_most AS m WHERE c.k < m.most)"
    )
    found = []
    for n in numbers:
        sized, parted = f"e{n}" in columns, f"g{n}" in columns
        step = "-LN(CASE WHEN k = 0 THEN 1e0 ELSE k END)"
        own, source, window = "", "islab_counts", "ORDER BY k"
        if sized:
            # A size belongs to a draw, whatever the row.
            query.add(
                f"islab_sizes{n}",
                f"SELECT {DRAW}, MIN(e{n}) AS size FROM islab_topped GROUP BY {DRAW}",
            )
            step = f"LN(CASE WHEN k = 0 THEN 1e0 ELSE k - 1 + size END) {step}"
            own, source = f"{DRAW}, ", f"islab_sizes{n} CROSS JOIN islab_counts"
            window = f"PARTITION BY {DRAW} ORDER BY k"
        sums = f"SELECT {own}k, SUM({step}) OVER ({window}) AS steps FROM {source}"
        query.add(f"islab_steps{n}", sums)
        share = f"EXP(d.o{n} + s.k * d.b{n} + s.steps)"
        if parted:
            share = f"d.g{n} * {share} + CASE WHEN s.k = 0 THEN 1e0 - d.g{n} ELSE 0e0 END"
        same = f"s.{DRAW} = d.{DRAW} AND " if sized else ""
        query.add(
            f"islab_shares{n}",
            f"SELECT d.{ROW}, s.k, AVG({share}) AS share FROM islab_topped AS d "
            f"JOIN islab_steps{n} AS s ON {same}s.k <= d.t{n} GROUP BY d.{ROW}, s.k",
        )
        query.add(
            f"islab_reached{n}",
            f"SELECT {ROW}, k, SUM(share) OVER (PARTITION BY {ROW} ORDER BY k) AS reached "
            f"FROM islab_shares{n}",
        )
        ends = ", ".join(
            f"CAST(MIN(CASE WHEN reached >= {share!r} THEN k END) AS DOUBLE PRECISION) AS {end}{n}"
            for end, share in shares.items()
        )
        query.add(f"islab_ends{n}", f"SELECT {ROW}, {ends} FROM islab_reached{n} GROUP BY {ROW}")
        found.append(f"islab_ends{n}")
    return found
