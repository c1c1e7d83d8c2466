"""The paper's numbers: complete, and as printed."""

from collections import Counter
from statistics import median

import pytest

from experiments.paper.paper import SEEDS, published, seeds_of_the_paper, spread_seeds
from experiments.paper.settings import METHODS, SIMULATED

# Rows times columns of each table, less the entries that the paper leaves out: the sparse
# BNN-CONCRETE everywhere, weights and depths of convolutional networks.
COUNTS = {
    "linAcc": 20 * 5,
    "lincalibration": 20 * 4,
    "linInclution": 20 * 4,
    "nonLinAcc": 20 * 5,
    "nonlincalibration": 20 * 4,
    "nonLinInclution": 20 * 4,
    "WBCAcc": 8 * 5 - 1,
    "WBCCalibration": 8 * 4 - 2,
    "WBCAUC": 8 * 2 - 1,
    "abaloneAcc": 8 * 5 - 1,
    "abaloneCalibration": 8 * 4 - 2,
    "miceAcc": 8 * 5 - 1,
    "micecalibration": 8 * 4 - 2,
    "FERAcc": 10 * 5 - 1 - 2 * 3,
    "FERcalibration": 10 * 4 - 2,
    "MNISTAcc": 13 * 5 - 1 - 2 * 3,
    "mnistcalibration": 13 * 4 - 2,
    "CIFAR10": 4 * 4,
}


def found(dataset, method, model, metric):
    [entry] = [
        entry
        for entry in published()
        if (entry.dataset, entry.method, entry.model, entry.metric)
        == (dataset, method, model, metric)
    ]
    return entry.median, entry.low, entry.high


def test_every_table_is_complete():
    assert Counter(entry.table for entry in published()) == COUNTS


def test_no_entry_is_there_twice():
    keys = Counter((e.dataset, e.method, e.model, e.metric) for e in published())
    assert max(keys.values()) == 1


@pytest.mark.parametrize(
    ("dataset", "method", "model", "metric", "numbers"),
    [
        ("linear-0.9", "islab", "median", "weights", (3, 3, 3)),
        ("linear-0.5", "blr", "median", "accuracy", (99.9, 99.9, 99.9)),
        ("linear-0.1", "l1-skip", "full", "nll", (0.009, 0.009, 0.010)),
        ("nonlinear-0.5", "islab-flow", "median", "weights", (84.5, 59, 113)),
        ("nonlinear-0.9", "blr-flow", "median", "inclusion x1", (60, 60, 60)),
        ("wbc", "spam", "full", "nll", (0.197, 0.126, 0.369)),
        ("wbc", "concrete-dropout", "median", "weights", (55, 28, 187)),
        ("wbc", "blr-flow", "median", "auc", (0.996, 0.995, 0.997)),
        ("abalone", "l1-skip", "median", "weights", (95, 80, 104)),
        ("abalone", "horseshoe", "median", "pinball (paper)", (0.72, 0.71, 0.75)),
        ("mice", "islab", "full", "accuracy", (99.1, 98.1, 100)),
        ("mice", "horseshoe", "median", "nll", (0.005, 0.002, 0.073)),
        ("fer2013", "bcnn-islab-flow", "full", "accuracy", (76.8, 75.1, 77.4)),
        ("mnist", "l1-skip-0.01", "median", "weights", (12276, 10968, 13023)),
        ("mnist", "islab-flow", "full", "ece", (0.005, 0.002, 0.009)),
        ("cifar10", "vit-islab-flow", "median", "accuracy", (75.4, 64.4, 81.8)),
    ],
)
def test_entries_are_as_printed(dataset, method, model, metric, numbers):
    assert found(dataset, method, model, metric) == numbers


def test_an_entry_without_a_range_says_so():
    [entry] = [
        e for e in published() if (e.dataset, e.method, e.metric) == ("wbc", "blr", "max depth")
    ]
    assert not entry.has_range


def test_decimals_are_those_printed():
    decimals = {e.metric: e.decimals for e in published() if e.dataset == "abalone"}
    assert (decimals["rmse"], decimals["pearson"], decimals["max depth"]) == (2, 2, 0)


@pytest.mark.parametrize("dataset", [*SIMULATED, "wbc", "abalone", "mice", "mnist", "fer2013"])
def test_every_data_set_has_the_five_methods_of_the_ablation(dataset):
    methods = {entry.method for entry in published() if entry.dataset == dataset}
    assert set(METHODS[:4]) <= methods
    assert any(name.startswith("l1-skip") for name in methods)


@pytest.mark.parametrize("key", [*seeds_of_the_paper()])
def test_the_published_seeds_have_the_median_and_range_of_the_table(key):
    values = seeds_of_the_paper()[key]
    [entry] = [e for e in published() if (e.dataset, e.method, e.model, e.metric) == key]
    assert len(values) == SEEDS
    # The authors round halves up in some cells and down in others.
    within = 0.5001 * 10**-entry.decimals
    for of_seeds, printed in (
        (median(values), entry.median),
        (min(values), entry.low),
        (max(values), entry.high),
    ):
        assert of_seeds == pytest.approx(printed, abs=within)


def test_seeds_that_are_not_published_are_spread_between_the_printed_numbers():
    [entry] = [
        e
        for e in published()
        if (e.dataset, e.method, e.model, e.metric) == ("wbc", "spam", "full", "nll")
    ]
    values = spread_seeds(entry)
    assert len(values) == SEEDS
    assert sorted(values) == list(values)
    assert (min(values), median(values), max(values)) == (0.126, 0.197, 0.369)
    assert values[1] - values[0] == pytest.approx(values[2] - values[1])
