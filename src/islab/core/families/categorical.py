"""One of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from islab.core import expressions
from islab.core.equations import exponential
from islab.core.expressions import Expression, Let
from islab.core.families.likelihood import Array, ClassLikelihood, Float, Words
from islab.core.families.spelling import Kernel


class Categorical(ClassLikelihood):
    """One of several classes, ``y`` one-hot, with a softmax link."""

    name = "categorical"
    kernel = Kernel("categorical")
    one_hot = True
    relative_predictor = True
    words = Words(
        predictor="class score",
        ratio=None,  # exp(slope) is relative to the mean over classes, not to one of them
        response="probability",
        prediction="the probability of each class",
        symbol="P",
        predicts="the probability of {}",
        linear_model="logistic",
        output="class",
    )
    javascript = """{
  response: (eta) => {
    const largest = Math.max(...eta);
    const grown = eta.map((value) => Math.exp(value - largest));
    const total = grown.reduce((sum, value) => sum + value, 0);
    return grown.map((value) => value / total);
  },
}"""

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        largest = xp.max(eta, axis=-1, keepdims=True)
        shifted = eta - largest
        return xp.log(xp.sum(xp.exp(shifted), axis=-1)) - xp.sum(y * shifted, axis=-1)

    def mean(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        grown = exponential(eta - xp.max(eta, axis=-1, keepdims=True))
        return grown / xp.sum(grown, axis=-1, keepdims=True)

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        p = self.mean(eta)
        diagonal = np.eye(eta.shape[1])[:, None] * np.sqrt(p)
        return diagonal - np.sqrt(p.T)[:, :, None] * p

    def initial_bias(self, y: Float) -> Float:
        log_share = np.log((y.sum(axis=0) + 0.5) / (len(y) + 0.5 * y.shape[1]))
        return log_share - log_share.mean()

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        chosen = (eta + rng.gumbel(size=eta.shape)).argmax(axis=-1)
        return np.eye(eta.shape[-1])[chosen]

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        raise ValueError(
            "Classes have no order, so they have no quantiles; use the class probabilities."
        )

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Float:
        return np.eye(n_classes)[codes]

    def class_outputs(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        return classes

    def class_probabilities(self, eta: Float) -> Float:
        return self.mean(eta)

    def formula(self, eta: str, every: Sequence[str]) -> str:
        return f"exp({eta})/({' + '.join(f'exp({each})' for each in every)})"

    def latex(self, eta: str, every: Sequence[str]) -> str:
        total = " + ".join(f"e^{{{each}}}" for each in every)
        return rf"\frac{{e^{{{eta}}}}}{{{total}}}"

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        most = let("most", expressions.largest(*eta))
        grown = [let(f"grown{k}", expressions.exp(each - most)) for k, each in enumerate(eta)]
        total = let("total", sum(grown[1:], start=grown[0]))
        return [each / total for each in grown]

    def torch(self, eta: Any) -> Any:
        return eta.softmax(dim=-1)
