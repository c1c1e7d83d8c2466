"""Our numbers beside the paper's, and which are better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, nan, sqrt
from statistics import median

from experiments.paper.paper import (
    SEEDS,
    Published,
    published,
    seeds_of_the_paper,
    spread_seeds,
)
from experiments.paper.settings import IMAGES, in_paper
from islab.evaluate.runner import Cell, Record

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"
ROOT_OF_R2 = "pearson (paper)"
LEVEL = 0.05
FEWEST_SEEDS = 2  # of one, and ten of the paper, the least p-value is 0.18
FINE = 9  # decimals of equal values
SEVERAL = ("mice", "mnist", "fer2013")  # with several classes, and numbers in the paper


@dataclass(frozen=True)
class Metric:
    """A column of a table.

    Attributes
    ----------
    name : str
        As in the paper's numbers, unless ``published`` says another.
    model : {"full", "median"}
    key : str
        Of our records.
    better : {"higher", "lower", "neither"}
    decimals : int
        To show where the paper has no number.
    factor : float
        From our unit to the paper's.
    published : str, optional
        Its name in the paper's numbers where that is another one; empty if the paper has none.
    """

    name: str
    model: str
    key: str
    better: str
    decimals: int
    factor: float = 1.0
    published: str | None = None

    @property
    def title(self) -> str:
        return self.name if self.key in STRUCTURE else f"{self.name}, {self.model}"

    @property
    def is_rate(self) -> bool:
        """Whether it is the share of seeds that find a covariate."""
        return self.name.startswith("inclusion ")

    def value(self, record: Record) -> float:
        """Its value in one of our records, in the paper's unit; NaN if there is none."""
        found = record.get(self.key)
        if found is None:
            return nan
        if self.is_rate:
            return 100.0 * (self.name.removeprefix("inclusion ") in found)
        if self.name == ROOT_OF_R2:
            return sqrt(max(0.0, float(found)))
        return self.factor * float(found)


STRUCTURE = (
    "used_weights",
    "average_depth",
    "max_depth",
    "selected",
    "used_channels",
    "used_features",
    "density_convolution",
    "density_dense",
)


def paper_key(key: str) -> str:
    """Of a score computed the paper's way: ``nll_paper_median`` for ``nll_median``."""
    name, ending, _ = key.partition("_median")
    return f"{name}_paper{ending}"


def _both(name: str, key: str, better: str, decimals: int, factor: float = 1.0) -> list[Metric]:
    return [
        Metric(name, model, key + ending, better, decimals, factor)
        for model, ending in (("full", ""), ("median", "_median"))
    ]


_DEPTHS = [
    Metric("weights", "median", "used_weights", LOWER, 1),
    Metric("average depth", "median", "average_depth", NEITHER, 2),
    Metric("max depth", "median", "max_depth", NEITHER, 1),
]
CLASSES: dict[str, list[Metric]] = {
    "Accuracy, used weights and depth": [*_both("accuracy", "accuracy", HIGHER, 1, 100), *_DEPTHS],
    "Calibration": [*_both("ece", "ece", LOWER, 3), *_both("nll", "nll", LOWER, 3)],
}
# The paper averages logarithms of probabilities over draws where there are several classes.
SEVERAL_CLASSES: dict[str, list[Metric]] = {
    "Accuracy, used weights and depth": CLASSES["Accuracy, used weights and depth"],
    "Calibration, logarithms averaged as in the paper": [
        replace(
            metric, name=f"{metric.name} (paper)", key=paper_key(metric.key), published=metric.name
        )
        for metric in CLASSES["Calibration"]
    ],
    "Calibration, probabilities averaged": [
        replace(metric, published="") for metric in CLASSES["Calibration"]
    ],
}
ROC = {"ROC AUC": _both("auc", "auc", HIGHER, 3)}
INCLUSION = {
    "Inclusion rates": [
        Metric(f"inclusion x{number}", "median", "selected", HIGHER if number < 3 else LOWER, 0)
        for number in (1, 2, 3, 4)
    ]
}
# The authors' code takes the root of R2 for the correlation.
NUMBERS: dict[str, list[Metric]] = {
    "Correlation, used weights and depth": [
        *(replace(m, published="pearson") for m in _both(ROOT_OF_R2, "r2", HIGHER, 2)),
        *_DEPTHS,
    ],
    "Errors": [
        *_both("rmse", "rmse", LOWER, 2),
        *_both("pinball (paper)", "pinball_paper", LOWER, 2),
    ],
    "What the paper does not judge": [
        Metric("pearson", "full", "pearson", HIGHER, 3, published=""),
        Metric("nll", "full", "nll", LOWER, 3),
        Metric("pinball", "full", "pinball", LOWER, 3),
        Metric("crps", "full", "crps", LOWER, 3),
        Metric("coverage of 90 %", "full", "coverage", NEITHER, 3),
        Metric("width of 90 %", "full", "width", NEITHER, 2),
    ],
}


_CALIBRATION = {
    title: metrics for title, metrics in SEVERAL_CLASSES.items() if title.startswith("Calibration")
}
CONVOLUTIONAL: dict[str, list[Metric]] = {
    "Accuracy, used weights and channels": [
        *_both("accuracy", "accuracy", HIGHER, 1, 100),
        Metric("weights", "median", "used_weights", LOWER, 0),
        Metric("channels", "median", "used_channels", LOWER, 0),
    ],
    **_CALIBRATION,
    "Density in percent": [
        Metric("of kernels", "median", "density_convolution", LOWER, 2, 100),
        Metric("of the head", "median", "density_dense", LOWER, 2, 100),
    ],
}
HYBRID: dict[str, list[Metric]] = {
    "Accuracy, used weights and features": [
        *_both("accuracy", "accuracy", HIGHER, 1, 100),
        Metric("weights", "median", "used_weights", LOWER, 0),
        Metric("features", "median", "used_features", LOWER, 0),
    ],
    **_CALIBRATION,
}


def tables_of(dataset: str) -> dict[str, list[Metric]]:
    """The columns of each of a data set's tables, by heading."""
    if dataset in IMAGES:
        return HYBRID if dataset.endswith("hybrid") else CONVOLUTIONAL
    if dataset == "abalone":
        return NUMBERS
    if dataset.startswith(("linear", "nonlinear")):
        return CLASSES | INCLUSION
    if dataset in SEVERAL:
        return SEVERAL_CLASSES
    return CLASSES | ROC if dataset == "wbc" else CLASSES


@dataclass(frozen=True)
class Range:
    """Median, least and greatest value over seeds; NaN and shown as nothing without a value."""

    median: float
    low: float
    high: float
    decimals: int

    def __str__(self) -> str:
        if isnan(self.median):
            return ""
        middle, low, high = (
            f"{value:.{self.decimals}f}" for value in (self.median, self.low, self.high)
        )
        return f"{middle} ({low}, {high})"


@dataclass(frozen=True)
class Entry:
    """One number of ours and the paper's.

    Attributes
    ----------
    metric : Metric
    ours : Range
    paper : Published, optional
    values : tuple of float
        Ours, a value for each seed.
    seeds : tuple of float, optional
        The paper's, where its authors have published them.
    """

    metric: Metric
    ours: Range
    paper: Published | None
    values: tuple[float, ...]
    seeds: tuple[float, ...] | None = None

    @cached_property
    def p_value(self) -> float:
        """Of the two-sided Mann-Whitney test of our seeds and the paper's.

        Where the paper prints a median, a least and a greatest value only, ten values at even
        steps between these stand for its seeds, and ours are rounded as they are printed. Rates
        of inclusion are compared by Fisher's exact test. NaN if the paper or we have no such
        number, and of one seed, of which no test can say that it differs from ten.
        """
        if self.paper is None or isnan(self.ours.median):
            return nan
        if self.metric.is_rate:
            return self._fisher()
        if len(self.values) < FEWEST_SEEDS:
            return nan
        return rank_test(*self._compared)[0]

    @property
    def verdict(self) -> str:
        """Better or worse where the test tells ours and the paper's apart at 5 %, else the same.

        Higher ranks are better or worse by the metric. Fewer weights are better. Depths are
        neither: *shallower* or *deeper*. Inclusion is better if covariates that made the data are
        found more often and the others less often. *untested* if there is one seed only; empty if
        the paper or we have no such number.
        """
        if self.paper is None or isnan(self.ours.median):
            return ""
        if isnan(self.p_value):
            return "untested"
        if self.p_value >= LEVEL:
            return "same"
        if self.metric.is_rate:
            above = self.ours.median > self.paper.median
        else:
            above = rank_test(*self._compared)[1] > 0
        if self.metric.better == NEITHER:
            return "deeper" if above else "shallower"
        return "better" if above == (self.metric.better == HIGHER) else "worse"

    @property
    def _compared(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Our values and the paper's, equal where they are printed alike."""
        assert self.paper is not None
        if self.seeds is not None:
            return tuple(round(value, FINE) for value in self.values), tuple(
                round(value, FINE) for value in self.seeds
            )
        decimals = self.paper.decimals
        return tuple(round(value, decimals) for value in self.values), spread_seeds(self.paper)

    def _fisher(self) -> float:
        from scipy.stats import fisher_exact

        assert self.paper is not None
        counts = [
            (found := round(rate / 100 * runs), runs - found)
            for rate, runs in ((self.ours.median, len(self.values)), (self.paper.median, SEEDS))
        ]
        return float(fisher_exact(counts).pvalue)


def rank_test(ours: tuple[float, ...], theirs: tuple[float, ...]) -> tuple[float, float]:
    """Two-sided p-value of the Mann-Whitney test, and by how much ours rank higher.

    The latter is the share of pairs in which ours is greater less that in which it is less. The
    p-value is exact where no values are equal, and of the normal approximation with its
    corrections for ties and continuity else; 1 if all are equal.
    """
    from scipy.stats import mannwhitneyu

    if len(set(ours + theirs)) == 1:
        return 1.0, 0.0
    found = mannwhitneyu(ours, theirs, alternative="two-sided", method="auto")
    return float(found.pvalue), float(2 * found.statistic / (len(ours) * len(theirs)) - 1)


Groups = dict[tuple[str, str], list[Record]]


def grouped(records: Iterable[Record]) -> Groups:
    """The records of one data set by method and recipe, in the order of seeds."""
    groups: Groups = defaultdict(list)
    for record in sorted(records, key=Cell.of):
        groups[record["method"], record["settings"]].append(record)
    return dict(groups)


def paper_entry(dataset: str, method: str, metric: Metric) -> Published | None:
    """What the paper has for it."""
    name = metric.name if metric.published is None else metric.published
    wanted = (*in_paper(dataset, method), name, metric.model)
    for entry in published():
        if (entry.dataset, entry.method, entry.metric, entry.model) == wanted:
            return entry
    return None


def paper_seeds(dataset: str, method: str, metric: Metric) -> tuple[float, ...] | None:
    """The paper's values over seeds, where they are published."""
    name = metric.name if metric.published is None else metric.published
    return seeds_of_the_paper().get((*in_paper(dataset, method), metric.model, name))


def entry(records: list[Record], metric: Metric) -> Entry:
    """Our range over seeds beside the paper's, for records of one data set, method and recipe."""
    first = records[0]
    paper = paper_entry(first["dataset"], first["method"], metric)
    decimals = metric.decimals if paper is None else max(paper.decimals, metric.decimals)
    values = [value for record in records if not isnan(value := metric.value(record))] or [nan]
    shown = [sum(values) / len(values)] if metric.is_rate else values
    middle, low, high = (
        round(value, decimals) for value in (median(shown), min(shown), max(shown))
    )
    return Entry(
        metric,
        Range(middle, low, high, decimals),
        paper,
        tuple(values),
        paper_seeds(first["dataset"], first["method"], metric),
    )
