"""Which numbers count as better."""

import pytest

from experiments.paper.verdict import entry, tables_of
from islab.evaluate.runner import Cell

from .conftest import record

DEPTHS = "Accuracy, used weights and depth"


def verdict(values, name, model="full", dataset="wbc", key=None):
    """The verdict on values over seeds of one metric of ISLaB-LRT."""
    [metric] = [
        metric
        for table in tables_of(dataset).values()
        for metric in table
        if (metric.name, metric.model) == (name, model)
    ]
    runs = [
        record(Cell(dataset, "islab", "default", seed), **{key or metric.key: value})
        for seed, value in enumerate(values)
    ]
    return entry(runs, metric).verdict


# The paper's NLL of ISLaB-LRT on WBC: 0.206 (0.192, 0.229).
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.150, 0.180, 0.191], "better"),
        ([0.150, 0.160, 0.192], "same"),
        ([0.150, 0.160, 0.1924], "same"),
        ([0.229, 0.300, 0.400], "same"),
        ([0.230, 0.300, 0.400], "worse"),
        ([0.100, 0.200, 0.900], "same"),
    ],
)
def test_losses_are_better_only_if_the_ranges_do_not_overlap(values, expected):
    assert verdict(values, "nll") == expected


# Accuracy: 96.5 (96.5, 98.2) %; a test set of 57 rows knows 96.49 and 98.25.
@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 1.0], "better"), ([55 / 57, 1.0], "same"), ([54 / 57, 53 / 57], "worse")],
)
def test_accuracies_are_better_if_higher_and_rounded_as_printed(values, expected):
    assert verdict(values, "accuracy") == expected


@pytest.mark.parametrize(("weights", "expected"), [(2, "better"), (3, "same"), (7, "worse")])
def test_fewer_weights_are_better(weights, expected):
    assert verdict([weights], "weights", "median") == expected


@pytest.mark.parametrize(("depth", "expected"), [(0, "shallower"), (1, "same"), (2, "deeper")])
def test_depths_are_neither_better_nor_worse(depth, expected):
    assert verdict([depth], "max depth", "median") == expected


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
    assert verdict([0.2], "nll (paper)", dataset="mice") == "same"
    assert verdict([0.1], "nll (paper)", dataset="mice") == "better"
    assert verdict([0.1], "nll", dataset="mice") == ""


# The paper's correlation of ISLaB-LRT on abalone: 0.78 (0.78, 0.79).
def test_the_correlation_of_the_paper_is_the_root_of_r2():
    assert verdict([0.61], "pearson (paper)", dataset="abalone") == "same"
    assert verdict([0.65], "pearson (paper)", dataset="abalone") == "better"
    assert verdict([-0.2], "pearson (paper)", dataset="abalone") == "worse"
    assert verdict([0.9], "pearson", dataset="abalone") == ""


# The paper's average depth of the L1 network on linear-0.1 is 1.7 (1.7, 1.7), to one digit.
def test_values_are_judged_with_the_digits_that_the_paper_prints():
    [metric] = [m for m in tables_of("linear-0.1")[DEPTHS] if m.name == "average depth"]
    run = record(Cell("linear-0.1", "l1-skip", "paper", 0), average_depth=1.667)
    found = entry([run], metric)
    assert found.verdict == "same"
    assert str(found.ours) == "1.67 (1.67, 1.67)"
