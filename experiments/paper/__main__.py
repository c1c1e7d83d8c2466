"""Run an experiment of the paper and set its numbers beside the paper's.

NAME is a data set, an experiment with images (mnist-bcnn, cifar10-bcnn, cifar10-hybrid), a study
(initialisation, explanations, structures, cost, choices, image-maps) or `all`, the data sets.
Every finished run is kept in the results folder at once; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from experiments.paper.settings import (
    DATASETS,
    EVERY_METHOD,
    IMAGE_METHODS,
    IMAGES,
    RECIPES,
    STUDIES,
    method_of,
)

EXAMPLES = """\
examples:
  python -m experiments.paper wbc
  python -m experiments.paper linear-0.5 --method islab --recipe default --seeds 3
  python -m experiments.paper all --jobs 2 --results results
  python -m experiments.paper mice --quick
  python -m experiments.paper initialisation --results results
  python -m experiments.paper all --results docs/results/raw --pages docs/results
"""
MOST_QUICK_SEEDS = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [*DATASETS, *IMAGES, *STUDIES, "all"]
    parser.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument(
        "--method",
        action="append",
        choices=EVERY_METHOD,
        type=method_of,
        help="all if not given; repeatable",
    )
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        help="the paper's settings, or nothing set; both if not given; not of studies",
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="how many, from 0 on (default 10); not of studies"
    )
    parser.add_argument(
        "--epochs", type=int, help="other than the paper's; kept in the record; not of images"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, at most one for each core (default 1)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a few rows and epochs and at most two seeds, to see that all runs",
    )
    parser.add_argument("--force", action="store_true", help="run also what is stored")
    parser.add_argument(
        "--results", default="results", metavar="FOLDER", help="JSON lines (default results)"
    )
    parser.add_argument(
        "--pages",
        metavar="FOLDER",
        help="write the stored numbers of NAME into the Markdown pages there; run nothing",
    )


def run(args: argparse.Namespace) -> None:
    if args.seeds < 1:
        raise ValueError(f"Got --seeds {args.seeds}, expected at least 1")
    if args.epochs is not None and args.epochs < 1:
        raise ValueError(f"Got --epochs {args.epochs}, expected at least 1")
    if args.jobs < 1:
        raise ValueError(f"Got --jobs {args.jobs}, expected at least 1")
    if args.quick and args.pages is not None:
        raise ValueError("Got --quick with --pages, expected pages of whole runs; leave one out")
    args.method = list(dict.fromkeys(args.method or EVERY_METHOD))
    folder = Path(args.results) / "quick" if args.quick else Path(args.results)
    if args.pages is not None:
        from experiments.paper.pages import write_pages

        for page in write_pages(folder, args.pages, args.name):
            print(page)
    elif args.name in STUDIES:
        _run_study(args, folder)
    else:
        _run_datasets(args, folder)


def _run_datasets(args: argparse.Namespace, folder: Path) -> None:
    from joblib import cpu_count

    from experiments.paper.cells import Results, plan, run_cell
    from experiments.paper.tables import text_table
    from islab.evaluate.runner import run_cells

    names = DATASETS if args.name == "all" else (args.name,)
    seeds = range(min(args.seeds, MOST_QUICK_SEEDS) if args.quick else args.seeds)
    cells = plan(names, args.method, (args.recipe,) if args.recipe else RECIPES, seeds)
    if not cells and args.name in IMAGES:
        raise ValueError(
            f"{args.name} runs with nothing set only, by {' and '.join(IMAGE_METHODS)}; "
            "try --recipe default"
        )
    if not cells:
        raise ValueError(
            f"The paper has no setting of {', '.join(args.method)} on {args.name}; "
            "try --recipe default"
        )
    results = Results(folder)
    done = {} if args.force else results.read(names)
    if any(cell not in done for cell in cells):
        results.make()
    found = run_cells(
        cells,
        partial(run_cell, quick=args.quick, epochs=args.epochs),
        done=done,
        keep=results.add,
        n_jobs=min(args.jobs, cpu_count()),
        title=args.name if sys.stderr.isatty() else "",
        pre_dispatch="n_jobs",
    )
    failures = [record for record in found.values() if record.get("error") is not None]
    stored = results.read(names)
    for name in names:
        records = [stored[cell] for cell in cells if cell in stored and cell.dataset == name]
        if records:
            print(text_table(name, records, args.quick), end="\n\n")
    if failures:
        _say_failures(failures)
        raise RuntimeError(f"{len(failures)} of {len(cells)} runs could not be made")


def _say_failures(failures: list[dict[str, Any]]) -> None:
    """One line for each reason."""
    reasons = Counter(
        (f"{record['dataset']}, {record['method']}", record["error"]) for record in failures
    )
    for (what, error), count in reasons.items():
        print(f"not run: {what} ({count} seeds and recipes): {error}", file=sys.stderr)


def _run_study(args: argparse.Namespace, folder: Path) -> None:
    from experiments.paper.cells import keep_memory

    folder.mkdir(parents=True, exist_ok=True)
    keep_memory()
    for line in _study(args, folder):
        print(line)


def _study(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Lines to print as they come."""
    from experiments.paper import cost, images, initialisation, pictures, tuned_parameters

    options: dict[str, Any] = {"quick": args.quick, "force": args.force}
    if args.name == "initialisation":
        return initialisation.study(folder, methods=args.method, jobs=args.jobs, **options)
    if args.name in ("cost", "choices"):
        study = cost.study if args.name == "cost" else tuned_parameters.study
        return study(folder, methods=args.method, **options)
    draw = {
        "image-maps": images.draw_digits,
        "explanations": pictures.explanations,
        "structures": pictures.structures,
    }[args.name]
    return draw(folder, **options)


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends the command as Ctrl-C does, with an exit code of its own."""


def _terminate(*_: Any) -> NoReturn:
    raise Terminated


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    # As Ctrl-C does: what is finished is kept, what is under way is not.
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        run(parser.parse_args(arguments))
    except Terminated:
        print("terminated", file=sys.stderr)
        return 143
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
