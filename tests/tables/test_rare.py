"""Levels and gaps of few rows, and values of which one is rare."""

import numpy as np
import pandas as pd
import pytest

from islab.tables.categories import OTHER_LEVEL
from islab.tables.numbers import fewest_rows
from tests.tables.encoding import learn, standardised


def repeated(**counts):
    """A column of levels, each so many times."""
    return [level for level, count in counts.items() for _ in range(count)]


def test_levels_of_fewer_than_log_n_rows_are_pooled_and_named():
    column = repeated(a=60, b=32, c=4, d=3, e=1)
    encoder, covariates = learn(pd.DataFrame({"c": column}))
    variable = encoder.variables[0]
    assert fewest_rows(100) == 4
    assert variable.levels == ("a", "b", "c", OTHER_LEVEL)
    assert (variable.pooled, variable.n_pooled) == (("d", "e"), 2)
    np.testing.assert_array_equal(covariates.sum(axis=0), [60, 32, 4, 4])


def test_rare_levels_that_are_too_few_even_together_are_of_unknown_level():
    table = pd.DataFrame({"c": repeated(a=60, b=39, d=1)})
    encoder, covariates = learn(table)
    assert encoder.names == ("c=b",)
    np.testing.assert_allclose(covariates[-1], 39 / 99)
    # Seen in training, so that nothing is said of it later.
    np.testing.assert_array_equal(encoder.encode(table), covariates)


def test_a_new_level_is_taken_for_a_rare_one_with_a_warning():
    encoder, _ = learn(pd.DataFrame({"c": repeated(a=60, b=30, d=3, e=3, f=4)}))
    with pytest.warns(UserWarning, match="Got 'z' in 1 row.*predicted as of rare level"):
        covariates = encoder.encode(pd.DataFrame({"c": ["z", "d"]}))
    np.testing.assert_array_equal(covariates[0], covariates[1])


def test_a_column_of_more_levels_than_a_file_holds_pools_the_rarest():
    levels = [f"{number:04}" for number in range(1200)]
    column = pd.Categorical(np.repeat(levels, 10))
    encoder, covariates = learn(pd.DataFrame({"c": column}))
    assert len(encoder.names) == 1001
    assert encoder.variables[0].n_pooled == 200
    np.testing.assert_array_equal(covariates.sum(axis=1), 1)


def test_a_gap_in_too_few_rows_has_no_covariate_and_no_warning():
    values = np.arange(100.0)
    few, enough = values.copy(), values.copy()
    few[:3], enough[:4] = np.nan, np.nan
    encoder, _ = learn(pd.DataFrame({"few": few, "enough": enough}))
    assert encoder.names == ("few", "enough", "enough (missing)")
    later = encoder.encode(pd.DataFrame({"few": [np.nan], "enough": [1.0]}))
    np.testing.assert_allclose(later, [[values[3:].mean(), 1, 0]])


@pytest.mark.parametrize("n_rare", [1, 4, 20, 50])
def test_two_values_are_two_deviations_apart_however_rare_one_is(n_rare):
    rare = np.arange(100) < n_rare
    text = np.where(rare, "yes", "no") if n_rare >= 4 else np.where(np.arange(100) % 2, "u", "v")
    standard = standardised(pd.DataFrame({"flag": rare, "code": 3.0 + 4 * rare, "text": text}))
    np.testing.assert_allclose(np.ptp(standard, axis=0), 2)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-12)


def test_weights_count_in_what_is_rare():
    table = pd.DataFrame({"c": repeated(a=60, b=38, d=1, e=1)})
    encoder, _ = learn(table, sample_weight=np.repeat([1.0, 5.0], [98, 2]))
    assert encoder.variables[0].levels == ("a", "b", "d", "e")
