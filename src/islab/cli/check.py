"""List what deserves a second thought in a table before a fit.

Columns that a fit leaves out, constants, copies, rare levels, missing values, outliers and, with a
target, columns that alone tell it.
"""

from __future__ import annotations

import argparse
import json

from islab.cli.tables import FILES, known_targets, read_table
from islab.core.names import printable

EXAMPLES = """\
examples:
  islab check patients.csv
  islab check patients.csv --target diagnosis --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", help=FILES)
    parser.add_argument("--target", metavar="COLUMN", help="column to predict")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    from islab import check

    table, y = read_table(args.data), None
    if args.target is not None:
        table, y = known_targets(table, args.target, args.data)
        table = table.drop(columns=args.target)
    found = check(table, y)
    if args.json:
        print(json.dumps(found.to_frame().to_dict(orient="records")))
        return
    for line in str(found).splitlines():
        print(printable(line))
