"""Convolutional networks: images in, a small network and pixel-exact explanations out."""

from islab.core.convolution.geometry import ImageArchitecture
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork
from islab.estimators.image_summary import ImageSummary
from islab.estimators.images import ISLaBImageClassifier
from islab.explain.images import ImageExplanation, explain_images
from islab.report.images import write_image_report

__all__ = [
    "ISLaBImageClassifier",
    "ImageArchitecture",
    "ImageExplanation",
    "ImagePosterior",
    "ImageSummary",
    "SparseImageNetwork",
    "explain_images",
    "write_image_report",
]
