"""A hybrid on CIFAR-10: features of EfficientNet-Lite0, and ISLaBClassifier on top of them.

The backbone is used as it was trained on ImageNet; images of 32 by 32 pixels are resized to
``--size``. Every image goes through it once: features are kept in the data sets' cache folder and a
second run starts with them. The last lines compare with logistic regression on the same features.
Prints the scores and stores ``benchmarks/results/hybrid.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab import ISLaBClassifier
from islab.datasets import cache_folder, load_cifar10
from islab.features import FeatureExtractor
from islab.metrics import evaluate, score_classes
from steps import RESULTS

FILE = RESULTS / "hybrid.json"
SCORES = ("accuracy", "ece", "nll")


class Counted(FeatureExtractor):
    """Counts the images that go through the backbone."""

    def fit(self, X: Any, y: Any = None) -> Counted:
        super().fit(X, y)
        self.n_images_ = 0
        return self

    def _extract(self, images: NDArray, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        self.n_images_ = getattr(self, "n_images_", 0) + len(rows)
        return super()._extract(images, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=96, help="pixels to which images are resized")
    parser.add_argument("--train", type=int, default=50_000, help="images to learn from")
    parser.add_argument("--test", type=int, default=10_000, help="images to judge by")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    setting = {
        "data": "CIFAR-10, official split",
        "backbone": "efficientnet_lite0",
        **vars(arguments),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    data = load_cifar10()
    train, test = data.train[: arguments.train], data.test[: arguments.test]
    y_train, y_test = data.labels[train], data.labels[test]

    extractor = Counted(
        "efficientnet_lite0",
        image_size=arguments.size,
        cache=cache_folder() / "features",
        verbose=True,
    ).fit(data.images)
    start = time.perf_counter()
    x_test = extractor.transform(data.images[test])
    x_train = extractor.transform(data.images[train])
    extraction = _extraction(setting, extractor.n_images_, time.perf_counter() - start)
    print("extraction", extraction, flush=True)

    seen = extractor.n_images_
    head = ISLaBClassifier(n_draws=100, random_state=arguments.seed)
    start = time.perf_counter()
    head.fit(x_train, y_train)
    seconds = time.perf_counter() - start
    assert extractor.n_images_ == seen
    print("head", round(seconds, 1), "s", flush=True)
    full = evaluate(head, x_test, y_test, model="full")
    median = evaluate(head, x_test, y_test, model="median")
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    start = time.perf_counter()
    plain.fit(x_train, y_train)
    plain_seconds = time.perf_counter() - start
    scores = score_classes(y_test, plain.predict_proba(x_test), plain.classes_)
    result = {
        "setting": setting,
        "extraction": extraction,
        "head": {
            "seconds": round(seconds, 1),
            "features_used": int(head.get_support().sum()),
            "features": x_train.shape[1],
            "used_weights": head.n_used_weights_,
            "full": {name: full[name] for name in SCORES},
            "median": {name: median[name] for name in SCORES},
        },
        "logistic_regression": {
            "seconds": round(plain_seconds, 1),
            "weights": plain[-1].coef_.size,
            **{name: scores[name] for name in SCORES},
        },
    }
    FILE.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _extraction(setting: dict[str, Any], n_images: int, seconds: float) -> dict[str, Any]:
    """What the extraction took; where features were cached, what it took when they were not."""
    if n_images < setting["train"] + setting["test"] and FILE.exists():
        earlier = json.loads(FILE.read_text())
        if earlier["setting"] == setting:
            return earlier["extraction"]
    return {
        "images": n_images,
        "seconds": round(seconds, 1),
        "images_per_second": round(n_images / seconds, 1),
    }


if __name__ == "__main__":
    main()
