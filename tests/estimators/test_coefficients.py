"""Average slopes, what other values would add, predictors, and inclusion by layer."""

import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.baselines import BayesianLinearRegressor


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "smoker": rng.integers(0, 2, n),
            "city": rng.choice(["Bergen", "Oslo", "Voss"], n),
        },
        index=[f"p{k}" for k in range(n)],
    )


@pytest.fixture(scope="module")
def model(table):
    """Straight in smoker and city, bent once in age."""
    rng = np.random.default_rng(1)
    bent = np.maximum(table["age"] - 50, 0)
    y = 2 * table["smoker"] - 3 * (table["city"] == "Oslo") + 0.5 * bent
    return ISLaBRegressor(random_state=0, n_draws=200, n_restarts=2).fit(
        table, y + 0.1 * rng.standard_normal(len(y))
    )


@pytest.fixture(scope="module")
def linear(table):
    y = 3.0 * table["age"] + 2 * np.random.default_rng(2).standard_normal(len(table))
    return BayesianLinearRegressor(random_state=0, n_draws=500).fit(table[["age", "smoker"]], y)


def test_the_coefficient_of_a_line_is_its_slope(linear, table):
    frame = linear.coef(table[["age", "smoker"]]).set_index("covariate")
    age = frame.loc["age"]
    assert age["slope"] == pytest.approx(3.0, abs=0.03)
    assert age["lower"] < 3.0 < age["upper"]
    assert age["lowest"] == pytest.approx(age["highest"], rel=1e-12)
    # The standard error of least squares.
    expected = 2 / (table["age"].std() * np.sqrt(len(table)))
    assert age["sd"] == pytest.approx(expected, rel=0.15)


def test_coefficients_are_means_over_the_slopes_of_rows(model, table):
    rows = table.iloc[:40]
    explained = model.explain_local(rows, kind="linear")
    by_row = explained.draws.slopes(slice(0, 40))  # (draws, rows, used, outputs)
    averages = by_row.mean(axis=1)[..., 0]
    frame = model.coef(rows, level=0.9).set_index("covariate")
    own = frame.iloc[explained.used]
    np.testing.assert_allclose(own["slope"], averages.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(own["lower"], np.quantile(averages, 0.05, axis=0), rtol=1e-9)
    np.testing.assert_allclose(own["upper"], np.quantile(averages, 0.95, axis=0), rtol=1e-9)
    np.testing.assert_allclose(own["highest"], by_row.mean(axis=0).max(axis=0)[:, 0], rtol=1e-12)


def test_rows_on_both_sides_of_a_bend_have_other_slopes(model, table):
    age = model.coef(table).set_index("covariate").loc["age"]
    assert age["lowest"] == pytest.approx(0.0, abs=0.1)
    assert age["highest"] == pytest.approx(0.5, abs=0.1)


def test_potential_contributions_are_differences_of_predictors(model, table):
    rows = table.iloc[:5]
    frame = model.potential_contributions(rows)
    other = rows.assign(smoker=1 - rows["smoker"])
    expected = model.sample_predictor(other)[..., 0] - model.sample_predictor(rows)[..., 0]
    own = frame[frame["variable"] == "smoker"].set_index("row")
    assert list(own.index) == list(rows.index)
    np.testing.assert_array_equal(own["to"], other["smoker"])
    np.testing.assert_allclose(own["potential"].astype(float), expected.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(own["lower"], np.quantile(expected, 0.025, axis=0), atol=1e-10)


def test_categories_move_to_each_other_level(model, table):
    rows = table.iloc[:6]
    frame = model.potential_contributions(rows)
    cities = frame[frame["variable"] == "city"]
    for label, own in cities.groupby("row"):
        assert set(own["to"]) == {"Bergen", "Oslo", "Voss"} - {table.loc[label, "city"]}
        to_oslo = own.loc[own["to"] == "Oslo", "potential"]
        assert (abs(to_oslo + 3) < 0.2).all()


def test_draws_of_the_predictor_are_log_odds(table):
    y = table["age"] + 5 * np.random.default_rng(3).standard_normal(len(table)) > 50
    quick = {"n_draws": 50, "n_restarts": 1, "max_epochs": 20, "posterior": "independent"}
    model = ISLaBClassifier(random_state=0, **quick).fit(table, y)
    predictor, probability = model.sample_predictor(table), model.sample_posterior(table)
    expected = 1 / (1 + np.exp(-predictor[..., 0]))
    np.testing.assert_allclose(probability[..., -1], expected, rtol=1e-10)


@pytest.mark.parametrize("posterior", ["independent", "sampled"])
def test_inclusion_by_layer_sums_to_the_expected_number_of_weights(table, posterior):
    y = np.maximum(table["age"] - 50, 0) + np.random.default_rng(4).standard_normal(len(table))
    model = ISLaBRegressor(
        random_state=0, posterior=posterior, n_restarts=1, hidden_layer_sizes=(6, 5)
    ).fit(table, y)
    frame = model.inclusion()
    posterior_ = model.posterior_
    total = (
        posterior_.alpha.sum()
        if posterior == "independent"
        else posterior_.draw_weights @ posterior_.sizes()
    )
    assert (frame["weights"] * frame["mean_inclusion"]).sum() == pytest.approx(total)
    assert frame["weights"].sum() == model.network_.n_weights_initial
    assert frame["used_weights"].sum() == model.n_used_weights_
    used = frame["mean_inclusion_used"].fillna(0) * frame["used_weights"]
    assert used.sum() == pytest.approx(model.network_.alpha.sum())


def test_a_sparse_file_has_no_inclusion_probabilities(model, tmp_path):
    model.save(tmp_path / "m.islab", sparse=True)
    with pytest.raises(ValueError, match="try a file saved without sparse=True"):
        islab.load(tmp_path / "m.islab").inclusion()


@pytest.fixture(scope="module")
def messy():
    """A date, a number with gaps, an order, and three classes."""
    rng = np.random.default_rng(5)
    n = 400
    table = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "dose": np.where(rng.random(n) < 0.2, np.nan, rng.normal(5, 2, n)),
            "size": pd.Categorical(
                rng.choice(["s", "m", "l"], n), categories=["s", "m", "l"], ordered=True
            ),
        }
    )
    score = (table["day"] - table["day"].min()).dt.days / 300 + table["dose"].fillna(9)
    y = pd.cut(score + table["size"].cat.codes, 3, labels=["a", "b", "c"]).astype(str)
    options = {"n_restarts": 1, "max_epochs": 60, "posterior": "independent", "n_draws": 50}
    return ISLaBClassifier(random_state=0, **options).fit(table, y), table


def test_dates_gaps_and_orders_have_potential_contributions(messy):
    model, table = messy
    rows = table.iloc[:8]
    frame = model.potential_contributions(rows)
    dose = frame[(frame["variable"] == "dose") & (frame["output"] == "a")]
    missing = table["dose"].iloc[:8].isna().to_numpy()
    assert missing.any()
    filled = model.columns_.variables[1].fill
    assert (dose["to"].to_numpy()[missing] == filled).all()
    expected = rows.assign(dose=dose["to"].astype(float).to_numpy())
    drawn = [model.sample_predictor(each) for each in (expected, rows)]
    centred = [each - each.mean(axis=-1, keepdims=True) for each in drawn]
    change = (centred[0] - centred[1]).mean(axis=0)[:, 0]
    np.testing.assert_allclose(dose["potential"], change, atol=1e-10)
    days = frame[frame["variable"] == "day"]
    assert pd.to_datetime(days["to"]).between(table["day"].min(), table["day"].max()).all()
    sizes = frame[(frame["variable"] == "size") & (frame["output"] == "a")]
    assert set(sizes["to"]) <= {"s", "m", "l"}
