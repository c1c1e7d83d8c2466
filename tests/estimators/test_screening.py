"""Very many covariates: the most associated ones are learned from."""

import numpy as np
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, TableWarning
from islab.estimators.screening import association, screened
from islab.learn.engines import Problem
from tests.estimators.conftest import QUICK


@pytest.fixture
def narrow(monkeypatch):
    """Chains choose among 30 covariates at most."""
    for module in ("screening", "sampling"):
        monkeypatch.setattr(f"islab.estimators.{module}.MOST_COVARIATES", 30)
    monkeypatch.setattr("islab.estimators.screening.KEPT", 8)


def wide(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 40))
    return x, x[:, 5] + 0.7 * x[:, 30] ** 2 + rng.normal(size=n_rows)


def test_associations_are_correlations_with_the_covariate_or_its_square():
    x, y = wide()
    weight = np.random.default_rng(1).integers(0, 3, len(x)).astype(float)
    rows = np.repeat(np.arange(len(x)), weight.astype(int))
    targets = np.column_stack([y, x[:, 2]])
    found = association(x, targets, weight)
    for column in (2, 5, 30, 31):
        pairs = [
            abs(np.corrcoef(x[rows, column] ** power, target[rows])[0, 1])
            for power in (1, 2)
            for target in targets.T
        ]
        np.testing.assert_allclose(found[column], max(pairs), rtol=1e-10)


def test_straight_and_bent_effects_are_kept(narrow):
    x, y = wide()
    usable = np.ones(40, dtype=bool)
    usable[7] = False
    kept = screened(Problem(x, y[:, None]), usable)
    assert kept.sum() == 8
    assert kept[[5, 30]].all()
    assert not kept[7]


def test_few_covariates_are_all_kept():
    x, y = wide()
    usable = np.arange(40) != 3
    np.testing.assert_array_equal(screened(Problem(x, y[:, None]), usable), usable)


@pytest.mark.parametrize("maker", [ISLaBRegressor, ISLaBClassifier])
def test_a_fit_draws_networks_of_the_kept_ones_and_says_so(narrow, maker):
    x, y = wide()
    target = y if maker is ISLaBRegressor else y > 0.7
    with pytest.warns(TableWarning, match="Got 40 covariates, .* the 8 most associated"):
        model = maker(**QUICK).fit(x, target)
    used = model.posterior_.to_frame()["p_used"]
    assert len(used) == 40
    assert used.iloc[5] > 0.9
    assert (used > 0).sum() <= 8
    assert np.isfinite(model.predict(x[:3].astype(float)).astype(float)).all()


def test_included_columns_are_kept(narrow):
    x, y = wide()
    with pytest.warns(TableWarning):
        model = ISLaBRegressor(**QUICK, constraints={39: "include"}).fit(x, y)
    assert model.posterior_.to_frame()["p_used"].iloc[39] == 1


def test_independent_weights_learn_from_all(narrow):
    x, y = wide()
    model = ISLaBRegressor(**QUICK, posterior="independent").fit(x, y)
    assert model.posterior_.architecture.n_covariates == 40
