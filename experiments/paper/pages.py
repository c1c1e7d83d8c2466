"""Puts stored results into Markdown pages, between marks, and leaves what people wrote alone.

A page holds ``<!-- results: wbc -->`` and ``<!-- end -->``; what stands between them is replaced
by the tables of that data set or study.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import median

from experiments.paper import initialisation
from experiments.paper.cells import Results
from experiments.paper.settings import DATASETS, EVERY_METHOD, IMAGES, RECIPES
from experiments.paper.tables import KEY, markdown_row, markdown_tables
from experiments.paper.verdict import NEITHER, entry, grouped, tables_of
from islab.evaluate.runner import Record
from islab.io.files import replacing

OPENING = "<!-- results: "
MARKED = re.compile(
    rf"({OPENING}(?P<name>[\w.-]+) -->\n)(?:(?!{OPENING}).)*?(<!-- end -->)", re.DOTALL
)
NOTHING = "Nothing has been run yet."
VERDICTS = ("better", "same", "worse", "untested")


def write_pages(results: str | Path, folder: str | Path, name: str = "all") -> Iterator[str]:
    """Fills the pages of a folder; yields the paths of those that changed.

    Nothing is written if one of the pages cannot be filled.

    Parameters
    ----------
    results : path
        Folder of JSON lines.
    folder : path
        Folder of Markdown pages.
    name : str
        The only mark to fill, if not all.
    """
    pages = sorted(Path(folder).glob("*.md"))
    if not pages:
        raise FileNotFoundError(f"Got --pages {str(folder)!r}, expected a folder with .md pages")
    if not any(Path(results).glob("*.jsonl")):
        raise FileNotFoundError(
            f"Got --results {str(results)!r}, expected a folder with results (.jsonl) to put into "
            "the pages"
        )
    filled = {page: _filled(page, Path(results), name) for page in pages}
    mark = f"{OPENING}{name} -->".encode()
    if name != "all" and not any(mark in content for content in filled.values()):
        raise ValueError(f"Got {name} with --pages, expected a mark '{mark.decode()}' in a page")
    for page, content in filled.items():
        if content != page.read_bytes():
            with replacing(page) as file:
                file.write(content)
            yield str(page)


def _filled(page: Path, results: Path, name: str) -> bytes:
    """What the page shall hold."""
    try:
        text = page.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"Got the page {str(page)!r}, expected text in UTF-8: {error}") from error
    # Marks and tables are lines; a page keeps the kind of its line ends.
    lines = text.replace("\r\n", "\n")
    if lines.count(OPENING) != len(MARKED.findall(lines)):
        raise ValueError(
            f"Got the page {str(page)!r}, expected each '{OPENING}NAME -->' to stand on a line of "
            "its own and to be followed by '<!-- end -->' before the next"
        )
    found = MARKED.sub(lambda mark: _block(mark, results, name), lines)
    if found == lines:
        return text.encode()
    return (found.replace("\n", "\r\n") if "\r\n" in text else found).encode()


def _block(found: re.Match[str], results: Path, wanted: str) -> str:
    name = found["name"]
    if wanted not in ("all", name):
        return found[0]
    block = _BLOCKS[name](results) if name in _BLOCKS else _dataset(name, results)
    return f"{found[1]}\n{block}\n\n{found[3]}"


def _dataset(name: str, results: Path) -> str:
    if name not in (*DATASETS, *IMAGES):
        known = ", ".join([*DATASETS, *IMAGES, *_BLOCKS])
        raise ValueError(f"Got the mark 'results: {name}' in a page, expected one of {known}.")
    records = list(Results(results).read([name]).values())
    return f"{KEY}\n\n{markdown_tables(name, records)}" if records else NOTHING


def _overview(results: Path) -> str:
    """How many of the paper's numbers ours are better than, by data set, method and recipe."""
    head = ["data set", "method", "settings", "seeds", *VERDICTS, "seconds"]
    lines = [markdown_row(head), markdown_row(["---"] * len(head))]
    totals: dict[str, Counter[str]] = {recipe: Counter() for recipe in RECIPES}
    for name in (*DATASETS, *IMAGES):
        groups = grouped(Results(results).read([name]).values())
        for method, recipe in product(EVERY_METHOD, RECIPES):
            if (method, recipe) in groups:
                counts = _verdicts(name, groups[method, recipe])
                totals[recipe] += counts
                lines.append(_overview_row(name, method, recipe, groups[method, recipe], counts))
    for recipe, counts in totals.items():
        numbers = [str(counts[verdict]) for verdict in VERDICTS]
        lines.append(markdown_row(["**all**", "", recipe, "", *numbers, ""]))
    return "\n".join(lines)


def _verdicts(name: str, records: list[Record]) -> Counter[str]:
    judged = [
        metric for table in tables_of(name).values() for metric in table if metric.better != NEITHER
    ]
    return Counter(entry(records, metric).verdict for metric in judged)


def _overview_row(
    name: str, method: str, recipe: str, records: list[Record], counts: Counter[str]
) -> str:
    compared = any(counts[verdict] for verdict in VERDICTS)
    numbers = [str(counts[verdict]) if compared else "" for verdict in VERDICTS]
    seconds = f"{median(record['seconds'] for record in records):.1f}"
    return markdown_row([name, method, recipe, str(len(records)), *numbers, seconds])


def _initialisation(results: Path) -> str:
    records = Results(results).read([initialisation.NAME], initialisation.key)
    if not records:
        return NOTHING
    head = [
        "method",
        "inclusion at the start",
        *initialisation.PANELS.values(),
        "epochs",
        "seconds",
    ]
    lines = [markdown_row(head), markdown_row(["---"] * len(head))]
    for _, record in sorted(records.items()):
        scores = [initialisation.panel(record, name) for name in ("pearson_median", "rmse_median")]
        lines.append(
            markdown_row(
                [
                    record["method"],
                    f"{record['low']:g} to {record['high']:g}",
                    *(f"{score:.3f}" for score in scores),
                    f"{record['used_weights']:.0f}",
                    f"{record['epochs']:,}",
                    f"{record['seconds']:.0f}",
                ]
            )
        )
    return "\n".join(lines)


def _cost(results: Path) -> str:
    records = Results(results).read(["cost"], lambda record: (record["task"], record["method"]))
    if not records:
        return NOTHING
    head = [
        "data set",
        "method",
        "batch",
        "ms a step",
        "weights",
        "used",
        "all: file, Mbit",
        "formula",
        "median network: file, kbit",
        "formula",
    ]
    lines = [markdown_row(head), markdown_row(["---"] * len(head))]
    lines += [
        markdown_row(
            [
                record["task"],
                record["method"],
                f"{record['batch_size']:,}",
                f"{1e3 * record['seconds_per_step']:.3g}",
                f"{record['weights']:,}",
                f"{record['used_weights']}",
                f"{record['file_bits'] / 1e6:.2f}",
                f"{record['formula_bits'] / 1e6:.2f}",
                f"{record['sparse_file_bits'] / 1e3:.0f}",
                "" if (bits := record["sparse_formula_bits"]) is None else f"{bits / 1e3:.0f}",
            ]
        )
        for record in records.values()
    ]
    return "\n".join(lines)


_BLOCKS: dict[str, Callable[[Path], str]] = {
    "overview": _overview,
    "initialisation": _initialisation,
    "cost": _cost,
}
