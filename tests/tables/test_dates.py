from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder
from tests.tables.encoding import learn


def frame(times):
    return pd.DataFrame({"when": times})


def every(step, n, start="2021-03-01"):
    return frame(pd.date_range(start, periods=n, freq=step))


MOMENTS = pd.Series(pd.to_datetime(["2024-05-31 12:00", None, "2024-06-02 00:00"]))
SINCE_2024 = np.column_stack([[151.5, 152.25, 153.0], [0, 1, 0]])
SPELLED = {
    "datetime": MOMENTS,
    "zone": MOMENTS.dt.tz_localize("Europe/Oslo"),
    "text": MOMENTS.dt.strftime("%Y-%m-%d %H:%M"),
    "ISO": MOMENTS.dt.strftime("%Y-%m-%dT%H:%M:%S"),
    "UTC": MOMENTS.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "offset": MOMENTS.dt.strftime("%Y-%m-%d %H:%M:%S+02:00"),
    "objects": pd.Series(
        [datetime(2024, 5, 31, 12, tzinfo=timezone(timedelta(hours=2))), None, date(2024, 6, 2)],
        dtype=object,
    ),
}


@pytest.mark.parametrize("column", SPELLED.values(), ids=SPELLED)
def test_dates_of_any_type_are_days_since_the_first_year_began(column):
    encoder, covariates = learn(frame(column))
    assert encoder.names == ("when: days since 2024-01-01", "when (missing)")
    np.testing.assert_allclose(covariates, SINCE_2024)


@pytest.mark.parametrize("later", SPELLED.values(), ids=SPELLED)
def test_dates_may_be_of_another_type_later(later):
    encoder, covariates = learn(frame(MOMENTS))
    np.testing.assert_array_equal(encoder.encode(frame(later)), covariates)


@pytest.mark.parametrize(
    "spelling", ["%b %d %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%Y/%m/%d"]
)
def test_dates_in_words_are_dates(spelling):
    table = every("7D", 10)
    spelled = frame(table["when"].dt.strftime(spelling))
    np.testing.assert_array_equal(learn(spelled)[1], learn(table)[1])


def test_polars_and_arrow_dates_are_read():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"when": [date(1970, 1, 3), None, date(1970, 1, 7)]})
    expected = [[2, 0], [4, 1], [6, 0]]
    np.testing.assert_array_equal(learn(table)[1], expected)
    np.testing.assert_array_equal(ColumnEncoder.learn(table.to_arrow(), ["when"])[1], expected)


# -- pieces ------------------------------------------------------------------------------------


def test_a_date_is_one_variable_of_trend_month_and_weekday():
    encoder, covariates = learn(every("D", 400))
    assert encoder.names == (
        "when: days since 2021-01-01",
        "when: month (January-July)",
        "when: month (April-October)",
        *(f"when: weekday={day}" for day in ("Monday", "Tuesday", "Wednesday", "Thursday")),
        *(f"when: weekday={day}" for day in ("Friday", "Saturday", "Sunday")),
    )
    assert set(encoder.owners) == {"when"}
    assert covariates.shape == (400, 10)


def test_weekdays_are_those_of_the_calendar():
    table = every("D", 400)
    _, covariates = learn(table)
    days = covariates[:, 3:].argmax(axis=1)
    np.testing.assert_array_equal(days, table["when"].dt.day_of_week)


def test_the_year_goes_around():
    encoder, _ = learn(every("D", 400))
    ends = frame(pd.to_datetime(["2021-12-31", "2022-01-01", "2021-07-02", "2022-04-02"]))
    pair = encoder.encode(ends)[:, 1:3]
    np.testing.assert_allclose(pair[0], pair[1], atol=0.03)
    np.testing.assert_allclose(pair[1:], [[1, 0], [-1, 0], [0, 1]], atol=0.03)


def test_the_hour_goes_around():
    encoder, _ = learn(every("h", 100))
    assert encoder.names[1:] == ("when: hour (0-12)", "when: hour (6-18)")
    times = frame(pd.to_datetime([f"2021-03-03 {hour:02}:00" for hour in (0, 6, 12, 18)]))
    expected = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    np.testing.assert_allclose(encoder.encode(times)[:, 1:], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("step", "n", "pieces"),
    [
        ("D", 10, set()),
        ("D", 300, {"weekday"}),
        ("7D", 30, set()),
        ("7D", 80, {"month"}),
        ("YS", 30, set()),
        ("MS", 90, {"month"}),
        ("ME", 90, {"month"}),
        ("h", 40, set()),
        ("h", 400, {"hour", "weekday"}),
    ],
)
def test_a_piece_needs_dates_that_tell_it_from_the_trend(step, n, pieces):
    encoder, _ = learn(every(step, n))
    found = {name.partition(": ")[2].partition(" ")[0].partition("=")[0] for name in encoder.names}
    assert found == {"days", *pieces}


def test_missing_dates_are_an_indicator_and_the_average_of_the_rest():
    table = every("D", 400)
    table.loc[::10, "when"] = pd.NaT
    encoder, covariates = learn(table)
    assert encoder.names[1] == "when (missing)"
    gap = covariates[0]
    np.testing.assert_allclose(gap[[0, 1]], [np.nanmean(covariates[:, 0]), 1])
    np.testing.assert_array_equal(gap[2:4], 0)
    np.testing.assert_allclose(gap[4:], covariates[1:, 4:][covariates[1:, 1] == 0].mean(axis=0))


def test_rows_in_another_order_are_read_alike():
    table = every("h", 9000).sample(400, random_state=0)
    encoder, covariates = learn(table)
    again, same = learn(table.iloc[::-1])
    assert again == encoder
    np.testing.assert_array_equal(same[::-1], covariates)


# -- other kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [["2024-02-30", "2024-02-28"], ["05/06/2024", "06/01/2024"]])
def test_text_that_spells_no_date_for_sure_is_text(column):
    assert learn(frame(column * 2))[0].names == (f"when={max(column)}",)


def test_levels_that_look_like_dates_stay_levels_of_an_older_model():
    encoder = ColumnEncoder((Category("c", ("2020-01-01", "2021-01-01"), (0.5, 0.5)),), "impute")
    covariates = encoder.encode(pd.DataFrame({"c": ["2021-01-01", "2020-01-01"]}))
    np.testing.assert_array_equal(covariates, [[1], [0]])


@pytest.mark.parametrize(
    ("later", "found"), [([1.0, 2.0], "numbers"), (["soon", "late"], "text such as 'soon'")]
)
def test_something_else_where_dates_were_is_refused(later, found):
    encoder, _ = learn(every("D", 40))
    with pytest.raises(ValueError, match=f"Got {found} in column 'when', expected dates"):
        encoder.encode(frame(later))


@pytest.mark.parametrize("column", [[1.0, 2.0], ["u", "v"]])
def test_dates_where_something_else_was_are_refused(column):
    encoder, _ = learn(frame(column))
    with pytest.raises(ValueError, match="Got dates in column 'when', expected"):
        encoder.encode(frame(pd.to_datetime(["2024-05-31", "2024-06-01"])))


@pytest.fixture(scope="module")
def seasonal():
    """A model of a target that has a season and quiet Sundays."""
    rng = np.random.default_rng(0)
    table = every("D", 1100).assign(x=rng.normal(size=1100))
    season = 3 * np.cos(2 * np.pi * (table["when"].dt.day_of_year - 1) / 365.25)
    y = season - 4 * (table["when"].dt.day_of_week == 6) + 0.3 * rng.normal(size=1100)
    model = ISLaBRegressor(posterior="independent", random_state=0).fit(table, y.rename("y"))
    return model, table, y


def test_a_season_and_a_weekday_are_found_and_read_as_one_variable(seasonal):
    model, table, y = seasonal
    used = {model.columns_.names[k] for k in model.network_.covariates}
    assert {"when: month (January-July)", "when: weekday=Sunday"} <= used
    assert model.score(table, y) > 0.97
    variables = model.explain_global(table).variables.set_index("variable")
    assert variables.loc["when", "count"] == len(used - {"x"})


def test_a_model_of_dates_comes_back_from_its_file(seasonal, tmp_path):
    from islab import load

    model, table, _ = seasonal
    model.save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict(table[:20]), model.predict(table[:20]))


def test_a_report_offers_month_and_weekday(seasonal):
    from islab.report.variables import settings_of

    model, table, _ = seasonal
    covariates = model.columns_.encode(table)
    used = model.network_.covariates
    found = {s.name: s for s in settings_of(used, model.columns_, covariates)}
    assert {"when: month", "when: weekday"} <= set(found)
    row = covariates[table["when"].eq("2022-02-13").argmax()]
    assert found["when: month"].words(row) == "when: month = February"
    assert found["when: weekday"].words(row) == "when: weekday = Sunday"
    assert all(setting.owner == "when" for name, setting in found.items() if name != "x")
