"""Fingerprints of models fitted with fixed seeds: does a change of the code change a model?

    python experiments/same_models.py --write before.json     # on the old code
    python experiments/same_models.py --compare before.json   # on the new code

Six tables: classes, several classes, numbers, several outputs, counts, a frame of mixed columns.
Predictions, inclusion probabilities and the weights of the median network are compared exactly.
"""

from __future__ import annotations

import argparse
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_linnerud, load_wine

from islab import ISLaBClassifier, ISLaBRegressor


def tables() -> dict[str, tuple[Any, Any, Any]]:
    """Name, unfitted model, table and target of each case."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4))
    counts = rng.poisson(np.exp(0.5 * x[:, 0] + np.maximum(x[:, 1], 0)))
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    frame["town"] = rng.choice(["Oslo", "Bergen", "Ås"], size=400)
    frame.loc[::7, "b"] = np.nan
    mixed = (
        x[:, 0] + 2 * (frame["town"] == "Oslo") + np.abs(x[:, 2]) + 0.3 * rng.standard_normal(400)
    )
    return {
        "breast cancer": (ISLaBClassifier(), *load_breast_cancer(return_X_y=True, as_frame=True)),
        "wine": (ISLaBClassifier(), *load_wine(return_X_y=True, as_frame=True)),
        "diabetes": (ISLaBRegressor(), *load_diabetes(return_X_y=True, as_frame=True)),
        "linnerud": (ISLaBRegressor(), *load_linnerud(return_X_y=True, as_frame=True)),
        "counts": (ISLaBRegressor(likelihood="poisson"), x, counts),
        "mixed, flow": (ISLaBRegressor(posterior="flow"), frame, mixed),
    }


def fingerprint(model: Any, X: Any, y: Any) -> dict[str, Any]:
    model = model.set_params(random_state=3).fit(X, y)
    network = model.network_
    predicted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    parts = [
        model.posterior_.mu,
        model.posterior_.lam,
        network.mu,
        network.bias_mu,
        np.asarray(predicted),
    ]
    digest = sha256(b"".join(np.ascontiguousarray(np.round(part, 9)).tobytes() for part in parts))
    return {
        "sha256": digest.hexdigest(),
        "weights": int(network.n_used_weights),
        "elbo": model.elbo_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    args = parser.parse_args()
    found = {name: fingerprint(*case) for name, case in tables().items()}
    if args.write:
        args.write.write_text(json.dumps(found, indent=1))
    before = json.loads(args.compare.read_text()) if args.compare else found
    for name, now in found.items():
        verdict = "same" if now == before[name] else "DIFFERENT"
        print(f"{name:16} {verdict} {now['weights']} weights, ELBO {now['elbo']:.3f}")


if __name__ == "__main__":
    main()
