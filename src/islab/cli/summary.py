"""Print the covariates that a saved model uses, with their probabilities."""

from __future__ import annotations

import argparse
import json

EXAMPLES = """\
examples:
  islab summary model.islab
  islab summary model.islab --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="file that `islab fit` wrote")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    from islab import load

    summary = load(args.model).summary()
    print(json.dumps(summary.to_dict()) if args.json else summary)
