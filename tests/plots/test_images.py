"""Pictures of pixels show the counts and contributions of the network."""

import numpy as np
import pytest

from islab.explain import explain_global
from islab.plots import contribution_map, pixel_maps
from islab.plots.images import receptive_maps
from tests.images.nets import posterior
from tests.plots.networks import explanation_of, network_of


def test_pixel_maps_show_the_counts_of_each_layer():
    network = network_of(30)
    axes = pixel_maps(network, (4, 4), mean_image=np.ones(16))
    counts = network.covariate_counts()
    for layer in range(3):
        drawn = np.ma.filled(axes[0, layer].images[1].get_array(), 0)
        np.testing.assert_array_equal(drawn, counts[:, layer].reshape(4, 4))
    drawn = np.ma.filled(axes[0, 3].images[1].get_array(), 0)
    np.testing.assert_array_equal(drawn, counts.sum(axis=1).reshape(4, 4))


def test_pixel_maps_by_class_show_the_paths_to_each():
    network = network_of(60, m=3)
    axes = pixel_maps(network, (4, 4), by_class=True, mean_image=np.ones((3, 16)))
    drawn = np.ma.filled(axes[1, 3].images[1].get_array(), 0)
    frame = explain_global(network, output=1).covariates
    np.testing.assert_array_equal(drawn.ravel(), frame["count"])


def test_contribution_maps_show_the_contributions():
    found = explanation_of(network_of(60, m=3))
    panels = contribution_map(found, (4, 4), row=1)
    drawn = np.asarray(panels[2].images[1].get_array())
    np.testing.assert_allclose(drawn.ravel(), found.contribution[1, :, 2])


def test_a_wrong_image_shape_is_named():
    with pytest.raises(ValueError, match=r"image_shape=\(3, 4\)"):
        pixel_maps(network_of(2), (3, 4))


def test_the_channels_of_a_pixel_are_counted_together():
    network = network_of(30, v=12)
    axes = pixel_maps(network, (2, 2, 3), mean_image=np.random.default_rng(0).random(12))
    drawn = np.ma.filled(axes[0, 3].images[1].get_array(), 0)
    expected = network.covariate_counts().sum(axis=1).reshape(2, 2, 3).sum(axis=2)
    np.testing.assert_array_equal(drawn, expected)


def test_the_contributions_of_a_pixels_channels_add_up():
    found = explanation_of(network_of(30, v=12))
    panels = contribution_map(found, (2, 2, 3))
    expected = found.contribution[0, :, 0].reshape(2, 2, 3).sum(axis=2)
    np.testing.assert_allclose(panels[0].images[1].get_array(), expected)


def test_contribution_maps_are_an_array_of_axes_for_one_output_too():
    assert contribution_map(explanation_of(network_of(20)), (4, 4)).shape == (1,)


def test_pixels_that_contribute_next_to_nothing_are_invisible():
    found = explanation_of(network_of(20))
    drawn = contribution_map(found, (4, 4))[0].images[1]
    size = np.abs(found.contribution[0, :, 0]).reshape(4, 4)
    assert (drawn.get_alpha()[size < 0.01 * size.max()] == 0).all()
    assert (drawn.get_alpha()[size > 0.05 * size.max()] > 0.2).all()


def test_pixel_maps_have_a_key_of_counts():
    axes = pixel_maps(network_of(30), (4, 4))
    labels = [ax.get_ylabel() for ax in axes[0, 0].figure.axes]
    assert "weights from the pixel" in labels


def convolutional_network():
    return posterior(5, inclusion=(-2.0, 1.0)).median(outputs=["a", "b", "c"])


def test_receptive_maps_show_the_paths_to_each_class():
    network = convolutional_network()
    panels = receptive_maps(network)
    assert panels.shape == (3, 1)
    for output, panel in enumerate(panels[:, 0]):
        drawn = np.ma.filled(panel.images[1].get_array(), 0)
        np.testing.assert_array_equal(drawn, network.path_counts(output).sum(axis=(0, 1)))


def test_receptive_maps_by_layer_add_up_to_all_layers():
    network = convolutional_network()
    (line,) = receptive_maps(network, output="b", by_layer=True, mean_image=np.ones((2, 8, 8)))
    drawn = [np.ma.filled(panel.images[1].get_array(), 0) for panel in line]
    assert len(line) == network.head.architecture.n_layers + 1
    np.testing.assert_array_equal(sum(drawn[:-1]), drawn[-1])


def test_receptive_maps_are_drawn_into_the_axes_given():
    import matplotlib.pyplot as plt

    axes = plt.subplots(1, 3)[1]
    panels = receptive_maps(convolutional_network(), ax=axes)
    assert panels.ravel().tolist() == axes.tolist()
