"""Images and labels from arrays, memory maps or streams, checked, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.convolution.geometry import Shape
from islab.tables.targets import plain_labels

Batch = tuple[Float, NDArray[np.intp]]

# Their patches fit in the processor's cache.
ROWS_AT_ONCE = 256
COLOURS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Images in an array or memory map; only the rows of a batch are ever copied."""

    images: NDArray  # (rows, height, width) or (rows, channels, height, width)
    codes: NDArray[np.intp]  # (rows,), positions of the labels among the classes
    classes: NDArray  # (classes,)
    batch_size: int
    shuffled: ClassVar[bool] = True

    @property
    def image_shape(self) -> Shape:
        return shape_of(self.images)

    @property
    def n_rows(self) -> int:
        return len(self.images)

    @property
    def n_batches(self) -> int:
        return -(-self.n_rows // min(self.batch_size, self.n_rows))

    def counts(self) -> NDArray[np.intp]:
        """Rows of each class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    def batch(self, number: int, rows: NDArray[np.intp]) -> Batch:
        """The images of these rows, whatever the number of the batch."""
        # Rising row numbers read a memory map from front to back.
        rows = np.sort(rows)
        return as_pixels(self.images[rows]), self.codes[rows]

    def some(self, n_rows: int) -> Batch:
        """So many of the images, evenly spaced, or all if there are fewer."""
        return self.batch(0, np.arange(0, self.n_rows, -(-self.n_rows // n_rows)))

    def content(self) -> Iterator[bytes]:
        """All that the source holds, to tell it from others."""
        yield repr((self.images.shape, self.images.dtype, self.classes.tolist())).encode()
        yield self.codes.tobytes()
        for start in range(0, self.n_rows, ROWS_AT_ONCE):
            yield np.ascontiguousarray(self.images[start : start + ROWS_AT_ONCE]).tobytes()


@dataclass(frozen=True, eq=False)
class StreamSource:
    """Batches that something else makes, counted once before training."""

    stream: Callable[[], Iterable[Any]]  # called for each epoch; gives (images, labels)
    image_shape: Shape  # (channels, height, width)
    classes: NDArray  # (classes,)
    n_rows: int  # of one epoch
    n_batches: int  # of one epoch
    rows_of_class: NDArray[np.intp]  # (classes,)
    shuffled: ClassVar[bool] = False
    _cursor: _Cursor = field(default_factory=lambda: _Cursor())

    def counts(self) -> NDArray[np.intp]:
        """Rows of each class."""
        return self.rows_of_class

    def batch(self, number: int, rows: NDArray[np.intp]) -> Batch:
        """The batch of this number, epoch after epoch, in the stream's own order."""
        start = partial(_checked_stream, self.stream)
        images, labels = self._cursor.take(number % self.n_batches, start)
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        if (self.classes[codes] != labels).any():
            raise ValueError(
                "Got labels from the stream that its first pass did not have, expected the "
                "same data in each epoch."
            )
        return images, codes

    def some(self, n_rows: int) -> Batch:
        """So many of the images of the first batches, or all if there are fewer."""
        images, codes, found = [], [], 0
        for number in range(self.n_batches):
            batch = self.batch(number, np.zeros(0, dtype=np.intp))
            images.append(batch[0])
            codes.append(batch[1])
            found += len(batch[1])
            if found >= n_rows:
                break
        return np.concatenate(images)[:n_rows], np.concatenate(codes)[:n_rows]

    def content(self) -> Iterator[bytes]:
        """What its first pass has counted: a stream need not give the same pixels again."""
        counted = (self.image_shape, self.n_batches, self.rows_of_class.tolist())
        yield repr((counted, self.classes.tolist())).encode()


@dataclass
class _Cursor:
    """Where a stream is being read."""

    batches: Iterator[tuple[Float, NDArray]] = field(default_factory=lambda: iter(()))
    place: int = 0

    def take(
        self, place: int, start: Callable[[], Iterator[tuple[Float, NDArray]]]
    ) -> tuple[Float, NDArray]:
        """The batch at a place, found from the beginning unless it is the next one."""
        if place == 0 or place != self.place:
            self.batches = start()
            for _ in range(place):
                next(self.batches, None)
        self.place = place + 1
        batch = next(self.batches, None)
        if batch is None:  # the stream has fewer batches than the first time
            self.batches = start()
            batch = next(self.batches, None)
        if batch is None:
            raise ValueError("Got a stream without batches, expected at least one.")
        return batch


Source = ArraySource | StreamSource


def make_source(images: Any, labels: Any, batch_size: int) -> Source:
    """Where batches come from: an array with labels, or a stream that carries its own."""
    if labels is not None:
        array = checked_images(images)
        _check_pixels(array)
        classes, codes = _classes_of(checked_labels(labels, len(array)))
        return ArraySource(array, codes, classes, min(batch_size, len(array)))
    if hasattr(images, "shape"):
        raise ValueError(
            f"Got images of shape {tuple(images.shape)} and no labels, expected one label for "
            "each image; try fit(images, labels)."
        )
    return _counted(_as_stream(images))


def checked_images(images: Any, image_shape: Shape | None = None, name: str = "images") -> NDArray:
    """An array of images that fits the model, as it is: nothing is copied or converted.

    Parameters
    ----------
    image_shape : (channels, height, width), optional
        What the model was trained on.
    """
    array = images if isinstance(images, np.ndarray) else np.asarray(images)
    if array.ndim not in (3, 4) or 0 in array.shape:
        raise ValueError(
            f"Got {name} of shape {array.shape}, expected (n, height, width) or (n, channels, "
            f"height, width) with at least one of each; try {name}[None] for a single image."
        )
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        raise ValueError(
            f"Got {name} of shape {array.shape} and dtype {array.dtype}, expected uint8 (0 to 255) "
            f"or float; try {name}.astype(np.uint8)."
        )
    last = array.ndim == 4 and array.shape[3] in COLOURS and array.shape[1] not in COLOURS
    if image_shape is None and not last:
        return array
    expected = "(n, channels, height, width)"
    if image_shape is not None:
        if shape_of(array) == image_shape:
            return array
        channels, height, width = image_shape
        expected = f"(n, {channels}, {height}, {width})"
        expected += f" or (n, {height}, {width})" if channels == 1 else ""
    remedy = f"; try {name}.transpose(0, 3, 1, 2), which puts channels first" if last else ""
    raise ValueError(f"Got {name} of shape {array.shape}, expected {expected}{remedy}.")


def checked_labels(labels: Any, n_images: int) -> NDArray:
    """Labels (n,), one for each image and none missing."""
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) != n_images:
        raise ValueError(
            f"Got labels of shape {array.shape}, expected ({n_images},): one for each image."
        )
    if array.dtype.kind in "fO":
        missing = np.array([value is None or value != value for value in array.tolist()])
        if missing.any():
            raise ValueError(
                f"Got labels of shape {array.shape} with {int(missing.sum())} missing, the first "
                f"at {int(missing.argmax())}, expected a label for each image; leave those out."
            )
    return plain_labels(array, "labels")


def shape_of(images: NDArray) -> Shape:
    """Channels, height and width of an array of images."""
    channels = images.shape[1] if images.ndim == 4 else 1
    return channels, *images.shape[-2:]


def as_pixels(images: NDArray, name: str = "images") -> NDArray[np.float32]:
    """A few images as (rows, height, width, channels), uint8 scaled to 0 to 1."""
    pixels = images[..., None] if images.ndim == 3 else np.moveaxis(images, 1, -1)
    if images.dtype == np.uint8:
        return np.multiply(pixels, np.float32(1 / 255), dtype=np.float32, order="C")
    pixels = np.ascontiguousarray(pixels, dtype=np.float32)
    bad = ~np.isfinite(pixels).all(axis=(1, 2, 3))
    if bad.any():
        raise ValueError(
            f"Got NaN or infinite pixels in {int(bad.sum())} of {name} of shape {images.shape}, "
            "expected finite numbers; try np.nan_to_num, or leave those images out."
        )
    return pixels


def pixel_chunks(images: NDArray, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[Float]:
    """All images, few at a time, as (rows, height, width, channels)."""
    for start in range(0, len(images), rows_at_once):
        yield as_pixels(images[start : start + rows_at_once])


def _check_pixels(images: NDArray) -> None:
    """Looks at all pixels once before training; integers cannot be missing."""
    if images.dtype != np.uint8:
        bad = [
            start + np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(axis=1))
            for start in range(0, len(images), ROWS_AT_ONCE)
            for part in [np.asarray(images[start : start + ROWS_AT_ONCE])]
        ]
        rows = np.concatenate(bad)
        if len(rows):
            raise ValueError(
                f"Got images of shape {images.shape} with NaN or infinite pixels in {len(rows)} "
                f"of them, the first at {rows[0]}, expected finite numbers; try np.nan_to_num, or "
                "leave those images out."
            )


def _classes_of(labels: NDArray) -> tuple[NDArray, NDArray[np.intp]]:
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"Got labels with a single class, {classes.tolist()[0]!r}, expected at least two."
        )
    return classes, codes.astype(np.intp)


def _as_stream(batches: Any) -> Callable[[], Iterable[Any]]:
    if callable(batches):
        return batches
    if not isinstance(batches, Iterable):
        raise ValueError(
            f"Got images={type(batches).__name__!r}, expected an array, an iterable of (images, "
            "labels) or a function that returns one."
        )
    if isinstance(batches, Iterator):
        raise ValueError(
            "Got an iterator, which can be read once, expected one that can start again for each "
            "epoch; try a function that returns a new iterator."
        )
    return lambda: batches


def _checked_stream(stream: Callable[[], Iterable[Any]]) -> Iterator[tuple[Float, NDArray]]:
    for number, batch in enumerate(stream()):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ValueError(
                f"Got batch {number} of the stream as {type(batch).__name__!r}, expected a pair "
                "(images, labels)."
            )
        name = f"images of batch {number}"
        images = checked_images(np.asarray(batch[0]), name=name)
        yield as_pixels(images, name), checked_labels(batch[1], len(images))


def _counted(stream: Callable[[], Iterable[Any]]) -> StreamSource:
    """Reads the stream once for its shape, classes and size."""
    shape: Shape | None = None
    totals: dict[Any, int] = {}
    n_batches = 0
    for images, labels in _checked_stream(stream):
        height, width, channels = images.shape[1:]
        shape = shape or (channels, height, width)
        if shape != (channels, height, width):
            raise ValueError(
                f"Got images of shape {(channels, height, width)} in batch {n_batches} of the "
                f"stream, expected {shape} as before."
            )
        values, counts = np.unique(labels, return_counts=True)
        for label, count in zip(values.tolist(), counts.tolist(), strict=True):
            totals[label] = totals.get(label, 0) + count
        n_batches += 1
    if shape is None:
        raise ValueError("Got a stream without batches, expected at least one.")
    classes, codes = _classes_of(np.array(list(totals)))
    rows = np.zeros(len(classes), dtype=np.intp)
    rows[codes] = list(totals.values())
    return StreamSource(stream, shape, classes, int(rows.sum()), n_batches, rows)
