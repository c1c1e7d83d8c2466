"""Models logged to MLflow, loaded from it, and served on loopback."""

import json
import threading
import time
import warnings
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor
from islab.evaluate import evaluate
from islab.tables.predicted import predicted_table

SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        # What MLflow warns of while it imports its own modules is not ours.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = pytest.importorskip("mlflow")
            pytest.importorskip("mlflow.pyfunc.scoring_server")
        module.set_tracking_uri(tmp_path_factory.mktemp("mlflow").as_uri())
        module.set_experiment("tests")
        yield module


@pytest.fixture(scope="module")
def rows(table):
    return table.drop(columns="rank")


@pytest.fixture(scope="module")
def model(rows, numbers):
    return ISLaBRegressor(max_epochs=30, n_restarts=1, random_state=0).fit(rows, numbers)


@pytest.fixture(scope="module")
def logged(mlflow, model, rows, numbers):
    from islab.mlflow import log_model

    with mlflow.start_run() as run:
        info = log_model(model, rows, numbers)
    return info.model_uri, mlflow.get_run(run.info.run_id)


@pytest.fixture(scope="module")
def served(mlflow, logged):
    return mlflow.pyfunc.load_model(logged[0])


def test_a_logged_model_comes_back_whole(logged, model, rows):
    from islab.mlflow import load_model

    again = load_model(logged[0])
    np.testing.assert_array_equal(again.predict_interval(rows), model.predict_interval(rows))
    assert again.get_params() == model.get_params()


def test_the_run_holds_scores_and_parameters(logged, model, rows, numbers):
    data = logged[1].data
    scores = evaluate(model, rows, numbers)
    for name in ("rmse", "nll", "used_weights"):
        assert data.metrics[name] == pytest.approx(scores[name])
    assert data.params["max_epochs"] == "30"


def test_the_run_holds_the_report(mlflow, logged):
    path = mlflow.artifacts.download_artifacts(run_id=logged[1].info.run_id)
    assert "ISLaBRegressor" in Path(path, "report.html").read_text(encoding="utf-8")


def test_nothing_that_is_logged_is_a_pickle(mlflow, logged):
    folder = Path(mlflow.artifacts.download_artifacts(logged[0]))
    kinds = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert kinds == {"", ".islab", ".yaml", ".txt"}


def test_as_a_python_function_it_predicts_rows_with_an_interval(served, model, rows):
    found = served.predict(rows, params={"level": 0.8, "average": "median"})
    pd.testing.assert_frame_equal(found, predicted_table(model, rows, 0.8, "median"))
    assert {"prediction", "sd", "lower", "upper"} == set(found.columns)


def test_whole_numbers_and_missing_values_are_taken_as_they_come(served, model, rows):
    odd = rows.iloc[:2].assign(age=[3, 4], size=[np.nan, 1.0])
    with pytest.warns(UserWarning, match="missing values in 1 row of column 'size'"):
        found = served.predict(odd)
    assert np.isfinite(found["prediction"]).all()


def test_a_column_that_is_not_there_is_named(mlflow, served, rows):
    with pytest.raises(mlflow.exceptions.MlflowException, match="town"):
        served.predict(rows.drop(columns="town"))


def test_targets_without_rows_are_refused(mlflow, model, numbers):
    from islab.mlflow import log_model

    with pytest.raises(ValueError, match="y without X"):
        log_model(model, y=numbers)


def test_a_server_on_loopback_answers_with_the_same_numbers(served, model, rows):
    uvicorn = pytest.importorskip("uvicorn")
    from mlflow.pyfunc.scoring_server import init

    config = uvicorn.Config(init(served), host="127.0.0.1", port=0, log_level="error", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        asked = {
            "dataframe_split": json.loads(
                rows[:5].to_json(orient="split", date_format="iso", double_precision=15)
            ),
            "params": {"level": 0.9},
        }
        request = Request(
            f"http://127.0.0.1:{port}/invocations",
            data=json.dumps(asked).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=60) as answer:
            found = pd.DataFrame(json.load(answer)["predictions"])
    finally:
        server.should_exit = True
        thread.join()
    expected = predicted_table(model, rows[:5], 0.9)
    np.testing.assert_allclose(found[expected.columns], expected, rtol=1e-12)
