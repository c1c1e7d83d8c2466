"""Why the network predicts what it predicts for one image: its linear piece, pixel by pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.convolution.geometry import Shape
from islab.core.convolution.network import slopes
from islab.core.convolution.posterior import SparseImageNetwork
from islab.core.outputs import Output, output_numbers
from islab.core.scale import Scale
from islab.explain.local_explanation import LocalExplanation, check_memory

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ImageDraws:
    """What draws of a network give for images, found once.

    Attributes
    ----------
    predictors, responses : (draws, rows, outputs)
    slope : (draws, rows, used pixels, outputs)
    """

    predictors: Float
    responses: Float
    slope: Float

    @property
    def n_draws(self) -> int:
        return len(self.predictors)

    def predictor(self, rows: slice) -> Float:
        return self.predictors[:, rows]

    def response(self, rows: slice) -> Float:
        return self.responses[:, rows]

    def slopes(self, rows: slice) -> Float:
        return self.slope[:, rows]

    def reach(self, rows: slice) -> tuple[Float, Float]:
        """Not known."""
        unknown = np.full(self.slope[:1, rows, :, 0].shape, np.nan)
        return unknown, unknown


@dataclass(frozen=True, eq=False)
class ImageExplanation(LocalExplanation):
    """Slopes and contributions of pixels, at the posterior mean and over draws.

    A :class:`~islab.explain.LocalExplanation` of kind ``"linear"`` whose covariates are the pixels:
    row by row, the channels of a pixel together, uint8 images scaled to 0 to 1. ``used`` are the
    pixels from which an active path leads to an output. Slopes, contributions and predictions
    without draws are those of the network with its mean weights.

    Attributes
    ----------
    source : SparseImageNetwork
    at_mean : ImageDraws
        Of the network with its mean weights.
    image_shape : (height, width, channels)
    """

    source: SparseImageNetwork = field(kw_only=True)
    at_mean: ImageDraws = field(kw_only=True)
    image_shape: Shape = field(kw_only=True)

    @property
    def predictor(self) -> Float:
        return self.at_mean.predictors[0]

    @property
    def response(self) -> Float:
        return self.at_mean.responses[0]

    @property
    def slope(self) -> Float:
        return self._all_covariates(self.at_mean.slope[0])

    @property
    def contribution(self) -> Float:
        return self.slope * (self.x - self.baseline)[..., None]

    @property
    def intercept(self) -> Float:
        return self.predictor - self.contribution.sum(axis=1)

    @cached_property
    def baseline_predictor(self) -> Float:
        """What the network gives for the baseline image, (outputs,)."""
        image = self.baseline.reshape(1, *self.image_shape)
        return self.source.predictor(image)[0, output_numbers(self.scale.outputs, self.outputs)]

    def to_frame(self, table: str = "covariates") -> pd.DataFrame:
        """As a long frame: ``"covariates"``, ``"variables"`` or ``"predictions"``, over draws."""
        return super().to_frame(table)

    @property
    def contribution_images(self) -> Float:
        """Contributions at the posterior mean, (rows, outputs, channels, height, width)."""
        maps = self.contribution.reshape(len(self.x), *self.image_shape, len(self.outputs))
        return np.transpose(maps, (0, 4, 3, 1, 2))

    def plot(self, *, row: int = 0, ax: Any = None) -> Any:  # type: ignore[override]
        """Maps of the contributions over the image, with the probability and its interval.

        Parameters
        ----------
        row : int
            The image.
        ax : axes or array of axes, optional
            One for each output.
        """
        from islab.plots import contribution_map

        return contribution_map(self, self.image_shape, row=row, ax=ax)


def explain_images(
    network: SparseImageNetwork,
    images: Float,
    *,
    output: Output | Sequence[Output] | None = None,
    level: float = 0.95,
    n_draws: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> ImageExplanation:
    """Exact slopes and contributions of every pixel for each image, with draws.

    Parameters
    ----------
    network : SparseImageNetwork
    images : (rows, height, width, channels)
    output : name, position or several of them, optional
        Outputs to explain; all if not given.
    level : float
        Of the credible intervals.
    n_draws : int
        Coherent draws of the network.
    random_state : int or Generator, optional

    Notes
    -----
    Convolutions are linear, so with a piecewise-linear activation the whole network is linear
    around an image: intercept plus the sum of slope times pixel is the predictor, in every draw.
    """
    net, head = network.architecture, network.head
    if not families.activation(net.activation).piecewise_linear:
        linear = ", ".join(families.activations(piecewise_linear=True))
        raise ValueError(
            f"Got activation={net.activation!r}, expected one of {linear}, whose networks are "
            "exactly linear around each image."
        )
    if not 0 < level < 1:
        raise ValueError(f"Got level={level}, expected a number between 0 and 1; try 0.95.")
    if n_draws < 1:
        raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try 100.")
    chosen = output_numbers(head.scale.outputs, output)
    field = np.moveaxis(network.receptive_field(), 0, -1)
    used = np.flatnonzero(field.ravel())
    check_memory(n_draws, len(images), len(used), len(chosen))
    rng = np.random.default_rng(random_state)
    images = np.asarray(images, dtype=float)
    likelihood = families.likelihood(network.likelihood)

    def piece(numbers: Any) -> tuple[Float, Float, Float]:
        predictor, gradient = slopes(net, numbers, images, head.covariates)
        slope = np.swapaxes(gradient[:, chosen][..., used], 1, 2)
        return predictor[:, chosen], likelihood.mean(predictor)[:, chosen], slope

    def draws(numbers: list[Any]) -> ImageDraws:
        found = zip(*(piece(each) for each in numbers), strict=True)
        return ImageDraws(*(np.stack(part) for part in found))

    return ImageExplanation(
        source=network,
        at_mean=draws([network.means()]),
        draws=draws([network.draw(rng) for _ in range(n_draws)]),
        x=images.reshape(len(images), -1),
        baseline=np.zeros(net.n_pixels),
        kind="linear",
        used=used,
        outputs=tuple(head.scale.outputs[number] for number in chosen),
        likelihood=network.likelihood,
        level=level,
        exact=True,
        reference=None,
        noise=head.noise_in_units()[chosen],
        scale=pixel_scale(net.pixel_shape, head.scale.outputs),
        labels=np.arange(len(images)),
        image_shape=net.pixel_shape,
    )


def pixel_scale(shape: Shape, outputs: tuple[str, ...]) -> Scale:
    """Names of pixels, ``pixel[3, 4]`` or with the channel ``pixel[3, 4, 0]``, as covariates."""
    height, width, channels = shape
    places = [(row, column) for row in range(height) for column in range(width)]
    if channels == 1:
        names = tuple(f"pixel[{row}, {column}]" for row, column in places)
    else:
        names = tuple(
            f"pixel[{r}, {c}, {channel}]" for r, c in places for channel in range(channels)
        )
    variables = tuple(f"pixel[{r}, {c}]" for r, c in places for _ in range(channels))
    plain = Scale.plain(len(names), len(outputs))
    return replace(plain, names=names, variables=variables, outputs=outputs)
