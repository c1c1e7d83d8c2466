"""The report in a real browser: silent, alone, alive, and right."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor
from islab.core.families.mixtures import scattered_normals
from islab.plots.style import number
from islab.report import write_report
from tests.report.conftest import BREAKOUT, SCRIPT, hostile_table


def python_probability(classifier, X, model="full"):
    from islab.explain import explain_local

    predictions = classifier.predictions(X)
    drawn = predictions.thinned(60, model)[0].dense()
    source, rows = predictions.source(model), predictions.covariates
    return explain_local(source, rows, draws=drawn).response_summary


def test_the_page_says_nothing_and_asks_for_nothing(page, report_path):
    page.mouse.move(300, 300)
    assert page.said == []
    assert page.asked == [report_path.as_uri()]


def test_numbers_of_the_page_are_those_of_pictures(page):
    values = [0.0, -0.0123, 12.34, 1234.0, -56789.0, 999_999.0, 5e7, -1.2345e8, 9.999e8]
    assert page.evaluate("(values) => values.map(shown)", values) == [number(v) for v in values]
    assert number(5e7) == "50M"


def test_hostile_names_are_text(page):
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.querySelectorAll('img, b, #main script').length") == 0
    assert page.locator("h1").text_content() == BREAKOUT
    labels = page.locator("#settings label").all_text_contents()
    assert SCRIPT in labels


def test_the_graph_is_visible_with_all_weights(page, classifier):
    assert page.locator("#graph").bounding_box()["width"] > 200
    assert page.locator("#graph .edge").count() == classifier.n_used_weights_


def test_hovering_a_weight_shows_its_numbers(page, classifier):
    edge = page.locator("#graph .edge").first
    edge.dispatch_event("pointermove", {"clientX": 400, "clientY": 400})
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "inclusion probability" in tip.text_content()
    edge.dispatch_event("pointerleave")
    assert tip.is_hidden()


def test_hovering_a_covariate_with_the_mouse_shows_its_numbers(page):
    page.locator("#graph .node.covariate").first.hover()
    assert "used weight" in page.locator("#tip").text_content()


def test_clicking_a_covariate_leaves_its_paths_alone(page):
    node = page.locator("#graph .node.covariate").first
    node.click()
    group = node.get_attribute("data-group")
    count = page.locator("#graph .edge.lit").count()
    assert 0 < count < page.locator("#graph .edge").count()
    assert page.locator(f"#covariates tr.lit[data-group={group}]").count() == 1
    assert node.get_attribute("aria-pressed") == "true"
    node.click()
    assert page.locator("#graph .edge.lit").count() == 0


def test_the_output_lights_every_weight_of_one_output(page):
    page.locator("#graph .node.output").first.click()
    assert page.locator("#graph .edge:not(.lit)").count() == 0


def test_the_keyboard_chooses_and_frees_a_covariate(page):
    page.locator("#graph .node.covariate").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#graph.chosen").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#graph.chosen").count() == 0


@pytest.mark.parametrize("model", ["full", "median"])
def test_the_rows_of_the_page_have_pythons_numbers(page, classifier, model):
    X, _ = hostile_table()
    script = "(name) => window.islab.predict(window.islab.data.rows[1].x, undefined, name)"
    found = page.evaluate(script, model)
    expected = python_probability(classifier, X.iloc[[5]], model)
    np.testing.assert_allclose(found["mean"], expected.mean[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["lower"], expected.lower[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["upper"], expected.upper[0], rtol=0, atol=1e-9)


def shown_probability(page):
    return page.locator("#prediction strong").first.text_content()


def expected_words(value):
    return "<0.001" if value < 0.0005 else ">0.999" if value > 0.9995 else f"{value:.3f}"


def start_from(page, number):
    page.locator("#begin").select_option(str(number))


def setting(page, name):
    labels = page.locator("#settings .setting")
    places = [i for i in range(labels.count()) if name in labels.nth(i).text_content()]
    return labels.nth(places[0])


def test_a_changed_number_changes_the_prediction_as_in_python(page, classifier):
    X, _ = hostile_table()
    start_from(page, 1)
    changed = X.iloc[[5]].copy()
    changed[SCRIPT] = 3.25
    setting(page, SCRIPT).locator("input[type=number]").fill("3.25")
    expected = python_probability(classifier, changed)
    assert shown_probability(page) == expected_words(expected.mean[0, 0])


def test_the_slider_moves_field_and_prediction(page):
    start_from(page, 1)
    slider = setting(page, SCRIPT).locator("input[type=range]")
    slider.evaluate("s => { s.value = s.max; s.dispatchEvent(new Event('input')); }")
    high = shown_probability(page)
    slider.evaluate("s => { s.value = s.min; s.dispatchEvent(new Event('input')); }")
    assert shown_probability(page) != high
    field = setting(page, SCRIPT).locator("input[type=number]").input_value()
    assert float(field) == float(f"{float(slider.input_value()):.5g}")


def test_another_level_changes_the_prediction_as_in_python(page, classifier):
    X, _ = hostile_table()
    start_from(page, 1)
    for level in ("a", "c"):
        changed = X.iloc[[5]].copy()
        changed[BREAKOUT] = level
        setting(page, BREAKOUT).locator("select").select_option(label=level)
        expected = python_probability(classifier, changed)
        assert shown_probability(page) == expected_words(expected.mean[0, 0])


def test_a_number_can_be_missing_as_in_python(page, classifier):
    X, _ = hostile_table()
    start_from(page, 1)
    box = setting(page, "onmouseover").locator("input[type=checkbox]")
    box.check()
    changed = X.iloc[[5]].copy()
    changed.iloc[0, 2] = np.nan
    expected = python_probability(classifier, changed)
    assert shown_probability(page) == expected_words(expected.mean[0, 0])


def test_what_if_starts_with_what_predict_gives(page, classifier):
    X, _ = hostile_table()
    start_from(page, 1)
    assert page.locator("#which-model").input_value() == "full"
    shown, expected = shown_probability(page), classifier.predict_proba(X.iloc[[5]])[0]
    number = float(shown.strip("<>"))
    assert np.abs(expected - number).min() < 0.03


def test_intervals_of_the_page_grow_outside_the_range_of_training(page, classifier):
    X, _ = hostile_table()
    far = X.iloc[[5]].copy()
    far[SCRIPT] = X[SCRIPT].max() + 8
    found = page.evaluate(
        """(value) => {
          const { data, predict } = window.islab;
          const x = data.rows[1].x.slice();
          x[data.settings.find((each) => each.name.startsWith("<script>")).used[0]] = value;
          return predict(x);
        }""",
        float(far[SCRIPT].iloc[0]),
    )
    networks = classifier.predictions(far).thinned(60)[0]
    scale = classifier.network_.scale
    low, high = classifier.columns_.ranges
    there = classifier.predictions(far).covariates
    edge = np.clip(there, low, high)
    rows = [scale.standardise(each) for each in (there, edge, np.clip(2 * edge - there, low, high))]
    predictor, at_edge, before = (scale.restore(networks.predictor(z))[:, 0, 0] for z in rows)
    change, earlier = predictor - at_edge, at_edge - before
    change = np.where(np.abs(earlier) > np.abs(change), earlier, change)
    spread = predictor + change * scattered_normals(60)
    expected = np.quantile(1 / (1 + np.exp(-spread)), [0.025, 0.975])
    assert_interval = [found["lower"][0], found["upper"][0]]
    np.testing.assert_allclose(assert_interval, expected, atol=1e-9)
    assert found["mean"][0] == pytest.approx(np.mean(1 / (1 + np.exp(-predictor))), abs=1e-9)


def test_the_median_network_can_be_chosen(page, classifier):
    X, _ = hostile_table()
    start_from(page, 2)
    page.locator("#which-model").select_option("median")
    expected = python_probability(classifier, X.iloc[[0]], "median")
    assert shown_probability(page) == expected_words(expected.mean[0, 0])
    assert page.locator("#begin").input_value() == "2"


def luminance(colour):
    red, green, blue = (int(part) / 255 for part in colour.strip("rgb()").split(",")[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_in_either_colour_scheme(page, scheme):
    """Contrasts of 4.5 and more, as the WCAG asks."""
    page.emulate_media(color_scheme=scheme)
    ground = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    card = luminance(
        page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
    )
    colours = page.evaluate(
        "[...document.querySelectorAll('main p, main h2, main th, main td, main dt, main dd, "
        "main .name, main .size, main label, main summary, main .outside')]"
        ".map((part) => getComputedStyle(part).color)"
    )
    drawn = page.evaluate(
        "[...document.querySelectorAll('svg.chart text, #graph .covariate text')]"
        ".map((part) => getComputedStyle(part).fill)"
    )
    page.emulate_media(color_scheme="light")
    assert (ground < 0.2) == (scheme == "dark")
    assert len(drawn) > 20
    for back in (ground, card):
        for each in {*colours, *drawn}:
            own = luminance(each)
            contrast = (max(own, back) + 0.05) / (min(own, back) + 0.05)
            assert contrast >= 4.5, each


def test_reset_goes_back_to_the_row(page):
    start_from(page, 2)
    before = shown_probability(page)
    setting(page, SCRIPT).locator("input[type=number]").fill("100")
    page.locator("#reset").click()
    assert shown_probability(page) == before


def test_a_row_can_be_changed_from_its_card(page):
    page.locator("button[data-row='2']").click()
    assert page.locator("#begin").input_value() == "2"


def test_bars_lead_from_the_typical_row_to_the_predictor(page):
    found = page.evaluate("window.islab.predict(window.islab.data.rows[2].x)")
    start = page.evaluate("window.islab.predict(window.islab.data.network.x_typical)")
    total = start["predictor"][0] + sum(part["mean"][0] for part in found["contributions"])
    assert abs(total - found["predictor"][0]) < 1e-9
    assert abs(start["predictor"][0] - found["intercept"][0]) < 1e-9
    assert all(part["mean"][0] == 0 for part in start["contributions"])


def test_the_sum_names_the_typical_row(page):
    page.locator("#begin").select_option(index=1)
    assert "at the typical row" in page.locator("#sum").text_content()


def test_a_date_starts_from_its_row_and_changes_by_month(tab, tmp_path):
    """A month is set by its middle, but a row starts where its own day is."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"when": pd.date_range("2021-01-03", periods=800)})
    season = 5 * np.cos(2 * np.pi * table["when"].dt.day_of_year / 365)
    y = (season + rng.normal(size=800)).rename("y")
    model = ISLaBRegressor(n_restarts=1, posterior="independent", random_state=0).fit(table, y)
    write_report(tmp_path / "page.html", model, table, y, rows=[0, 1], n_draws=20)
    tab.goto((tmp_path / "page.html").as_uri())
    tab.locator("#begin").select_option(index=1)
    first = tab.evaluate("document.querySelector('.output-line strong').textContent")
    expected = model.predict(table.iloc[[0]])[0]
    assert abs(float(first) - expected) < 0.02 * abs(expected)
    month = setting(tab, "when: month").locator("select")
    assert month.evaluate("box => box.selectedOptions[0].text") == "January"
    month.select_option(label="July")
    july = tab.locator(".output-line strong").first.text_content()
    assert float(july.replace("\N{MINUS SIGN}", "-")) < -4
