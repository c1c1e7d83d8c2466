import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor, load
from islab.tables.columns import ColumnEncoder

SIZES = ["S", "M", "L", "XL"]


def learn(table, missing="impute", **options):
    return ColumnEncoder.learn(table, [str(name) for name in table.columns], missing, **options)


def sizes(values, levels=SIZES):
    return pd.DataFrame({"size": pd.Categorical(values, categories=levels, ordered=True)})


def test_levels_in_an_order_are_steps():
    encoder, covariates = learn(sizes(SIZES))
    assert encoder.names == ("size>=M", "size>=L", "size>=XL")
    assert set(encoder.owners) == {"size"}
    np.testing.assert_array_equal(covariates, np.tri(4, 3, -1))


def test_frames_of_other_libraries_keep_the_order():
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    expected = learn(sizes(["L", "S", None, "XL", "M"]))[1]
    values = ["L", "S", None, "XL", "M"]
    table = polars.DataFrame({"size": polars.Series(values, dtype=polars.Enum(SIZES))})
    np.testing.assert_array_equal(learn(table)[1], expected)
    table = arrow.Table.from_pandas(sizes(values))
    np.testing.assert_array_equal(ColumnEncoder.learn(table, ["size"])[1], expected)


@pytest.mark.parametrize("later", [pd.Categorical, np.array, list])
def test_the_order_is_that_of_training(later):
    encoder, covariates = learn(sizes(SIZES))
    table = pd.DataFrame({"size": later(["XL", "S", "L", "M"])})
    np.testing.assert_array_equal(encoder.encode(table), covariates[[3, 0, 2, 1]])


def test_a_level_of_few_rows_is_joined_with_the_next():
    encoder, covariates = learn(sizes(["S"] * 60 + ["M"] * 2 + ["L"] * 30 + ["XL"] * 8))
    assert encoder.names == ("size>=M", "size>=XL")
    np.testing.assert_array_equal(covariates.sum(axis=0), [40, 8])


def test_a_highest_level_of_few_rows_has_no_step():
    encoder, _ = learn(sizes(["S"] * 60 + ["M"] * 30 + ["L"] * 9 + ["XL"]))
    assert encoder.names == ("size>=M", "size>=L")


def test_a_level_that_training_lacks_has_its_place_in_the_order():
    encoder, _ = learn(sizes(["S", "M", "XL"]))
    assert encoder.names == ("size>=M", "size>=XL")
    np.testing.assert_array_equal(encoder.encode(sizes(["L"])), [[1, 0]])


def test_an_order_of_two_levels_is_a_category():
    assert learn(sizes(["S", "M", "S"]))[0].names == ("size=S",)


def test_missing_levels_are_an_indicator_and_average_steps():
    encoder, covariates = learn(sizes(["S", None, "M", "L"]))
    assert encoder.names == ("size>=M", "size>=L", "size (missing)")
    np.testing.assert_allclose(covariates[1], [2 / 3, 1 / 3, 1])


@pytest.mark.parametrize("value", ["XXL", None])
def test_rows_of_unknown_level_are_average_rows_with_a_warning(value):
    encoder, covariates = learn(sizes(["S", "M", "L"]))
    with pytest.warns(UserWarning, match="in 1 row of column 'size'.*of unknown level"):
        later = encoder.encode(pd.DataFrame({"size": [value, "M"]}))
    np.testing.assert_allclose(later, [covariates.mean(axis=0), covariates[1]])


def test_intervals_of_a_cut_are_in_order():
    encoder, covariates = learn(pd.DataFrame({"a": pd.cut(np.arange(9.0), 3)}))
    assert encoder.owners == ("a", "a")
    np.testing.assert_array_equal(covariates.sum(axis=1), np.arange(9) // 3)


def test_weights_count_rows_as_if_repeated():
    table, weight = sizes(["S", "M", "L", None]), np.array([30, 2, 20, 1])
    encoder, _ = learn(table, sample_weight=weight.astype(float))
    repeated, _ = learn(table.loc[table.index.repeat(weight)])
    assert encoder == repeated


def test_a_step_is_learned_as_one_weight_and_comes_back_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=400)
    table = sizes(np.array(SIZES)[codes])
    y = 2.0 * (codes >= 2) + 0.3 * rng.normal(size=400)
    model = ISLaBRegressor(posterior="independent", random_state=0).fit(table, y)
    assert [model.columns_.names[k] for k in model.network_.covariates] == ["size>=L"]
    steps = sizes(["M", "L", "XL"])
    np.testing.assert_allclose(np.diff(model.predict(steps)), [2, 0], atol=0.15)
    model.save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
