"""What a likelihood is: everything that the package asks of one, in one class.

A likelihood connects a linear predictor ``eta`` (rows, outputs) with a target ``y`` of the same
shape. ``noise`` are positive numbers that the family learns, mostly one for each output: the
variance about its mean, or what ``noise_name`` says; 1 for families that learn none. ``nll``,
``mean``, ``gradient``, ``variance`` and ``noise_terms`` take numpy arrays or torch tensors;
the predictive functions are numpy only and take draws of the predictor, (draws, rows, outputs),
and noise of each of them, (draws, 1, numbers), where networks were drawn with noise of their own.
An offset, such as the logarithm of an exposure, is in ``eta`` before any of them sees it.

To add a likelihood, write one file with a subclass of :class:`Likelihood` that fills in the class
attributes without a default and the methods that raise ``NotImplementedError``, and register it in
``families/__init__.py``. Without a ``kernel`` the torch engine learns it. A compiled version is a
struct and a line of the list in ``families.h``.

Not served yet, and where each would go:

- a target of several columns for one output (a survival time and its event): ``check_target``
  and ``nll`` then take ``y`` (rows, outputs, columns);
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.expressions import Expression, Let
from islab.core.families.mixtures import sample_quantiles
from islab.core.families.spelling import CountShares, Kernel, StandardNoise

Array = Any
Float = NDArray[np.floating]
Target = Literal["classes", "numbers", "counts"]


@dataclass(frozen=True)
class Words:
    """How summaries, axes, formulas and reports speak of a likelihood.

    Attributes
    ----------
    predictor : str, optional
        Name of the predictor's scale: ``"log odds"``. None where it is that of the target.
    ratio : str, optional
        What ``exp(slope)`` is: ``"odds ratio"``. None if it means nothing.
    response : str
        Name of the response: ``"probability"``.
    prediction : str
        What a prediction is, in an exported module: ``"the probability of each class"``.
    symbol : {"P", "E"}
        Of the response in formulas and labels: a probability or an expectation.
    predicts : str
        The object of "A network that predicts ...", with ``{}`` for the names of the outputs.
    linear_model : str
        The regression that the network is without hidden units: ``"logistic"``.
    output : str
        What an output of the network is called: ``"class"``.
    """

    predictor: str | None
    ratio: str | None
    response: str
    prediction: str
    symbol: Literal["P", "E"]
    predicts: str
    linear_model: str
    output: str = "output"


@dataclass(frozen=True)
class Uncertainty:
    """Variance of a prediction, split by its origin; for classes, of each one's indicator.

    Attributes
    ----------
    aleatoric : (rows, outputs)
        What remains when the weights are known.
    epistemic : (rows, outputs)
        What comes from not knowing the weights.
    """

    aleatoric: Float
    epistemic: Float

    @property
    def total(self) -> Float:
        return self.aleatoric + self.epistemic


class Likelihood:
    """The contract; formulas that hold for canonical links are filled in.

    Attributes
    ----------
    name : str
        In files and parameters.
    target : {"classes", "numbers", "counts"}
        Which targets it is for: those of classifiers, or one of two kinds for regressors.
    words : Words
    support : (float, float)
        Where the response lies.
    n_predictors : int
        Predictors of each target. The outputs are those of the first predictor for all targets,
        then those of the second; ``y`` has the targets as often, so that it has their shape.
    learns_noise : bool
        Whether ``noise`` is learned: engines let it follow the mean of :meth:`noise_terms`.
    noise_name : str
        What summaries call ``noise``; of a variance they show the root.
    overdispersed : str, optional
        The likelihood to try where targets vary much more than :meth:`variance` says.
    with_outliers : str, optional
        The likelihood of the same predictor to try where targets lie far out more often.
    normal_noise : bool
        Whether a target is its mean plus normal noise, so that closed forms hold.
    scales_target : bool
        Whether targets are learned in standard deviations from their mean; the predictor is then
        in the target's unit.
    inflates_zeros : bool
        Whether zeros may be no counts, so that there must be some.
    log_link : bool
        Whether the predictor is the logarithm of the mean, so that an exposure makes sense.
    one_hot : bool
        Whether there is an output for each class, of which one is 1.
    ordered : bool
        Whether classes have an order.
    relative_predictor : bool
        Whether predictors mean something only against those of other outputs.
    kernel : Kernel, optional
        The compiled version.
    standard_noise : StandardNoise, optional
        Of targets that are their mean plus noise, so that exports can give intervals.
    python_share : str
        Source of a Python function ``_share`` of ``value``, ``mean`` and the numbers of
        :meth:`noise_expressions`, with ``math`` available: the probability of a target up to
        ``value``. Only of likelihoods of numbers and counts.
    javascript : str
        A JavaScript object with ``response(eta, noise)``, an array for an array; and, where new
        values are numbers, ``interval(draws, share, noise, last)``, the quantile of a new value
        from an output's response in each draw, and the first and the last number of its noise
        in each. ``average``, ``bisected`` and ``normalShare`` of ``network.js`` are available.
        The text goes into reports as it is.
    """

    name: ClassVar[str]
    target: ClassVar[Target]
    words: ClassVar[Words]
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    n_predictors: ClassVar[int] = 1
    learns_noise: ClassVar[bool] = False
    noise_name: ClassVar[str] = "noise sd"
    overdispersed: ClassVar[str | None] = None
    with_outliers: ClassVar[str | None] = None
    normal_noise: ClassVar[bool] = False
    scales_target: ClassVar[bool] = False
    inflates_zeros: ClassVar[bool] = False
    log_link: ClassVar[bool] = False
    one_hot: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    relative_predictor: ClassVar[bool] = False
    kernel: ClassVar[Kernel | None] = None
    standard_noise: ClassVar[StandardNoise | None] = None
    python_share: ClassVar[str]
    javascript: ClassVar[str]

    # -- what is learned besides the predictor ----------------------------------------------

    def given(self, noise: Array) -> Likelihood:
        """The same where ``noise`` is known, which means and spellings of some families need."""
        return self

    def n_noise(self, n_outputs: int) -> int | None:
        """Length of ``noise``; None if it depends on the target."""
        return n_outputs

    def start_noise(self, y: Float) -> Float:
        """Where learning of ``noise`` starts."""
        return np.ones(y.shape[1])

    # -- the target -----------------------------------------------------------------------

    def output_names(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the outputs from those of the targets."""
        return targets

    def output_scale(self, center: Float, scale: Float) -> tuple[Float, Float]:
        """Center and scale of the outputs from those of the targets."""
        return center, scale

    def check_target(self, y: Float) -> None:
        """Refuses finite numbers that cannot be targets, with a remedy."""

    def initial_bias(self, y: Float) -> Float:
        """Predictor of the constant model that fits best, (outputs,), for a start."""
        raise NotImplementedError

    # -- given the predictor --------------------------------------------------------------

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        """Negative log likelihood of each row, (rows,)."""
        raise NotImplementedError

    def nll_constant(self, y: Float) -> Float | None:
        """The part of :meth:`nll` that no parameter moves, (rows,), if the kernel omits it."""
        return None

    def mean(self, eta: Array) -> Array:
        """Inverse link: expectation of y given the predictor."""
        raise NotImplementedError

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        """Derivative of :meth:`nll` by ``eta``, (rows, outputs)."""
        return (self.mean(eta) - y) / noise

    def variance(self, eta: Array, noise: Array) -> Array:
        """Variance of y given the predictor."""
        raise NotImplementedError

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        """Numbers of each row whose mean over rows is a better ``noise`` than this one."""
        error = y - self.mean(eta)
        return error * error

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        """Columns whose outer products sum to each row's expected Hessian of :meth:`nll`.

        Returns
        -------
        (columns, rows, outputs)
        """
        scale = np.sqrt(self.variance(eta, noise)) / noise
        return np.eye(eta.shape[1])[:, None] * scale

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        """One target for each predictor."""
        raise NotImplementedError

    # -- averaged over draws --------------------------------------------------------------

    def predictive_mean(self, draws: Float) -> Float:
        """Expectation of y averaged over draws, (rows, outputs)."""
        return self.mean(draws).mean(axis=0)

    def log_score(self, y: Float, draws: Float, noise: Float) -> Float:
        """Negative log of the predictive density averaged over draws, (rows,)."""
        log_density = -self.nll(y, draws, noise)
        largest = log_density.max(axis=0)
        return -(largest + np.log(np.exp(log_density - largest).mean(axis=0)))

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        """Quantiles of the predictive distribution, (levels, rows, outputs)."""
        raise NotImplementedError

    def uncertainty(self, draws: Float, noise: Float) -> Uncertainty:
        """Law of total variance over the draws."""
        return Uncertainty(
            aleatoric=self.variance(draws, noise).mean(axis=0),
            epistemic=self.given(noise).mean(draws).var(axis=0),
        )

    # -- spellings of the response --------------------------------------------------------

    def response_names(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """Names of what :meth:`expressions` gives."""
        return outputs

    def formula(self, eta: str, every: Sequence[str]) -> str:
        """The response as plain text, from an output's predictor and those of all outputs."""
        raise NotImplementedError

    def latex(self, eta: str, every: Sequence[str]) -> str:
        """The response in LaTeX."""
        raise NotImplementedError

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        """What exports predict, from the predictors of all outputs, without overflow.

        ``let(name, expression)`` gives a name to what is used more than once.
        """
        raise NotImplementedError

    def noise_expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression]
    ) -> list[tuple[Expression, ...]]:
        """What the distribution of each target has besides its mean, of numbers and counts."""
        return [(each,) for each in noise]

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        """The variance of a target with that mean and one of :meth:`noise_expressions`."""
        raise NotImplementedError

    def count_shares(self, mean: Expression, noise: tuple[Expression, ...]) -> CountShares | None:
        """The distribution of a count with that mean; None if targets are no counts."""
        return None

    def torch(self, eta: Any) -> Any:
        """What exports predict, as a tensor; of likelihoods that are :meth:`given` their noise."""
        return self.mean(eta)


class ClassLikelihood(Likelihood):
    """A likelihood of classes, which also says how they become outputs and come back."""

    target: ClassVar[Target] = "classes"
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def variance(self, eta: Array, noise: Array) -> Array:
        probability = self.mean(eta)
        return probability * (1 - probability)

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Float:
        """Targets (rows, outputs) of classes given by their positions, (rows,)."""
        raise NotImplementedError

    def class_outputs(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the outputs from those of the classes."""
        raise NotImplementedError

    def class_probabilities(self, eta: Float) -> Float:
        """Probabilities (..., classes) from predictors (..., outputs)."""
        raise NotImplementedError

    def class_quantiles(self, draws: Float, levels: Float) -> Float:
        """Quantiles of the probabilities over draws of the predictor, (levels, rows, classes)."""
        return sample_quantiles(self.class_probabilities(draws), levels)


def checked_levels(levels: ArrayLike) -> Float:
    """Quantile levels as an array; refuses those that are not between 0 and 1."""
    levels = np.asarray(levels, dtype=float)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"Got quantile levels {levels.tolist()}, expected numbers between 0 and 1."
        )
    return levels
