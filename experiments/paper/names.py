"""What experiments, methods and recipes are called."""

from __future__ import annotations

from collections.abc import Sequence

CORRELATIONS = ("0.0", "0.1", "0.5", "0.9")
SIMULATED = tuple(f"{kind}-{rho}" for kind in ("linear", "nonlinear") for rho in CORRELATIONS)
DATASETS = (*SIMULATED, "wbc", "abalone", "mice", "mice-by-mouse", "mnist", "fer2013")
IMAGES = ("mnist-bcnn", "cifar10-bcnn", "cifar10-hybrid")
IMAGE_METHODS = ("islab-lrt", "islab-flow")
STUDIES = ("initialisation", "explanations", "structures", "cost", "choices", "image-maps")
METHODS = (
    "islab-lrt",
    "islab-flow",
    "blr-lrt",
    "blr-flow",
    "is-ann-l1",
    "bnn-horse",
    "bnn-concrete",
    "laplace-spam",
)
RECIPES = ("paper", "default")


def in_paper(dataset: str, method: str) -> tuple[str, str]:
    """What the paper's tables call a data set and a method."""
    experiment, _, kind = dataset.partition("-")
    return (experiment, f"bcnn-{method}") if kind == "bcnn" else (dataset, method)


def methods_of(study: str, wanted: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Those of a study's methods that are wanted."""
    found = [method for method in offered if method in wanted]
    if not found:
        raise ValueError(
            f"Got the method {', '.join(wanted)}, expected one of those that the study "
            f"{study!r} compares: {', '.join(offered)}."
        )
    return found


def family(dataset: str) -> str:
    """The experiment a data set belongs to: the paper's settings are the same within one."""
    if dataset.startswith(("linear", "nonlinear")):
        return dataset.partition("-")[0]
    return "mice" if dataset == "mice-by-mouse" else dataset
