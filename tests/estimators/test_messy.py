"""A table with all that real ones have: read, fitted, predicted and reported at the first call."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, TableWarning, check, load

N = 400
PARAMS = {"max_epochs": 60, "n_restarts": 1, "n_draws": 50, "random_state": 0}
PARAMS |= {"posterior": "independent"}
KINDS = {
    "customer": "left out",
    "joined": "date",
    "income": "number",
    "discount": "number",
    "call": "number",
    "age": "number",
    "children": "category",
    "active": "category",
    "vip": "number",
    "town": "category",
    "zip": "category",
    "gaps": "number",
    "tails": "number",
    "unit": "category",
    "income again": "number",
}


@pytest.fixture(scope="module")
def table():
    """As it comes from a file."""
    rng = np.random.default_rng(0)
    income = rng.lognormal(10, 0.6, N)
    seconds = rng.integers(30, 9000, N)
    ages = rng.integers(18, 90, N).astype(str).astype(object)
    ages[::50] = "unknown"
    made = pd.DataFrame(
        {
            "customer": [f"C-{number:05d}" for number in range(N)],
            "joined": pd.date_range("2021-01-01", periods=N, freq="2D").strftime("%d/%m/%Y"),
            "income": [f"${value:,.0f}" for value in income],
            "discount": [f"{value}%" for value in rng.integers(0, 60, N)],
            "call": [f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" for s in seconds],
            "age": ages,
            "children": rng.choice(["0", "1", "2", "3+"], N),
            "active": rng.choice(["Y", "N"], N),
            "vip": rng.random(N) < 0.1,
            "town": rng.choice(["Ely", "Wells", "Bath", "Ross"], N, p=[0.5, 0.3, 0.195, 0.005]),
            "zip": rng.choice([f"Z{number}" for number in range(40)], N),
            "gaps": np.where(rng.random(N) < 0.4, np.nan, rng.normal(size=N)),
            "tails": rng.standard_cauchy(N) ** 3,
            "unit": "m",
            "income again": [f"${value:,.0f}" for value in income],
        }
    )
    log_odds = 1.5 * (np.log(income) - 10) + 2 * (made["town"] == "Ely") - 1
    made["spent"] = (100 * log_odds + 20 * rng.normal(size=N)).round(2)
    made["bought"] = np.where(log_odds + rng.logistic(size=N) > 0, "yes", "no")
    return pd.read_csv(io.StringIO(made.to_csv(index=False)))


@pytest.fixture(scope="module", params=["bought", "spent"])
def fitted(request, table):
    X, y = table.drop(columns=["bought", "spent"]), table[request.param]
    model = (ISLaBClassifier if request.param == "bought" else ISLaBRegressor)(**PARAMS)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, X, y, [str(each.message) for each in said if each.category is TableWarning]


def test_every_column_is_what_it_means(fitted):
    found = fitted[0].columns_.to_frame()
    assert dict(zip(found["column"], found["kind"], strict=True)) == KINDS


def test_one_warning_says_what_is_left_out_and_which_words_are_missing(fitted):
    said = fitted[3]
    assert len(said) == 1
    assert "1 column left out ('customer': text that differs" in said[0]
    assert "Got 'unknown' in column 'age', which is no number" in said[0]


def test_a_look_lists_everything_at_once(fitted):
    _, X, y, _ = fitted
    found = {(each.column, each.finding) for each in check(X, y).findings}
    assert found >= {
        ("customer", "left out"),
        ("joined", "date"),
        ("age", "words"),
        ("town", "rare levels"),
        ("gaps", "missing"),
        ("tails", "outlier"),
        ("unit", "constant"),
        ("income again", "duplicate"),
    }


def test_what_matters_is_found(fitted):
    model, X, y, _ = fitted
    assert model.score(X, y) > (0.7 if model.network_.likelihood == "bernoulli" else 0.8)
    used = {model.columns_.owners[k] for k in model.network_.covariates}
    assert "town" in used
    assert used & {"income", "income again"}


@pytest.mark.filterwarnings("ignore:Got ")
def test_new_rows_with_unseen_levels_and_gaps_are_predicted(fitted, tmp_path):
    model, X, _, _ = fitted
    later = X[:2].astype(object)
    later.iloc[0] = None
    later.loc[1, ["town", "zip", "children", "active", "unit"]] = "never seen"
    later.loc[1, "age"] = "not told"
    found = model.predict_quantiles(later, [0.05, 0.95])
    assert np.isfinite(found.astype(float)).all()
    model.save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(again.predict_quantiles(later, [0.05, 0.95]), found)


@pytest.mark.filterwarnings("ignore:Got ")
def test_the_report_names_findings_and_no_column_twice(fitted, tmp_path):
    model, X, y, _ = fitted
    model.report(tmp_path / "report.html", X, y)
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "income again (duplicate, of &#39;income&#39;)" in page
    assert "1 column was left out: customer (text that differs from row to row)" in page
