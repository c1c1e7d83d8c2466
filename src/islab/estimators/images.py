"""The classifier of images."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from islab.core import families
from islab.core.convolution.geometry import ImageArchitecture, Shape
from islab.core.convolution.network import forward
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork
from islab.core.convolution.stacked import StackedImagePosterior
from islab.core.dependencies import needed
from islab.estimators.classifier import PosteriorClassifier
from islab.estimators.drawn_rows import NUMBERS_AT_ONCE, Model
from islab.estimators.image_summary import ImageSummary, summarise_images
from islab.estimators.image_training import IMAGE_KEYS, image_recipe
from islab.estimators.parameter_checks import Rules, count, flag, one_of, positive, widths
from islab.estimators.predictions import ClassPredictions
from islab.estimators.settings import check_params, hidden_widths, keeps_interrupted
from islab.estimators.training import Training, check_training
from islab.explain.images import ImageExplanation, explain_images
from islab.learn.engines import EngineChoice
from islab.learn.engines.choice import current_posterior, warn_of_old_posterior
from islab.learn.images import fit_images, shared_seed, starting_posterior
from islab.learn.parallel import end_with_parent
from islab.learn.stacking import stacked_images
from islab.tables.frames import all_or_nothing
from islab.tables.images import as_pixels, checked_images, checked_labels, make_source, pixel_chunks

Float = NDArray[np.floating]

_COUNT = "a whole number of at least 1"
_EACH = "a whole number, or one for each layer"
_RULES: Rules = {
    "channels": (
        lambda value: isinstance(value, Sequence | np.ndarray) and widths(value),
        "whole numbers such as (32, 64)",
    ),
    "kernel_size": (widths, _EACH),
    "stride": (widths, _EACH),
    "pool": (widths, _EACH),
    "hidden_layer_sizes": (widths, "widths such as (32,), or ()"),
    "pixel_skip": (flag, "True or False"),
    "batch_size": (count, _COUNT),
    "max_epochs": (count, _COUNT),
    "n_restarts": (count, _COUNT),
    "learning_rate_init": (positive, "a positive number"),
    "augment": (lambda value: value is None or callable(value), "a function of a batch, or None"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class ImagePredictions(ClassPredictions):
    """Predictions of a classifier of images, which are its covariates as they are."""

    network: SparseImageNetwork  # type: ignore[assignment]
    posterior: ImagePosterior | StackedImagePosterior | None  # type: ignore[assignment]
    _predictors: dict[str, Float] = field(default_factory=dict, repr=False, init=False)

    def noise(self, model: Model | None = None) -> Float:
        return self.network.head.noise_in_units()

    def _labels(self, y: ArrayLike) -> NDArray:
        return checked_labels(y, len(self))

    def _predictor(self, model: Model, rows: slice) -> Float:
        """The predictor of some images under each draw; that of all is kept if it fits in memory.

        Pictures take long to go through a network.
        """
        if model in self._predictors:
            return self._predictors[model][:, rows]
        images = self.covariates[rows]
        draws = np.stack([self._under(model, number, images) for number in range(self.n_draws)])
        if len(images) == len(self) and draws.size <= NUMBERS_AT_ONCE:
            self._predictors[model] = draws
        return draws

    def _numbers_at_once(self, model: Model) -> int:
        return NUMBERS_AT_ONCE

    def _under(self, model: Model, number: int, images: NDArray) -> Float:
        """The predictor under one draw, (rows, outputs), which does not depend on other rows."""
        rng = np.random.default_rng([self.seed, number])
        if model == "median" or self.posterior is None:
            net, numbers = self.network.architecture, self.network.draw(rng)
            columns = self.network.head.covariates
        else:
            run, columns = self.posterior.of_draw(number, self.n_draws), None
            net, numbers = run.architecture, run.draw(rng).astype(np.float32)
        return np.concatenate(
            [forward(net, numbers, pixels, columns) for pixels in pixel_chunks(images)]
        )


class ISLaBImageClassifier(PosteriorClassifier):
    """Bayesian convolutional network with few weights that explains each probability by pixels.

    Convolutions with spike-and-slab weights, then an input-skip network whose covariates are the
    flattened features. Needs torch for fitting; predictions, explanations and files do not.

    Parameters
    ----------
    channels : sequence of int
        Channels that each convolution makes.
    kernel_size, stride : int or sequence of int
        Of all convolutions, or of each. ``kernel_size // 2`` zeros are put around the maps.
    pool : int or sequence of int
        Side of the windows, side by side, of which only the largest number goes on after a
        convolution; 1 for none.
    hidden_layer_sizes : int or sequence of int
        Widths of the head's hidden layers; ``()`` for a linear one.
    activation : {"relu", "leaky_relu", "identity"}
        All of them make the network exactly linear around each image.
    pixel_skip : bool
        Whether the raw pixels enter the layers of the head too, beside the features: then a pixel
        may act at any depth, as in the paper's convolutional networks.
    posterior : {"independent", "flow"}
        Independent weights, or weights tied by normalizing flows: a multiplier for each channel
        that comes into a convolution and for each input of the head's layers.
    batch_size : int
        Images in a batch; a stream's own batches are taken as they come.
    max_epochs : int
    n_restarts : int
        Networks to train, one after the other. All are kept: each draw comes from one of them,
        with shares that make them predict best together, and the one with the highest ELBO is
        read.
    learning_rate_init : float
        Adam's highest rate.
    prior_inclusion, prior_scale : "auto", float or dict
        As in :class:`~islab.ISLaBClassifier`. Keys of a dict are "kernels" for all convolutions,
        "covariates" (features and pixels) and "hidden" for those weights of the head, the number
        of a layer of the head, or pairs such as ``(0, "kernels")`` and ``(-1, "covariates")``.
    inclusion_init : "auto", str, (low, high) or dict
        Where the inclusion parameters start; a dict has it for "kernels", "covariates" and
        "hidden" weights apart.
    training : "auto", "paper" or dict
        As in :class:`~islab.ISLaBClassifier`, with the keys "recipe", "inclusion_rate",
        "milestones", "drop", "means", "sigma", "bias_scale" and "flow_width".
    threshold : float
        Weights that are needed with a larger probability are in the median network.
    n_draws : int
        Draws of the model behind each prediction.
    augment : callable, optional
        Takes a batch of images, a float tensor (n, channels, height, width), and returns one of
        the same shape; called for each batch in training. Not kept in files.
    device : str
        "cpu", or a device of torch.
    random_state : int, RandomState instance or None
        Same number, same model on one machine with the same number of threads: torch sums in
        another order on more threads, which moves the last digits. Predictions of a model are
        the same each time.
    verbose : bool
        Show a progress bar.
    checkpoint : path, optional
        Folder in which a fit keeps its state, so that the same fit continues from there after a
        crash and ends in the same model; emptied once the fit is done. Needs a ``random_state``,
        and the same batches from a stream; random numbers of ``augment`` are its own.
    on_interrupt : {"auto", "raise", "keep"}
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the
        model so far with a warning. "auto" keeps it in an interactive session with
        ``verbose=True`` and raises otherwise.

    Attributes
    ----------
    classes_ : (classes,)
    image_shape_ : (channels, height, width)
    network_ : SparseImageNetwork
        The median network: predicts, and can be read.
    posterior_ : ImagePosterior or StackedImagePosterior
        All weights, of each network if there are several; None in a model that was loaded from a
        sparse file.
    density_ : dict
        Used weights as a share of those before training: ``"convolution"``, ``"dense"``, ``"all"``.
    elbo_, elbo_error_ : float
        Lower bound of the log evidence, and its Monte Carlo standard error (None if unknown).
    history_ : History
    interrupted_ : bool
        Whether training was interrupted and kept before its end.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = rng.random((60, 8, 8))
    >>> labels = (images[:, :4].mean(axis=(1, 2)) > 0.5).astype(int)
    >>> model = ISLaBImageClassifier(channels=(4,), hidden_layer_sizes=(), random_state=0)
    >>> model.fit(images, labels).predict_proba(images).shape
    (60, 2)
    """

    image_shape_: Shape
    network_: SparseImageNetwork
    posterior_: ImagePosterior | StackedImagePosterior | None
    elbo_: float
    elbo_error_: float | None

    def __init__(
        self,
        *,
        channels: Sequence[int] = (32, 64),
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 2,
        pool: int | Sequence[int] = 1,
        hidden_layer_sizes: int | Sequence[int] = (32,),
        activation: str = "relu",
        pixel_skip: bool = False,
        posterior: str = "independent",
        batch_size: int = 128,
        max_epochs: int = 5,
        n_restarts: int = 1,
        learning_rate_init: float = 0.05,
        prior_inclusion: Any = "auto",
        prior_scale: Any = "auto",
        inclusion_init: Any = "auto",
        training: Any = "auto",
        threshold: float = 0.5,
        n_draws: int = 20,
        augment: Callable[[Any], Any] | None = None,
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: str | Path | None = None,
        on_interrupt: str = "auto",
    ) -> None:
        self.channels = channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.pool = pool
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.pixel_skip = pixel_skip
        self.posterior = posterior
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.n_restarts = n_restarts
        self.learning_rate_init = learning_rate_init
        self.prior_inclusion = prior_inclusion
        self.prior_scale = prior_scale
        self.inclusion_init = inclusion_init
        self.training = training
        self.threshold = threshold
        self.n_draws = n_draws
        self.augment = augment
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt

    # -- learning -------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, images: Any, labels: ArrayLike | None = None) -> Self:
        """Learns from images and their classes.

        Parameters
        ----------
        images : (n, height, width) or (n, channels, height, width), or a stream of batches
            uint8, which is scaled to 0 to 1, or float, which is taken as it is. A memory map is
            read a batch at a time. A stream is an iterable of (images, labels), such as a
            ``torch.utils.data.DataLoader``, or a function that returns one; it is read once to
            count classes and rows and once for each epoch, in its own batches and order.
        labels : (n,), optional
            Classes; a stream brings its own.
        """
        end_with_parent()
        self._check_params()
        needed("torch", "Fitting an image classifier", "islab-bnn[torch]")
        self._engine_choice().resolve()
        source = make_source(images, labels, self.batch_size)
        seed = shared_seed(self._new_seed(), self.device)
        net = self._architecture(source.image_shape, len(source.classes))
        recipe = image_recipe(self.get_params(deep=False), net, source.n_batches)
        seeds = [seed, *np.random.SeedSequence(seed).generate_state(self.n_restarts - 1).tolist()]
        fits = fit_images(
            [
                starting_posterior(net, source.counts(), own, recipe.initial, recipe.kernels)
                for own in seeds
            ],
            source,
            recipe.stage,
            seeds=seeds,
            flow=self.posterior == "flow",
            flow_width=Training.of(self.training).flow_width,
            augment=self.augment,
            device=self.device,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
            keep_interrupted=keeps_interrupted(self.on_interrupt, self.verbose),
        )
        best = max(fits, key=lambda found: found.elbo)
        self.classes_, self.image_shape_ = source.classes, source.image_shape
        self.history_, self.elbo_, self.seed_ = best.history, best.elbo, seed
        self.interrupted_, self.elbo_error_ = fits[0].interrupted, best.error
        if len(fits) == 1:
            self._take(best.posterior)
            return self
        stacked = stacked_images(fits, source, seed=seed, threshold=self.threshold)
        self._take(stacked)
        if stacked.price.large:
            warnings.warn(
                "Got a readable network that predicts worse than the full model: "
                f"{stacked.price.words}; predict uses the full model; try model='median' to "
                "predict with what is explained.",
                UserWarning,
                stacklevel=3,
            )
        return self

    def _check_params(self) -> None:
        """Refuses values that no fit can use."""
        linear = families.activations(piecewise_linear=True)
        activation = (one_of(*linear), f"one of {', '.join(linear)}")
        params = self.get_params(deep=False)
        check_params(params, {"activation": activation, **_RULES})
        check_training(self.training, IMAGE_KEYS)
        if self.pixel_skip and not len(self.channels):
            raise ValueError(
                "Got pixel_skip=True without convolutions, where the head reads the pixels "
                "already; try pixel_skip=False."
            )
        self._engine_choice()
        warn_of_old_posterior(self.posterior)

    def _engine_choice(self) -> EngineChoice:
        """The torch engine on the chosen device."""
        return EngineChoice("torch", current_posterior(self.posterior), self.device)

    def _architecture(self, image_shape: Shape, n_classes: int) -> ImageArchitecture:
        return ImageArchitecture.build(
            image_shape,
            tuple(self.channels),
            self.kernel_size,
            self.stride,
            pool=self.pool,
            hidden=hidden_widths(self.hidden_layer_sizes),
            n_outputs=n_classes if n_classes > 2 else 1,
            activation=self.activation,
            pixel_skip=self.pixel_skip,
        )

    def _take(self, posterior: ImagePosterior | StackedImagePosterior) -> None:
        """A posterior, and what follows from it."""
        self.posterior_ = posterior
        self.network_ = posterior.median(self.threshold, self._output_names())

    def _output_names(self) -> tuple[str, ...]:
        """The classes; of two the second."""
        names = tuple(str(name) for name in self.classes_)
        return names if len(names) > 2 else names[1:]

    # -- predicting -----------------------------------------------------------------------

    if TYPE_CHECKING:

        def predictions(self, X: Any, *, n_draws: int | None = None) -> ImagePredictions: ...

        def summary(self) -> ImageSummary: ...

    def _encoded(self, X: Any) -> NDArray:
        return checked_images(X, self.image_shape_)

    def _predictions(self, **content: Any) -> ImagePredictions:
        return ImagePredictions(**content, classes=self.classes_)

    # -- reading --------------------------------------------------------------------------

    @property
    def density_(self) -> dict[str, float]:
        """Used weights as a share of those before training, by part."""
        check_is_fitted(self)
        net = self.network_
        return {
            "convolution": net.kernel_density,
            "dense": net.head.density,
            "all": net.n_used_weights / net.n_weights_initial,
        }

    def _summary(self) -> ImageSummary:
        return summarise_images(self)

    def explain_local(self, images: Any, **options: Any) -> ImageExplanation:
        """Exact slopes and contributions of every pixel, with credible intervals.

        Parameters
        ----------
        images : (n, height, width) or (n, channels, height, width)
        **options
            Those of :func:`islab.images.explain_images`: ``output``, ``level``, ``n_draws``.
        """
        pixels = as_pixels(self.predictions(images).covariates)
        options = {"random_state": self.seed_, "n_draws": self.n_draws, **options}
        return explain_images(self.network_, pixels, **options)

    def plot_pixels(self, **options: Any) -> Any:
        """Maps of the pixels from which paths lead to each class.

        Parameters
        ----------
        **options
            Those of :func:`islab.plots.images.receptive_maps`.
        """
        from islab.plots.images import receptive_maps

        check_is_fitted(self)
        return receptive_maps(self.network_, **options)

    def report(self, path: str | Path, images: Any, labels: ArrayLike, **options: Any) -> None:  # type: ignore[override]
        """Writes the model and what it makes of these images to one HTML file.

        Parameters
        ----------
        path : path
        images : (n, height, width) or (n, channels, height, width)
        labels : (n,)
        **options
            Those of :func:`islab.images.write_image_report`: ``n_examples``, ``n_draws``,
            ``level``, ``title``.
        """
        from islab.report.images import write_image_report

        write_image_report(path, self, images, labels, **options)

    # -- keeping --------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model in a file that :meth:`save` wrote."""
        from islab.io.store import load

        return load(path, cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags
