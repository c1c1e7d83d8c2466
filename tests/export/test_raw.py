"""Exports of fitted models predict rows of the table as the model does, whatever names hold."""

import json
import math
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core import families
from islab.core.expressions import MISSING_TEXT
from islab.export import to_onnx, to_python, to_sql
from islab.export.portable import Layer, Portable

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


@pytest.fixture(scope="module", params=TARGETS)
def model(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def classifier():
    return fitted("bernoulli")


@pytest.fixture(scope="module")
def regressor():
    return fitted("gaussian", posterior="sampled")


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


def test_python_predicts_the_same(model):
    found, ends = predicted(model)
    module = run_python(model.export("python", n_draws=DRAWS))
    if hasattr(model, "classes_"):
        close([module["predict_proba"](row) for row in records()], found.mean())
        assert [module["predict"](row) for row in records()] == found.predicted().tolist()
    else:
        close([module["predict"](row) for row in records()], found.mean()[:, 0])
    interval = np.array([module["predict_interval"](row, 0.8) for row in records()])
    close(interval.reshape(ends.shape), ends)


@pytest.mark.parametrize(
    ("run", "dialect"), [(in_sqlite, "sqlite"), (in_duckdb, "standard")], ids=["sqlite", "duckdb"]
)
def test_sql_predicts_the_same(model, run, dialect):
    found, ends = predicted(model)
    frame = run(model.export("sql", n_draws=DRAWS, level=0.8, dialect=dialect))
    close(sql_means(model, frame), found.mean())
    if hasattr(model, "classes_"):
        assert frame["prediction"].tolist() == found.predicted().tolist()
    else:
        close(frame["sd"], found.sd()[:, 0])
    close(sql_ends(model, frame), ends)
    pd.testing.assert_series_equal(frame["size"], NEW["size"])


def test_onnx_predicts_the_same(model):
    found, ends = predicted(model)
    results = in_onnx(model.export("onnx", n_draws=DRAWS, level=0.8))
    close(results["response"], found.mean())
    if not hasattr(model, "classes_"):
        close(results["sd"], found.sd())
    close(np.stack([results["lower"], results["upper"]], axis=-1), ends)


def median_response(model, rows=NEW):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        eta = model.network_.predictor(model.columns_.encode(rows))
    known = model.network_.known_likelihood()
    if known.ordered:
        places = [model.levels_.tolist().index(label) for label in model.classes_]
        return known.class_probabilities(eta)[:, places]
    return known.mean(eta)[:, : eta.shape[1] // known.n_predictors]


def test_the_readable_network_predicts_the_same_in_every_form(model):
    torch = pytest.importorskip("torch")
    right = median_response(model)
    module = run_python(model.export("python", model="median"))
    close([module["_means"](row) for row in records()], right)
    frames = (
        in_sqlite(model.export("sql", model="median", dialect="sqlite")),
        in_duckdb(model.export("sql", model="median")),
    )
    for frame in frames:
        close(sql_means(model, frame).to_numpy()[:, -right.shape[1] :], right)
        assert not [name for name in frame if name.startswith(("lower", "sd"))]
    proto = model.export("onnx", model="median")
    close(in_onnx(proto)["response"][:, -right.shape[1] :], right)
    network = model.export("torch")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        close(network(network.encode(NEW)), right)


def test_draws_of_the_readable_network_predict_as_it_does(regressor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        right = regressor.predictions(NEW, n_draws=7).mean("median")[:, 0]
    module = run_python(regressor.export("python", model="median", n_draws=7))
    close([module["predict"](row) for row in records()], right)


@pytest.mark.parametrize(
    "likelihood", ["gaussian", "heteroscedastic", "ordinal", "zero_inflated_negative_binomial"]
)
def test_sampled_posteriors_predict_the_same_everywhere(likelihood):
    model = fitted(likelihood, posterior="sampled")
    found, ends = predicted(model)
    learned = families.likelihood(likelihood).learns_noise
    assert np.ptp(found.noise(), axis=0).all() == learned  # every draw has its own
    module = run_python(model.export("python", n_draws=DRAWS))
    close([module["_means"](row) for row in records()], found.mean())
    interval = np.array([module["predict_interval"](row, 0.8) for row in records()])
    close(interval.reshape(ends.shape), ends)
    frame = in_duckdb(model.export("sql", n_draws=DRAWS, level=0.8))
    results = in_onnx(model.export("onnx", n_draws=DRAWS, level=0.8))
    close(sql_means(model, frame), found.mean())
    close(results["response"], found.mean())
    if families.likelihood(likelihood).target == "counts":
        close(frame[["sd"]], found.sd())
        close(results["sd"], found.sd())
    close(sql_ends(model, frame), ends)
    close(np.stack([results["lower"], results["upper"]], axis=-1), ends)


@pytest.mark.parametrize("activation", [*families.activations(), ("tanh", "relu")])
def test_every_activation_is_spelled_in_every_form(activation):
    model = fitted("gaussian", activation=activation)
    right = predicted(model)[0].mean()
    module = run_python(model.export("python", n_draws=DRAWS))
    close([[module["predict"](row)] for row in records()], right)
    close(in_onnx(model.export("onnx", n_draws=DRAWS, level=None))["response"], right)
    for run, dialect in ((in_sqlite, "sqlite"), (in_duckdb, "standard")):
        query = model.export("sql", n_draws=DRAWS, level=None, dialect=dialect)
        close(run(query)[["prediction"]], right)


def everywhere_right(likelihood, eta, noise):
    """Intervals in every form are those of predict, from draws of predictor and noise."""
    nothing = np.zeros((len(eta), 1, 0))

    class Source:
        def portable(self, model, n_draws):
            return Portable(
                columns=("a",),
                named=True,
                covariates={},
                layers=(Layer(nothing, nothing, eta),),
                activations=(),
                likelihood=likelihood,
                noise=noise,
                outputs=("y",),
                flat=True,
            )

    right = families.likelihood(likelihood).predictive_quantiles(
        eta[:, None], noise[:, None], [0.05, 0.95]
    )[:, 0, 0]
    rows = pd.DataFrame({"a": [1.0]})
    for run, dialect in ((in_sqlite, "sqlite"), (in_duckdb, "standard")):
        frame = run(to_sql(Source(), dialect=dialect), rows)
        close(frame[["lower", "upper"]].to_numpy()[0], right)
    session = runtime.InferenceSession(to_onnx(Source()).SerializeToString())
    close(np.ravel(session.run(["lower", "upper"], {"x": rows.to_numpy()})), right)
    close(run_python(to_python(Source()))["predict_interval"]({}), right)


@pytest.mark.parametrize("likelihood", ["gaussian", "student_t"])
def test_quantiles_of_draws_that_lie_far_apart_are_found(likelihood):
    """Newton's steps from the moments of such a mixture would leave for infinity."""
    means = np.array([-100.0] * 3 + [0.0] * 20 + [1000.0] * 7)[:, None]
    everywhere_right(likelihood, means, np.linspace(0.5, 2.0, 30)[:, None])


@pytest.mark.parametrize(
    ("likelihood", "n_noise"),
    [
        ("poisson", 1),
        ("negative_binomial", 1),
        ("zero_inflated_poisson", 1),
        ("zero_inflated_negative_binomial", 2),
    ],
)
def test_quantiles_of_counts_of_any_size_are_found(likelihood, n_noise):
    rates = np.array([1e-300, 0.01, 0.5] * 3 + [4.0] * 10 + [900.0] * 4)
    noise = np.linspace(0.05, 0.4, len(rates))[:, None].repeat(n_noise, axis=1)
    everywhere_right(likelihood, np.log(rates)[:, None], noise)


def test_a_hostile_table_name_is_quoted(classifier):
    name = 'da"ta; DROP TABLE x; --'
    query = classifier.export("sql", model="median", table=name)
    assert len(in_duckdb(query, name=name)) == len(NEW)
    assert len(in_sqlite(query, name=name)) == len(NEW)


def test_a_column_that_the_table_lacks_is_an_error_in_sqlite(classifier):
    """Not text, which SQLite would make of a name in quotes."""
    query = classifier.export("sql", model="median", dialect="sqlite")
    with pytest.raises(pd.errors.DatabaseError, match="no such column"):
        in_sqlite(query, NEW.drop(columns="size"))


def test_text_with_a_nul_is_refused_by_sql():
    table = TABLE.assign(**{"bad\0name": TABLE["size"]}).drop(columns="size")
    model = fitted("gaussian", table)
    with pytest.raises(ValueError, match="NUL"):
        model.export("sql")
    assert "bad\\x00name" in model.export("python")


def test_nan_in_a_table_of_duckdb_is_a_missing_value(regressor):
    query = regressor.export("sql", model="median")
    with duckdb.connect() as connection:
        connection.register("given", NEW)
        connection.execute("CREATE TABLE data AS SELECT * FROM given")
        quoted = '"' + AGE.replace('"', '""') + '"'
        connection.execute(f"UPDATE data SET {quoted} = 'nan' WHERE {quoted} IS NULL")
        found = connection.execute(query).df()
    close(found[["prediction"]], median_response(regressor))


def test_models_that_refuse_missing_values_predict_none_for_them():
    table = TABLE[["size", "grade"]]
    model = fitted("gaussian", table, missing="error")
    rows = pd.DataFrame({"size": [1.0, np.nan, 2.0], "grade": ["yes", "no", None]})
    query = model.export("sql", n_draws=DRAWS)
    assert in_duckdb(query, rows)["prediction"].isna().tolist() == [False, True, True]
    found = in_onnx(model.export("onnx", n_draws=DRAWS), rows)["response"][:, 0]
    assert np.isnan(found).tolist() == [False, True, True]
    module = run_python(model.export("python", n_draws=DRAWS))
    found = [math.isnan(module["predict"](row)) for row in records(rows)]
    assert found == [False, True, True]


def test_offsets_and_exposures_are_columns_of_the_export():
    rng = np.random.default_rng(0)
    table = TABLE[["size", "grade"]].assign(weeks=rng.uniform(1, 9, len(TABLE)))
    table["known"] = rng.normal(size=len(table)) / 5
    y = rng.poisson(table["weeks"] * np.exp(0.1 * table["size"] + table["known"]))
    model = ISLaBRegressor(likelihood="poisson", **QUICK)
    model.fit(table, y, offset="known", exposure="weeks")
    right = model.predictions(table, n_draws=DRAWS).mean()
    module = run_python(model.export("python", n_draws=DRAWS))
    close([[module["predict"](row)] for row in records(table)], right)
    close(in_duckdb(model.export("sql", n_draws=DRAWS), table)[["prediction"]], right)
    close(in_onnx(model.export("onnx", n_draws=DRAWS), table)["response"], right)
    assert "log(`weeks`)" in model.export("formula")
    with pytest.raises(ValueError, match="offset"):
        model.export("torch")


def test_an_offset_shifts_the_mean_alone():
    table = TABLE[["size", "grade"]].assign(known=np.linspace(-500, 500, len(TABLE)))
    model = ISLaBRegressor(likelihood="heteroscedastic", **QUICK)
    model.fit(table, TARGETS["heteroscedastic"] + table["known"], offset="known")
    found = model.predictions(table, n_draws=DRAWS)
    right = np.column_stack([found.mean(), found.sd()])
    close(in_duckdb(model.export("sql", n_draws=DRAWS), table)[["prediction", "sd"]], right)
    results = in_onnx(model.export("onnx", n_draws=DRAWS), table)
    close(np.column_stack([results["response"], results["sd"]]), right)
    ends = model.predictions(table[:9], n_draws=DRAWS).interval()[:, 0]
    module = run_python(model.export("python", n_draws=DRAWS))
    close([module["predict_interval"](row) for row in records(table[:9])], ends)
    row = {**records(table)[0], "known": 0.0}
    one = run_python(model.export("python", model="median"))["predictor"]
    close(np.subtract(one({**row, "known": 7.0}), one(row)), [7.0, 0.0])


@pytest.mark.parametrize("likelihood", ["gaussian", "heteroscedastic"])
def test_several_targets_have_a_column_each(likelihood):
    y = pd.DataFrame({"first": SCORE, "sec'ond": -2 * SCORE})
    model = ISLaBRegressor(likelihood=likelihood, **QUICK).fit(TABLE, y)
    found, ends = predicted(model)
    frame = in_duckdb(model.export("sql", n_draws=DRAWS, level=0.8))
    close(frame[["prediction_first", "prediction_sec'ond"]], found.mean())
    close(frame[["lower_sec'ond", "upper_sec'ond"]], ends[:, 1])
    module = run_python(model.export("python", n_draws=DRAWS))
    close([module["predict"](row) for row in records()], found.mean())


def test_models_of_arrays_read_a_matrix_or_a_sequence():
    X = TABLE[[AGE, "size"]].to_numpy()
    model = ISLaBRegressor(**QUICK).fit(X, TARGETS["gaussian"])
    right = model.predictions(X, n_draws=DRAWS).mean()
    module = run_python(model.export("python", n_draws=DRAWS))
    close([[module["predict"](row)] for row in X.tolist()], right)
    session = runtime.InferenceSession(model.export("onnx", n_draws=DRAWS).SerializeToString())
    close(session.run(["response"], {"x": X})[0], right)


def test_numeric_categories_and_booleans_are_found_however_a_database_spells_them():
    codes = np.random.default_rng(0).choice([1.0, 2.0, 3.0], len(TABLE))
    table = pd.DataFrame({"code": pd.Categorical(codes), "size": TABLE["size"]})
    model = fitted("gaussian", table)
    right = model.predictions(table, n_draws=DRAWS).mean()
    query = model.export("sql", n_draws=DRAWS, level=None)
    close(in_duckdb(query, table.assign(code=codes))[["prediction"]], right)
    whole = table.assign(code=codes.astype(int))
    close(in_duckdb(query, whole)[["prediction"]], right)
    close(in_sqlite(query, whole)[["prediction"]], right)
    module = run_python(model.export("python", n_draws=DRAWS))
    close([[module["predict"](row)] for row in records(whole)], right)


def test_booleans_as_text_are_found_as_numbers_too():
    truth = np.random.default_rng(0).random(len(TABLE)) < 0.5
    table = pd.DataFrame({"member": truth.astype(str), "size": TABLE["size"]})
    model = fitted("gaussian", table)
    right = model.predictions(table, n_draws=DRAWS).mean()
    query = model.export("sql", n_draws=DRAWS, level=None)
    module = run_python(model.export("python", n_draws=DRAWS))
    for member in (truth, truth.astype(int), truth.astype(str)):
        rows = table.assign(member=member)
        close(in_duckdb(query, rows)[["prediction"]], right)
        close([[module["predict"](row)] for row in records(rows)], right)
    close(in_sqlite(query, table.assign(member=truth.astype(int)))[["prediction"]], right)


def test_a_model_of_a_sparse_file_exports_its_network(classifier, tmp_path):
    classifier.save(tmp_path / "small.islab", sparse=True)
    small = islab.load(tmp_path / "small.islab")
    assert small.export("python") == classifier.export("python", model="median")
    with pytest.raises(ValueError, match="saved with sparse=True"):
        small.export("sql", model="full")


@pytest.mark.parametrize("kind", ["datetime64[us]", "date", "text"])
def test_dates_are_read_as_dates(kind):
    rng = np.random.default_rng(0)
    seconds = 60 * rng.integers(0, 1_500_000, len(TABLE))
    times = pd.Series(pd.Timestamp("2023-07-01") + pd.to_timedelta(seconds, "s"))
    times = times if kind == "datetime64[us]" else times.dt.floor("D")
    times[[3, 5, 9, 20, 21, 22, 23]] = pd.NaT
    y = (times - times.min()).dt.total_seconds().fillna(0) / 1e6 + rng.normal(size=len(TABLE))
    text = times.dt.strftime("%Y-%m-%d").where(times.notna(), None)
    table = pd.DataFrame({"when": text if kind == "text" else times, "size": TABLE["size"]})
    if kind == "date":
        table = pytest.importorskip("polars").from_pandas(table)
        table = table.with_columns(table["when"].cast(pytest.importorskip("polars").Date))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ISLaBRegressor(**QUICK | {"max_epochs": 100}).fit(table, y)
    assert any(name.startswith("when: days") for name in model.network_.scale.names)
    right = model.predictions(table, n_draws=DRAWS).mean()
    rows = table.to_pandas() if kind == "date" else table
    query = model.export("sql", n_draws=DRAWS, level=None)
    if kind == "date":
        query = query.replace('"data"', "given")
        with duckdb.connect() as connection:
            connection.register("given", table.to_arrow())
            close(connection.execute(query).df()[["prediction"]], right)
    else:
        close(in_duckdb(query, rows)[["prediction"]], right)
    spelled = rows.assign(when=rows["when"].astype(str).where(rows["when"].notna(), None))
    query = model.export("sql", n_draws=DRAWS, level=None, dialect="sqlite")
    close(in_sqlite(query, spelled)[["prediction"]], right)
    module = run_python(model.export("python", n_draws=DRAWS))
    for given in (rows, spelled):
        close([[module["predict"](row)] for row in records(given)], right)
    days = (times - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    close(in_onnx(model.export("onnx", n_draws=DRAWS), rows.assign(when=days))["response"], right)


def test_an_onnx_input_keeps_apart_from_outputs_of_its_name():
    table = pd.DataFrame({"response": TABLE["size"], "": TABLE["grade"]})
    model = fitted("gaussian", table)
    found = in_onnx(model.export("onnx", n_draws=DRAWS), table)
    close(found["response"], model.predictions(table, n_draws=DRAWS).mean())


def test_a_model_that_uses_nothing_predicts_its_constant():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": ["u", "v"] * 30})
    model = ISLaBRegressor(posterior="sampled", sparsity=1.0, random_state=0)
    model.fit(X, rng.normal(size=60))
    assert not len(model.network_.covariates)
    right = median_response(model, X)
    close(in_duckdb(model.export("sql", model="median"), X)[["prediction"]], right)
    proto = model.export("onnx", model="median")
    session = runtime.InferenceSession(proto.SerializeToString())
    close(session.run(["response"], {"x": np.zeros((60, 2))})[0], right)


def test_the_formula_says_how_covariates_are_made(classifier):
    text = classifier.export("formula", digits=3)
    known = "`grade=yes` = 1 if `grade` is `yes`, 0 if `grade` is `no`, else 0."
    assert [line for line in text.splitlines() if line.startswith(known)]
    latex = classifier.export("latex", digits=3)
    assert r"\begin{cases}" in latex
    assert latex.count(r"\begin{cases}") == latex.count(r"\end{cases}")


def test_the_graph_knows_the_columns_of_covariates(classifier):
    pytest.importorskip("networkx")
    from islab.export import to_networkx

    nodes = dict(to_networkx(classifier).nodes(data=True))
    found = {node["label"]: node["columns"] for node in nodes.values() if "columns" in node}
    assert json.loads(found["grade=yes"]) == ["grade"]


@pytest.mark.parametrize("to", ["formula", "latex", "python", "sql", "onnx", "graphml"])
def test_a_file_holds_what_is_returned(classifier, tmp_path, to):
    found = classifier.export(to, tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert content == (found.encode() if isinstance(found, str) else found.SerializeToString())


@pytest.mark.slow
def test_a_torch_file_predicts_without_islab(classifier, tmp_path):
    torch = pytest.importorskip("torch")
    network = classifier.export("torch", tmp_path / "model.pt2")
    x = network.encode(TABLE)
    with torch.no_grad():
        found = torch.export.load(tmp_path / "model.pt2").module()(x)
        close(found, network(x))


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("excel", {}, "Got to='excel', expected one of formula"),
        ("python", {"n_draws": 0}, "Got n_draws=0"),
        ("python", {"model": "half"}, "Got model='half'"),
        ("sql", {"level": 1.5}, "Got level=1.5"),
        ("onnx", {"level": 0.0}, "Got level=0.0"),
        ("sql", {"dialect": "oracle"}, "Got dialect='oracle'"),
    ],
)
def test_wrong_options_are_refused(classifier, to, options, message):
    with pytest.raises(ValueError, match=message):
        classifier.export(to, **options)


@pytest.mark.parametrize(
    ("to", "limit"),
    [("sql", "islab.export.sql.MOST_COLUMNS"), ("python", "islab.export.portable.MOST_NUMBERS")],
)
def test_models_that_are_too_large_are_refused_with_a_remedy(classifier, monkeypatch, to, limit):
    monkeypatch.setattr(limit, 3)
    with pytest.raises(ValueError, match=r"expected at most 3.*try .*model='median'"):
        classifier.export(to)
