"""What a look at the rows finds stands in the report."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor

N = 150
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N)
TABLE = pd.DataFrame({"size": SIZE, "size in cm": 100 * SIZE, "age": RNG.normal(size=N)})
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "max_epochs": 20, "random_state": 0}


@pytest.mark.filterwarnings("ignore:Got columns 'size', 'size in cm', each of which alone tells")
@pytest.mark.parametrize("y", [SIZE + RNG.normal(size=N), 2 * SIZE])
def test_copies_and_columns_that_tell_the_target_are_named(y, tmp_path):
    model = ISLaBRegressor(**PARAMS).fit(TABLE, y)
    model.report(tmp_path / "report.html", TABLE, y)
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "size in cm (near copy, of &#39;size&#39;, correlation 1.0000)" in page
    told = "size (leakage suspect, &#39;size&#39; alone tells the target"
    assert (told in page) == (y[0] == 2 * SIZE[0])


def test_a_table_without_findings_has_no_such_sentence(tmp_path):
    y = SIZE + RNG.normal(size=N)
    model = ISLaBRegressor(**PARAMS).fit(TABLE[["size", "age"]], y)
    model.report(tmp_path / "report.html", TABLE[["size", "age"]], y)
    assert "A look at these rows found" not in (tmp_path / "report.html").read_text()
