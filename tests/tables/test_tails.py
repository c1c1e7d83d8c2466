import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBRegressor
from islab.tables.columns import ColumnEncoder
from islab.tables.tails import Tails

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=300)


def with_cell(value):
    values = NORMAL.copy()
    values[7] = value
    return values


def learn(values, **options):
    encoder, covariates = ColumnEncoder.learn(pd.DataFrame({"x": values}), ["x"], **options)
    return encoder.variables[0], covariates[:, 0]


@pytest.mark.parametrize("value", [1e9, -1e9])
def test_numbers_in_the_usual_range_stay_as_they_are(value):
    _, covariates = learn(with_cell(value))
    np.testing.assert_array_equal(np.delete(covariates, 7), np.delete(NORMAL, 7))
    assert 30 < np.sign(value) * covariates[7] < 1000


def test_columns_without_numbers_far_out_are_not_changed():
    variable, covariates = learn(NORMAL)
    assert variable.tails is None
    np.testing.assert_array_equal(covariates, NORMAL)


def test_the_map_rises_and_can_be_inverted():
    tails, values = Tails(-1.0, 3.0), np.sort(RNG.normal(size=200) * 10 ** RNG.uniform(0, 9, 200))
    shortened = tails.shorten(values)
    assert (np.diff(shortened) > 0).all()
    np.testing.assert_allclose(tails.restore(shortened), values, rtol=1e-12)


@pytest.mark.parametrize("end", [-1.0, 3.0])
def test_its_slope_has_no_jump(end):
    tails, step = Tails(-1.0, 3.0), 1e-6
    beside = tails.shorten(end + step * np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(np.diff(beside) / step, 1, atol=1e-5)


def test_a_column_that_is_mostly_one_value_is_judged_by_the_others():
    values = np.zeros(300)
    values[:10] = np.arange(1.0, 11.0)
    assert learn(values)[0].tails is None
    values[200] = 1e9
    # Eleven distinct values and one far out: its range ends at one of them.
    assert learn(np.append(values, np.linspace(11, 40, 30)))[0].tails is not None


def test_weights_count_rows_as_if_repeated():
    weight = RNG.integers(1, 4, 300)
    values = with_cell(1e9)
    weighted, _ = learn(values, sample_weight=weight.astype(float))
    repeated, _ = learn(np.repeat(values, weight))
    assert weighted.tails == repeated.tails


def test_a_cell_of_1e9_does_not_destroy_the_fit_of_other_rows(tmp_path):
    table = pd.DataFrame({"x": with_cell(1e9), "z": RNG.normal(size=300)})
    y = 2 * NORMAL + 0.3 * RNG.normal(size=300)
    model = ISLaBRegressor(posterior="independent", random_state=0).fit(table, y)
    others = np.arange(300) != 7
    assert model.score(table[others], y[others]) > 0.95
    assert np.abs(model.predict(table.iloc[[7]])).max() < 1000
    model.save(tmp_path / "m.islab")
    again = islab.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_the_note_and_the_check_speak_of_the_cell_itself():
    table = pd.DataFrame({"x": with_cell(1e9), "z": NORMAL})
    encoder, _ = ColumnEncoder.learn(table, ["x", "z"])
    assert "by its logarithm" in encoder.to_frame()["note"][0]
    found = islab.check(table).to_frame().set_index("column")
    assert found.loc["x", "detail"].startswith("1e+09 is ")
