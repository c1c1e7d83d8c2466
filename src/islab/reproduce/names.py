"""What experiments, methods and recipes are called."""

from __future__ import annotations

CORRELATIONS = ("0.0", "0.1", "0.5", "0.9")
SIMULATED = tuple(f"{kind}-{rho}" for kind in ("linear", "nonlinear") for rho in CORRELATIONS)
DATASETS = (*SIMULATED, "wbc", "abalone", "mice", "mice-by-mouse", "mnist", "fer2013")
STUDIES = ("initialisation", "explanations", "structures", "cost")
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


def family(dataset: str) -> str:
    """The experiment a data set belongs to: the paper's settings are the same within one."""
    if dataset.startswith(("linear", "nonlinear")):
        return dataset.partition("-")[0]
    return "mice" if dataset == "mice-by-mouse" else dataset
