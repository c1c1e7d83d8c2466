"""A hybrid on CIFAR-10: features of EfficientNet-Lite0, and ISLaBClassifier on top of them.

The backbone is used as it was trained on ImageNet; images of 32 by 32 pixels are resized to
``--size``. Every image goes through it once: features are kept in the data sets' cache folder and a
second run starts with them. Logistic regression on the same features is there to compare with.
Prints the scores and stores ``experiments/benchmarks/results/hybrid.json``.
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

from experiments.benchmarks.steps import RESULTS
from experiments.datasets import cache_folder, load_cifar10
from islab import ISLaBClassifier
from islab.evaluate import evaluate, score_classes
from islab.features import FeatureExtractor

FILE = RESULTS / "hybrid.json"
# The patient head had the highest ELBO of seven tried on 20,000 of the training images, before the
# default took smaller steps where there are many covariates.
HEADS: dict[str, dict[str, Any]] = {
    "default": {"n_restarts": 1},
    "patient": {"hidden_layer_sizes": (), "learning_rate_init": 0.01, "max_epochs": 300},
}
SCORES = ("accuracy", "ece", "nll")
Rows = tuple[NDArray, NDArray]


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
    parser.add_argument("--train", type=int, default=25_000, help="images to learn from")
    parser.add_argument("--test", type=int, default=10_000, help="images to judge by")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    setting = {
        "data": "CIFAR-10, the first images of the official training and test set",
        "backbone": "efficientnet_lite0",
        **{name: getattr(arguments, name) for name in ("size", "train", "test")},
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    data = load_cifar10()
    train, test = data.train[: arguments.train], data.test[: arguments.test]
    extractor = Counted(
        "efficientnet_lite0",
        image_size=arguments.size,
        cache=cache_folder() / "features",
        verbose=True,
    ).fit(data.images)
    clock = Clock()
    x_test, x_train = (extractor.transform(data.images[rows]) for rows in (test, train))
    result: dict[str, Any] = {"setting": setting}
    result["extraction"] = extraction(setting, extractor.n_images_, clock)
    write(result)

    once = extractor.n_images_
    learn, judge = (x_train, data.labels[train]), (x_test, data.labels[test])
    for name, options in HEADS.items():
        result[name] = head(learn, judge, options, arguments.seed)
        write(result)
    assert extractor.n_images_ == once
    result["logistic_regression"] = logistic_regression(learn, judge)
    write(result)
    print(json.dumps(result, indent=2))


class Clock:
    """Seconds since it was made, on the wall and of the CPU."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"seconds": round(wall, 1), "cpu_seconds": round(cpu, 1)}


def extraction(setting: dict[str, Any], n_images: int, clock: Clock) -> dict[str, Any]:
    """What the extraction took; where features were cached, what it took when they were not."""
    if n_images < setting["train"] + setting["test"] and FILE.exists():
        earlier = json.loads(FILE.read_text())
        if earlier["setting"] == setting:
            return earlier["extraction"]
    return {"images": n_images, **clock.read()}


def head(learn: Rows, judge: Rows, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """The small network on top: its scores and size."""
    model = ISLaBClassifier(n_draws=100, random_state=seed, verbose=True, **options)
    clock = Clock()
    model.fit(*learn)
    result: dict[str, Any] = {**options, "seed": seed, **clock.read()}
    result["features"] = model.n_features_in_
    result["features_used"] = int(model.get_support().sum())
    result["used_weights"] = model.n_used_weights_
    result["depth"] = model.network_.max_depth
    for kind in ("full", "median"):
        scores = evaluate(model, *judge, model=kind)
        result[kind] = {name: scores[name] for name in SCORES}
    return result


def logistic_regression(learn: Rows, judge: Rows) -> dict[str, Any]:
    """What a dense linear model makes of the same features."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    clock = Clock()
    model.fit(*learn)
    result = {**clock.read(), "weights": model[-1].coef_.size}
    scores = score_classes(judge[1], model.predict_proba(judge[0]), model.classes_)
    return result | {name: scores[name] for name in SCORES}


def write(result: dict[str, Any]) -> None:
    FILE.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
