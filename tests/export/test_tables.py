"""Exports read tables as people have them: dates, booleans, offsets, missing cells, odd names."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor
from tests.export.running import (
    AGE,
    DRAWS,
    NEW,
    QUICK,
    SCORE,
    TABLE,
    TARGETS,
    close,
    duckdb,
    fitted,
    in_duckdb,
    in_onnx,
    in_sqlite,
    median_response,
    predicted,
    records,
    run_python,
    runtime,
)


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
