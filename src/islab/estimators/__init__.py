"""The scikit-learn face: a classifier and a regressor."""

from islab.estimators.classifier import ISLaBClassifier
from islab.estimators.regressor import ISLaBRegressor
from islab.estimators.summary import ModelSummary

__all__ = ["ISLaBClassifier", "ISLaBRegressor", "ModelSummary"]
