"""Do printed intervals hold the truth as often as they say? Over networks drawn from the prior."""

import pytest

from experiments.benchmarks.explanations import FAMILIES, tables

QUICK = {
    "hidden_layer_sizes": (4,),
    "n_restarts": 1,
    "max_epochs": 60,
    "n_draws": 200,
    "n_rows": 200,
}


def coverage(family, n_tables, truth="linear"):
    """Mean over truths of the shares covered."""
    return tables(family, n_tables, truth, **QUICK).mean()


def test_intervals_of_linear_truths_cover_in_short():
    found = coverage("gaussian", 12)
    assert found.between(0.8, 0.98).all(), found


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_intervals_of_linear_truths_cover(family):
    found = coverage(family, 40)
    assert found[["contributions", "effects"]].between(0.85, 0.97).all(), found
    assert 0.82 < found["shares"] < 0.98, found


@pytest.mark.slow
def test_intervals_of_clearly_bent_truths_cover():
    """Default fits. Standard errors over truths are about 0.025, of shares 0.03."""
    found = tables("gaussian", 40, "clearly bent").mean()
    assert found[["contributions", "effects"]].between(0.79, 0.96).all(), found
    assert 0.77 < found["shares"] < 0.97, found
