"""Tables of results, for the terminal and for Markdown."""

from __future__ import annotations

from math import isnan
from statistics import median

from experiments.paper.paper import Published
from experiments.paper.settings import EVERY_METHOD, RECIPES, SETTINGS, family
from experiments.paper.verdict import (
    Entry,
    Groups,
    Metric,
    entry,
    grouped,
    paper_entry,
    tables_of,
)
from islab.core.names import counted
from islab.evaluate.runner import Record

SIGNS = {
    **{"better": "▲", "worse": "▼", "same": "=", "shallower": "↓", "deeper": "↑"},
    **{"untested": "·", "": ""},
}
KEY = (
    "Median (least, greatest) over seeds. ▲ better than the paper's, ▼ worse, = not told apart "
    "at 5 %, · one seed and no test; ↓ shallower, ↑ deeper. p-values of the rank test; ≈ where the "
    "paper's seeds are known by median, least and greatest only."
)


def text_table(dataset: str, records: list[Record], quick: bool = False) -> str:
    """For each method and recipe our numbers, the paper's, and which are better.

    Parameters
    ----------
    dataset : str
    records : list of dict
    quick : bool
        Whether they are of a few rows and epochs, which are not to be judged.
    """
    blocks = []
    for (method, recipe), runs in _in_order(grouped(records)):
        seconds = median(run["seconds"] for run in runs)
        effort = f"{counted(len(runs), 'seed')}, {seconds:.1f} s each"
        title = f"{dataset}, {method}, {recipe} recipe{_cut(runs[0], quick)}: {effort}"
        lines = [title, f"  {'':<24}{'ours':<24}{'paper':<24}"]
        for metrics in tables_of(dataset).values():
            for metric in metrics:
                found = entry(runs, metric)
                lines.append(
                    f"  {metric.title:<24}{found.ours!s:<24}{_printed(found.paper):<24}"
                    f"{'' if quick else judged(found)}".rstrip()
                )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _cut(run: Record, quick: bool) -> str:
    """In what a run falls short of its recipe."""
    if quick:
        return " on a few rows and epochs"
    known = SETTINGS.get((family(run["dataset"]), run["method"]))
    if run["settings"] == "paper" and known and run.get("epochs", known.epochs) < known.epochs:
        return f", {run['epochs']:,} of {known.epochs:,} epochs"
    return ""


def markdown_tables(dataset: str, records: list[Record]) -> str:
    """The paper's tables for this data set, with our rows under the paper's."""
    groups = grouped(records)
    parts = []
    for heading, metrics in tables_of(dataset).items():
        head = ["method", "settings", *(metric.title for metric in metrics)]
        lines = [f"**{heading}**", "", markdown_row(head), markdown_row(["---"] * len(head))]
        for method in EVERY_METHOD:
            lines += _method_rows(dataset, method, groups, metrics)
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, _effort(groups)])


def _method_rows(dataset: str, method: str, groups: Groups, metrics: list[Metric]) -> list[str]:
    printed = [_printed(paper_entry(dataset, method, metric)) for metric in metrics]
    rows = [markdown_row([method, "the paper", *printed])] if any(printed) else []
    for recipe in RECIPES:
        runs = groups.get((method, recipe))
        if runs:
            cells = [_cell(entry(runs, metric)) for metric in metrics]
            rows.append(markdown_row([method, f"ours, {recipe}", *cells]))
    return rows


def _effort(groups: Groups) -> str:
    """How many seeds and how long."""
    parts = []
    for (method, recipe), runs in _in_order(groups):
        seconds = median(run["seconds"] for run in runs)
        epochs = f", {runs[0]['epochs']} epochs" if "epochs" in runs[0] else ""
        parts.append(f"{method}, {recipe}: {counted(len(runs), 'seed')}, {seconds:.1f} s{epochs}")
    return f"Seeds, and processor time of one fit{_where(groups)}: " + "; ".join(parts) + "."


def _where(groups: Groups) -> str:
    """On which processors."""
    machines = [run["machine"] for runs in groups.values() for run in runs if "machine" in run]
    kinds = dict.fromkeys(f"one core of {m['cores']} ({m['cpu']})" for m in machines)
    return f" on {' or '.join(kinds)}" if kinds else ""


def _in_order(groups: Groups) -> list[tuple[tuple[str, str], list[Record]]]:
    def place(item: tuple[tuple[str, str], list[Record]]) -> tuple[int, int]:
        method, recipe = item[0]
        return EVERY_METHOD.index(method), RECIPES.index(recipe)

    return sorted(groups.items(), key=place)


def _cell(found: Entry) -> str:
    ours = str(found.ours)
    if ours and found.metric.is_rate:
        ours = f"{found.ours.median:.0f} %"
    return f"{ours} {SIGNS[found.verdict]} {_p_value(found)}".rstrip()


def judged(found: Entry) -> str:
    """The verdict in a word, with its p-value."""
    return f"{found.verdict} {_p_value(found)}".rstrip()


def _p_value(found: Entry) -> str:
    if isnan(found.p_value):
        return ""
    known = found.seeds is not None or found.metric.is_rate
    number = f"{found.p_value:.3f}" if found.p_value >= 0.001 else "<.001"
    return f"{'p ' if known else 'p≈'}{number.removeprefix('0')}"


def _printed(paper: Published | None) -> str:
    if paper is None:
        return ""
    if paper.metric.startswith("inclusion "):
        return f"{paper.median:.0f} %"
    middle, low, high = (
        f"{value:.{paper.decimals}f}" for value in (paper.median, paper.low, paper.high)
    )
    return f"{middle} ({low}, {high})" if paper.has_range else middle


def markdown_row(cells: list[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"
