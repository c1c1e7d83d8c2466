"""Tables in parts that lie elsewhere, here in a list."""

import numpy as np
import pandas as pd
import pytest

from islab import Batches
from islab.tables.partitions import Partitions


class Lists(Partitions):
    """Partitions of a table that ends at these rows."""

    def __init__(self, table, ends, n_rows):
        super().__init__(n_rows=n_rows)
        self.parts = [table.iloc[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def by_part(self, task):
        return [task(number, part) for number, part in enumerate(self.parts)]


TABLE = pd.DataFrame({"a": np.arange(1000.0)})
SPLITS = [[1000], [0, 10, 10, 700, 1000], [999, 1000]]


@pytest.mark.parametrize("ends", SPLITS)
@pytest.mark.parametrize("n_rows", [2, 300, 5000])
def test_the_sample_is_that_of_batches_however_rows_are_split(ends, n_rows):
    found = Lists(TABLE, ends, n_rows).sample(seed=3)
    expected = Batches(TABLE, n_rows=n_rows).sample(seed=3)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found.n_rows == 1000


@pytest.mark.parametrize("ends", SPLITS)
def test_sums_leave_out_parts_without_rows(ends):
    found = Lists(TABLE, ends, 300).total(lambda part: part["a"].to_numpy(), np.mean)
    parts = np.split(TABLE["a"].to_numpy(), [end for end in ends[:-1] if end])
    assert found == pytest.approx(sum(part.mean() for part in parts if len(part)))


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="without a single row"):
        Lists(TABLE[:0], [0], 300).sample(seed=0)


def test_a_sample_has_two_rows_at_least():
    with pytest.raises(ValueError, match="n_rows=1, expected at least 2"):
        Lists(TABLE, [1000], 1)
