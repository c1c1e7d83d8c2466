"""The posterior of a convolutional network, and the small network that it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from islab.core import families
from islab.core.arrays import Float, Index, Mask
from islab.core.convolution.geometry import Convolution, ImageArchitecture, Shape
from islab.core.convolution.network import Numbers, convolve, forward, pool, spread, unpool
from islab.core.convolution.paths import fed_places, heard_places, used_weights
from islab.core.equations import inverse_softplus
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork, used_multipliers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ImagePosterior:
    """Mean, spread and inclusion probability of every kernel weight and every weight of the head.

    Attributes
    ----------
    architecture : ImageArchitecture
    kernels : tuple of Posterior
        Of the dense layer on patches, for each convolution.
    head : Posterior
        Its covariates are the flattened features.
    """

    architecture: ImageArchitecture
    kernels: tuple[Posterior, ...]
    head: Posterior

    @classmethod
    def initialise(
        cls,
        architecture: ImageArchitecture,
        rng: np.random.Generator,
        initial: Initial | None = None,
        likelihood: str = "categorical",
        kernel_initial: Initial | None = None,
    ) -> ImagePosterior:
        """A posterior to start training from; kernels may have a start of their own."""
        own = kernel_initial or initial
        kernels = tuple(
            Posterior.initialise(layer.dense, rng, own) for layer in architecture.convolutions
        )
        head = Posterior.initialise(architecture.head, rng, initial, likelihood)
        return cls(architecture, kernels, head)

    @property
    def layers(self) -> tuple[Posterior, ...]:
        """Kernels of each convolution, then the head."""
        return (*self.kernels, self.head)

    @property
    def likelihood(self) -> str:
        return self.head.likelihood

    def of_draw(self, number: int, n_draws: int) -> ImagePosterior:
        """What one of so many draws comes from: always this."""
        return self

    def draw(self, rng: np.random.Generator) -> Numbers:
        """One network, the same for all rows."""
        return Numbers.of([layer.draw(1, rng) for layer in self.layers])

    def median(
        self, threshold: float = 0.5, outputs: Sequence[str] | None = None
    ) -> SparseImageNetwork:
        """The small network of weights with ``alpha > threshold`` on active paths."""
        return SparseImageNetwork.from_posterior(self, threshold, outputs)


@dataclass(frozen=True, eq=False)
class SparseImageNetwork:
    """Used kernel weights and used weights of the head, in float64.

    Attributes
    ----------
    architecture : ImageArchitecture
        The *compact* network: only channels on active paths, and the compact head.
    kernels : tuple of SparseNetwork
        Used weights of each convolution, as the dense layer on patches; ``unit_labels`` are the
        channels' numbers in the posterior.
    constants : tuple of (places down, places across, out_channels)
        What each place receives from places that no pixel feeds, over weights on no path.
        Fixed at the posterior mean.
    head : SparseNetwork
        Its covariates are features of the compact network.
    n_channels : tuple of int
        Channels of each convolution before training.

    Notes
    -----
    A kernel weight is used if it lies on a path from a pixel to an output. Features that no pixel
    feeds are constants; they are folded into the biases of the head.
    """

    architecture: ImageArchitecture
    kernels: tuple[SparseNetwork, ...]
    constants: tuple[Float, ...]
    head: SparseNetwork
    n_channels: tuple[int, ...]

    @classmethod
    def from_posterior(
        cls,
        posterior: ImagePosterior,
        threshold: float = 0.5,
        outputs: Sequence[str] | None = None,
    ) -> SparseImageNetwork:
        """Keeps weights with ``alpha > threshold`` on active paths.

        Parameters
        ----------
        outputs : sequence of str, optional
            Names of the outputs; ``y0``, ``y1``, ... if not given.
        """
        full = posterior.architecture
        kept = [np.asarray(kernel.alpha > threshold) for kernel in posterior.kernels]
        fed = fed_places(full, kept)
        values = _constant_values(posterior, kept, fed)
        head = _without_constants(posterior.head, fed[-1], values[-1], threshold).median(threshold)
        features = np.zeros(full.n_read, dtype=bool)
        features[head.covariates] = True
        places = features[: full.n_features].reshape(full.feature_shape)
        heard = heard_places(full, kept, places)
        used = [
            used_weights(layer, wires, fed[number], heard[number + 1])
            for number, (layer, wires) in enumerate(zip(full.convolutions, kept, strict=True))
        ]
        living = [_living(f & h) for f, h in zip(fed[1:], heard[1:], strict=True)]
        sources = [np.ones(full.image_shape[0], dtype=bool), *living]
        kernels, constants, layers = [], [], []
        for number, layer in enumerate(full.convolutions):
            compact = _compact(layer, sources[number], living[number])
            unused = np.where(kept[number] & ~used[number], _means(posterior.kernels[number]), 0.0)
            # Only places that no pixel feeds reach a heard place over a weight on no path.
            constant = convolve(values[number][None], unused, layer)[0]
            layers.append(compact)
            constants.append(constant[..., living[number]])
            kernels.append(
                _sparse_kernel(
                    posterior.kernels[number], layer, used[number], sources[number], living[number]
                )
            )
        own = np.flatnonzero(np.broadcast_to(sources[-1], full.feature_shape).ravel())
        own = np.concatenate([own, np.arange(full.n_features, full.n_read)])
        names = read_names(full, np.flatnonzero(sources[-1]))
        labels = tuple(outputs) if outputs is not None else head.scale.outputs
        scale = replace(
            Scale.plain(len(own), full.head.n_outputs),
            names=names,
            variables=names,
            outputs=labels,
        )
        head = replace(head, covariates=np.searchsorted(own, head.covariates), scale=scale)
        return cls(
            architecture=ImageArchitecture(
                full.image_shape, tuple(layers), head.architecture, full.pixel_skip
            ),
            kernels=tuple(kernels),
            constants=tuple(constants),
            head=head,
            n_channels=tuple(layer.out_channels for layer in full.convolutions),
        )

    # -- predicting ---------------------------------------------------------------------

    @property
    def likelihood(self) -> str:
        return self.head.likelihood

    @property
    def layers(self) -> tuple[SparseNetwork, ...]:
        """Kernels of each convolution, then the head."""
        return (*self.kernels, self.head)

    def means(self) -> Numbers:
        """The network at the posterior mean of its weights."""
        drawn = [(part.mean_weights()[None], part.bias_mu[None]) for part in self.layers]
        return self._with_constants(Numbers.of(drawn))

    def draw(self, rng: np.random.Generator) -> Numbers:
        """One network, the same for all rows."""
        return self._with_constants(Numbers.of([part.draw(1, rng) for part in self.layers]))

    def predictor(self, images: Float) -> Float:
        """Linear predictor at the posterior mean of the weights, (rows, outputs).

        Parameters
        ----------
        images : (rows, height, width, channels)
        """
        return forward(self.architecture, self.means(), images, self.head.covariates)

    def _with_constants(self, numbers: Numbers) -> Numbers:
        biases: list[Float] = [b + c for b, c in zip(numbers.biases, self.constants, strict=True)]
        return replace(numbers, biases=biases)

    # -- reading ------------------------------------------------------------------------

    @property
    def n_used_weights(self) -> int:
        return sum(part.n_used_weights for part in self.layers)

    @property
    def n_weights_initial(self) -> int:
        return sum(part.n_weights_initial for part in self.layers)

    @property
    def kernel_density(self) -> float:
        """Used kernel weights as a share of those before training."""
        before = sum(kernel.n_weights_initial for kernel in self.kernels)
        return sum(kernel.n_used_weights for kernel in self.kernels) / max(before, 1)

    @property
    def channels(self) -> tuple[Index, ...]:
        """Numbers of the channels on active paths, for each convolution."""
        return tuple(
            kernel.unit_labels[np.unique(kernel.edge_ends()[1])] for kernel in self.kernels
        )

    def receptive_field(self, output: int | None = None) -> Mask:
        """Pixels from which a path leads to an output, (channels, height, width).

        Parameters
        ----------
        output : int, optional
            Position of the output; any of them if not given.
        """
        return self.path_counts(output).sum(axis=0) > 0

    def path_counts(self, output: int | None = None) -> Float:
        """Active paths from each pixel by the layer of the head at which they enter it.

        Parameters
        ----------
        output : int, optional
            Position of the output that paths lead to; all if not given.

        Returns
        -------
        (layers of the head, channels, height, width)
            Paths up to the head: from there each of them goes on.
        """
        net, head = self.architecture, self.head
        chosen = head.from_covariate()
        if output is not None:
            chosen = chosen & head.edges_of_output(output)
        counts = np.zeros((head.architecture.n_layers, net.n_read))
        np.add.at(counts, (head.edge_layers()[chosen], head.edge_ends()[0][chosen]), 1.0)
        by_feature, by_pixel = np.split(counts, [net.n_features], axis=1)
        maps: Float = by_feature.reshape(-1, *net.feature_shape)
        for layer, kernel in zip(reversed(net.convolutions), reversed(self.kernels), strict=True):
            wires = np.zeros(layer.dense.n_weights)
            wires[kernel.edges] = 1.0
            maps = spread(unpool(maps, layer), wires, layer)
        if net.pixel_skip:
            maps = maps + by_pixel.reshape(maps.shape)
        return np.moveaxis(maps, -1, 1)

    def to_frame(self) -> pd.DataFrame:
        """One row for each used weight: part, layer, from, to, alpha, mean, sd."""
        import pandas as pd

        parts = [_kernel_frame(self, number) for number in range(len(self.kernels))]
        parts.append(self.head.to_frame().assign(part="head"))
        frame = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
        return frame[["part", "layer", "from", "to", "alpha", "mean", "sd"]]

    def __repr__(self) -> str:
        channels = " and ".join(
            f"{len(own)} of {count}"
            for own, count in zip(self.channels, self.n_channels, strict=True)
        )
        return (
            f"SparseImageNetwork({self.n_used_weights} of {self.n_weights_initial} weights, "
            f"{channels or 'no'} channels, {len(self.head.covariates)} features)"
        )


def _means(kernel: Posterior) -> Float:
    return kernel.mu * kernel.mean_multiplier()


def _constant_values(
    posterior: ImagePosterior, kept: Sequence[Mask], fed: Sequence[Mask]
) -> list[Float]:
    """Values of the places that no pixel feeds at the posterior mean, 0 elsewhere."""
    net = posterior.architecture
    values: list[Float] = [np.zeros(net.pixel_shape)]
    activation = families.activation(net.activation)
    for number, layer in enumerate(net.convolutions):
        kernel = posterior.kernels[number]
        weights = np.where(kept[number], _means(kernel), 0.0)
        z = convolve(values[-1][None], weights, layer)[0] + kernel.bias_mu
        pooled = pool(activation.value(z)[None], layer)[0]
        values.append(np.where(fed[number + 1], 0.0, pooled))
    return values


def _without_constants(head: Posterior, fed: Mask, values: Float, threshold: float) -> Posterior:
    """The head that no longer reads features which no pixel feeds: they are part of its biases."""
    net = head.architecture
    # Pixels, if the head reads them, are fed.
    n_pixels = net.n_covariates - fed.size
    silent = np.concatenate([~fed.ravel(), np.zeros(n_pixels, dtype=bool)])
    value = np.concatenate([values.ravel(), np.zeros(n_pixels)])
    kept = np.where(head.alpha > threshold, 1.0, 0.0)
    weight = net.covariate_matrix(kept * head.mu * head.mean_multiplier())
    variances = net.covariate_matrix(kept * head.slab_variance())
    rows = slice(0, net.n_covariate_rows)
    bias_mu, variance = head.bias_mu.copy(), head.bias_sigma**2
    bias_mu[rows] += weight[:, silent] @ value[silent]
    variance[rows] += variances[:, silent] @ value[silent] ** 2
    lam = head.lam.copy()
    net.covariate_matrix(lam)[:, silent] = -np.inf
    return head.copy(lam=lam, bias_mu=bias_mu, bias_rho=inverse_softplus(np.sqrt(variance)))


def _living(places: Mask) -> Mask:
    """Channels with a place on a path; the first one where there is none, to have a network."""
    living = np.asarray(places.any(axis=(0, 1)))
    return living if living.any() else np.arange(len(living)) == 0


def _compact(layer: Convolution, sources: Mask, living: Mask) -> Convolution:
    return replace(layer, in_channels=int(sources.sum()), out_channels=int(living.sum()))


def _sparse_kernel(
    kernel: Posterior, layer: Convolution, used: Mask, sources: Mask, living: Mask
) -> SparseNetwork:
    """Used weights of a convolution, numbered as in the compact one."""
    inputs = np.repeat(sources, layer.kernel_size**2)
    numbers = np.arange(len(used)).reshape(layer.out_channels, -1)[living][:, inputs].ravel()
    edges = np.flatnonzero(used[numbers])
    chosen = numbers[edges]
    multipliers, input_index = used_multipliers(kernel, chosen)
    compact = _compact(layer, sources, living).dense
    return SparseNetwork(
        architecture=compact,
        covariates=np.arange(compact.n_covariates),
        unit_labels=np.flatnonzero(living),
        edges=edges,
        mu=kernel.mu[chosen].astype(float),
        sigma=kernel.sigma[chosen].astype(float),
        alpha=kernel.alpha[chosen].astype(float),
        bias_mu=kernel.bias_mu[living].astype(float),
        bias_sigma=kernel.bias_sigma[living].astype(float),
        likelihood=kernel.likelihood,
        noise=np.ones(compact.n_outputs),
        n_weights_initial=kernel.n_weights_initial,
        scale=Scale.plain(compact.n_covariates, compact.n_outputs),
        multipliers=multipliers,
        input_index=input_index,
    )


def read_names(net: ImageArchitecture, channels: Index) -> tuple[str, ...]:
    """Names of what the head reads from some channels of the last convolution, and of pixels."""
    features = feature_names(len(net.convolutions), net.feature_shape, channels)
    if not net.pixel_skip:
        return features
    return features + feature_names(0, net.pixel_shape, np.arange(net.image_shape[0]))


def feature_names(layer: int, shape: Shape, channels: Index) -> tuple[str, ...]:
    """``c2.5[3, 4]``: channel 5 of the second convolution at row 3, column 4.

    Parameters
    ----------
    layer : int
        Convolutions before the features.
    shape : (height, width, ...)
    channels : (channels,) int
        Their numbers.
    """
    height, width = shape[:2]
    return tuple(
        f"{channel_name(layer, channel)}[{row}, {column}]"
        for row in range(height)
        for column in range(width)
        for channel in channels
    )


def channel_name(layer: int, channel: int) -> str:
    """``c1.5`` for channel 5 of the first convolution, ``image.0`` for the image's own."""
    return f"c{layer}.{channel}" if layer else f"image.{channel}"


def _kernel_frame(network: SparseImageNetwork, number: int) -> pd.DataFrame:
    import pandas as pd

    kernel, layer = network.kernels[number], network.architecture.convolutions[number]
    size = layer.kernel_size
    target, source, row, column = np.unravel_index(
        kernel.edges, (layer.out_channels, layer.in_channels, size, size)
    )
    below = network.kernels[number - 1].unit_labels if number else np.arange(layer.in_channels)
    sources = [channel_name(number, below[each]) for each in source]
    targets = [channel_name(number + 1, kernel.unit_labels[each]) for each in target]
    moved = zip(sources, row - layer.padding, column - layer.padding, strict=True)
    return pd.DataFrame(
        {
            "part": "kernels",
            "layer": number,
            "from": [f"{name}[{down:+d}, {across:+d}]" for name, down, across in moved],
            "to": targets,
            "alpha": kernel.alpha,
            "mean": kernel.edge_means(),
            "sd": kernel.edge_sds(),
        }
    )
