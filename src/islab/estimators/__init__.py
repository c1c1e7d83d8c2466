"""The scikit-learn face: a classifier and a regressor."""

from islab.estimators.islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators.summary import ModelSummary

__all__ = ["ISLaBClassifier", "ISLaBRegressor", "ModelSummary"]
