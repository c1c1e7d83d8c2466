"""Fit the breast cancer data with default settings and print the scores.

569 tumours, 30 measurements each; a tenth of the rows is held out. The data come with
scikit-learn. On a terminal with a browser the report on the held-out rows is opened; --open and
--no-open decide otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  islab demo
  islab demo --no-open
  islab demo --seed 7 --json
"""
NEXT = """\
Next, with a table of your own (here data.csv with the column outcome):

  islab check data.csv --target outcome
  islab fit data.csv --target outcome -o model.islab
  islab summary model.islab
  islab explain model.islab data.csv --row 0
  islab report model.islab data.csv --target outcome -o report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and of training")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="write the report and open it in the browser; if not given, where people watch",
    )


def run(args: argparse.Namespace) -> None:
    shown = is_watched() and not args.json if args.open is None else args.open
    report = Path(tempfile.mkdtemp(prefix="islab-demo-"), "report.html") if shown else None
    result = breast_cancer(args.seed, report)
    if args.json:
        print(json.dumps(result))
    else:
        _print_scores(result)
        print(f"\n{NEXT}", end="")
    if report is not None:
        _show(report)


def is_watched() -> bool:
    """Whether somebody sits at a terminal with a screen that a browser could open on."""
    screen = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return screen and sys.stdout.isatty() and not os.environ.get("SSH_CONNECTION")


def _print_scores(result: dict[str, Any]) -> None:
    rows = f"{result['rows_train']} rows to learn from, {result['rows_test']} held out"
    print(f"Breast cancer, {rows}\n")
    always = f"of held-out tumours; always the larger class: {result['base_rate']:.1%}"
    lines = {
        "accuracy": (f"{result['accuracy']:.1%}", always),
        "log score": (f"{result['nll']:.3f}", "mean of -log probability of what was observed"),
        "calibration error": (f"{result['ece']:.3f}", "between predicted and observed frequency"),
        "used weights": (f"{result['used_weights']}", f"of {result['weights']}, to be read"),
        "seconds": (f"{result['seconds']:.1f}", "for the fit"),
    }
    for name, (value, meaning) in lines.items():
        print(f"  {name:<18}{value:>8}  {meaning}")
    print("\n  selected covariates")
    for name in result["covariates"]:
        print(f"    {name}")


def _show(report: Path) -> None:
    """Opens a page, and says where it is, which has to do where there is no browser."""
    opened = webbrowser.open(report.as_uri())
    words = "report opened from" if opened else "no browser was found; the report is in"
    print(f"{words} {report}", file=sys.stderr)


def breast_cancer(seed: int, report: Path | None = None) -> dict[str, Any]:
    """Scores of the default classifier on held-out rows, and a report on them if asked for."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import accuracy_score, log_loss
    from sklearn.model_selection import train_test_split

    from islab import ISLaBClassifier
    from islab.evaluate import calibration_error

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    split = train_test_split(X, y, test_size=0.1, random_state=seed, stratify=y)
    X_train, X_test, y_train, y_test = split
    model = ISLaBClassifier(n_jobs=-1, random_state=seed, verbose=sys.stderr.isatty())
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    if report is not None:
        model.report(report, X_test, y_test)
    probability = model.predict_proba(X_test)
    return {
        "rows_train": len(X_train),
        "rows_test": len(X_test),
        "accuracy": float(accuracy_score(y_test, model.predict(X_test))),
        "nll": float(log_loss(y_test, probability)),
        "ece": calibration_error(y_test, probability),
        "base_rate": float(max(y_test.mean(), 1 - y_test.mean())),
        "used_weights": int(model.n_used_weights_),
        "weights": int(model.network_.n_weights_initial),
        "covariates": model.get_feature_names_out().tolist(),
        "seconds": seconds,
    }
