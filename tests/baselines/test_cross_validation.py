"""Cross-validation inside a fit."""

import numpy as np
import pytest

from islab.baselines.cross_validation import fold_weights, judged_rows, sparsest_near_best
from islab.learn.engines import Problem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_row_is_left_out_of_one_fold(rng):
    weight = fold_weights(
        Problem(rng.standard_normal((23, 2)), rng.standard_normal((23, 1))), 5, rng
    )
    np.testing.assert_array_equal((weight == 0).sum(axis=0), 1)
    assert (weight[0] == 1).all()


def test_each_fold_has_its_share_of_a_rare_class(rng):
    y = (np.arange(50) < 10).astype(float)[:, None]
    left_out = fold_weights(Problem(rng.standard_normal((50, 2)), y), 5, rng)[1:] == 0
    np.testing.assert_array_equal(left_out @ y, 2)


def test_rows_are_judged_by_the_replica_that_left_them_out():
    row_weight = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    replicas, rows = judged_rows(row_weight)
    assert list(zip(replicas.tolist(), rows.tolist(), strict=True)) == [(1, 2), (2, 0), (2, 1)]


def test_without_folds_all_rows_are_judged_by_the_one_network():
    replicas, rows = judged_rows(np.ones((1, 3)))
    assert replicas.tolist() == [0, 0, 0]
    assert rows.tolist() == [0, 1, 2]


def test_the_sparsest_candidate_within_the_error_of_the_best_is_chosen():
    noise = np.tile([0.3, -0.3], 50)
    losses = np.array([np.ones(100), 0.9 * np.ones(100), 0.91 + noise, 1.2 + noise])
    assert sparsest_near_best(losses, np.ones(100)) == 2


def test_rows_without_weight_do_not_choose():
    losses = np.array([[1.0, 0.0], [0.0, 5.0]])
    assert sparsest_near_best(losses, np.array([1.0, 0.0])) == 1
