"""What the parameters of the image classifier mean for its training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from islab.core.convolution.geometry import ImageArchitecture
from islab.core.posterior import Initial
from islab.estimators.blocks import Place, by_block, dense_places
from islab.estimators.settings import NEVER
from islab.estimators.training import Training
from islab.learn.images import image_stage
from islab.learn.recipe import paper_recipe
from islab.learn.stage import Stage

IMAGE_KEYS = (
    *("recipe", "inclusion_rate", "milestones", "drop"),
    *("means", "sigma", "bias_scale", "flow_width"),
)


@dataclass(frozen=True)
class ImageRecipe:
    """How a convolutional network is trained.

    Attributes
    ----------
    stage : Stage
    initial, kernels : Initial
        Where the head and the kernels start.
    """

    stage: Stage
    initial: Initial
    kernels: Initial


def image_recipe(params: dict[str, Any], net: ImageArchitecture, n_batches: int) -> ImageRecipe:
    """The recipe of a classifier's parameters, checked, for images in so many batches."""
    training = Training.of(params["training"])
    n_steps, batch = params["max_epochs"] * n_batches, params["batch_size"]
    rate = float(params["learning_rate_init"])
    stage, initial = image_stage(n_steps, batch, rate), Initial()
    if training.recipe == "paper":
        paper = paper_recipe(
            hidden=net.hidden,
            n_steps=n_steps,
            batch_size=batch,
            rate=rate,
            tau=1.0,
            psi=0.1,
            covariate_inclusion=(5.0, 5.0),
            shrink=None,
        )
        stage, initial = paper.network, paper.initial
    for parameter, name in (("prior_inclusion", "psi"), ("prior_scale", "tau")):
        value = params[parameter]
        if not isinstance(value, str):
            own = by_block(parameter, value, image_places(net), getattr(stage, name))
            learn = stage.empirical_bayes
            if learn is not None:
                fixed: dict[str, Any] = {f"{name}_fixed": own.given}
                if all(own.given):
                    fixed = {f"{name}_from": NEVER}
                learn = replace(learn, **fixed)
            values: dict[str, Any] = {name: own.values}
            stage = replace(stage, empirical_bayes=learn, **values)
    starts = params["inclusion_init"]
    if not isinstance(starts, dict):
        sources = ("kernels", "covariates", "hidden")
        starts = {} if starts == "auto" else dict.fromkeys(sources, starts)
    initial = training.initial(initial)
    head = replace(
        initial,
        covariate_inclusion=starts.get("covariates", initial.covariate_inclusion),
        hidden_inclusion=starts.get("hidden", initial.hidden_inclusion),
    )
    kernels = replace(
        initial, covariate_inclusion=starts.get("kernels", initial.covariate_inclusion)
    )
    return ImageRecipe(training.stage(stage, 1.0), head, kernels)


def image_places(net: ImageArchitecture) -> list[Place]:
    """Where the blocks of weights lie: kernels of each convolution, then those of the head."""
    kernels: list[Place] = [(number, "kernels") for number in range(len(net.convolutions))]
    return kernels + dense_places(net.hidden, net.head.input_skip)
