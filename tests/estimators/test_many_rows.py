"""Fits of more rows than chains see: structures of some, weights of all."""

import numpy as np
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.learn.scale import Growth
from tests.estimators.conftest import QUICK


@pytest.fixture
def few_seen(monkeypatch):
    """Chains see 500 rows at most."""
    monkeypatch.setattr("islab.estimators.islab_base.MOST_ROWS", 500)
    monkeypatch.setattr("islab.estimators.sampling.MOST_ROWS", 500)
    monkeypatch.setattr("islab.learn.scale.growing.MOST_ROWS", 500)
    monkeypatch.setattr("islab.learn.scale.growing.FEWEST_ROWS", 250)
    monkeypatch.setattr("islab.learn.scale.growing.FRESH_ROWS", 100)


def numbers(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    return x, 2 * x[:, 0] - x[:, 1] + rng.normal(size=n_rows)


def test_weights_are_those_of_all_rows(few_seen):
    x, y = numbers(8000)
    model = ISLaBRegressor(**QUICK | {"hidden_layer_sizes": ()}).fit(x, y)
    posterior = model.posterior_
    assert posterior.all_rows.n_rows == 8000
    assert posterior.all_rows.n_sampled <= 500
    exact = np.linalg.lstsq(np.c_[x[:, :2], np.ones(len(x))], y)[0]
    rows = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    found = model.sample_posterior(rows, 400)[..., 0]
    slopes = found[:, 1:] - found[:, :1]
    # 500 rows would be off by .045, and have that standard deviation.
    np.testing.assert_allclose(slopes.mean(axis=0), exact[:2], atol=0.005)
    np.testing.assert_allclose(slopes.std(axis=0), 1 / np.sqrt(8000), rtol=0.25)


def test_summary_diagnostics_and_file_say_it(few_seen, tmp_path):
    x, y = numbers(2000)
    model = ISLaBClassifier(**QUICK).fit(x, y > 0)
    words = model.posterior_.all_rows.words
    assert "weights from all 2,000" in words
    assert words in str(model.summary())
    assert words in str(model.diagnostics())
    model.save(tmp_path / "m.islab")
    again = islab.load(tmp_path / "m.islab")
    assert again.posterior_.all_rows == model.posterior_.all_rows
    np.testing.assert_array_equal(again.predict_proba(x[:9]), model.predict_proba(x[:9]))


def test_the_number_of_threads_does_not_change_the_model(few_seen):
    x, y = numbers(1500)
    one, two = (ISLaBRegressor(**QUICK, n_jobs=jobs).fit(x, y).predict(x[:20]) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_signs_are_refused_where_draws_might_break_them(few_seen):
    x, y = numbers(1000)
    with pytest.raises(ValueError, match="more rows than chains can see"):
        ISLaBRegressor(**QUICK, constraints={0: "increasing"}).fit(x, y)


def test_a_column_to_include_stays_however_little_all_rows_say_of_it(few_seen):
    x, y = numbers(4000)
    model = ISLaBRegressor(**QUICK, constraints={2: "include"}).fit(x, y)
    names, draws = model.posterior_.used_variables()
    assert np.all([own[:, names.index("x2")].all() for own in draws])
    assert 2 in model.network_.covariates


def test_an_interrupted_fit_goes_on_to_be_the_whole_one(few_seen, tmp_path, monkeypatch):
    """Chains that were stopped on more rows find what the first ones drew."""
    x, y = numbers(1500)
    whole = ISLaBRegressor(**QUICK).fit(x, y)
    original, calls = Growth._structure_density, []

    def stopped(self, structures):
        calls.append(len(structures))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, structures)

    monkeypatch.setattr(Growth, "_structure_density", stopped)
    params = QUICK | {"checkpoint": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        ISLaBRegressor(**params).fit(x, y)
    assert list(tmp_path.rglob("*.npz"))
    again = ISLaBRegressor(**params).fit(x, y)
    np.testing.assert_array_equal(again.predict(x[:20]), whole.predict(x[:20]))
    assert not list(tmp_path.rglob("*.npz"))
