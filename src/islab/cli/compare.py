"""Compare methods on a table, or on images, by rows that are held out.

All methods have the same random splits. The task follows from the target as in `islab fit`. Every
finished fit is stored immediately; the same command continues from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from islab.cli.fit import TASKS
from islab.cli.images import holds_images, read_labelled
from islab.cli.tables import FILES, add_column_arguments, read_training, require_output
from islab.core.names import counted

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = """\
examples:
  islab compare patients.csv --target diagnosis
  islab compare patients.csv --target diagnosis --methods islab horseshoe boosting --jobs 2
  islab compare houses.tsv --target price --drop id --seeds 5 --html comparison.html
  islab compare patients.csv --target diagnosis --csv fits.csv --plot comparison.svg
  islab compare visits.csv --target relapse --groups patient
  islab compare images.npz --seeds 3
  islab compare --list
"""


class _List(argparse.Action):
    """Names the methods and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from islab.evaluate import METHODS

        width = max(map(len, METHODS))
        for name, meaning in METHODS.items():
            print(f"{name:<{width}}  {meaning}")
        parser.exit()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help=f"{FILES}; images and labels: .npz")
    add_column_arguments(parser, images=True)
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME", help="by default, a few that are fast"
    )
    parser.add_argument("--list", action=_List, nargs=0, help="list the methods and exit")
    parser.add_argument("--task", choices=TASKS, help="the task, if not as detected")
    parser.add_argument("--seeds", type=int, default=10, help="random splits (default 10)")
    parser.add_argument(
        "--test-size", type=float, default=0.1, help="share of rows held out (default 0.1)"
    )
    parser.add_argument(
        "--groups", metavar="COLUMN", help="rows that share its value are held out together"
    )
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time (default 1)")
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="JSON lines to resume from (default in the user's cache)",
    )
    parser.add_argument("--force", action="store_true", help="run stored fits again")
    parser.add_argument("--csv", metavar="FILE", help="write every fit")
    parser.add_argument("--html", metavar="FILE", help="write tables and picture on one page")
    parser.add_argument("--plot", metavar="FILE", help="write the picture: .svg, .png or .pdf")
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each fit")


def run(args: argparse.Namespace) -> None:
    from islab.evaluate import compare
    from islab.evaluate.methods import check_names

    outputs = [path for path in (args.csv, args.html, args.plot) if path is not None]
    for number, path in enumerate(outputs):
        require_output(path, args.data, *outputs[:number])
    check_names(args.methods or ())
    X, y, groups, task = _read_images(args) if holds_images(args.data) else _read_table(args)
    found = compare(
        X,
        y,
        args.methods,
        task=task,
        seeds=args.seeds,
        test_size=args.test_size,
        groups=groups,
        n_jobs=args.jobs,
        results=args.results or _kept(args.data),
        force=args.force,
        verbose=sys.stderr.isatty(),
    )
    _write(found, args)
    if args.json:
        for record in found.records:
            print(json.dumps(record))
    else:
        print(found)
    if not any("models" in record for record in found.records):
        raise RuntimeError("No fit has succeeded; the table says why")


def _read_table(args: argparse.Namespace) -> tuple[Any, Any, Any, str]:
    """Covariates, targets, groups and task; says which."""
    from islab.tables.targets import detected_task

    if args.target is None:
        raise ValueError("Got no --target, expected the column to predict")
    X, y = read_training(args)
    groups = _take_groups(X, args.groups) if args.groups else None
    task = args.task or detected_task(y)
    how = "asked for" if args.task else "detected; --task changes it"
    print(f"{task} of {args.target!r} from {X.shape[1]} columns ({how})", file=sys.stderr)
    return X, y, groups, task


def _read_images(args: argparse.Namespace) -> tuple[Any, Any, None, str]:
    for option in ("groups", "drop", "text"):
        if getattr(args, option):
            raise ValueError(f"Got --{option} for images, expected it for tables only")
    X, y = read_labelled(args.data, args.target)
    print(f"classification of {counted(len(X), 'image')}", file=sys.stderr)
    return X, y, None, args.task or "classification"


def _take_groups(X: pd.DataFrame, name: str) -> pd.Series:
    """The column of groups, which leaves the table."""
    if name not in X:
        known = ", ".join(map(repr, X))
        raise ValueError(f"Got --groups {name}, expected a column other than the target: {known}")
    if X.shape[1] == 1:
        raise ValueError(f"Got --groups {name}, the only column, expected other covariates")
    return X.pop(name)


def _kept(data: str) -> Path:
    """Where fits are kept if the user does not say."""
    from islab.evaluate.runner import cache_folder

    folder = cache_folder() / "comparisons"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{Path(data).name}.jsonl"


def _write(found: Any, args: argparse.Namespace) -> None:
    if args.csv is not None:
        found.to_csv(args.csv)
    if args.html is not None:
        found.to_html(args.html)
    if args.plot is not None:
        from islab.core.dependencies import needed
        from islab.plots.style import save_figure

        figure = needed("matplotlib.figure", "A plot", "islab-bnn[plots]").Figure
        axes = figure(figsize=(6.4, 4.4), layout="constrained").subplots()
        save_figure(found.plot(ax=axes).figure, args.plot)
