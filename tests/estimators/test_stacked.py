"""Estimators whose posterior is a set of stacked variational runs: nothing after a fit can tell."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.estimators import sampling

QUICK = {
    "posterior": "stacked",
    "max_epochs": 60,
    "hidden_layer_sizes": (4,),
    "n_draws": 400,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def table():
    """Two numbers that matter, a category that does, and one number that does not vary."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["size", "age"])
    frame["colour"] = rng.choice(["red", "green"], 300)
    frame["same"] = 1.0
    bend = 2 * np.abs(frame["age"])
    y = 2 * frame["size"] + bend + (frame["colour"] == "red") + rng.normal(scale=0.3, size=300)
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def regressor(table):
    return ISLaBRegressor(**QUICK).fit(*table)


@pytest.fixture(scope="module")
def classifier(table):
    frame, y = table
    return ISLaBClassifier(**QUICK).fit(frame, np.where(y > 2, "yes", "no"))


def test_predictions_mix_the_runs(regressor, table):
    posterior = regressor.posterior_
    rows = np.asarray(regressor.columns_.encode(table[0]), dtype=float)
    scale = posterior.data_scale
    standard = scale.standardise(rows)
    means = [chain.predictor(posterior.architecture, standard) for chain in posterior.chains]
    mixed = np.tensordot(posterior.chain_weights, [own.mean(axis=0) for own in means], axes=1)
    np.testing.assert_allclose(regressor.predict(table[0]), scale.restore(mixed)[:, 0], atol=0.1)


def test_each_draw_has_the_noise_of_its_run(regressor, table):
    noise = regressor.predictions(table[0]).noise("full")
    of_runs = {round(float(chain.noise[0, 0]), 12) for chain in regressor.posterior_.chains}
    spread = regressor.posterior_.data_scale.y_scale[0] ** 2
    assert {round(float(each), 12) for each in noise.ravel() / spread} <= of_runs
    assert len(of_runs) > 1


def test_epistemic_variance_holds_the_differences_of_the_runs(regressor, table):
    split = regressor.decompose_uncertainty(table[0])
    samples = regressor.predictions(table[0]).samples()
    np.testing.assert_allclose(split.epistemic, samples.var(axis=0), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The class that is explained differs")
@pytest.mark.parametrize("name", ["regressor", "classifier"])
@pytest.mark.parametrize("model", ["full", "median"])
def test_contributions_add_up_to_each_prediction(name, model, table, request):
    estimator = request.getfixturevalue(name)
    found = estimator.explain_local(table[0].head(20), model=model)
    total = found.intercept + found.variable_summary.mean.sum(axis=1)
    predictor = estimator.predictions(table[0].head(20)).predictor(model).mean(axis=0)
    np.testing.assert_allclose(total, predictor, atol=1e-6)


@pytest.mark.parametrize("name", ["regressor", "classifier"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_gives_the_same_predictions(name, sparse, table, tmp_path, request):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "m.islab", sparse=sparse)
    again = load(tmp_path / "m.islab")
    ask = "predict" if name == "regressor" else "predict_proba"
    options = {"model": "median"} if sparse else {}
    expected = getattr(model, ask)(table[0], **options)
    np.testing.assert_array_equal(getattr(again, ask)(table[0]), expected)


def test_a_file_keeps_the_runs_and_the_price_of_reading(regressor, tmp_path):
    regressor.save(tmp_path / "m.islab")
    again, before = load(tmp_path / "m.islab").posterior_, regressor.posterior_
    assert again.stacking == before.stacking
    assert again.price == before.price
    pd.testing.assert_frame_equal(again.to_frame(), before.to_frame())
    pd.testing.assert_frame_equal(again.pairs(), before.pairs())


def test_the_summary_tells_of_restarts_and_not_of_chains(regressor):
    facts = regressor.summary().facts
    assert facts["restarts"] == regressor.posterior_.stacking
    assert "4 runs, stacked with shares" in facts["restarts"]
    assert "readable network" in facts
    assert "chains" not in facts


def test_runs_have_no_diagnostics_of_chains(regressor):
    for ask in (regressor.diagnostics, regressor.to_arviz):
        with pytest.raises(ValueError, match="holds no chains; try posterior='sampled'"):
            ask()


def test_the_report_tells_of_stacking(classifier, table, tmp_path):
    frame, y = table
    classifier.report(tmp_path / "r.html", frame, np.where(y > 2, "yes", "no"))
    page = (tmp_path / "r.html").read_text()
    assert classifier.posterior_.stacking in page
    assert "What reading one network costs" in page
    assert "R-hat" not in page


def test_exported_code_predicts_as_the_runs_do(regressor, table):
    code = regressor.export("python", model="full")
    module: dict = {}
    exec(code, module)
    row = table[0].iloc[0].to_dict()
    assert module["predict"](row) == pytest.approx(regressor.predict(table[0])[0], rel=0.1)


def test_what_varies_is_used_and_what_does_not_is_not(regressor):
    found = regressor.posterior_.to_frame()
    assert (found.loc[["size", "age"], "p_used"] > 0.95).all()
    assert found.loc["age", "p_nonlinear"] > 0.9
    assert found.loc["same", "p_used"] == 0


def test_the_number_of_jobs_does_not_change_the_model(regressor, table):
    two = ISLaBRegressor(**QUICK, n_jobs=2).fit(*table)
    np.testing.assert_array_equal(two.predict(table[0]), regressor.predict(table[0]))


def test_restarts_are_stacked_where_chains_cannot_serve(table, monkeypatch):
    settings = QUICK | {"posterior": "auto", "max_epochs": 20}
    monkeypatch.setattr(sampling, "MOST_PRODUCTS", 0)
    model = ISLaBRegressor(**settings).fit(*table)
    assert isinstance(model.posterior_, SampledPosterior)
    assert model.posterior_.stacked


def test_parameters_of_a_variational_posterior_get_one(table):
    settings = QUICK | {"posterior": "auto", "max_epochs": 20}
    model = ISLaBRegressor(**settings, prior_inclusion={"hidden": 0.1}).fit(*table)
    assert isinstance(model.posterior_, Posterior)


def test_a_variational_posterior_that_is_asked_for_is_one_distribution(table):
    settings = QUICK | {"posterior": "independent", "max_epochs": 20}
    assert isinstance(ISLaBRegressor(**settings).fit(*table).posterior_, Posterior)


def test_counts_with_an_exposure_are_stacked():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=200), "time": rng.uniform(1, 5, 200)})
    y = rng.poisson(frame["time"] * np.exp(0.5 * frame["size"]))
    model = ISLaBRegressor(**QUICK, likelihood="poisson").fit(frame, y, exposure="time")
    rate = model.predict(frame) / frame["time"]
    truth = np.exp(0.5 * frame["size"])
    assert np.corrcoef(rate, truth)[0, 1] > 0.95
    assert model.posterior_.stacked


def test_noise_that_is_found_after_the_weights_is_found_for_every_run(table):
    model = ISLaBRegressor(**QUICK, training={"noise": 0.5}).fit(*table)
    noises = [chain.noise[0, 0] for chain in model.posterior_.chains]
    assert not np.isin(0.5, noises)
