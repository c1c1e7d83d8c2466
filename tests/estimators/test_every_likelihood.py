"""What each likelihood must do, from a fit to a report: a new one is tested by being registered."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core import families
from islab.evaluate import evaluate
from islab.io.store import load

NAMES = families.likelihoods()
N, N_NEW = 500, 4000
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "max_epochs": 80, "n_draws": 200}
LEVELS = [0.05, 0.5, 0.95]


class Truth:
    """A likelihood whose predictors follow the first of two covariates."""

    def __init__(self, name):
        self.family = families.likelihood(name)
        self.classes = self.family.target == "classes"
        self.n_outputs = 3 if self.family.one_hot else self.family.n_predictors
        n_noise = self.family.n_noise(self.n_outputs)
        self.noise = np.full(n_noise or 1, 1.0 if n_noise is None else 0.5)
        self.known = self.family.given(self.noise)

    def rows(self, seed, n):
        rng = np.random.default_rng(seed)
        x = pd.DataFrame(rng.uniform(-1.7, 1.7, (n, 2)), columns=["a", "b"])
        slopes = np.array([0.8, -0.5, 0.3])[: self.n_outputs]
        eta = 0.6 + np.outer(x["a"], slopes)
        y = self.family.sample(eta, self.noise, rng)
        if self.family.one_hot:
            return x, pd.Series(y.argmax(axis=1), name="y"), eta
        return x, pd.Series(y[:, 0], name="y"), eta

    def estimator(self, **params):
        if not self.classes:
            name = self.family.name
            return ISLaBRegressor(likelihood=name, **PARAMS, random_state=0, **params)
        name = "ordinal" if self.family.ordered else "auto"
        return ISLaBClassifier(likelihood=name, **PARAMS, random_state=0, **params)

    def expected(self, eta):
        """Class probabilities, or expected targets."""
        if self.classes:
            return self.known.class_probabilities(eta)
        return self.known.mean(eta)[:, :1]


@pytest.fixture(scope="module", params=NAMES)
def fitted(request):
    truth = Truth(request.param)
    x, y, _ = truth.rows(0, N)
    return truth, truth.estimator().fit(x, y), x, y


def predicted(truth, model, x):
    return model.predict_proba(x) if truth.classes else model.predict(x)[:, None]


def test_what_is_expected_is_recovered(fitted):
    truth, model, _, _ = fitted
    x, _, eta = truth.rows(1, N_NEW)
    expected = truth.expected(eta)
    error = predicted(truth, model, x) - expected
    assert model.network_.likelihood == truth.family.name
    assert np.sqrt((error**2).mean()) < 0.25 * expected.std(axis=0).mean()


def test_the_covariate_without_effect_is_not_certain(fitted):
    _, model, _, _ = fitted
    used = model.posterior_.to_frame()["p_used"]
    assert used["a"] > 0.99
    assert used["b"] < 0.8


def test_intervals_cover(fitted):
    truth, model, _, _ = fitted
    x, y, eta = truth.rows(2, N_NEW)
    low, high = np.moveaxis(model.predict_interval(x, 0.9), -1, 0)
    if truth.classes:  # of probabilities, which depend on a few numbers only
        expected = truth.expected(eta)
        exact = expected[:, 1] if len(model.classes_) == 2 else expected
        assert ((low <= exact) & (exact <= high)).mean() > 0.5
        assert (high - low).mean() < 0.25
        return
    own = truth.family.predictive_quantiles(eta[None], truth.noise, LEVELS)
    covered = (y >= own[0, :, 0]) & (y <= own[2, :, 0])  # counts have jumps
    assert ((low <= y) & (y <= high)).mean() == pytest.approx(covered.mean(), abs=0.03)


def test_quantiles_rise_and_are_those_of_the_truth(fitted):
    truth, model, _, _ = fitted
    x, _, eta = truth.rows(3, N_NEW)
    found = model.predict_quantiles(x, LEVELS)
    assert (np.diff(found, axis=-1) >= 0).all()
    if not truth.classes:
        own = np.moveaxis(truth.family.predictive_quantiles(eta[None], truth.noise, LEVELS), 0, -1)
        spread = (own[:, 0, 2] - own[:, 0, 0]).mean()
        assert np.abs(found - own[:, 0]).mean() < 0.1 * spread


def test_it_is_saved_and_loaded(fitted, tmp_path):
    truth, model, x, y = fitted
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(found.predict_interval(x), model.predict_interval(x))
    np.testing.assert_array_equal(predicted(truth, found, x), predicted(truth, model, x))
    scores, again = (evaluate(each, x[:50], y[:50]) for each in (model, found))
    assert scores == again
    assert np.isfinite(scores["nll"])


def test_it_is_explained_exported_and_reported(fitted, tmp_path):
    truth, model, x, y = fitted
    assert "a" in str(model.summary(x, y))
    local = model.explain_local(x[:3]).to_frame()
    assert set(local["variable"]) >= {"a"}
    assert np.isfinite(local.select_dtypes("number")).all(axis=None)
    for kind in ("formula", "python", "sql", "latex"):
        assert "a" in model.export(kind)
    model.report(tmp_path / "report.html", x[:60], y[:60])
    page = (tmp_path / "report.html").read_text()
    assert truth.family.name in page
    assert "<h2" in page


@pytest.mark.parametrize("name", NAMES)
def test_its_quantiles_are_quick(name):
    """2,000 rows of 500 draws: numbers and counts of any size, and classes."""
    import time

    truth, rng = Truth(name), np.random.default_rng(0)
    eta = rng.normal(3, 1, (500, 2000, truth.n_outputs))
    started = time.process_time()
    if truth.classes:
        truth.known.class_quantiles(eta, np.array(LEVELS))
    else:
        truth.family.predictive_quantiles(eta, truth.noise, LEVELS)
    assert time.process_time() - started < 6
