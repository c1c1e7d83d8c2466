"""Images and labels as people give them."""

import numpy as np
import pytest

from islab.core.convolution.geometry import MOST_FEATURES, ImageArchitecture
from islab.tables.images import checked_images, checked_labels, make_source, shape_of


@pytest.mark.parametrize(("shape", "expected"), [((2, 4, 5), (1, 4, 5)), ((2, 3, 4, 5), (3, 4, 5))])
def test_channels_are_counted(shape, expected):
    assert shape_of(np.zeros(shape)) == expected


@pytest.mark.parametrize("shape", [(4, 4), (0, 4, 4), (2, 0, 4), (1, 2, 3, 4, 5)])
def test_other_shapes_are_refused_with_what_was_expected(shape):
    with pytest.raises(ValueError, match=r"Got images of shape .*expected \(n, height, width\)"):
        checked_images(np.zeros(shape))


@pytest.mark.parametrize("kind", ["int64", "bool", "object"])
def test_other_types_are_refused(kind):
    with pytest.raises(ValueError, match=f"dtype {kind}, expected uint8 .* or float"):
        checked_images(np.zeros((2, 4, 4), dtype=kind))


def test_a_memory_map_stays_one(tmp_path):
    np.save(tmp_path / "images.npy", np.zeros((2, 4, 4)))
    assert isinstance(checked_images(np.load(tmp_path / "images.npy", mmap_mode="r")), np.memmap)


@pytest.mark.parametrize("dtype", [object, "U3", "S3"])
def test_streams_take_text_of_any_kind_that_a_file_can_hold(dtype):
    labels = np.array(["cat", "dog", "cat"], dtype=dtype)
    batches = [(np.zeros((3, 4, 4), np.uint8), labels)]
    if dtype == "S3":
        with pytest.raises(ValueError, match=r"such as .*b'cat'.* in labels.*labels.astype"):
            make_source(batches, None, 2)
        return
    source = make_source(batches, None, 2)
    assert source.classes.tolist() == ["cat", "dog"]
    assert source.counts().tolist() == [2, 1]


def test_dates_are_no_labels():
    with pytest.raises(ValueError, match=r"2026-01-02.* in labels"):
        checked_labels(np.array(["2026-01-02", "2026-01-03"], dtype="datetime64[D]"), 2)


def test_networks_too_large_for_any_machine_are_refused_before_they_are_made():
    options = {"channels": (), "kernel_size": 3, "stride": 1, "hidden": (), "n_outputs": 2}
    side = int(MOST_FEATURES**0.5)
    assert ImageArchitecture.build((1, side, side), **options).n_pixels == MOST_FEATURES
    with pytest.raises(ValueError, match=r"\(1, 2048, 2049\).*4,196,352 numbers.*try smaller"):
        ImageArchitecture.build((1, side, side + 1), **options)
    with pytest.raises(ValueError, match="try smaller images, a larger stride or fewer channels"):
        ImageArchitecture.build((1, 9, 9), **{**options, "channels": (10**9,)})
