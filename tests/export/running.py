"""A table of hostile names, models of it, and exports run as other programs run them."""

import json
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core import families
from islab.core.expressions import MISSING_TEXT

duckdb = pytest.importorskip("duckdb")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

AGE, COLOUR, MEMBER = "age'; DROP TABLE data; --", 'colo"ur\n\u2603', "member \\ {x} $%"
RED, BLUE, GREEN = "r'ed", 'bl"ue;\n--', "gr\u00fcn \u2603"
QUICK = {
    "posterior": "independent",
    "max_epochs": 30,
    "n_restarts": 1,
    "hidden_layer_sizes": (3, 2),
    "random_state": 0,
}
DRAWS = 30


def make_table(n_rows=160, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            AGE: np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(40, 10, n_rows)),
            COLOUR: rng.choice([RED, BLUE, GREEN, None], n_rows),
            MEMBER: rng.random(n_rows) < 0.5,
            "size": rng.normal(size=n_rows) * 3,
            "grade": rng.choice(["yes", "no"], n_rows),
            "unit": ["m"] * n_rows,
        }
    )
    table.loc[[0, 1], COLOUR] = "rare"
    return table


TABLE = make_table()
# Rows with categories that training did not see, and with all missing.
NEW = make_table(12, seed=1)
NEW.loc[2, COLOUR] = "never seen"
NEW.loc[3, [AGE, COLOUR, "grade"]] = None
NEW.loc[4, "grade"] = "perhaps"
SCORE = (
    TABLE["size"]
    + 3.0 * (TABLE[COLOUR] == RED)
    + (TABLE[AGE].fillna(20) - 40).abs() / 5
    - 2.0 * TABLE["grade"].eq("yes")
    + TABLE[MEMBER]
)
CLASSES = ("sick'); --", "well")
TARGETS = {
    "bernoulli": np.where(SCORE.median() < SCORE, *CLASSES),
    "categorical": np.digitize(SCORE, SCORE.quantile([0.3, 0.7])),
    "gaussian": 1000 + 50 * SCORE.to_numpy(),
    "student_t": 1000 + 50 * SCORE.to_numpy(),
    "poisson": np.random.default_rng(0).poisson(np.exp(0.2 * SCORE)),
    "negative_binomial": np.random.default_rng(0).poisson(np.exp(0.2 * SCORE)),
    "ordinal": pd.cut(SCORE, 4, labels=["low", "mid'", "high", "extreme"]),
    "heteroscedastic": 1000 + 50 * SCORE * np.random.default_rng(0).normal(1, 0.5, len(SCORE)),
}
ZEROS = np.random.default_rng(1).random(len(TABLE)) < 0.4
TARGETS["zero_inflated_poisson"] = np.where(ZEROS, 0, TARGETS["poisson"])
TARGETS["zero_inflated_negative_binomial"] = TARGETS["zero_inflated_poisson"]


def fitted(likelihood, table=TABLE, **options):
    options = QUICK | options
    classes = likelihood in families.likelihoods("classes")
    model = (
        ISLaBClassifier(**options) if classes else ISLaBRegressor(likelihood=likelihood, **options)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, TARGETS[likelihood])


def predicted(model, rows=NEW, n_draws=DRAWS, level=0.8):
    """Means and interval ends of the model itself, with as many draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of unknown categories
        found = model.predictions(rows, n_draws=n_draws)
        ends = found.interval(level)
    if hasattr(model, "classes_") and len(model.classes_) == 2:
        ends = ends[:, 1:]
    return found, ends


def close(found, right):
    np.testing.assert_allclose(np.asarray(found, dtype=float), right, rtol=1e-6, atol=1e-9)


def run_python(text):
    module: dict = {}
    exec(text, module)
    return module


def records(rows=NEW):
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


def in_sqlite(query, rows=NEW, name="data"):
    with sqlite3.connect(":memory:") as connection:
        rows.to_sql(name, connection, index=False)
        return pd.read_sql_query(query, connection)


def in_duckdb(query, rows=NEW, name="data"):
    with duckdb.connect() as connection:
        connection.register("given", rows)
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {quoted} AS SELECT * FROM given")
        return connection.execute(query).df()


def in_onnx(proto, rows=NEW):
    session = runtime.InferenceSession(proto.SerializeToString())
    columns = {p.key: json.loads(p.value) for p in proto.metadata_props}["columns"]
    feed = {}
    for given, name in zip(session.get_inputs(), columns, strict=True):
        if given.type == "tensor(string)":
            feed[given.name] = rows[[name]].astype(object).fillna(MISSING_TEXT).to_numpy(str)
        else:
            feed[given.name] = rows[[name]].to_numpy(float)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def sql_means(model, frame):
    if hasattr(model, "classes_"):
        return frame[[f"probability_{name}" for name in model.classes_]]
    return frame[["prediction"]]


def sql_ends(model, frame):
    names = [""]
    if hasattr(model, "classes_"):
        names = [f"_{c}" for c in model.classes_[len(model.classes_) == 2 :]]
    return np.stack([frame[[f"lower{n}", f"upper{n}"]].to_numpy(float) for n in names], axis=1)


def median_response(model, rows=NEW):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        eta = model.network_.predictor(model.columns_.encode(rows))
    known = model.network_.known_likelihood()
    if known.ordered:
        places = [model.levels_.tolist().index(label) for label in model.classes_]
        return known.class_probabilities(eta)[:, places]
    return known.mean(eta)[:, : eta.shape[1] // known.n_predictors]
