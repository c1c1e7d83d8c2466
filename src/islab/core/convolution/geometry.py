"""The shape of a convolutional network: convolutions, then an input-skip head on their features.

A convolution is the dense layer that every patch of the image passes through: its kernels are the
weights of an :class:`~islab.core.architecture.Architecture` whose covariates are the ``channels *
kernel_size**2`` numbers of a patch and whose outputs are the channels it makes. Posteriors, priors,
flows and draws of kernels are those of that dense layer.

Inside the package images and feature maps are (rows, height, width, channels); the features that
the head reads are the last maps, position by position, the channels of a position together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import ceil, prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.architecture import Architecture, Block

Shape = tuple[int, int, int]

LARGEST_MAP = 2**26
MOST_FEATURES = 2**22


@dataclass(frozen=True)
class Convolution:
    """A square kernel that moves over maps of a given size, with zeros around them.

    Parameters
    ----------
    in_channels, height, width : int
        Of the maps that come in.
    out_channels, kernel_size, stride : int
    pool : int
        Side of the windows of which only the largest number goes on, after the activation; 1 for
        none.

    Notes
    -----
    ``kernel_size // 2`` zeros on every side: with a stride of 2 a kernel of 3 halves the size,
    rounded up, and no pixel is left out.
    """

    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel_size: int
    stride: int
    pool: int = 1

    @property
    def padding(self) -> int:
        return self.kernel_size // 2

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.padding - self.kernel_size) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.padding - self.kernel_size) // self.stride + 1

    @property
    def pooled_height(self) -> int:
        return ceil(self.out_height / self.pool)

    @property
    def pooled_width(self) -> int:
        return ceil(self.out_width / self.pool)

    @cached_property
    def dense(self) -> Architecture:
        """The dense layer on patches; a kernel's weights are ordered channel, row, column."""
        return Architecture(
            n_covariates=self.in_channels * self.kernel_size**2,
            hidden=(),
            n_outputs=self.out_channels,
            activation="identity",
        )


@dataclass(frozen=True)
class ImageArchitecture:
    """Convolutions and the head on their flattened features.

    Parameters
    ----------
    image_shape : (channels, height, width)
    convolutions : tuple of Convolution
    head : Architecture
        Its activation is that of the convolutions too.
    pixel_skip : bool
        Whether the head reads the pixels too, after the features.

    Examples
    --------
    >>> net = ImageArchitecture.build((1, 28, 28), (32, 64), 3, 2, hidden=(50,), n_outputs=10)
    >>> net.feature_shape, net.n_kernel_weights, net.head.n_weights
    ((7, 7, 64), 18720, 188660)
    """

    image_shape: Shape
    convolutions: tuple[Convolution, ...]
    head: Architecture
    pixel_skip: bool = False

    @classmethod
    def build(
        cls,
        image_shape: Shape,
        channels: Sequence[int],
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        *,
        pool: int | Sequence[int] = 1,
        hidden: tuple[int, ...],
        n_outputs: int,
        activation: str = "relu",
        pixel_skip: bool = False,
    ) -> ImageArchitecture:
        """The network for images of a shape; kernels, strides and pools for all layers or each."""
        kernels = per_layer("kernel_size", kernel_size, len(channels))
        strides = per_layer("stride", stride, len(channels))
        convolutions: list[Convolution] = []
        maps, height, width = image_shape
        pools = per_layer("pool", pool, len(channels))
        for out, *sizes in zip(channels, kernels, strides, pools, strict=True):
            layer = Convolution(maps, height, width, out, *sizes)
            _check_size(image_shape, layer.out_height * layer.out_width * out, LARGEST_MAP)
            convolutions.append(layer)
            maps, height, width = out, layer.pooled_height, layer.pooled_width
        _check_size(image_shape, maps * height * width, MOST_FEATURES)
        read = maps * height * width + (prod(image_shape) if pixel_skip else 0)
        head = Architecture(read, hidden, n_outputs, activation=activation)
        return cls(image_shape, tuple(convolutions), head, pixel_skip)

    @property
    def activation(self) -> str:
        """Of all layers, those of the convolutions and the dense ones."""
        return str(self.head.activation)

    @property
    def pixel_shape(self) -> Shape:
        """Height, width and channels of an image inside the package."""
        channels, height, width = self.image_shape
        return height, width, channels

    @property
    def feature_shape(self) -> Shape:
        """Height, width and channels of the maps that the head reads."""
        if not self.convolutions:
            return self.pixel_shape
        last = self.convolutions[-1]
        return last.pooled_height, last.pooled_width, last.out_channels

    @property
    def n_features(self) -> int:
        """Numbers of the maps that the head reads; pixels, if it reads them, come after these."""
        return prod(self.feature_shape)

    @property
    def n_read(self) -> int:
        """Features, and pixels if the head reads them."""
        return self.n_features + (self.n_pixels if self.pixel_skip else 0)

    @property
    def n_pixels(self) -> int:
        return prod(self.image_shape)

    @property
    def n_outputs(self) -> int:
        return self.head.n_outputs

    @property
    def n_kernel_weights(self) -> int:
        return sum(layer.dense.n_weights for layer in self.convolutions)

    @property
    def n_weights(self) -> int:
        return self.n_kernel_weights + self.head.n_weights

    @property
    def layers(self) -> tuple[Architecture, ...]:
        """The dense layers on patches, then the head."""
        return (*(layer.dense for layer in self.convolutions), self.head)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Those of all layers in one flat vector of weights, layer after layer."""
        ends = accumulate(layer.n_weights for layer in self.layers)
        return tuple(
            replace(block, start=end - layer.n_weights + block.start)
            for layer, end in zip(self.layers, ends, strict=True)
            for block in layer.blocks
        )

    def by_block(self, values: ArrayLike) -> NDArray:
        """One value per block, repeated for each of the block's weights."""
        return np.repeat(np.asarray(values), [block.size for block in self.blocks])

    @property
    def n_units(self) -> int:
        return sum(layer.n_units for layer in self.layers)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the head's hidden layers."""
        return self.head.hidden


def _check_size(image_shape: Shape, size: int, largest: int) -> None:
    if not 0 < size <= largest:
        raise ValueError(
            f"Got images of shape {image_shape}, which become a layer of {size:,} numbers, "
            f"expected 1 to {largest:,}; try smaller images, a larger stride or fewer channels."
        )


def per_layer(name: str, value: Any, n_layers: int) -> tuple[int, ...]:
    """A whole number for each convolution, from one for all or a sequence."""
    values = (value,) * n_layers if isinstance(value, Integral) else tuple(value)
    if len(values) != n_layers:
        raise ValueError(
            f"Got {name}={value!r} for {n_layers} convolutions, expected one number, or one for "
            "each."
        )
    return tuple(int(each) for each in values)
