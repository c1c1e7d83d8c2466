"""Pictures for covariates that are pixels: where paths start, and what each pixel contributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.arrays import Float
from islab.core.dependencies import needed
from islab.core.outputs import Output, baseline_name, output_numbers
from islab.core.sparse import SparseNetwork
from islab.plots.style import FAINT, INK, axes_grid, diverging, heading, number, shown

if TYPE_CHECKING:
    from islab.core.convolution.posterior import SparseImageNetwork
    from islab.explain.local_explanation import LocalExplanation

Shape = tuple[int, int] | tuple[int, int, int]

INVISIBLE = 0.02


def pixel_maps(
    network: SparseNetwork,
    image_shape: Shape,
    *,
    output: Output | Sequence[Output] | None = None,
    by_class: bool = False,
    mean_image: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draws how often each pixel enters at each layer, and at any of them.

    Parameters
    ----------
    network : SparseNetwork
        Whose covariates are the pixels of images, row by row, the channels of a pixel together.
    image_shape : (height, width) or (height, width, channels)
        The channels of a pixel are counted together.
    output : name, position or several of them, optional
        Outputs whose paths to show when drawing by class.
    by_class : bool
        A line of maps for each output; otherwise one line for all paths.
    mean_image : image or (covariates,), optional
        Shown in grey underneath; with one image for each output, (outputs, ...), each line has
        its own.
    ax : axes or array of axes, optional
        One for each line and layer, and one more in each line.

    Returns
    -------
    array (lines, layers + 1) of axes
    """
    _check_shape(image_shape, network.n_covariates)
    split = by_class or output is not None
    numbers: list[int | None] = [None]
    if split:
        numbers = list(output_numbers(network.scale.outputs, output))
    n_layers = network.architecture.n_layers
    axes = axes_grid(ax, len(numbers), n_layers + 1, 2.1, 2.3)
    maps = [_pixel_counts(network, number_, image_shape) for number_ in numbers]
    most = max(max(int(each[-1].max(initial=0)) for each in maps), 2)
    titles = [*(f"layer {layer}" for layer in range(n_layers)), "all layers"]
    for line, number_, counts in zip(axes, numbers, maps, strict=True):
        under = _background(mean_image, image_shape, number_)
        for panel, values, title in zip(line, counts, titles, strict=True):
            _pixels(panel, values, most, under)
            heading(panel, f"{title}: {int((values > 0).sum())} pixels", 8.5)
        if number_ is not None:
            line[0].set_ylabel(shown(network.scale.outputs[number_]), color=INK)
    _key(axes, _warm(), 1, most, "weights from the pixel")
    return axes


def contribution_map(
    explanation: LocalExplanation,
    image_shape: Shape,
    *,
    row: int = 0,
    ax: Any = None,
) -> Any:
    """Draws what each pixel of one image contributes to each output, over the image itself.

    Parameters
    ----------
    explanation : LocalExplanation
        Of images, row by row of pixels, the channels of a pixel together. Contributions are
        counted from its baseline.
    image_shape : (height, width) or (height, width, channels)
        The contributions of a pixel's channels are added up.
    row : int
        The image.
    ax : axes or array of axes, optional
        One for each output.

    Returns
    -------
    array (outputs,) of axes
    """
    _check_shape(image_shape, explanation.x.shape[1])
    if not 0 <= row < len(explanation.x):
        raise ValueError(f"Got row={row}, expected one from 0 to {len(explanation.x) - 1}.")
    n_outputs = len(explanation.outputs)
    columns = min(n_outputs, 5) if ax is None else n_outputs
    axes = axes_grid(ax, -(-n_outputs // columns), columns, 2.4, 2.6)
    panels = axes.ravel()
    values = explanation.contribution[row].reshape(*image_shape[:2], -1, n_outputs).sum(axis=2)
    largest = np.abs(values).max(initial=0) or 1.0
    summary = explanation.response_summary
    for output, panel in enumerate(panels[:n_outputs]):
        _picture(panel, explanation.x[row].reshape(image_shape), 0.35)
        own = values[..., output]
        # Small contributions let the image shine through instead of hiding it in white.
        size = np.abs(own) / largest
        opacity = np.where(size < INVISIBLE, 0.0, np.sqrt(size))
        panel.imshow(own, cmap=diverging(), vmin=-largest, vmax=largest, alpha=opacity)
        _frame(panel)
        ends = f"{number(summary.lower[row, output])} to {number(summary.upper[row, output])}"
        name = shown(explanation.outputs[output], 16)
        heading(panel, f"{name}: {number(explanation.response[row, output])}\n({ends})", 8.5)
    for panel in panels[n_outputs:]:
        panel.set_axis_off()
    start = baseline_name(explanation.scale, explanation.baseline)
    _key(panels, diverging(), -largest, largest, f"contribution, from {start}")
    return panels[:n_outputs]


def receptive_maps(
    network: SparseImageNetwork,
    *,
    output: Output | Sequence[Output] | None = None,
    by_layer: bool = False,
    mean_image: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draws from how many active paths each pixel reaches the head, for each class.

    Parameters
    ----------
    network : SparseImageNetwork
    output : name, position or several of them, optional
        Outputs whose paths to show; all if not given.
    by_layer : bool
        A map for each layer of the head at which paths enter it, and one for all; otherwise the
        last one only.
    mean_image : (channels, height, width) or (height, width), optional
        Shown in grey underneath; with one image for each output, (outputs, ...), each has its own.
    ax : axes or array of axes, optional
        One for each map.

    Returns
    -------
    array (outputs, maps) of axes
    """
    scale, (channels, height, width) = network.head.scale, network.architecture.image_shape
    numbers = output_numbers(scale.outputs, output)
    maps = np.stack([_path_maps(network, each, by_layer) for each in numbers])
    n_maps = maps.shape[1]
    columns = n_maps if by_layer else len(numbers)
    if ax is None and not by_layer:
        columns = min(columns, 5)
    axes = axes_grid(ax, -(-len(numbers) * n_maps // columns), columns, 2.1, 2.3)
    panels = axes.ravel()[: len(numbers) * n_maps].reshape(len(numbers), n_maps)
    most = max(int(maps.max(initial=0)), 2)
    under = mean_image
    if mean_image is not None and channels > 1:
        under = np.moveaxis(np.asarray(mean_image), -3, -1)
    layers = [*(f"head {layer + 1}" for layer in range(n_maps - 1)), "all layers"]
    for line, own, values in zip(panels, numbers, maps, strict=True):
        name = shown(scale.outputs[own], 16)
        background = _background(under, (height, width, channels), own)
        for panel, each, layer in zip(line, values, layers, strict=True):
            # Nearly all pixels have a path: few of them let the image shine through.
            _pixels(panel, each, most, background, np.sqrt(each / most))
            title = layer if by_layer else name
            heading(panel, f"{title}: {int((each > 0).sum())} pixels", 8.5)
        if by_layer:
            line[0].set_ylabel(name, color=INK)
    for panel in axes.ravel()[panels.size :]:
        panel.set_axis_off()
    _key(axes, _warm(), 1, most, "paths from the pixel")
    return panels


def _path_maps(network: SparseImageNetwork, output: int, by_layer: bool) -> Float:
    """Paths from each pixel, its channels together, at each layer of the head and at all."""
    counts = network.path_counts(output).sum(axis=1)
    total = counts.sum(axis=0, keepdims=True)
    return np.concatenate([counts, total]) if by_layer else total


def _check_shape(image_shape: Shape, n_covariates: int) -> None:
    if len(image_shape) not in (2, 3) or math.prod(image_shape) != n_covariates:
        raise ValueError(
            f"Got image_shape={image_shape}, expected (height, width) or (height, width, "
            f"channels) with a product of {n_covariates}, the number of covariates."
        )


def _pixel_counts(network: SparseNetwork, output: int | None, shape: Shape) -> NDArray[np.intp]:
    """How often each pixel enters each layer and all of them, (layers + 1, height, width)."""
    chosen = network.from_covariate()
    if output is not None:
        chosen = chosen & network.edges_of_output(output)
    counts = np.zeros((network.n_covariates, network.architecture.n_layers), dtype=np.intp)
    where = network.edge_ends()[0][chosen], network.edge_layers()[chosen]
    np.add.at(counts, where, 1)
    by_layer = counts.T.reshape(-1, *shape[:2], math.prod(shape[2:])).sum(axis=-1)
    return np.concatenate([by_layer, by_layer.sum(axis=0, keepdims=True)])


def _background(mean_image: ArrayLike | None, shape: Shape, output: int | None) -> Float:
    if mean_image is None:
        return np.zeros(shape)
    image = np.asarray(mean_image, dtype=float)
    size = math.prod(shape)
    if image.size == size:
        return image.reshape(shape)
    if output is None or image.size % size or len(image) <= output:
        raise ValueError(
            f"Got mean_image of shape {image.shape}, expected one image of shape {shape}, or one "
            "for each output together with by_class=True."
        )
    return image[output].reshape(shape)


def _pixels(ax: Any, values: NDArray, most: int, under: Float, opacity: Any = None) -> None:
    _picture(ax, under, 0.45)
    drawn = np.ma.masked_equal(values, 0)
    ax.imshow(drawn, cmap=_warm(), vmin=1, vmax=most, alpha=opacity)
    _frame(ax)


def _picture(ax: Any, image: Float, opacity: float) -> None:
    """The image, pale: in its colours if it has three or four channels, else in grey."""
    if image.ndim == 3 and image.shape[2] in (3, 4):
        low, high = image.min(), image.max()
        ax.imshow((image - low) / ((high - low) or 1.0), alpha=opacity)
        return
    grey = image if image.ndim == 2 else image.mean(axis=2)
    ax.imshow(grey, cmap="Greys", alpha=opacity)


def _warm() -> Any:
    colors = needed("matplotlib.colors", "A plot", "islab-bnn[plots]")
    return colors.LinearSegmentedColormap.from_list("islab", ["#f3c49f", "#d9722e", "#7d3508"])


def _key(axes: Any, colours: Any, low: float, high: float, label: str) -> None:
    """A bar of colours beside the axes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    panels = np.ravel(axes).tolist()
    scale = ScalarMappable(Normalize(low, high), colours)
    bar = panels[0].get_figure().colorbar(scale, ax=panels, fraction=0.03, pad=0.02)
    bar.locator = needed("matplotlib.ticker", "A plot").MaxNLocator(5, integer=low == 1)
    bar.update_ticks()
    bar.set_label(label, color=INK, fontsize=8.5)
    bar.ax.tick_params(labelsize=8, labelcolor=INK)
    bar.outline.set_visible(False)


def _frame(ax: Any) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(FAINT)
