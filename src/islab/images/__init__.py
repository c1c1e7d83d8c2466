"""Convolutional networks: images in, a small network and pixel-exact explanations out."""

from islab.core.convolution.geometry import ImageArchitecture
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork
from islab.images.classifier import ISLaBImageClassifier
from islab.images.explain import ImageExplanation, explain_images
from islab.images.summary import ImageSummary
from islab.io.kinds import register
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

register({"ISLaBImageClassifier": "islab.images.classifier"}, state="islab.images.state")
