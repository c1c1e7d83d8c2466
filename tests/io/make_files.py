"""Writes the model files that later versions must read: ``python -m tests.io.make_files v0.2``.

Run once, with the version that is released; files of released versions are never written again.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import islab
from islab import ISLaBClassifier, ISLaBRegressor

N_ROWS, SHOWN = 160, 6
QUICK = {
    "max_epochs": 40,
    "n_restarts": 2,
    "n_draws": 40,
    "hidden_layer_sizes": (3,),
    "random_state": 0,
}


def make_table():
    """Columns of every kind, and what the targets depend on."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=N_ROWS, freq="3D")
    x = pd.DataFrame(
        {
            "age": rng.normal(50, 10, N_ROWS).round(1),
            "size": rng.normal(size=N_ROWS).round(3),
            "town": rng.choice(["Bath", "Ely", "Wells"], N_ROWS),
            "retired": rng.choice([True, False], N_ROWS),
            "visited": days.strftime("%Y-%m-%d"),
            "years": rng.uniform(0.5, 3, N_ROWS).round(2),
        }
    )
    x.loc[::13, "age"] = np.nan
    signal = 2 * x["size"] + 1.5 * (x["town"] == "Ely") + np.abs(x["size"])
    return x, signal, rng


def make_models():
    """Fitted models by the name of their file."""
    x, signal, rng = make_table()
    numbers = (signal + 0.3 * rng.normal(size=N_ROWS)).round(3)
    levels = pd.cut(signal, [-np.inf, 0.3, 1.8, np.inf], labels=["low", "mid", "top"])
    counts = rng.poisson(x["years"] * np.exp(0.4 * x["size"]))
    z = x.drop(columns="years")
    negative = ISLaBRegressor(**QUICK, likelihood="negative_binomial")
    return {
        "sampled-regressor": ISLaBRegressor(**QUICK).fit(z, numbers),
        "sampled-classifier": ISLaBClassifier(**QUICK).fit(z, levels.astype(str)),
        "sampled-ordinal": ISLaBClassifier(**QUICK, likelihood="ordinal").fit(z, levels),
        "sampled-exposure": negative.fit(x, counts, exposure="years"),
    }


def predictions(model, rows):
    offsets = getattr(model, "offset_columns_", None)
    names = [*model.feature_names_in_, *(offsets.names if offsets is not None else [])]
    table = rows[list(dict.fromkeys(names))]
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


def main(version):
    folder = Path(__file__).parent / "files" / version
    folder.mkdir()
    shown = make_table()[0].iloc[:SHOWN]
    (folder / "rows.json").write_text(shown.to_json(orient="split", double_precision=15))
    expected = {}
    for name, model in make_models().items():
        for suffix, sparse in (("", False), ("-sparse", True)):
            path = folder / f"{name}{suffix}.islab"
            model.save(path, sparse=sparse)
            expected[path.stem] = predictions(islab.load(path), shown).tolist()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
