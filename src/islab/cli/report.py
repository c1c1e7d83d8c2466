"""Write a report on a saved model and its predictions to one HTML file.

The page shows the active paths, explains rows and lets the reader change their values. With
--target it also scores the predictions. It needs no network connection and no other file.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from islab.cli.tables import FILES
from islab.core.names import counted

if TYPE_CHECKING:
    from islab.core.fitted import FittedModel

EXAMPLES = """\
examples:
  islab report model.islab test.csv --target diagnosis -o report.html
  islab report model.islab new.csv --row 3 --row 17 -o report.html
  islab report images.islab images.npz -o report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="file that `islab fit` wrote")
    parser.add_argument("data", help=f"{FILES}; of images: .npz")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML to write")
    parser.add_argument("--target", metavar="COLUMN", help="score against this column")
    parser.add_argument(
        "--row",
        type=int,
        action="append",
        metavar="N",
        help="explain this row, counted from 0; repeatable; by default a few informative rows",
    )


def run(args: argparse.Namespace) -> None:
    from islab import load
    from islab.cli.predict import model_columns, text_columns
    from islab.cli.tables import known_targets, read_table, require_output

    require_output(args.output, args.model, args.data)
    model = load(args.model)
    if hasattr(model, "image_shape_"):
        _report_images(model, args)
        return
    text = text_columns(model)
    if args.target is not None and hasattr(model, "classes_") and model.classes_.dtype.kind in "UO":
        text[args.target] = tuple(model.classes_)
    table, y = read_table(args.data, text), None
    if args.target is not None:
        table, y = known_targets(table, args.target, args.data)
    X = model_columns(model, table, args.data)
    title = args.target and f"{args.target}: what the model learned"
    model.report(args.output, X, y, rows=args.row, title=title)
    print(f"report of {counted(len(table), 'row')} written to {args.output}", file=sys.stderr)


def _report_images(model: FittedModel, args: argparse.Namespace) -> None:
    from islab.cli.images import read_labelled

    if args.row:
        raise ValueError("Got --row for a model of images, which chooses its examples itself")
    images, labels = read_labelled(args.data, args.target)
    model.report(args.output, images, labels)
    print(f"report of {counted(len(images), 'image')} written to {args.output}", file=sys.stderr)
