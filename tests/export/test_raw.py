"""Exports of fitted models predict rows of the table as the model does, whatever names hold."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import islab
from islab.core import families
from islab.export import to_onnx, to_python, to_sql
from islab.export.portable import Layer, Portable
from tests.export.running import (
    DRAWS,
    NEW,
    TABLE,
    TARGETS,
    close,
    fitted,
    in_duckdb,
    in_onnx,
    in_sqlite,
    median_response,
    predicted,
    records,
    run_python,
    runtime,
    sql_ends,
    sql_means,
)


@pytest.fixture(scope="module", params=TARGETS)
def model(request):
    return fitted(request.param)


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


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("posterior", ["sampled", "independent"])
def test_with_all_draws_of_the_model_exports_give_what_predict_gives(likelihood, posterior):
    model = fitted(likelihood, posterior=posterior, n_draws=150)
    classes = likelihood == "bernoulli"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of unknown categories
        right = model.predict_proba(NEW) if classes else model.predict(NEW)[:, None]
    predict = run_python(model.export("python", n_draws=150))[
        "predict_proba" if classes else "predict"
    ]
    close(np.reshape([predict(row) for row in records()], right.shape), right)
    for run, dialect in ((in_sqlite, "sqlite"), (in_duckdb, "standard")):
        query = model.export("sql", dialect=dialect, level=None, n_draws=150)
        close(sql_means(model, run(query)), right)
    close(in_onnx(model.export("onnx", n_draws=150))["response"], right)


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
    # The paper's recipe has no linear model to choose instead; all weights start in use.
    network = {"training": "paper", "shrink": False, "inclusion_init": (5, 5)}
    model = fitted("gaussian", activation=activation, **network)
    net = model.posterior_.architecture
    hidden = model.posterior_.mean_weights()[net.hidden_block(2).weights]
    assert (np.abs(hidden) > 0.01).any()
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


def test_a_model_of_a_sparse_file_exports_its_network(classifier, tmp_path):
    classifier.save(tmp_path / "small.islab", sparse=True)
    small = islab.load(tmp_path / "small.islab")
    assert small.export("python") == classifier.export("python", model="median")
    with pytest.raises(ValueError, match="saved with sparse=True"):
        small.export("sql", model="full")


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
