"""What the report says of effects: the numbers of the explanations, drawn to scale."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor
from islab.explain.importance import joint_effect
from islab.plots.style import on_one_line
from islab.report import render_report
from islab.report.charts import Scale, apart, left_of
from islab.report.effects import colour, effect_charts, effects_of, pair_chart
from islab.report.rows import tell_rows
from islab.report.variables import training_ranges
from tests.report.conftest import BREAKOUT, SCRIPT, hostile_table


@pytest.fixture(scope="module")
def everything(classifier):
    return classifier.explain_global(hostile_table()[0])


@pytest.fixture(scope="module")
def interacting():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 3))
    y = 5 * np.abs(x[:, 0] + x[:, 1]) + 0.1 * rng.normal(size=300)
    model = ISLaBRegressor(max_epochs=60, n_restarts=1, random_state=0).fit(x, y)
    return model.explain_global(x)


def marks(chart, kind, css):
    return [mark for mark in chart.marks if mark.kind == kind and css in mark.css.split()]


def values(scale, places):
    """What stands at pixels."""
    share = (np.asarray(places) - scale.start) / (scale.end - scale.start)
    return scale.low + share * (scale.high - scale.low)


def test_a_curve_and_its_band_are_those_of_the_effect(everything):
    effect = everything.effect(SCRIPT)
    (chart,) = effect_charts([effect])
    (line,), (band,) = marks(chart, "line", "trace"), marks(chart, "area", "spread")
    atol = 0.01 * (chart.y.high - chart.y.low)
    np.testing.assert_allclose(values(chart.x, line.numbers[::2]), effect.values, atol=0.05)
    np.testing.assert_allclose(
        values(chart.y, line.numbers[1::2]), effect.summary.mean[:, 0], atol=atol
    )
    there, back = np.split(values(chart.y, band.numbers[1::2]), 2)
    np.testing.assert_allclose(there, effect.summary.lower[:, 0], atol=atol)
    np.testing.assert_allclose(back[::-1], effect.summary.upper[:, 0], atol=atol)


def test_of_many_outputs_the_three_largest_effects_have_bands():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = x[:, :1] * np.array([1.0, -5.0, 0.2, 4.0, 3.0]) + 2 * rng.normal(size=(200, 5))
    model = ISLaBRegressor(
        hidden_layer_sizes=(), max_epochs=60, n_restarts=1, random_state=0, posterior="independent"
    ).fit(x, y)
    effect = model.explain_global(x).effect("x0")
    (chart,) = effect_charts([effect])
    assert len(marks(chart, "line", "trace")) == 5
    assert {mark.css for mark in marks(chart, "area", "spread")} == {
        f"spread {colour(k)}" for k in (1, 3, 4)
    }


def test_the_rug_is_where_the_data_are(everything):
    effect = everything.effect(SCRIPT)
    (chart,) = effect_charts([effect])
    (rug,) = marks(chart, "rug", "ticks")
    found = values(chart.x, rug.numbers[::2])
    gaps = np.abs(found[:, None] - effect.observed).min(axis=1)
    assert len(found) > 50
    assert gaps.max() < 0.01 * np.ptp(effect.observed)


def test_levels_stand_at_their_effects(everything):
    effect = everything.effect(BREAKOUT)
    (chart,) = effect_charts([effect])
    dots = marks(chart, "dot", "point")
    found = values(chart.x, [dot.numbers[0] for dot in dots])
    np.testing.assert_allclose(found, effect.summary.mean[:, 0], atol=0.05)
    assert [text.rsplit(" ", 1)[0] for _, text in chart.y_ticks] == list(effect.values)


def test_all_effects_share_one_scale(everything):
    number, category = effect_charts([everything.effect(name) for name in (SCRIPT, BREAKOUT)])
    assert (number.y.low, number.y.high) == (category.x.low, category.x.high)


def test_what_is_seen_of_marks_lies_inside_their_picture(everything):
    names = everything.effects["variable"].unique()
    for chart in effect_charts([everything.effect(name) for name in names]):
        left, top, width, height = map(float, chart.window.split())
        assert 0 <= left < left + width <= chart.width
        assert 0 <= top < top + height <= chart.height
        for mark in chart.marks:
            assert max(mark.numbers[::2]) >= left
            assert min(mark.numbers[::2]) <= left + width


def test_bands_of_a_few_far_rows_do_not_decide_on_the_scale(everything):
    effect = next(
        e
        for e in map(everything.effect, everything.effects["variable"].unique())
        if not e.is_category and not np.isnan(e.values.astype(float)).any()
    )
    far = effect.draws.copy()
    far[:, -1] *= 1000
    few = np.append(np.repeat(effect.values[0], 500), effect.values)
    near, wide = (
        effect_charts([replace(effect, draws=drawn, observed=few.astype(float))])[0]
        for drawn in (effect.draws, far)
    )
    assert wide.y == near.y
    everywhere = replace(effect, draws=far, observed=effect.values.astype(float)[[0, -1]])
    assert effect_charts([everywhere])[0].y.high > 10 * near.y.high


def test_long_labels_have_room():
    assert left_of(["750,000"]) > 7 * 6
    assert left_of(["a level of length 20"]) > 20 * 6
    assert left_of(["DTW MCO ORD"]) > left_of(["dtw mco ord"])


def test_labels_of_ticks_do_not_touch():
    ticks = [(10.0, "0"), (14.0, "2477"), (40.0, "3908"), (200.0, "99,999")]
    assert apart(ticks) == [ticks[0], ticks[2], ticks[3]]


def test_a_scale_has_two_ticks_at_least():
    assert [label for _, label in Scale(-3.1, 4.6, 0, 100).ticks(3)] == ["\u22122", "0", "2", "4"]


def test_shares_are_those_of_the_importance(classifier, everything):
    X, _ = hostile_table()
    found = effects_of(everything, classifier.summary(X).effects, {})
    expected = 100 * everything.importance.to_frame()["share"]
    assert [bar.size for bar in found.shares] == pytest.approx(list(expected)[: len(found.shares)])


def test_interactions_are_told_with_a_picture(interacting):
    pairs = interacting.interactions.to_frame()
    chart = pair_chart(joint_effect(interacting.curves, "x0", "x1"))
    assert pairs["probability"].max() > 0.9
    assert len(marks(chart, "line", "trace")) == len(chart.key) == 3
    # The slope of |x0 + x1| in x0 turns round as x1 goes from -1 to 1.
    first, _, last = (values(chart.y, mark.numbers[1::2]) for mark in marks(chart, "line", "trace"))
    assert first[-1] < first[0]
    assert last[-1] > last[0]


def test_the_table_has_the_numbers_of_the_summary(classifier):
    X, _ = hostile_table()
    page = render_report(classifier, X, n_draws=10)
    table = page[page.index('id="effect-table"') :]
    table = table[: table.index("</table>")]
    assert table.count('scope="row"') == len(classifier.summary(X).effects)
    assert "P(used)" in table
    assert "P(not linear)" in table
    assert "odds ratio" in table


def test_of_many_lines_of_effects_the_first_are_open():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 60))
    y = x.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = ISLaBRegressor(
        hidden_layer_sizes=(), posterior="independent", n_draws=20, random_state=0
    ).fit(x, y)
    n_lines = len(model.summary(x).effects)
    page = render_report(model, x, n_draws=10)
    page = page[page.index('id="effect-table"') : page.index('id="paths"')]
    first, rest = page.split("<details>")
    assert n_lines > 35
    assert first.count('scope="row"') == 30
    assert rest.count('scope="row"') == n_lines - 30
    assert f"<summary>{n_lines - 30} more lines</summary>" in rest


def test_bars_of_a_row_lead_from_the_typical_row_to_its_prediction(classifier):
    X, _ = hostile_table()
    page = render_report(classifier, X, rows=[7], n_draws=10)
    story = page[page.index("<h3>Row 7") :]
    explanation = classifier.explain_local(X.iloc[[7]])
    end, start = explanation.predictor[0, 0], explanation.intercept[0, 0]
    told = re.search(r"log odds (\S+) = (\S+) at the typical row ([+\u2212]) (\S+) \(the", story)
    numbers = [float(told[k].replace("\u2212", "-")) for k in (1, 2, 4)]
    assert numbers == pytest.approx([end, start, abs(end - start)], rel=0.01)
    assert told[3] == ("+" if end > start else "\u2212")


def test_what_a_bar_could_not_show_is_told_as_0():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=81) for name in "abc"})
    y = 1000 * (X["a"] + X["b"] + X["c"]) + rng.normal(size=81)
    include = dict.fromkeys(X.columns, "include")
    quick = {"hidden_layer_sizes": (), "n_restarts": 1, "max_epochs": 60, "random_state": 0}
    model = ISLaBRegressor(**quick, constraints=include).fit(X, y)
    # As good as the typical value: a contribution, but none that could be seen beside a's.
    explanation = model.explain_local(X[:2].assign(b=X["b"].median() + 1e-6))
    assert 0 < explanation.variable_draws(0).mean(axis=0)[1, 0] < 0.01
    for story in tell_rows(explanation, {0: "", 1: ""}, None, None, {}):
        sizes = {bar.name[0]: bar.size for bar in story.panels[0].bars}
        assert abs(sizes["a"]) > 10
        assert sizes["b"] == 0


def test_curves_end_where_training_ended(classifier):
    X, _ = hostile_table()
    far = X.copy()
    far.loc[3, SCRIPT] = 1000.0
    everything = classifier.explain_global(far)
    table = classifier.summary(far).effects
    ranges = training_ranges(classifier.columns_)
    (chart,) = [
        c for c in effects_of(everything, table, ranges).charts if c.title == on_one_line(SCRIPT)
    ]
    assert ranges[SCRIPT] == (X[SCRIPT].min(), X[SCRIPT].max())
    assert chart.x.high == pytest.approx(X[SCRIPT].max())


def test_every_pair_that_meets_is_listed_or_counted(interacting):
    table = interacting.effects.assign(share=0.0)
    found, pairs = effects_of(interacting, table, {}), interacting.interactions.to_frame()
    assert len(found.interactions) + found.n_weak == len(pairs)
    assert ("x0", "x1") in zip(
        found.interactions["first"], found.interactions["second"], strict=True
    )
    assert len(found.pairs) >= 1
