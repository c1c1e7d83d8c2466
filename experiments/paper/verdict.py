"""Our numbers beside the paper's, and which are better."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from statistics import median

from experiments.paper.paper import Published, published
from experiments.paper.settings import IMAGES, in_paper
from islab.evaluate.runner import Cell, Record

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"
ROOT_OF_R2 = "pearson (paper)"
PAPER_SEEDS = 10  # of every number in its tables
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
    """One number of ours and the paper's."""

    metric: Metric
    ours: Range
    paper: Published | None
    n_seeds: int

    @property
    def verdict(self) -> str:
        """Better, worse or the same by whether the ranges overlap.

        Our values are rounded as the paper prints its own. Ours are *better* if the worst of our
        seeds is better than the best of the paper's, *worse* if the best of ours is worse than
        the paper's worst, else the *same*; a median that lies better within an overlap counts
        for nothing. Fewer weights are better. Depths are neither: *shallower* or *deeper*. Rates
        of inclusion are better if covariates that made the data are found more often and the
        others less often, and the same unless Fisher's exact test tells them apart at 5 %.
        Empty if the paper or we have no such number.
        """
        if self.paper is None or isnan(self.ours.median):
            return ""
        if self.metric.is_rate and not self._rates_differ():
            return "same"
        low, high = (round(x, self.paper.decimals) for x in (self.ours.low, self.ours.high))
        above = low > max(self.paper.high, self.paper.median)
        below = high < min(self.paper.low, self.paper.median)
        if not (above or below):
            return "same"
        if self.metric.better == NEITHER:
            return "deeper" if above else "shallower"
        return "better" if above == (self.metric.better == HIGHER) else "worse"

    def _rates_differ(self) -> bool:
        from scipy.stats import fisher_exact

        assert self.paper is not None
        counts = [
            (found := round(rate / 100 * runs), runs - found)
            for rate, runs in ((self.ours.median, self.n_seeds), (self.paper.median, PAPER_SEEDS))
        ]
        return bool(fisher_exact(counts).pvalue < 0.05)


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


def paper_methods(dataset: str, method: str) -> list[str]:
    """A method, and what the paper calls it with a strength at its end: it has several on MNIST."""
    names = dict.fromkeys(entry.method for entry in published() if entry.dataset == dataset)
    ending = re.compile(rf"{re.escape(method)}-[\d.]+")
    return [method, *(name for name in names if ending.fullmatch(name))]


def entry(records: list[Record], metric: Metric) -> Entry:
    """Our range over seeds beside the paper's, for records of one data set, method and recipe."""
    first = records[0]
    paper = paper_entry(first["dataset"], first["method"], metric)
    decimals = metric.decimals if paper is None else max(paper.decimals, metric.decimals)
    values = [value for record in records if not isnan(value := metric.value(record))] or [nan]
    if metric.is_rate:
        values = [sum(values) / len(values)]
    middle, low, high = (
        round(value, decimals) for value in (median(values), min(values), max(values))
    )
    return Entry(metric, Range(middle, low, high, decimals), paper, len(records))
