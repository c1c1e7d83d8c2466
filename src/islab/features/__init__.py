"""Features of images from pre-trained networks, as covariates for the estimators."""

from islab.features.extractor import FeatureExtractor

__all__ = ["FeatureExtractor"]
