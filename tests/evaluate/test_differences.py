"""Paired differences and ranks over tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from islab import compare
from islab.evaluate import Comparison, rank_methods
from islab.evaluate.differences import standard_error
from islab.evaluate.ranking import groups_within


def comparison(task="classification", score="nll", **values):
    """Fits of methods with these scores on the same splits; None for a failure."""
    records = [
        {"method": name, "seed": seed, "seconds": 1.0, "selected": None, "error": None}
        | ({"error": "no"} if value is None else {"models": {"full": {score: value}}})
        for name, numbers in values.items()
        for seed, value in enumerate(numbers)
    ]
    return Comparison(tuple(records), task, ())


def test_differences_are_paired_by_split():
    found = comparison(one=[0.1, 0.5, 0.9], two=[0.2, 0.6, 1.0]).differences()
    row = found.loc[("two", "full")]
    assert row["difference"] == pytest.approx(0.1)
    assert row["se"] == pytest.approx(0, abs=1e-12)
    assert (row["better"], row["worse"], row["splits"]) == (0, 3, 3)


def test_the_standard_error_allows_for_overlap():
    values = np.array([0.1, 0.3, -0.2, 0.4])
    expected = values.std(ddof=1) * np.sqrt(1 / 4 + 0.25)
    assert standard_error(values, 0.25) == pytest.approx(expected)


def test_one_split_has_no_standard_error():
    assert np.isnan(comparison(one=[0.1], two=[0.2]).differences().loc[("two", "full"), "se"])


def test_only_splits_with_both_results_count():
    found = comparison(one=[0.1, None, 0.3], two=[0.2, 0.9, 0.5]).differences()
    assert found.loc[("two", "full"), "splits"] == 2
    assert found.loc[("two", "full"), "difference"] == pytest.approx(0.15)


def test_more_accuracy_is_better():
    found = comparison(score="accuracy", one=[0.8, 0.8], two=[0.9, 0.7]).differences("accuracy")
    assert found.loc[("two", "full"), ["better", "worse"]].tolist() == [1, 1]


def test_the_reference_can_be_chosen():
    both = comparison(one=[0.1, 0.1], two=[0.2, 0.2])
    assert both.differences(reference="two").loc[("one", "full"), "difference"] < 0
    assert both.differences(reference=("two", "full")).index.tolist() == [("one", "full")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "coverage"}, "Got score='coverage'"),
        ({"score": "rmse"}, "Got score='rmse' for classification"),
        ({"reference": "three"}, "Got reference='three'"),
        ({"reference": ("one", "median")}, "expected a method with a result"),
    ],
)
def test_what_has_no_difference_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        comparison(one=[0.1], two=[0.2]).differences(**options)


def test_text_and_page_show_differences(tmp_path):
    found = comparison(one=[0.1, 0.2], two=[0.3, 0.3])
    assert "nll minus that of one (full) on the same splits:" in str(found)
    assert "+0.150" in str(found)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Differences" in page
    assert "+0.150" in page


def test_two_standard_errors_hold_for_splits_that_overlap():
    """Two predictions that are equally good: a claim of a difference is a false one."""
    rng, n, test_size, splits, repeats = np.random.default_rng(0), 60, 12, 30, 500
    x = rng.normal(size=(repeats, n, 2))
    by_row = x[..., 0] ** 2 - x[..., 1] ** 2  # errors of predicting x0 + x1 by one of them
    test = rng.random((repeats, splits, n)).argsort(axis=-1)[..., :test_size]
    by_split = np.take_along_axis(by_row[:, None], test, axis=-1).mean(axis=-1)
    corrected = [standard_error(each, test_size / (n - test_size)) for each in by_split]
    naive = by_split.std(axis=1, ddof=1) / np.sqrt(splits)
    limit, mean = student.ppf(0.975, splits - 1), np.abs(by_split.mean(axis=1))
    assert (mean > limit * np.array(corrected)).mean() < 0.07
    assert (mean > limit * naive).mean() > 0.2


def test_a_comparison_tells_the_share_of_test_rows(table, price, linear):
    record = compare(table, price, linear, seeds=1, test_size=0.25).records[0]
    assert record["test_by_train"] == pytest.approx(1 / 3)


# -- many tables ------------------------------------------------------------------------------

SCORES = pd.DataFrame(
    {"a": [1.0, 1.0, 3.0], "b": [2.0, 1.0, 1.0], "c": [3.0, 3.0, np.nan]},
    index=["x", "y", "z"],
)


def test_ranks_are_shared_by_equal_scores():
    ranks = rank_methods(SCORES[["a", "b"]]).mean_ranks()
    assert ranks.to_dict() == {"a": pytest.approx(4.5 / 3), "b": pytest.approx(4.5 / 3)}


def test_a_method_without_a_result_has_no_rank_but_pairs():
    found = rank_methods(SCORES)
    assert found.complete == ["a", "b"]
    assert found.to_frame().loc["c", "tables"] == 2
    assert found.against("a").loc["c"].to_dict() == {
        "wins": 2,
        "ties": 0,
        "losses": 0,
        "tables": 2,
    }


def test_wins_ties_and_losses_are_those_of_the_reference():
    assert rank_methods(SCORES).against("a").loc["b"].tolist() == [1, 1, 1, 3]


def test_high_scores_win_where_high_is_good():
    frame = rank_methods(SCORES[["a", "b"]], "accuracy").against("a")
    assert frame.loc["b", ["wins", "losses"]].tolist() == [1, 1]
    assert rank_methods(SCORES.iloc[[0]], "accuracy").mean_ranks().index[0] == "c"


def test_the_critical_difference_is_that_of_the_tables_of_demsar():
    # Demsar (2006): q.05 for 4 classifiers is 2.569; 14 data sets give 1.25.
    scores = pd.DataFrame(np.random.default_rng(0).random((14, 4)), columns=list("abcd"))
    assert rank_methods(scores).critical_difference() == pytest.approx(1.25, abs=0.01)


def test_differences_within_two_standard_errors_are_ties():
    clear = comparison(one=[0.1, 0.2, 0.3], two=[0.2, 0.3, 0.401])
    vague = comparison(one=[0.1, 0.2, 0.3], two=[0.4, 0.0, 0.3])
    found = rank_methods({"clear": clear, "vague": vague})
    assert found.against("one").loc["two"].tolist() == [1, 1, 0, 2]
    assert found.scores.loc["clear", "one"] == pytest.approx(0.2)


def test_bars_join_methods_within_the_critical_difference():
    assert groups_within(np.array([1.0, 1.5, 2.2, 4.0]), 1.0) == [(0, 1), (1, 2)]
    assert groups_within(np.array([1.0, 1.5, 1.9]), 1.0) == [(0, 2)]


def test_the_picture_of_ranks_names_methods_best_first():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    scores = pd.DataFrame(np.tile([3.0, 1.0, 2.0], (9, 1)), columns=["a", "b", "c"])
    ax = rank_methods(scores).plot(figure.subplots())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b", "c", "a"]
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0, 1], [1, 2]]


def test_the_text_of_ranks_says_what_chance_explains():
    assert "ranks by nll differ by chance up to" in str(rank_methods(SCORES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": {}}, "Got no tables"),
        ({"score": "coverage"}, "Got score='coverage'"),
        ({"model": "best"}, "Got model='best'"),
    ],
)
def test_what_cannot_be_ranked_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rank_methods(**{"tables": SCORES, **options})
