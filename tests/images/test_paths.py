"""Active paths through convolutions against the unrolled dense network, path by path."""

import numpy as np
import pytest

from islab.core.convolution.network import Numbers, convolve, forward, spread
from islab.core.convolution.paths import active_image_weights
from tests.images.nets import architecture, pixels, posterior

# Few weights stay, so that dead channels, bias-only chains and borders all occur.
SPARSE = (-3.0, 0.7)


def unrolled(layer):
    """For each connection of the unrolled convolution its weight, source and (pooled) target."""
    size, wires = layer.kernel_size, []
    shape_in = (layer.height, layer.width, layer.in_channels)
    shape_out = (layer.out_height, layer.out_width, layer.out_channels)
    pooled = (layer.pooled_height, layer.pooled_width, layer.out_channels)
    for row, column, out in np.ndindex(*shape_out):
        for source, down, across in np.ndindex(layer.in_channels, size, size):
            y = row * layer.stride + down - layer.padding
            x = column * layer.stride + across - layer.padding
            if 0 <= y < layer.height and 0 <= x < layer.width:
                weight = np.ravel_multi_index(
                    (out, source, down, across), (layer.out_channels, layer.in_channels, size, size)
                )
                place = np.ravel_multi_index((y, x, source), shape_in)
                window = (row // layer.pool, column // layer.pool, out)
                target = np.ravel_multi_index(window, pooled)
                wires.append((weight, place, target))
    return wires


def brute_force(net, kept):
    """Used weights of each part, by walking every path of the unrolled network from the pixels."""
    graph: dict = {}
    for number, layer in enumerate(net.convolutions):
        for weight, place, target in unrolled(layer):
            if kept[number][weight]:
                edge = ((number + 1, target), (number, weight))
                graph.setdefault((number, place), []).append(edge)
    last, head = len(net.convolutions), net.head
    numbers = np.arange(head.n_weights)
    for block in head.blocks:
        for (unit, source), weight in np.ndenumerate(block.view(numbers)):
            if kept[-1][weight]:
                start = ("h", block.layer, source)
                if block.source == "covariate":
                    pixel = source - net.n_features
                    start = (last, source) if pixel < 0 else (0, pixel)
                edge = (("h", block.layer + 1, unit), (last, weight))
                graph.setdefault(start, []).append(edge)
    used = [np.zeros(len(part), dtype=bool) for part in kept]

    def walk(node, trail):
        if node[0] == "h" and node[1] == head.n_layers:
            for part, weight in trail:
                used[part][weight] = True
        for following, edge in graph.get(node, []):
            walk(following, [*trail, edge])

    for place in range(net.n_pixels):
        walk((0, place), [])
    return used


def masks(found, threshold=0.5):
    return [np.asarray(part.alpha > threshold) for part in found.layers]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "steps", [{}, {"stride": 1, "pool": (2, 3)}, {"pool": (1, 2)}, {"pixel_skip": True}]
)
def test_used_weights_are_those_on_a_path_of_the_unrolled_network(seed, steps):
    net = architecture(shape=(1, 5, 5), channels=(3, 2), hidden=(2,), outputs=2, **steps)
    kept = masks(posterior(seed, net=net, inclusion=SPARSE))
    for found, expected in zip(
        active_image_weights(net, kept), brute_force(net, kept), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_an_unused_weight_never_changes_the_output():
    net = architecture(activation="leaky_relu")
    found = posterior(3, net=net, inclusion=SPARSE, bias_sd=0.0)
    kept = masks(found)
    used = active_image_weights(net, kept)
    values = [np.where(mask, part.mu, 0.0) for mask, part in zip(kept, found.layers, strict=True)]
    images = pixels(net)
    before = evaluate(net, values, images)
    changed = [np.where(k & ~u, 5.0, v) for k, u, v in zip(kept, used, values, strict=True)]
    assert any((k & ~u).any() for k, u in zip(kept, used, strict=True))
    np.testing.assert_array_equal(evaluate(net, changed, images), before)


def test_a_used_kernel_weight_changes_the_output():
    net = architecture(shape=(1, 6, 6), activation="leaky_relu", hidden=())
    found = posterior(1, net=net, inclusion=SPARSE, bias_sd=0.0)
    kept = masks(found)
    values = [np.where(mask, part.mu, 0.0) for mask, part in zip(kept, found.layers, strict=True)]
    images = pixels(net, rows=8)
    before = evaluate(net, values, images)
    used = active_image_weights(net, kept)
    assert used[0].any()
    for weight in np.flatnonzero(used[0]):
        changed = [values[0].copy(), *values[1:]]
        changed[0][weight] += 0.5
        assert not np.allclose(evaluate(net, changed, images), before)


def evaluate(net, values, images):
    zeros = [np.zeros(layer.out_channels) for layer in net.convolutions]
    numbers = Numbers(values[:-1], zeros, values[-1], np.zeros(net.head.n_units))
    return forward(net, numbers, images)


def test_spread_is_the_transpose_of_convolve():
    layer = architecture(kernel=2, stride=(1, 3)).convolutions[1]
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(layer.dense.n_weights)
    x = rng.standard_normal((3, layer.height, layer.width, layer.in_channels))
    y = rng.standard_normal((3, layer.out_height, layer.out_width, layer.out_channels))
    left = (convolve(x, weights, layer) * y).sum()
    right = (x * spread(y, weights, layer)).sum()
    np.testing.assert_allclose(left, right, rtol=1e-12)
