"""A fitted model in a few lines: its size, and what it uses."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from islab.core import families
from islab.core.diagnostics import diagnose
from islab.core.names import printable, shortened
from islab.core.sampled import SampledPosterior

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.convolution.posterior import SparseImageNetwork
    from islab.core.sparse import SparseNetwork
    from islab.estimators.base import NetworkEstimator
    from islab.estimators.images import ISLaBImageClassifier
    from islab.estimators.posterior import PosteriorEstimator

NAME_LENGTH = 36
LINES_SHOWN = 30
HEAD = ("covariate", "weights", "inclusion", "used", "depth")
COLUMNS = [
    "covariate",
    "variable",
    "weights",
    "inclusion",
    "used_probability",
    "min_depth",
    "max_depth",
]


@dataclass(frozen=True)
class Summary:
    """Facts about a model and a table of its parts.

    Attributes
    ----------
    title : str
    facts : dict
        Name and value of each fact, ready to read.
    """

    title: str
    facts: dict[str, str]
    table_name: ClassVar[str]

    def to_frame(self) -> pd.DataFrame:
        """The table."""
        return getattr(self, self.table_name).copy()

    def to_dict(self) -> dict[str, Any]:
        """Facts and table in JSON's types."""
        frame = self.to_frame()
        lines = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
        return {"title": self.title, "facts": self.facts, self.table_name: lines}

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        facts = [f"  {name:<{width}}  {value}" for name, value in self.facts.items()]
        return "\n".join([self.title, *facts, "", *self._lines()])

    __repr__ = __str__

    def _lines(self) -> list[str]:
        """The table as text."""
        raise NotImplementedError

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The table's head and its rows, ready to read."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        head, rows = self._cells()
        body = "".join(_html_row("td", row) for row in rows)
        return (
            f"<div><h4>{escape(self.title)}</h4><table>{facts}</table>"
            f"<table><thead>{_html_row('th', head)}</thead><tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True, repr=False)
class ModelSummary(Summary):
    """Facts about a model of tables and the covariates it uses.

    Attributes
    ----------
    covariates : DataFrame
        A line for each used covariate: its variable, how many used weights start at it, their
        mean inclusion probability, the posterior probability that some active path starts at it
        (NaN for sparse files), and the least and greatest depth from which it contributes.
    """

    covariates: pd.DataFrame
    table_name = "covariates"

    def _lines(self) -> list[str]:
        if self.covariates.empty:
            return ["  No covariate is kept: what is left predicts the same for all rows."]
        rows = self._cells()[1]
        width = max(len(row[0]) for row in (HEAD, *rows))
        left = len(self.covariates) - len(rows)
        lines = [
            f"  {name:<{width}}  {weights:>7}  {inclusion:>9}  {used:>5}  {depth:>5}"
            for name, weights, inclusion, used, depth in (HEAD, *rows)
        ]
        return [*lines, f"  ... and {left} more"] if left else lines

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        shown = self.covariates.head(LINES_SHOWN)
        return HEAD, [tuple(_cells(line)) for line in shown.to_dict(orient="records")]


@dataclass(frozen=True, repr=False)
class ImageSummary(Summary):
    """Facts about a model of images and its layers.

    Attributes
    ----------
    layers : DataFrame
        A line for each convolution and each layer of the head: channels or units and weights
        before training, how many are used, how many kernels (one for each pair of channels) were
        pruned away whole.
    """

    layers: pd.DataFrame
    table_name = "layers"

    def _lines(self) -> list[str]:
        table = self.layers.astype("string").fillna("-").to_string(index=False).splitlines()
        return [f"  {line}" for line in table]

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        table = self.layers.astype("string").fillna("-")
        return tuple(table.columns), list(table.itertuples(index=False, name=None))


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cells(line: dict[str, Any]) -> list[str]:
    low, high, used = line["min_depth"], line["max_depth"], line["used_probability"]
    return [
        shortened(printable(line["covariate"]), NAME_LENGTH),
        str(line["weights"]),
        "-" if np.isnan(line["inclusion"]) else f"{line['inclusion']:.2f}",
        "-" if np.isnan(used) else f"{used:.2f}",
        str(low) if low == high else f"{low}-{high}",
    ]


def _size(network: SparseNetwork | SparseImageNetwork, outputs: tuple[str, ...]) -> dict[str, str]:
    return {
        "likelihood": network.likelihood,
        "outputs": shortened(printable(", ".join(outputs)), 2 * NAME_LENGTH),
        "used weights": f"{network.n_used_weights} of {network.n_weights_initial}",
    }


def _training(estimator: PosteriorEstimator) -> dict[str, str]:
    facts = {}
    if estimator.interrupted_:
        facts["training"] = "interrupted before its end; the best model so far"
    if estimator.elbo_ is not None:
        facts["ELBO"] = f"{estimator.elbo_:.2f}"
    return facts


def summarise_model(estimator: NetworkEstimator) -> ModelSummary:
    """The summary of a fitted estimator."""
    network = estimator.network_
    facts = _size(network, network.scale.outputs) | {
        "used covariates": f"{len(network.covariates)} of {network.n_covariates}",
        "depth": f"{network.average_depth:.2f} on average, {network.max_depth} at most",
    }
    facts |= _training(estimator)
    facts |= {name: f"{value:.4g}" for name, value in estimator.chosen_.items()}
    family = families.likelihood(network.likelihood)
    if family.learns_noise:
        noise = network.noise_in_units()
        shown = noise**0.5 if family.scales_target else noise
        facts[family.noise_name] = ", ".join(f"{each:.4g}" for each in shown)
    if isinstance(estimator.posterior_, SampledPosterior):
        facts["chains"] = diagnose(estimator.posterior_).words
        if estimator.posterior_.price is not None:
            facts["readable network"] = estimator.posterior_.price.words
    elif estimator.disagreement_ is not None:
        facts["caution"] = estimator.disagreement_
    return ModelSummary(type(estimator).__name__, facts, _used_covariates(estimator))


def _used_covariates(estimator: NetworkEstimator) -> pd.DataFrame:
    """The used lines of the global explanation, the surest first."""
    network = estimator.network_
    frame = estimator.explain_global().covariates
    start = network.from_covariate()
    columns = network.edge_ends()[0][start]
    total = np.bincount(columns, weights=network.alpha[start], minlength=len(frame))
    frame = frame.assign(weights=frame["count"], inclusion=total / np.maximum(frame["count"], 1))
    used = frame[frame["weights"] > 0].astype({"min_depth": int, "max_depth": int})
    order = ["used_probability", "inclusion", "weights"]
    return used[COLUMNS].sort_values(order, ascending=False, ignore_index=True)


def summarise_images(estimator: ISLaBImageClassifier) -> ImageSummary:
    """The summary of a fitted classifier of images."""
    network = estimator.network_
    pixels = network.receptive_field()
    head_density = network.head.density
    facts = _size(network, network.head.scale.outputs) | {
        "density": f"{network.kernel_density:.2%} of kernels, {head_density:.2%} of the head",
        "used features": f"{len(network.head.covariates)} of {_n_features(network)}",
        "used pixels": f"{int(pixels.sum())} of {pixels.size}",
    }
    facts |= _training(estimator)
    return ImageSummary(type(estimator).__name__, facts, _layers(network))


def _n_features(network: SparseImageNetwork) -> int:
    height, width, _ = network.architecture.feature_shape
    channels = network.n_channels[-1] if network.n_channels else network.architecture.image_shape[0]
    return height * width * channels


def _layers(network: SparseImageNetwork) -> pd.DataFrame:
    import pandas as pd

    lines = []
    below = network.architecture.image_shape[0]
    for number, kernel in enumerate(network.kernels):
        layer = network.architecture.convolutions[number]
        pairs = len(np.unique(kernel.edges // layer.kernel_size**2))
        total = below * network.n_channels[number]
        lines.append(
            {
                "layer": f"convolution {number + 1}",
                "units": network.n_channels[number],
                "used units": len(network.channels[number]),
                "weights": kernel.n_weights_initial,
                "used weights": kernel.n_used_weights,
                "kernels": total,
                "pruned kernels": total - pairs,
            }
        )
        below = network.n_channels[number]
    frame = pd.DataFrame([*lines, *_head_lines(network)])
    return frame.astype({name: "Int64" for name in frame.columns if name != "layer"})


def _head_lines(network: SparseImageNetwork) -> list[dict[str, object]]:
    head = network.head
    into = head.edge_layers()
    last = head.architecture.n_layers - 1
    return [
        {
            "layer": f"head {number + 1}" if number < last else "output",
            "used units": width,
            "used weights": int((into == number).sum()),
        }
        for number, width in enumerate(head.architecture.widths)
    ]
