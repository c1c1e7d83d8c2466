"""A comparison as one page of HTML that needs no other file."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from islab.evaluate.comparison.result import Comparison

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22364d; max-width: 75rem; margin: 2rem auto;
  padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #dfe4ea; }
tbody th { text-align: left; font-weight: 600; vertical-align: top; }
svg { max-width: 100%; height: auto; }
"""
WORDS = (
    "Median (least, greatest) over the same random splits for all methods. Where a method has "
    "both, the full model averages over its posterior and the median model is its sparse network."
)


def comparison_page(comparison: Comparison) -> str:
    """The page's text."""
    table = comparison.table()
    table.columns = [name.replace("_", " ") for name in table.columns]
    parts = [
        f"<h1>{len(comparison.methods)} methods, {escape(comparison.task)}</h1>",
        f"<p>{WORDS}</p>",
        _wide(table.to_html(escape=True, border=0)),
    ]
    failures = comparison.failures()
    if failures:
        lines = [f"<li><b>{escape(name)}</b> {escape(why)}</li>" for name, why in failures.items()]
        parts += ["<h2>What failed</h2>", f"<ul>{''.join(lines)}</ul>"]
    parts.append(_picture(comparison))
    inclusion = comparison.inclusion()
    if not inclusion.empty:
        parts += [
            "<h2>Selected columns</h2>",
            "<p>Share of the splits in which a method uses a column.</p>",
            _wide(inclusion.to_html(escape=True, border=0, float_format="{:.2f}".format)),
        ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>Comparison</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _wide(table: str) -> str:
    return f'<div class="wide">{table}</div>'


def _picture(comparison: Comparison) -> str:
    """The plot as SVG; empty where there is no matplotlib or nothing to draw."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure, file = Figure(figsize=(6.4, 4.4), layout="constrained"), io.StringIO()
    try:
        comparison.plot(ax=figure.subplots())
    except ValueError:
        return ""
    with rc_context({"svg.hashsalt": "islab"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return "<h2>Score and size</h2>\n" + text[text.index("<svg") :]
