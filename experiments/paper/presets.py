"""The paper's settings as parameters of the estimators, which anybody can pass and change.

``python -m experiments.paper.presets abalone`` prints those of a data set.
"""

from __future__ import annotations

import argparse
from math import ceil
from pprint import pprint
from typing import Any

import numpy as np

from experiments.paper.hand_tuned import LINEAR_BIAS_TAU, LINEAR_RHO, NOISE, SMALL_MEANS
from experiments.paper.settings import DATASETS, HIDDEN, SPIKE_AND_SLAB, family, setting
from islab.core.equations import softplus

ROWS = {"linear": 64_000, "nonlinear": 64_000, "wbc": 512, "abalone": 3759, "mice": 972}
ROWS |= {"mnist": 60_000, "fer2013": 17_270}


def paper_settings(
    dataset: str, method: str = "islab", n_rows: int | None = None
) -> dict[str, Any]:
    """Parameters of ISLaBClassifier or ISLaBRegressor that train as the paper did.

    Parameters
    ----------
    dataset : str
    method : {"islab", "islab-flow", "blr", "blr-flow"}
    n_rows : int, optional
        To learn from; those of the paper's split if not given.

    Examples
    --------
    >>> paper_settings("abalone")["prior_scale"]
    25.0
    """
    if method not in SPIKE_AND_SLAB:
        raise ValueError(f"Got method={method!r}, expected one of {', '.join(SPIKE_AND_SLAB)}.")
    own, linear = setting(dataset, method), method.startswith("blr")
    flow = method.endswith("-flow")
    assert own.tau is not None
    assert own.psi is not None
    training: dict[str, Any] = {
        "recipe": "paper",
        "inclusion_rate": own.lambda_rate or own.rate,
        "milestones": own.milestones,
        "drop": own.drop,
        "bias_scale": float(own.tau),
        "shrink_from": own.shrink_from,
        "standardize": False,
    }
    if family(dataset) == "abalone":
        training["noise"] = NOISE
    if linear or flow:
        training["means"] = SMALL_MEANS
    if linear:
        sigma = float(softplus(np.float64(LINEAR_RHO)))
        training |= {"milestones": (), "sigma": sigma, "bias_scale": LINEAR_BIAS_TAU}
    return {
        "posterior": "flow" if flow else "independent",
        "hidden_layer_sizes": () if linear else HIDDEN[family(dataset)],
        "activation": "sigmoid",
        "batch_size": ceil((n_rows or ROWS[family(dataset)]) / own.batches),
        "max_epochs": own.epochs,
        "learning_rate_init": own.rate,
        "prior_scale": float(own.tau),
        "prior_inclusion": float(own.psi),
        "inclusion_init": {"covariates": own.covariates, "hidden": own.hidden or (0.0, 0.0)},
        "training": training,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--method", default="islab", choices=SPIKE_AND_SLAB)
    arguments = parser.parse_args()
    pprint(paper_settings(arguments.dataset, arguments.method), sort_dicts=False)


if __name__ == "__main__":
    main()
