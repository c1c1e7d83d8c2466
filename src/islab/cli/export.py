"""Write a saved model for other programs.

What is written reads rows of the table as they are: categories, missing values, dates and scales
are dealt with inside. Python, SQL and ONNX average over draws of the posterior and give intervals;
formulas and graphs show the readable network.
"""

from __future__ import annotations

import argparse
import sys

from islab.core.names import printable

BINARY = ("onnx", "torch")
FORMS = ("formula", "latex", "python", "sql", "graphml", *BINARY)
# Options that only some forms have, by their names on the command line and in Python.
OPTIONS = {
    "average": ("model", ("python", "sql", "onnx")),
    "draws": ("n_draws", ("python", "sql", "onnx")),
    "interval": ("level", ("sql", "onnx")),
    "table": ("table", ("sql",)),
    "dialect": ("dialect", ("sql",)),
    "digits": ("digits", ("formula", "latex")),
}
EXAMPLES = """\
examples:
  islab export model.islab --to formula --digits 3
  islab export model.islab --to sql --table patients -o model.sql
  islab export model.islab --to python --draws 200 -o model.py
  islab export model.islab --to onnx --average median -o model.onnx
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="file that `islab fit` wrote")
    parser.add_argument("--to", required=True, choices=FORMS, help="what to write")
    parser.add_argument("-o", "--output", metavar="FILE", help="stdout if not given")
    parser.add_argument(
        "--average",
        choices=("full", "median"),
        help="draws of the full posterior, or the readable network (python, sql, onnx)",
    )
    parser.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="draws to write, 100 by default (python, sql, onnx)",
    )
    parser.add_argument(
        "--interval", type=float, metavar="LEVEL", help="level of the interval, 0.9 (sql, onnx)"
    )
    parser.add_argument("--table", metavar="NAME", help="table that the query reads (sql)")
    parser.add_argument(
        "--dialect", choices=("standard", "sqlite"), help="standard: DuckDB, PostgreSQL (sql)"
    )
    parser.add_argument(
        "--digits", type=int, metavar="N", help="significant digits of numbers (formula, latex)"
    )


def run(args: argparse.Namespace) -> None:
    from islab import load
    from islab.cli.predict import require_reads_tables
    from islab.cli.tables import require_output

    options = _options(args)
    if args.to in BINARY and args.output is None:
        raise ValueError(f"Got --to {args.to} without a file to write; try -o model.{args.to}")
    require_output(args.output, args.model)
    model = load(args.model)
    require_reads_tables(model)
    found = model.export(args.to, args.output, **options)
    if args.output is None:
        lines = found.removesuffix("\n").split("\n")
        show = printable if sys.stdout.isatty() else str
        sys.stdout.write("".join(show(line) + "\n" for line in lines))


def _options(args: argparse.Namespace) -> dict[str, object]:
    """The options that were given, by their names in Python."""
    found = {}
    for flag, (name, forms) in OPTIONS.items():
        value = getattr(args, flag)
        if value is None:
            continue
        if args.to not in forms:
            raise ValueError(
                f"Got --{flag} with --to {args.to}, expected it only with {', '.join(forms)}"
            )
        found[name] = value
    return found
