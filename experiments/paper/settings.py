"""What experiments and methods are called, and the settings of the paper's appendix.

What the appendix does not print is from the authors' published scripts where those have it: other
rates of the inclusion parameters, when rates are lowered, and the strength 1 of the L1 penalty.
Where the files with results that the tables summarise come from another run than the appendix
prints, the settings are that run's: see ``NOT_AS_PRINTED``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CORRELATIONS = ("0.0", "0.1", "0.5", "0.9")
SIMULATED = tuple(f"{kind}-{rho}" for kind in ("linear", "nonlinear") for rho in CORRELATIONS)
DATASETS = (*SIMULATED, "wbc", "abalone", "mice", "mice-by-mouse", "mnist", "fer2013")
IMAGES = ("mnist-bcnn", "cifar10-bcnn", "cifar10-hybrid")
IMAGE_METHODS = ("islab", "islab-flow")
STUDIES = ("initialisation", "explanations", "structures", "cost", "choices", "image-maps")
METHODS = (
    "islab",
    "islab-flow",
    "blr",
    "blr-flow",
    "l1-skip",
    "horseshoe",
    "concrete-dropout",
    "spam",
)
SPIKE_AND_SLAB = METHODS[:4]
# What the paper, and results of version 0.1, call the methods.
OLD_METHODS = {
    "islab-lrt": "islab",
    "blr-lrt": "blr",
    "is-ann-l1": "l1-skip",
    "bnn-horse": "horseshoe",
    "bnn-concrete": "concrete-dropout",
    "laplace-spam": "spam",
}
RECIPES = ("paper", "default")

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """How the paper trained one method on one data set.

    Attributes
    ----------
    rate : float
        Adam's learning rate.
    epochs, batches : int
        Passes over the data, and batches in each.
    tau, psi : float
        Prior standard deviation and inclusion probability; methods without them have None.
    covariates, hidden : (low, high)
        Where the inclusion parameters of weights from covariates and from hidden units start.
    lambda_rate : float, optional
        Learning rate of the inclusion parameters where it is another one.
    milestones, drop : tuple of float, float
        Shares of the training at which all rates are multiplied by ``drop``.
    shrink_from : float
        Share of the training after which dead units are dropped. This is ours, to save time.
    """

    rate: float
    epochs: int
    batches: int
    tau: float | None = None
    psi: float | None = None
    covariates: Bounds | None = None
    hidden: Bounds | None = None
    lambda_rate: float | None = None
    milestones: tuple[float, ...] = (0.5, 0.7, 0.9)
    drop: float = 0.5
    shrink_from: float = 0.4


HIDDEN: dict[str, tuple[int, ...]] = {
    "linear": (20, 20, 20, 20),
    "nonlinear": (20, 20, 20, 20),
    "wbc": (50, 50),
    "abalone": (200, 200),
    "mice": (100, 100, 100, 100),
    "mnist": (600, 600),
    "fer2013": (200, 200),
}

SETTINGS: dict[tuple[str, str], Setting] = {
    ("linear", "islab"): Setting(0.1, 200, 50, 2.5, 0.001, (5, 5), (-10, -7)),
    ("linear", "islab-flow"): Setting(0.01, 200, 10, 2.5, 0.001, (5, 5), (-10, -7)),
    ("linear", "blr"): Setting(0.01, 200, 50, 2.5, 0.001, (0, 1)),
    ("linear", "blr-flow"): Setting(0.01, 200, 50, 2.5, 0.001, (0, 1)),
    ("linear", "l1-skip"): Setting(0.01, 750, 50, milestones=(4 / 15, 8 / 15), drop=0.1),
    ("nonlinear", "islab"): Setting(0.01, 750, 50, 30, 0.01, (5, 5), (-5, -4), 0.1),
    ("nonlinear", "islab-flow"): Setting(0.01, 750, 10, 30, 0.01, (5, 5), (4, 6), 0.1),
    ("nonlinear", "blr"): Setting(0.01, 200, 50, 30, 0.001, (0, 1)),
    ("nonlinear", "blr-flow"): Setting(0.01, 200, 50, 30, 0.001, (0, 1)),
    ("nonlinear", "l1-skip"): Setting(0.01, 750, 50, milestones=(4 / 15, 8 / 15), drop=0.1),
    ("wbc", "islab"): Setting(0.1, 200, 8, 1, 0.01, (5, 5), (-9, -5)),
    ("wbc", "islab-flow"): Setting(0.05, 200, 8, 1, 0.01, (5, 15), (-9, -5)),
    ("wbc", "blr"): Setting(0.01, 200, 8, 1, 0.01, (0, 1)),
    ("wbc", "blr-flow"): Setting(0.01, 200, 8, 1, 0.01, (0, 1)),
    ("wbc", "l1-skip"): Setting(0.01, 200, 8, milestones=()),
    ("wbc", "horseshoe"): Setting(0.01, 1000, 8),
    ("wbc", "concrete-dropout"): Setting(0.01, 200, 8),
    ("wbc", "spam"): Setting(0.1, 200, 8),
    ("abalone", "islab"): Setting(
        0.01, 5000, 5, 25, 0.25, (5, 5), (-9, -4), milestones=(0.3, 0.5, 0.7, 0.9)
    ),
    ("abalone", "islab-flow"): Setting(
        0.01, 5000, 5, 25, 0.25, (5, 5), (-9, -4), milestones=(0.3, 0.5, 0.7, 0.9)
    ),
    ("abalone", "blr"): Setting(0.005, 2000, 5, 25, 0.25, (0, 1)),
    ("abalone", "blr-flow"): Setting(0.01, 2000, 5, 15, 0.25, (0, 1)),
    ("abalone", "l1-skip"): Setting(0.01, 2000, 5, milestones=()),
    ("abalone", "horseshoe"): Setting(0.01, 2000, 5),
    ("abalone", "concrete-dropout"): Setting(0.005, 2000, 5),
    ("abalone", "spam"): Setting(0.01, 2000, 5),
    ("mice", "islab"): Setting(0.01, 2000, 27, 25, 0.05, (10, 15), (10, 15), 0.002),
    ("mice", "islab-flow"): Setting(0.01, 500, 27, 25, 0.05, (10, 15), (10, 15)),
    ("mice", "blr"): Setting(0.01, 500, 27, 25, 0.05, (10, 15)),
    ("mice", "blr-flow"): Setting(0.01, 500, 27, 25, 0.05, (10, 15)),
    ("mice", "l1-skip"): Setting(0.001, 20_000, 1, milestones=(0.25, 0.5, 0.75), drop=0.1),
    ("mice", "horseshoe"): Setting(0.001, 20_000, 1),
    ("mice", "concrete-dropout"): Setting(0.001, 20_000, 1),
    ("mice", "spam"): Setting(0.01, 500, 27),
    ("mnist", "islab"): Setting(
        0.01, 1000, 50, 15, 0.01, (5, 15), (5, 15), 0.1, (0.3, 0.5, 0.7, 0.9), 0.7, 0.02
    ),
    ("mnist", "islab-flow"): Setting(
        0.005, 1000, 50, 10, 0.01, (10, 15), (10, 15), 0.01, (0.3, 0.5, 0.7, 0.9), 0.7, 0.02
    ),
    ("mnist", "blr"): Setting(0.01, 250, 50, 15, 0.1, (0, 1)),
    ("mnist", "blr-flow"): Setting(0.005, 250, 50, 10, 0.1, (0, 1)),
    ("mnist", "l1-skip"): Setting(0.01, 250, 50),
    ("mnist", "horseshoe"): Setting(0.001, 250, 600),
    ("mnist", "concrete-dropout"): Setting(0.001, 250, 600),
    ("mnist", "spam"): Setting(0.001, 250, 50),
    ("fer2013", "islab"): Setting(
        0.005, 10_000, 10, 30, 0.05, (-8, -6), (-8, -6), milestones=(0.7, 0.9)
    ),
    ("fer2013", "islab-flow"): Setting(
        0.0025, 10_000, 10, 30, 0.1, (-8, -6), (-8, -6), milestones=(0.7, 0.9)
    ),
    ("fer2013", "blr"): Setting(0.005, 1000, 10, 30, 0.05, (0, 1)),
    ("fer2013", "blr-flow"): Setting(0.0025, 1000, 10, 30, 0.1, (0, 1)),
    ("fer2013", "l1-skip"): Setting(0.005, 1000, 10),
    ("fer2013", "horseshoe"): Setting(0.005, 1000, 10),
    ("fer2013", "concrete-dropout"): Setting(0.005, 1000, 10),
    ("fer2013", "spam"): Setting(0.001, 1000, 10),
}

# What the appendix prints where the published files with results, whose medians and ranges are
# those of the tables, are of other runs: the data set, the method, what is printed, what was run.
NOT_AS_PRINTED: tuple[tuple[str, str, dict[str, object], dict[str, object]], ...] = (
    (
        "nonlinear",
        "islab-flow",
        {"psi": 0.05, "covariates": (5, 15)},
        {"psi": 0.01, "covariates": (5, 5)},
    ),
    ("abalone", "islab-flow", {"epochs": 2000}, {"epochs": 5000}),
    ("mnist", "islab-flow", {"epochs": 2000}, {"epochs": 1000}),
)
# Of this one the settings are those printed: a fit of 5,000 epochs takes more than an hour.
NOT_RUN = ("mnist", "islab", {"epochs": 1000, "psi": 0.01}, {"epochs": 5000, "psi": 0.1})


# Shares of weights that Laplace-SpaM prunes: they follow from the paper's numbers of used weights,
# among which is the whole last layer.
PRUNED = {"wbc": 0.9775, "abalone": 0.95, "mice": 0.97, "mnist": 0.98, "fer2013": 0.99}

# Factor on the absolute weights beside the loss of a batch, in all of the authors' scripts, and the
# three weaker ones that the paper has for MNIST besides.
STRENGTH = 1.0
WEAKER = {"l1-skip-0.2": 0.2, "l1-skip-0.1": 0.1, "l1-skip-0.01": 0.01}
SETTINGS |= {("mnist", method): SETTINGS["mnist", "l1-skip"] for method in WEAKER}
EVERY_METHOD = (*METHODS, *WEAKER)

# What neither the paper nor the scripts say of other baselines, chosen once for each experiment by
# held-out training rows and rounded: `python -m experiments.paper choices`.
CHOSEN: dict[tuple[str, str], dict[str, float]] = {
    ("wbc", "concrete-dropout"): {"length_scale": 1.0},
    ("wbc", "spam"): {"posterior_scale": 0.1},
    ("abalone", "concrete-dropout"): {"length_scale": 1.0},
    ("abalone", "spam"): {"posterior_scale": 0.1},
    ("mice", "concrete-dropout"): {"length_scale": 1.0},
    ("mice", "spam"): {"posterior_scale": 0.1},
}


def method_of(name: str) -> str:
    """What we call a method of the paper, of a stored result, or of ours."""
    stem, strength, value = name.rpartition("-")
    if stem in OLD_METHODS:
        return f"{OLD_METHODS[stem]}{strength}{value}"
    if name.startswith("bcnn-"):
        return f"bcnn-{method_of(name.removeprefix('bcnn-'))}"
    return OLD_METHODS.get(name, name)


def in_paper(dataset: str, method: str) -> tuple[str, str]:
    """What the paper's tables call a data set and a method."""
    experiment, _, kind = dataset.partition("-")
    if (dataset, method) == ("mnist", "l1-skip"):
        return dataset, f"{method}-{STRENGTH:g}"
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


def setting(dataset: str, method: str) -> Setting:
    """The paper's setting.

    Raises
    ------
    ValueError
        If the paper did not run this method on this data set.
    """
    found = SETTINGS.get((family(dataset), method))
    if found is None:
        raise ValueError(
            f"The paper has no setting of {method} on {family(dataset)}; try --recipe default."
        )
    return found
