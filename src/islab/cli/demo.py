"""Fit the breast cancer data with default settings and print the scores.

569 tumours, 30 measurements each; a tenth of the rows is held out. The data come with
scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

EXAMPLES = """\
examples:
  islab demo
  islab demo --seed 7 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and of training")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    result = breast_cancer(args.seed)
    if args.json:
        print(json.dumps(result))
        return
    rows = f"{result['rows_train']} rows to learn from, {result['rows_test']} held out"
    print(f"Breast cancer, {rows}\n")
    lines = {
        "accuracy": f"{result['accuracy']:.1%}",
        "log score": f"{result['nll']:.3f}",
        "calibration error": f"{result['ece']:.3f}",
        "used weights": str(result["used_weights"]),
        "seconds": f"{result['seconds']:.1f}",
    }
    for name, value in lines.items():
        print(f"  {name:<18}{value:>8}")
    print("\n  selected covariates")
    for name in result["covariates"]:
        print(f"    {name}")


def breast_cancer(seed: int) -> dict[str, Any]:
    """Scores of the default classifier on held-out rows."""
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
    probability = model.predict_proba(X_test)
    return {
        "rows_train": len(X_train),
        "rows_test": len(X_test),
        "accuracy": float(accuracy_score(y_test, model.predict(X_test))),
        "nll": float(log_loss(y_test, probability)),
        "ece": calibration_error(y_test, probability),
        "used_weights": int(model.n_used_weights_),
        "covariates": model.get_feature_names_out().tolist(),
        "seconds": seconds,
    }
