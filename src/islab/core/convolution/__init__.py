"""Convolutional networks: their shape, their arithmetic, their paths and their posterior."""

from islab.core.convolution.geometry import Convolution, ImageArchitecture, Shape
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork

__all__ = ["Convolution", "ImageArchitecture", "ImagePosterior", "Shape", "SparseImageNetwork"]
