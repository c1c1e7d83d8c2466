"""Active paths through convolutions: which kernel weights carry a pixel to an output.

A path goes from a pixel over places of the maps to the head. A kernel weight stands for as many
connections as the kernel has places, and is used if one of them lies on a path: it reads a place
that some pixel feeds, for a place that the head hears. Zeros around the maps feed nothing. All
places of a pooling window lead to what goes on from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Mask
from islab.core.convolution.geometry import Convolution, ImageArchitecture
from islab.core.convolution.network import convolve, patches, pool, spread, unpool
from islab.core.paths import active_weights


def fed_places(net: ImageArchitecture, kept: Sequence[Mask]) -> list[Mask]:
    """Places that some pixel reaches over kept weights: of the image, then of each layer's maps.

    Parameters
    ----------
    kept : list of (weights,) bool
        For each convolution.

    Returns
    -------
    list of (height, width, channels) bool
    """
    fed = [np.ones(net.pixel_shape, dtype=bool)]
    for layer, wires in zip(net.convolutions, kept, strict=True):
        fed.append(pool(convolve(_number(fed[-1]), _number(wires), layer), layer)[0] > 0)
    return fed


def heard_places(net: ImageArchitecture, kept: Sequence[Mask], features: Mask) -> list[Mask]:
    """Places from which kept weights lead to one of the features: of the image, then of the maps.

    Parameters
    ----------
    features : (height, width, channels) bool
        Places of the last maps that the head reads.
    """
    heard = [features]
    for layer, wires in zip(reversed(net.convolutions), reversed(kept), strict=True):
        own = unpool(_number(heard[-1]), layer)
        heard.append(spread(own, _number(wires), layer)[0] > 0)
    return heard[::-1]


def used_weights(layer: Convolution, kept: Mask, fed: Mask, heard: Mask) -> Mask:
    """Kept weights that connect a fed place with a heard one somewhere on the maps, (weights,).

    Parameters
    ----------
    fed, heard : (height, width, channels) bool
        Of the maps that come in, and of those that go out, pooled.
    """
    seen = patches(_number(fed), layer)[0].reshape(-1, layer.dense.n_covariates)
    listeners = unpool(heard, layer).reshape(-1, layer.out_channels).astype(float)
    return kept & ((listeners.T @ seen).ravel() > 0)


def active_image_weights(net: ImageArchitecture, kept: Sequence[Mask]) -> list[Mask]:
    """Kept weights on an active path, for each convolution and the head.

    Parameters
    ----------
    kept : list of (weights,) bool
        For each convolution, then the head.
    """
    *kernels, head = kept
    fed = fed_places(net, kernels)
    head = head.copy()
    net.head.covariate_matrix(head)[:, : net.n_features][:, ~fed[-1].ravel()] = False
    active = active_weights(net.head, head)
    features = np.asarray(net.head.covariate_matrix(active).any(axis=0))
    heard = heard_places(net, kernels, features[: net.n_features].reshape(net.feature_shape))
    used = [
        used_weights(layer, wires, below, above)
        for layer, wires, below, above in zip(
            net.convolutions, kernels, fed[:-1], heard[1:], strict=True
        )
    ]
    return [*used, active]


def _number(mask: Mask) -> NDArray[np.float64]:
    """A mask as numbers; maps get an axis of rows."""
    return mask.astype(float)[None] if mask.ndim == 3 else mask.astype(float)
