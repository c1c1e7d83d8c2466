"""Run an experiment of the paper and set its numbers beside the paper's.

NAME is a data set, an experiment with images (mnist-bcnn, cifar10-bcnn, cifar10-hybrid), a study
(initialisation, explanations, structures, cost, choices, image-maps) or `all` data sets but those
of images. Every finished run is kept in the results folder at once; the same command goes on from
there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from islab.reproduce import DATASETS, IMAGES, METHODS, RECIPES, STUDIES

EXAMPLES = """\
examples:
  islab reproduce wbc
  islab reproduce linear-0.5 --method islab-lrt --recipe default --seeds 3
  islab reproduce all --jobs 2 --results results
  islab reproduce mice --quick
  islab reproduce initialisation --results results
  islab reproduce all --results docs/results/raw --pages docs/results
"""
MOST_QUICK_SEEDS = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [*DATASETS, *IMAGES, *STUDIES, "all"]
    parser.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument(
        "--method", action="append", choices=METHODS, help="all if not given; repeatable"
    )
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        help="the paper's settings, or nothing set; both if not given",
    )
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 to this (default 10)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument(
        "--quick", action="store_true", help="a few rows and epochs, to see that all runs"
    )
    parser.add_argument("--force", action="store_true", help="run also what is stored")
    parser.add_argument(
        "--results", default="results", metavar="FOLDER", help="JSON lines (default results)"
    )
    parser.add_argument(
        "--pages",
        metavar="FOLDER",
        help="write the stored numbers into the Markdown pages there; run nothing",
    )


def run(args: argparse.Namespace) -> None:
    if args.seeds < 1:
        raise ValueError(f"Got --seeds {args.seeds}, expected at least 1")
    folder = Path(args.results) / "quick" if args.quick else Path(args.results)
    if args.pages is not None:
        from islab.reproduce.pages import write_pages

        for page in write_pages(folder, args.pages):
            print(page)
    elif args.name in STUDIES:
        _run_study(args, folder)
    else:
        _run_datasets(args, folder)


def _run_datasets(args: argparse.Namespace, folder: Path) -> None:
    from islab.reproduce.cells import Results
    from islab.reproduce.runner import plan, run_cells
    from islab.reproduce.tables import text_table

    names = DATASETS if args.name == "all" else (args.name,)
    seeds = range(min(args.seeds, MOST_QUICK_SEEDS) if args.quick else args.seeds)
    cells = plan(names, args.method or METHODS, (args.recipe,) if args.recipe else RECIPES, seeds)
    if not cells:
        raise ValueError(
            f"The paper has no setting of {', '.join(args.method or METHODS)} on {args.name}; "
            "try --recipe default"
        )
    results = Results(folder)
    failures = run_cells(
        cells, results, jobs=args.jobs, quick=args.quick, force=args.force, progress=True
    )
    stored = results.read(names)
    for name in names:
        records = [stored[cell] for cell in cells if cell in stored and cell.dataset == name]
        if records:
            print(text_table(name, records), end="\n\n")
    _say_failures(failures)


def _say_failures(failures: list[dict[str, Any]]) -> None:
    """One line for each reason."""
    reasons = Counter(
        (f"{record['dataset']}, {record['method']}", record["error"]) for record in failures
    )
    for (what, error), count in reasons.items():
        print(f"not run: {what} ({count} seeds and recipes): {error}", file=sys.stderr)


def _run_study(args: argparse.Namespace, folder: Path) -> None:
    from islab.reproduce.studies import run_study

    options = {"jobs": args.jobs, "quick": args.quick, "force": args.force}
    for line in run_study(args.name, folder, methods=args.method or METHODS, **options):
        print(line)
