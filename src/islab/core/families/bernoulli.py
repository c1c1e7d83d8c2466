"""Yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from islab.core import expressions
from islab.core.equations import sigmoid, softplus
from islab.core.expressions import Expression, Let
from islab.core.families.likelihood import Array, ClassLikelihood, Float, Words, checked_levels
from islab.core.families.mixtures import sample_quantiles
from islab.core.families.spelling import Kernel


class Bernoulli(ClassLikelihood):
    """Independent yes-or-no outputs with a logit link; of two classes the second is yes."""

    name = "bernoulli"
    kernel = Kernel("bernoulli")
    words = Words(
        predictor="log odds",
        ratio="odds ratio",
        response="probability",
        prediction="the probability of 1",
        symbol="P",
        predicts="the probability of {}",
        linear_model="logistic",
    )
    javascript = "{ response: (eta) => eta.map((value) => 1 / (1 + Math.exp(-value))) }"

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        return xp.sum(softplus(eta) - y * eta, axis=-1)

    def mean(self, eta: Array) -> Array:
        return sigmoid(eta)

    def initial_bias(self, y: Float) -> Float:
        share = (y.sum(axis=0) + 0.5) / (len(y) + 1)
        return np.log(share) - np.log1p(-share)

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        return (rng.random(eta.shape) < sigmoid(eta)).astype(float)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        level = checked_levels(levels).reshape(-1, 1, 1)
        return np.where(level > 1 - self.predictive_mean(draws), 1.0, 0.0)

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Float:
        return np.array([[0.0], [1.0]])[codes]

    def class_outputs(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        return classes[1:]

    def class_probabilities(self, eta: Float) -> Float:
        response = self.mean(eta)
        return np.concatenate([1 - response, response], axis=-1)

    def class_quantiles(self, draws: Float, levels: Float) -> Float:
        # Of no what is left of yes, from the other end.
        found = sample_quantiles(self.mean(draws), np.concatenate([levels, 1 - levels]))
        yes, rest = np.split(found, 2)
        return np.concatenate([1 - rest, yes], axis=-1)

    def formula(self, eta: str, every: Sequence[str]) -> str:
        return f"1/(1 + exp(-{eta}))"

    def latex(self, eta: str, every: Sequence[str]) -> str:
        return rf"\frac{{1}}{{1 + e^{{-{eta}}}}}"

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        return [expressions.sigmoid(each) for each in eta]

    def torch(self, eta: Any) -> Any:
        return eta.sigmoid()
