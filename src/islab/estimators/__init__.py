"""The scikit-learn face: a classifier and a regressor."""

from islab.estimators.islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators.summary import ModelSummary
from islab.io.kinds import register

__all__ = ["ISLaBClassifier", "ISLaBRegressor", "ModelSummary"]

register(
    dict.fromkeys(("ISLaBClassifier", "ISLaBRegressor"), "islab.estimators.islab"),
    state="islab.estimators.state",
)
register({"ISLaBImageClassifier": "islab.estimators.images"}, state="islab.estimators.image_state")
