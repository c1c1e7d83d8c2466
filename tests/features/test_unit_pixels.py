import numpy as np
import pytest

from islab.features.extractor import unit_pixels


def test_bytes_become_floats_from_0_to_1():
    images = np.array([[[0, 255], [51, 102]]], dtype=np.uint8)
    pixels = unit_pixels(images, np.array([0]))
    np.testing.assert_allclose(pixels, [[[[0, 1], [0.2, 0.4]]]], rtol=1e-6)


def test_floats_stay_what_they_are(images):
    floats = images / 255
    np.testing.assert_allclose(unit_pixels(floats, np.array([3]))[0, 0], floats[3], rtol=1e-6)


def test_the_rows_asked_for_come_in_their_order(images):
    pixels = unit_pixels(images, np.array([4, 1]))
    np.testing.assert_array_equal((255 * pixels[:, 0]).round(), images[[4, 1]])


@pytest.mark.parametrize("pixel", [np.nan, 255.0, -0.1, np.inf])
def test_pixels_out_of_range_are_refused_with_the_image(pixel):
    images = np.zeros((5, 4, 4))
    images[3, 1, 2] = pixel
    with pytest.raises(ValueError, match="in image 3, expected floats from 0 to 1"):
        unit_pixels(images, np.array([1, 3]))
