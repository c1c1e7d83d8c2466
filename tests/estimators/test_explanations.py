"""Explanations of tables as they are: switches of categories, baselines, indices, warnings."""

import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.explain import EffectDisplay


def passengers(n=600, seed=0):
    """As on a ship that sank: sex, class and age decide, and sex and age interact."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["male", "female"], n, p=[0.6, 0.4]),
            "class": rng.choice(["1st", "2nd", "3rd"], n, p=[0.25, 0.2, 0.55]),
            "age": np.clip(rng.normal(30, 15, n), 0.5, 80),
        },
        index=[f"p{number}" for number in range(n)],
    )
    eta = -1.0 + 2.5 * (table["sex"] == "female") - 1.2 * (table["class"] == "3rd")
    eta += 1.2 * ((table["sex"] == "male") & (table["age"] < 14)) - 0.01 * (table["age"] - 30)
    table.loc[rng.random(n) < 0.15, "age"] = np.nan
    return table, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), "saved", "lost")


@pytest.fixture(scope="module")
def table():
    return passengers()[0]


@pytest.fixture(scope="module", params=["sampled", "independent"])
def model(request):
    X, y = passengers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ISLaBClassifier(posterior=request.param, n_draws=200, random_state=0)
        return fitted.fit(X, y)


def girl(table):
    return table.iloc[[0]].assign(**{"sex": "female", "class": "2nd", "age": 12.0})


def log_odds(model, row):
    return model.predictions(row).predictor().mean(axis=0).item()


def contributions(model, row, **options):
    return model.explain_local(row, **options).to_frame().set_index("variable")["contribution"]


def test_a_switch_contributes_what_it_changes(model, table):
    row = girl(table)
    switched = log_odds(model, row) - log_odds(model, row.assign(sex="male"))
    alone = contributions(model, row, baseline=row.assign(sex="male"))
    assert switched > 1
    assert alone["sex"] == pytest.approx(switched, abs=1e-9)
    assert (alone.drop("sex") == 0).all()


def test_a_switch_among_other_changes_keeps_its_sign_and_about_its_size(model, table):
    row = girl(table)
    switches = [
        log_odds(model, other) - log_odds(model, other.assign(sex="male"))
        for other in (row, row.assign(age=table["age"].median(), **{"class": "3rd"}))
    ]
    found = contributions(model, row)["sex"]
    assert min(switches) - 1e-9 <= found <= max(switches) + 1e-9


def test_contributions_add_up_to_what_is_predicted(model, table):
    found = model.explain_local(table[:20])
    expected = model.predictions(table[:20]).predictor().mean(axis=0)
    total = found.intercept + found.variable_summary.mean.sum(axis=1)
    np.testing.assert_allclose(total, expected, rtol=1e-9)
    np.testing.assert_allclose(found.response[:, 0], model.predict_proba(table[:20])[:, 1])


def test_the_default_baseline_is_the_typical_row_everywhere(model, table):
    typical = pd.DataFrame({"sex": ["male"], "class": ["3rd"], "age": [table["age"].median()]})
    found = model.explain_local(table[:3])
    frame = found.to_frame()
    assert frame["baseline"].tolist()[:2] == ["male", "3rd"]
    expected = log_odds(model, typical)
    known = table["age"].dropna().sort_values().to_numpy()
    assert frame["baseline"][2] == known[(len(known) - 1) // 2]
    assert found.intercept[0, 0] == pytest.approx(expected, abs=0.01)
    np.testing.assert_array_equal(
        model.explain_global(table[:3]).curves.networks.scale.typical, found.baseline
    )


def test_values_and_labels_are_those_of_the_table(model, table):
    rows = table.iloc[[5, 2]]
    frame = model.explain_local(rows).to_frame()
    assert frame["row"].unique().tolist() == ["p5", "p2"]
    own = frame[frame["variable"] == "sex"].set_index("row")["value"]
    assert own.to_dict() == rows["sex"].to_dict()


def test_a_missing_value_is_a_value_of_its_variable(model, table):
    row = girl(table).assign(age=np.nan)
    found = model.explain_local(row)
    frame = found.to_frame().set_index("variable")
    assert np.isnan(frame.loc["age", "value"])
    assert len(frame) == len(found.variables) <= 3


def test_an_array_of_one_row_may_be_the_baseline():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    model = ISLaBRegressor(posterior="independent", random_state=0, n_draws=50)
    model.fit(x, 2 * x[:, 0] + 0.1 * rng.normal(size=200))
    found = model.explain_local(x[:3], baseline=x[[7]])
    np.testing.assert_array_equal(found.baseline, x[7])
    assert model.explain_local(x[:3]).to_frame()["row"].unique().tolist() == [0, 1, 2]


def test_a_sparse_file_explains_the_readable_network_from_the_same_baseline(model, table, tmp_path):
    model.save(tmp_path / "small.islab", sparse=True)
    loaded = islab.load(tmp_path / "small.islab")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.explain_local(table[:5], model="median")
    found = loaded.explain_local(table[:5])
    np.testing.assert_array_equal(found.baseline, expected.baseline)
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())


def test_another_class_than_the_predicted_one_is_not_explained_in_silence(table):
    X, y = passengers()
    model = ISLaBClassifier(posterior="independent", n_draws=50, random_state=0).fit(X, y)
    own = model.network_
    model.network_ = replace(own, bias_mu=own.bias_mu + 9.0)  # of another mind for most rows
    found = model.predictions(table)
    differ = int((found.predicted("full") != found.predicted("median")).sum())
    assert differ > 100
    with pytest.warns(UserWarning, match=f"in {differ} of 600 rows") as caught:
        model.explain_local(table, model="median")
    assert len(caught) == 1
    model.explain_local(table)  # is what predict gives


def test_rows_outside_the_training_data_are_marked(model, table):
    new = table.iloc[:3].copy()
    new.loc["p1", "age"] = 99.0
    new.loc["p2", ["age", "class"]] = [-1.0, "crew"]
    found = model.outside_range(new)
    assert found["outside"].to_dict() == {"p0": False, "p1": True, "p2": True}
    assert found["variables"].tolist() == [(), ("age",), ("class", "age")]


def test_notebooks_show_the_table_of_variables(model, table):
    html = model.explain_local(table[:2])._repr_html_()
    assert "typical row" in html
    assert "<td>female</td>" in html or "<td>male</td>" in html


def test_effects_of_categories_are_switches_averaged_over_rows(model, table):
    effect = model.explain_global(table, n_draws=200).effect("sex")
    assert effect.is_category
    assert effect.values.tolist() == ["female", "male"]
    rows = model.explain_global(table, n_draws=200).curves.background
    encode = model.columns_.encode
    both = [encode(table.iloc[:1].assign(sex=sex))[0, :1] for sex in effect.values]
    ends = []
    for code in both:
        moved = rows.copy()
        moved[:, :1] = code
        ends.append(
            model._predictions(
                covariates=moved,
                network=model.network_,
                posterior=model.posterior_,
                n_draws=200,
                seed=model.seed_,
            )
            .predictor()
            .mean(axis=(0, 1))
        )
    difference = effect.summary.mean[0] - effect.summary.mean[1]
    np.testing.assert_allclose(difference, ends[0] - ends[1], rtol=1e-9)


def test_a_number_that_may_be_missing_has_an_effect_of_it(model, table):
    effect = model.explain_global(table).effect("age")
    assert np.isnan(effect.values.astype(float)).sum() == int(effect.kind == "average")
    assert len(effect.observed) == table["age"].notna().sum()


def test_effects_without_rows_are_those_of_the_typical_row(model, table):
    effect = model.explain_global(n_draws=200).effect("sex")
    assert effect.kind == "typical"
    assert effect.summary.mean[1, 0] == pytest.approx(0, abs=1e-12)
    typical = model.network_.scale.typical
    moved = [typical.copy(), typical.copy()]
    moved[0][0], moved[1][0] = model.explain_global().curves.grid("sex").codes[:, 0]
    drawn = model.explain_global(n_draws=200).curves.networks.predictor(np.array(moved))
    switch = drawn.mean(axis=0)[:, 0] @ [1, -1]
    assert effect.summary.mean[0, 0] == pytest.approx(switch)


def test_a_display_is_made_from_an_estimator(model, table):
    display = EffectDisplay.from_estimator(model, table, "class")
    assert display.ax_.get_title(loc="left") == "class"
    assert display.figure_ is display.ax_.figure
    plt.close("all")


def test_importance_and_interactions_need_rows(model):
    with pytest.raises(ValueError, match=r"explain_global\(X\)"):
        _ = model.explain_global().importance


def test_functions_of_explain_take_estimators_with_their_tables(model, table):
    rows = table.iloc[[3, 5]]
    found = islab.explain.explain_local(model, rows, n_draws=200, output="saved")
    pd.testing.assert_frame_equal(found.to_frame(), model.explain_local(rows).to_frame())
    assert found.to_frame()["row"].unique().tolist() == ["p3", "p5"]
    effects = islab.explain.explain_global(model, table).effects
    pd.testing.assert_frame_equal(effects, model.explain_global(table).effects)
    with pytest.warns(FutureWarning, match="explain_local"):
        median = islab.explain.integrated_gradients(model, rows)
    assert median.to_frame()["row"].unique().tolist() == ["p3", "p5"]


def test_rows_with_text_are_no_covariates(model, table):
    with pytest.raises(ValueError, match="try the estimator in place of its network"):
        islab.explain.explain_local(model.network_, table)
