"""Experiments with images: convolutional networks, and small networks on pre-trained features.

Data are the official splits. Layers are the paper's where it has such an experiment; nothing else
is set but what keeps a fit on two cores to minutes, which each record tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.cells import ENDINGS, circumstances, paper_scores
from islab.evaluate.runner import Cell, Record, fit_timed

QUICK_TRAIN, QUICK_TEST, QUICK_EPOCHS = 6000, 500, 3
QUICK_HYBRID = 300

SCORES = ("accuracy", "auc", "ece", "nll", "brier")
# The paper's layers on CIFAR-10; its head has another shape for each posterior.
CIFAR10_CHANNELS = (64, 64, 128)
CIFAR10_HEADS = {"islab": (256, 256), "islab-flow": (512,)}
CIFAR10_EPOCHS = 5
# At the default rate so large a head falls back to its prior before it has learned anything.
CIFAR10_RATE = 0.01
BACKBONE, IMAGE_SIZE, HYBRID_TRAIN = "efficientnet_lite0", 96, 25_000
# A linear head in small steps; hidden layers gain nothing on these features.
HYBRID_HEAD = {"hidden_layer_sizes": (), "learning_rate_init": 0.01, "max_epochs": 300}
HYBRID_DRAWS = 100

DIGIT, DIGIT_OUTPUTS = "4", ("4", "7", "9")
PICTURED = Cell("mnist-bcnn", "islab", "default", 0)


@dataclass(frozen=True, eq=False)
class ImageTask:
    """Images to learn from and images to judge by, with their classes."""

    train: NDArray
    y_train: NDArray
    test: NDArray
    y_test: NDArray

    @classmethod
    def load(cls, dataset: str, n_train: int | None = None, n_test: int | None = None) -> ImageTask:
        """The first images of the official training and test set; all if no number is given."""
        from experiments.datasets import load_cifar10, load_mnist

        data = load_mnist() if dataset.startswith("mnist") else load_cifar10()
        labels = np.array(data.classes)[data.labels]
        train, test = data.train[:n_train], data.test[:n_test]
        return cls(data.images[train], labels[train], data.images[test], labels[test])


def run_images(cell: Cell, quick: bool = False) -> Record:
    """Fits and judges one model of images; the record of its cell."""
    if cell.dataset.endswith("hybrid"):
        return _run_hybrid(cell, quick)
    model, task, seconds = fit_convolutional(cell, quick)
    return convolutional_record(model, task, seconds)


def fit_convolutional(cell: Cell, quick: bool = False) -> tuple[Any, ImageTask, float]:
    """A fitted classifier of images, what it was fitted to, and seconds of processor time."""
    task = ImageTask.load(cell.dataset, *((QUICK_TRAIN, QUICK_TEST) if quick else ()))
    model = make_convolutional(cell, quick)
    effort = fit_timed(model, task.train, task.y_train)
    return model, task, effort["cpu_seconds"]


def make_convolutional(cell: Cell, quick: bool = False) -> Any:
    """The classifier of a cell, not yet fitted."""
    from experiments.paper.methods import posterior_of
    from islab.images import ISLaBImageClassifier

    own: dict[str, Any] = {"posterior": posterior_of(cell.method), "random_state": cell.seed}
    if cell.dataset == "cifar10-bcnn":
        own |= {
            "channels": CIFAR10_CHANNELS,
            "hidden_layer_sizes": CIFAR10_HEADS[cell.method],
            "max_epochs": CIFAR10_EPOCHS,
            "learning_rate_init": CIFAR10_RATE,
        }
    if quick:
        own["max_epochs"] = QUICK_EPOCHS
    return ISLaBImageClassifier(**own)


def convolutional_record(model: Any, task: ImageTask, seconds: float) -> Record:
    """Scores of both models, and what the median network uses."""
    density, channels = model.density_, [len(own) for own in model.network_.channels]
    return {
        **_scores(model, task.test, task.y_test),
        "used_weights": model.n_used_weights_,
        "density": density["all"],
        "density_convolution": density["convolution"],
        "density_dense": density["dense"],
        "used_channels": sum(channels),
        "used_channels_by_layer": channels,
        **_effort(task, model.max_epochs, seconds),
    }


def _run_hybrid(cell: Cell, quick: bool) -> Record:
    from experiments.datasets import cache_folder
    from experiments.paper.methods import posterior_of
    from islab import ISLaBClassifier
    from islab.features import FeatureExtractor

    task = ImageTask.load(cell.dataset, *((QUICK_HYBRID,) * 2 if quick else (HYBRID_TRAIN,)))
    extractor = FeatureExtractor(
        BACKBONE, image_size=IMAGE_SIZE, cache=cache_folder() / "features"
    ).fit(task.train)
    x_train, x_test = (extractor.transform(images) for images in (task.train, task.test))
    head: dict[str, Any] = {**HYBRID_HEAD, "n_draws": HYBRID_DRAWS, "random_state": cell.seed}
    if quick:
        head["max_epochs"] = QUICK_EPOCHS
    model = ISLaBClassifier(posterior=posterior_of(cell.method), **head)
    seconds = fit_timed(model, x_train, task.y_train)["cpu_seconds"]
    return {
        **_scores(model, x_test, task.y_test),
        "used_weights": model.n_used_weights_,
        "density": model.network_.density,
        "used_features": int(model.get_support().sum()),
        "features": model.n_features_in_,
        **_effort(task, head["max_epochs"], seconds),
    }


def _scores(model: Any, images: NDArray, labels: NDArray) -> Record:
    """Those of the full model by plain names, those of the median network with an ending."""
    from islab.evaluate import score_classes

    found: Record = {}
    for kind, ending in ENDINGS.items():
        scores = score_classes(labels, model.predict_proba(images, model=kind), model.classes_)
        found |= {f"{name}{ending}": scores[name] for name in SCORES}
    return found | paper_scores(model, images, labels)


def _effort(task: ImageTask, epochs: int, seconds: float) -> Record:
    sizes = {"rows": len(task.y_train), "test_rows": len(task.y_test)}
    return {**sizes, "epochs": epochs, "seconds": round(seconds, 3), **circumstances()}


def draw_digits(folder: Path, *, quick: bool = False, force: bool = False) -> Iterator[str]:
    """Which pixels lead to each digit, and what each pixel of one digit says."""
    from experiments.paper.pictures import saved

    model, task = _pictured(folder, quick, force)
    digits = [task.train[task.y_train == name].mean(axis=0) for name in model.classes_]
    yield saved(model.plot_pixels(mean_image=np.stack(digits)), folder / "maps-mnist-bcnn.png")
    row = np.flatnonzero(task.y_test == DIGIT)[:1]
    explanation = model.explain_local(task.test[row], output=list(DIGIT_OUTPUTS), n_draws=200)
    yield saved(explanation.plot(), folder / f"contributions-mnist-bcnn-{DIGIT}.png")


def _pictured(folder: Path, quick: bool, force: bool) -> tuple[Any, ImageTask]:
    """The model that is drawn; kept in the folder, and read from there."""
    from experiments.paper.pictures import stored
    from islab.images import ISLaBImageClassifier

    path = folder / "models" / f"{PICTURED.dataset}.islab"
    if path.exists() and not force:
        sizes = (QUICK_TRAIN, QUICK_TEST) if quick else ()
        return stored(ISLaBImageClassifier.load, path), ImageTask.load(PICTURED.dataset, *sizes)
    model, task, _ = fit_convolutional(PICTURED, quick)
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model, task
