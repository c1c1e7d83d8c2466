"""Learn a model from a table and save it.

The task follows from the target: text, booleans and a few whole numbers are classes, other
numbers are predicted as numbers. Rows without a target are left out. Several files may hold more
rows than fit in memory: which weights are used is learned from a random sample of them, the values
of the weights from all.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from islab.cli.tables import (
    FILES,
    SampledFiles,
    add_column_arguments,
    read_sample,
    read_training,
    require_output,
    training_pieces,
)
from islab.core.names import counted

EXAMPLES = """\
examples:
  islab fit patients.csv --target diagnosis -o model.islab
  islab fit houses.tsv --target price --drop id --sparsity 0.8 -o model.islab
  islab fit visits.parquet --target visits --task counts --set max_epochs=50 -o model.islab
  islab fit claims.csv --target claims --task counts --exposure years -o model.islab
  islab fit patients.csv --target diagnosis -o model.islab --report report.html
  islab fit patients.csv --target diagnosis -o model.islab --resume
  islab fit folder/*.parquet --target price -o model.islab
"""
TASKS = ("classification", "regression", "counts")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", help=f"{FILES}; in one file or several")
    add_column_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="model to write")
    parser.add_argument(
        "--exposure", metavar="COLUMN", help="how long, or how many, each count was counted over"
    )
    parser.add_argument("--offset", metavar="COLUMN", help="column to add to the predictor")
    parser.add_argument("--task", choices=TASKS, help="the task, if not as detected")
    parser.add_argument(
        "--sparsity", type=float, help="from 0 (most accurate) to 1 (easiest to read)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any parameter of the estimator; repeatable",
    )
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="learn from so many rows, drawn at random (default: all; of several files 200,000 "
        "are held in memory)",
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same model (default 0)")
    parser.add_argument("--jobs", type=int, help="networks to train at the same time")
    parser.add_argument(
        "--sparse", action="store_true", help="save the median network only, a few kilobytes"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="HTML report to write, on the training rows"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="folder for the state of the fit; after a crash the same command continues from it",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="the same with the folder MODEL.checkpoint next to the model, removed at the end",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    from islab.tables import batches
    from islab.tables.targets import detected_task

    paths = args.data
    require_output(args.output, *paths)
    require_output(args.report, *paths, args.output)
    args.data = paths[0]
    sample = None
    if len(paths) > 1 or args.rows is not None:
        sample = read_sample(args, paths, batches.SAMPLE_ROWS if args.rows is None else args.rows)
    X, y = read_training(args, None if sample is None else sample.table)
    for name in X.columns[X.columns.str.startswith("Unnamed: ")]:
        print(
            f"column {name!r} has no name; if it counts rows, try --drop {name!r}", file=sys.stderr
        )
    task = args.task or detected_task(y)
    how = "asked for" if args.task else "detected; --task changes it"
    print(f"{task} of {args.target!r} from {X.shape[1]} columns ({how})", file=sys.stderr)
    model, offsets = make_estimator(task, args), given_offsets(args)
    if offsets and task == "classification":
        raise ValueError("Got --offset or --exposure with classes, expected numbers or counts")
    start = time.perf_counter()
    n_rows = _fit(model, args, sample, X, y, offsets)
    seconds = time.perf_counter() - start
    model.save(args.output, sparse=args.sparse)
    if args.resume and args.checkpoint is None:
        with suppress(OSError):  # another fit may have its state there
            Path(checkpoint_folder(args)).rmdir()
    if args.report is not None:
        model.report(args.report, X, y, title=f"{args.target}: what the model learned")
    if args.json:
        facts = {"task": task, "target": args.target, "rows": n_rows, "seconds": seconds}
        print(json.dumps({**facts, "model": args.output, "summary": model.summary().to_dict()}))
    else:
        print(model.summary())
        print(f"\n{counted(n_rows, 'row')}, {seconds:.1f} s, saved to {args.output}")


def _fit(
    model: Any,
    args: argparse.Namespace,
    sample: SampledFiles | None,
    X: Any,
    y: Any,
    offsets: dict[str, str],
) -> int:
    """Learns from all rows of several files, or from those in memory; gives their number."""
    from islab.tables.batches import Batches

    if sample is None or len(sample.table) == sample.n_rows:
        model.fit(X, y, **offsets)
        return len(X)
    if args.rows is None and not (args.text or args.keep):
        pieces = Batches(training_pieces(args, sample.pieces), n_rows=len(sample.table))
        model.fit(pieces, args.target, **offsets)
        found = getattr(model.posterior_, "all_rows", None)
        return len(X) if found is None else found.n_rows
    print(sample.words, file=sys.stderr)
    model.fit(X, y, **offsets)
    return len(X)


def make_estimator(task: str, args: argparse.Namespace) -> Any:
    """The estimator for a task with the parameters given on the command line."""
    from islab import ISLaBClassifier, ISLaBRegressor
    from islab.core import families

    cls = ISLaBClassifier if task == "classification" else ISLaBRegressor
    params = {
        "random_state": args.seed,
        "n_jobs": args.jobs,
        "verbose": sys.stderr.isatty(),
        **dict(map(_setting, args.set)),
    }
    if args.resume or args.checkpoint is not None:
        params["checkpoint"] = checkpoint_folder(args)
    if args.sparsity is not None:
        params["sparsity"] = args.sparsity
    if task == "counts":
        params["likelihood"] = families.likelihoods("counts")[0]
    known = cls().get_params()
    for name in params:
        if name not in known:
            raise ValueError(f"Got --set {name}, expected one of {', '.join(known)}")
    return cls(**params)


def given_offsets(args: argparse.Namespace) -> dict[str, str]:
    """Columns of an offset or an exposure, for ``fit``."""
    given = {"offset": args.offset, "exposure": args.exposure}
    return {name: column for name, column in given.items() if column is not None}


def checkpoint_folder(args: argparse.Namespace) -> str:
    """Where the fit keeps its state."""
    return args.checkpoint or f"{args.output}.checkpoint"


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"Got --set {text}, expected NAME=VALUE, for example max_epochs=50")
    try:
        return name.strip(), ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name.strip(), value
