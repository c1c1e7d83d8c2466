"""Pictures for covariates that are pixels: where paths start, and what each pixel contributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.explain.choices import Output, output_numbers
from islab.plots.style import INK, axes_grid, diverging, heading, number, shown
from islab.sparse import SparseNetwork

if TYPE_CHECKING:
    from islab.explain.local import LocalExplanation

Float = NDArray[np.floating]
Shape = tuple[int, int]


def pixel_maps(
    network: SparseNetwork,
    image_shape: Shape,
    *,
    output: Output | Sequence[Output] | None = None,
    by_class: bool = False,
    mean_image: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draws which pixels enter at each layer, and at any of them.

    Parameters
    ----------
    network : SparseNetwork
        Whose covariates are the pixels of images, row by row.
    image_shape : (height, width)
    output : name, position or several of them, optional
        Outputs whose paths to show when drawing by class.
    by_class : bool
        A line of maps for each output; otherwise one line for all paths.
    mean_image : (height, width) or (covariates,), optional
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
        numbers = list(output_numbers(network.units, output))
    n_layers = network.architecture.n_layers
    axes = axes_grid(ax, len(numbers), n_layers + 1, 2.1, 2.3)
    for line, number_ in zip(axes, numbers, strict=True):
        under = _background(mean_image, image_shape, number_)
        counts = _pixel_counts(network, number_)
        maps = [*counts.T, counts.sum(axis=1)]
        titles = [f"layer {layer}" for layer in range(n_layers)] + ["all layers"]
        most = max(counts.sum(axis=1).max(initial=0), 1)
        for panel, values, title in zip(line, maps, titles, strict=True):
            _pixels(panel, values.reshape(image_shape), most, under)
            heading(panel, f"{title}: {int((values > 0).sum())} pixels", 8.5)
        if number_ is not None:
            line[0].set_ylabel(shown(network.units.outputs[number_]), color=INK)
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
        Of images, row by row of pixels.
    image_shape : (height, width)
    row : int
        The image.
    ax : axes or array of axes, optional
        One for each output.

    Returns
    -------
    axes, or array of axes
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    _check_shape(image_shape, explanation.x.shape[1])
    if not 0 <= row < len(explanation.x):
        raise ValueError(f"Got row={row}, expected one from 0 to {len(explanation.x) - 1}.")
    n_outputs = len(explanation.outputs)
    columns = min(n_outputs, 5) if ax is None else n_outputs
    axes = axes_grid(ax, -(-n_outputs // columns), columns, 2.4, 2.6)
    panels = axes.ravel()
    values = explanation.contribution[row]
    largest = np.abs(values).max(initial=0) or 1.0
    summary = explanation.response_summary
    for output, panel in enumerate(panels[:n_outputs]):
        image = explanation.x[row].reshape(image_shape)
        panel.imshow(image, cmap="Greys", alpha=0.35)
        own = values[:, output].reshape(image_shape)
        # Small contributions let the image shine through instead of hiding it in white.
        opacity = np.sqrt(np.abs(own) / largest)
        panel.imshow(own, cmap=diverging(), vmin=-largest, vmax=largest, alpha=opacity)
        _frame(panel)
        ends = f"{number(summary.lower[row, output])} to {number(summary.upper[row, output])}"
        name = shown(explanation.outputs[output], 16)
        heading(panel, f"{name}: {number(explanation.response[row, output])}\n({ends})", 8.5)
    for panel in panels[n_outputs:]:
        panel.set_axis_off()
    scale = ScalarMappable(Normalize(-largest, largest), diverging())
    bar = panels[0].get_figure().colorbar(scale, ax=panels.tolist(), fraction=0.03, pad=0.02)
    bar.set_label("contribution", color=INK, fontsize=8.5)
    bar.ax.tick_params(labelsize=8, labelcolor=INK)
    bar.outline.set_visible(False)
    return panels[0] if n_outputs == 1 else panels[:n_outputs]


def _check_shape(image_shape: Shape, n_covariates: int) -> None:
    if len(image_shape) != 2 or image_shape[0] * image_shape[1] != n_covariates:
        raise ValueError(
            f"Got image_shape={image_shape}, expected (height, width) with height * width = "
            f"{n_covariates}, the number of covariates."
        )


def _pixel_counts(network: SparseNetwork, output: int | None) -> NDArray[np.intp]:
    """How often each pixel enters each layer on paths to the output, (pixels, layers)."""
    if output is None:
        return network.covariate_counts()
    chosen = network.from_covariate() & network.edges_of_output(output)
    counts = np.zeros((network.n_covariates, network.architecture.n_layers), dtype=np.intp)
    where = network.edge_ends()[0][chosen], network.edge_layers()[chosen]
    np.add.at(counts, where, 1)
    return counts


def _background(mean_image: ArrayLike | None, shape: Shape, output: int | None) -> Float:
    if mean_image is None:
        return np.zeros(shape)
    image = np.asarray(mean_image, dtype=float)
    if image.size == shape[0] * shape[1]:
        return image.reshape(shape)
    if output is None or image.size % (shape[0] * shape[1]) or len(image) <= output:
        raise ValueError(
            f"Got mean_image of shape {image.shape}, expected one image of shape {shape}, or one "
            "for each output together with by_class=True."
        )
    return image[output].reshape(shape)


def _pixels(ax: Any, values: NDArray[np.intp], most: int, under: Float) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    warm = LinearSegmentedColormap.from_list("islab", ["#f3c49f", "#d9722e", "#7d3508"])
    ax.imshow(under, cmap="Greys", alpha=0.45, vmin=0, vmax=max(float(under.max()), 1e-12))
    ax.imshow(np.ma.masked_equal(values, 0), cmap=warm, vmin=1, vmax=max(most, 2))
    _frame(ax)


def _frame(ax: Any) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#dfe4ea")
