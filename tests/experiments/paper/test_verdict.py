"""Which numbers count as better."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from experiments.paper.verdict import entry, rank_test, tables_of
from islab.evaluate.runner import Cell

from .conftest import record

DEPTHS = "Accuracy, used weights and depth"


def compared(values, name, model="full", dataset="wbc", key=None, method="islab"):
    """Values over seeds of one metric beside the paper's."""
    [metric] = [
        metric
        for table in tables_of(dataset).values()
        for metric in table
        if (metric.name, metric.model) == (name, model)
    ]
    runs = [
        record(Cell(dataset, method, "default", seed), **{key or metric.key: value})
        for seed, value in enumerate(values)
    ]
    return entry(runs, metric)


def verdict(*args, **options):
    return compared(*args, **options).verdict


# The paper's NLL of ISLaB-LRT on WBC: 0.206 (0.192, 0.229).
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.150, 0.180, 0.191], "better"),
        ([0.150, 0.160, 0.192], "better"),
        ([0.185, 0.200, 0.206], "same"),
        ([0.230, 0.300, 0.400], "worse"),
        ([0.100, 0.200, 0.900], "same"),
        ([0.230], "untested"),
    ],
)
def test_losses_are_better_if_the_rank_test_tells_them_apart(values, expected):
    assert verdict(values, "nll") == expected


def test_ranges_that_overlap_can_be_told_apart():
    # Of the published runs, half have fewer than 71 weights and the largest has 109.
    ours = [113, 120, 140, 150, 160, 170, 171, 180, 200, 100]
    found = compared(ours, "weights", "median", "nonlinear-0.0", method="islab-flow")
    assert min(ours) < found.paper.high
    assert found.verdict == "worse"
    assert found.p_value < 0.001


def test_p_values_are_those_of_scipy():
    ours = [60.0, 71.0, 88.0, 90.0, 120.0]
    found = compared(ours, "weights", "median", "nonlinear-0.5", method="islab-flow")
    theirs = [59, 102, 67, 77, 111, 103, 92, 75, 74, 113]
    assert found.p_value == mannwhitneyu(ours, theirs, method="exact").pvalue
    assert found.verdict == "same"


def test_values_that_are_all_equal_are_the_same():
    found = compared([2.0] * 10, "weights", "median", "linear-0.0")
    assert (found.verdict, found.p_value) == ("same", 1.0)


def test_equal_accuracies_are_ties_with_the_published_seeds():
    theirs = [1 - errors / 57 for errors in (1, 2, 1, 2, 2, 2, 2, 1, 1, 2)]
    assert compared(theirs, "accuracy").p_value == pytest.approx(1.0)


def test_values_that_are_printed_alike_are_ties():
    # 0.2064 is printed 0.206, the paper's median.
    assert compared([0.2064] * 5, "nll").p_value == compared([0.206] * 5, "nll").p_value


def test_the_test_holds_its_level():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((400, 20))
    rejected = np.mean([rank_test(tuple(row[:10]), tuple(row[10:]))[0] < 0.05 for row in draws])
    assert rejected == pytest.approx(0.045, abs=0.03)


# The paper's published accuracies: four seeds with one error of 57 rows, six with two.
@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0] * 4, "better"), ([56 / 57, 55 / 57], "same"), ([54 / 57, 53 / 57], "worse")],
)
def test_accuracies_are_better_if_higher(values, expected):
    assert verdict(values, "accuracy") == expected


@pytest.mark.parametrize(("weights", "expected"), [(2, "better"), (4, "same"), (7, "worse")])
def test_fewer_weights_are_better(weights, expected):
    assert verdict([weights] * 5, "weights", "median") == expected


@pytest.mark.parametrize(("depth", "expected"), [(0, "shallower"), (1, "same"), (2, "deeper")])
def test_depths_are_neither_better_nor_worse(depth, expected):
    assert verdict([depth] * 5, "max depth", "median") == expected


# The paper finds x1, x2 and x3 in all of ten seeds, x4 in none. By Fisher's exact test, six of ten
# may be chance (p = 0.087) and five may not (p = 0.033).
@pytest.mark.parametrize(
    ("covariate", "found", "expected"),
    [
        ("x1", 10, "same"),
        ("x1", 6, "same"),
        ("x1", 5, "worse"),
        ("x3", 6, "same"),
        ("x3", 5, "better"),
        ("x4", 4, "same"),
        ("x4", 5, "worse"),
    ],
)
def test_rates_of_inclusion_differ_by_more_than_chance(covariate, found, expected):
    selections = [[covariate]] * found + [[]] * (10 - found)
    name = f"inclusion {covariate}"
    assert verdict(selections, name, "median", "linear-0.9", "selected") == expected


def test_rates_of_few_seeds_are_judged_by_how_many_there_are():
    assert verdict([[], []], "inclusion x1", "median", "linear-0.9", "selected") == "worse"
    assert verdict([[], ["x1"]], "inclusion x1", "median", "linear-0.9", "selected") == "same"


def test_without_a_number_of_the_paper_there_is_no_verdict():
    assert verdict([0.5], "nll", dataset="mice-by-mouse") == ""


# The paper's NLL of ISLaB-LRT on mice, of mean logarithms: 0.203 (0.162, 0.238).
def test_of_several_classes_the_papers_way_of_averaging_is_compared():
    assert verdict([0.2] * 5, "nll (paper)", dataset="mice") == "same"
    assert verdict([0.1] * 5, "nll (paper)", dataset="mice") == "better"
    assert verdict([0.1] * 5, "nll", dataset="mice") == ""


# The paper's correlation of ISLaB-LRT on abalone: 0.780 to 0.790, half of it above 0.785.
def test_the_correlation_of_the_paper_is_the_root_of_r2():
    assert verdict([0.617] * 5, "pearson (paper)", dataset="abalone") == "same"
    assert verdict([0.65] * 5, "pearson (paper)", dataset="abalone") == "better"
    assert verdict([-0.2] * 5, "pearson (paper)", dataset="abalone") == "worse"
    assert verdict([0.9] * 5, "pearson", dataset="abalone") == ""


# The paper's average depth of the L1 network on linear-0.1 is 1.7 (1.7, 1.7), to one digit.
def test_values_are_judged_with_the_digits_that_the_paper_prints():
    [metric] = [m for m in tables_of("linear-0.1")[DEPTHS] if m.name == "average depth"]
    runs = [
        record(Cell("linear-0.1", "l1-skip", "paper", seed), average_depth=1.667)
        for seed in range(5)
    ]
    found = entry(runs, metric)
    assert found.verdict == "same"
    assert str(found.ours) == "1.67 (1.67, 1.67)"
