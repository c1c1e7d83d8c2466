"""The classifier of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from islab.core import families
from islab.core.convolution.geometry import ImageArchitecture, Shape
from islab.core.convolution.network import forward
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork
from islab.core.dependencies import needed
from islab.core.posterior import Initial
from islab.core.priors import EmpiricalBayes
from islab.estimators.settings import hidden_widths
from islab.images.data import Source, checked_images, make_source, pixel_chunks
from islab.images.explain import ImageExplanation, explain_images
from islab.images.settings import check_image_params, engine_choice
from islab.images.summary import ImageSummary, summarise_images
from islab.images.training import train_images
from islab.learn.history import History, ProgressBar
from islab.learn.loop import STEPS_AT_ONCE
from islab.learn.stage import Schedule, Stage
from islab.tables.targets import interval_levels

Float = NDArray[np.floating]
Model = Literal["full", "median"]


class ISLaBImageClassifier(ClassifierMixin, BaseEstimator):
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
    posterior : {"independent", "flow"}
        Independent weights, or weights tied by normalizing flows: a multiplier for each channel
        that comes into a convolution and for each input of the head's layers.
    batch_size : int
        Images in a batch; a stream's own batches are taken as they come.
    max_epochs : int
    learning_rate_init : float
        Adam's highest rate.
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

    Attributes
    ----------
    classes_ : (classes,)
    image_shape_ : (channels, height, width)
    network_ : SparseImageNetwork
        The median network: predicts, and can be read.
    posterior_ : ImagePosterior
        All weights; None in a model that was loaded from a sparse file.
    density_ : dict
        Used weights as a share of those before training: ``"convolution"``, ``"dense"``, ``"all"``.
    elbo_ : float
    history_ : History

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = rng.random((60, 8, 8))
    >>> labels = (images[:, :4].mean(axis=(1, 2)) > 0.5).astype(int)
    >>> model = ISLaBImageClassifier(channels=(4,), hidden_layer_sizes=(), random_state=0)
    >>> model.fit(images, labels).predict_proba(images).shape
    (60, 2)
    """

    classes_: NDArray
    image_shape_: Shape
    network_: SparseImageNetwork
    posterior_: ImagePosterior | None
    history_: History
    elbo_: float
    seed_: int

    def __init__(
        self,
        *,
        channels: Sequence[int] = (32, 64),
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 2,
        pool: int | Sequence[int] = 1,
        hidden_layer_sizes: int | Sequence[int] = (32,),
        activation: str = "relu",
        posterior: str = "independent",
        batch_size: int = 128,
        max_epochs: int = 5,
        learning_rate_init: float = 0.05,
        n_draws: int = 20,
        augment: Callable[[Any], Any] | None = None,
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.channels = channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.pool = pool
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.posterior = posterior
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate_init = learning_rate_init
        self.n_draws = n_draws
        self.augment = augment
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # -- learning -------------------------------------------------------------------------

    def fit(self, images: Any, labels: ArrayLike | None = None) -> ISLaBImageClassifier:
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
        params = self.get_params(deep=False)
        check_image_params(params)
        needed("torch", "Fitting an image classifier", "islab-bnn[torch]")
        engine_choice(params).resolve()
        source = make_source(images, labels, self.batch_size)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        stage = self._stage(source)
        engine = self._engine(source, stage, seed)
        with ProgressBar(stage.n_steps, enabled=self.verbose) as bar:
            history = train_images(engine, stage, source, seed=seed, report=bar.report)
        self.classes_ = source.classes
        self.image_shape_ = source.image_shape
        self.history_, self.seed_ = history, seed
        # The last records each come from a few batches; together they are less noisy.
        recent = history.column("elbo")[-max(1, source.n_batches // STEPS_AT_ONCE) :]
        self.elbo_ = float(np.mean(recent))
        self._take(engine.posterior())
        return self

    def _engine(self, source: Source, stage: Stage, seed: int) -> Any:
        from islab.learn.engines.torch.convolution import ConvolutionEngine

        n_classes = len(source.classes)
        net = self._architecture(source.image_shape, n_classes)
        likelihood = families.likelihood_of_classes(n_classes)
        start = ImagePosterior.initialise(
            net, np.random.default_rng(seed), Initial(), likelihood.name
        )
        # The constant model's predictor, from one row of each class counted so often.
        share = np.log(source.counts())
        start.head.bias_mu[net.head.units[-1]] = (
            share - share.mean() if likelihood.one_hot else share[1] - share[0]
        )
        flow = self.posterior == "flow"
        return ConvolutionEngine(
            start,
            source,
            seed=seed,
            augment=self.augment,
            flow=flow,
            device=self.device,
            betas=stage.betas,
        )

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
        )

    def _stage(self, source: Source) -> Stage:
        return Stage(
            n_steps=self.max_epochs * source.n_batches,
            batch_size=self.batch_size,
            rate=self.learning_rate_init,
            lambda_rate=self.learning_rate_init,
            schedule=Schedule("cosine", warm_up=0.02),
            kl_ramp=0.5,
            psi=0.2,
            empirical_bayes=EmpiricalBayes(),
            shrink=None,
        )

    def _take(self, posterior: ImagePosterior) -> None:
        """A posterior, and what follows from it."""
        self.posterior_ = posterior
        self.network_ = posterior.median(outputs=self._output_names())

    def _output_names(self) -> tuple[str, ...]:
        """The classes; of two the second."""
        names = tuple(str(name) for name in self.classes_)
        return names if len(names) > 2 else names[1:]

    # -- predicting -----------------------------------------------------------------------

    def predict_proba(self, images: Any, *, model: Model | None = None) -> Float:
        """Probability of each class, averaged over draws of the model, (n, classes).

        Parameters
        ----------
        images : (n, height, width) or (n, channels, height, width)
        model : {"full", "median"}, optional
            Average over the full posterior, or over the median network, which is the one that
            pictures and explanations show. If not given, the full posterior where the model has it.
        """
        first, *others = self._responses(self._checked(images), model, self.n_draws)
        return sum(others, first) / self.n_draws

    def predict(self, images: Any, *, model: Model | None = None) -> NDArray:
        """The most probable class of each image, (n,)."""
        return self.classes_[self.predict_proba(images, model=model).argmax(axis=1)]

    def sample_posterior(
        self, images: Any, n_draws: int | None = None, *, model: Model | None = None
    ) -> Float:
        """Class probabilities under coherent draws of the model, (draws, n, classes).

        Each draw is one network, the same for all images. The mean over draws is the prediction.
        """
        n_draws = self.n_draws if n_draws is None else n_draws
        if n_draws < 1:
            raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try 20.")
        return np.stack(list(self._responses(self._checked(images), model, n_draws)))

    def predict_interval(
        self, images: Any, level: float = 0.9, *, model: Model | None = None
    ) -> Float:
        """Credible interval of the class probabilities, (n, classes, 2).

        With two classes it is that of the second, (n, 2).
        """
        levels = interval_levels(level)
        draws = self.sample_posterior(images, model=model)
        interval = np.moveaxis(np.quantile(draws, levels, axis=0), 0, -1)
        return interval[:, 1] if len(self.classes_) == 2 else interval

    def _checked(self, images: Any) -> NDArray:
        check_is_fitted(self)
        return checked_images(images, self.image_shape_)

    def _responses(self, images: NDArray, model: Model | None, n_draws: int) -> Iterator[Float]:
        """Class probabilities of each draw, (rows, classes); draws do not depend on the rows."""
        for number in range(n_draws):
            predict = self._drawn(model, np.random.default_rng([self.seed_, number]))
            yield np.concatenate(
                [self._probabilities(predict(pixels)) for pixels in pixel_chunks(images)]
            )

    def _drawn(self, model: Model | None, rng: np.random.Generator) -> Callable[[Float], Float]:
        """One network: from pixels (rows, height, width, channels) to the predictor."""
        posterior = self.posterior_
        if model == "median" or (model is None and posterior is None):
            net = self.network_
            numbers, columns = net.draw(rng), net.head.covariates
            return lambda pixels: forward(net.architecture, numbers, pixels, columns)
        if model not in (None, "full"):
            raise ValueError(f"Got model={model!r}, expected 'full' or 'median'.")
        if posterior is None:
            raise ValueError(
                "Got model='full' for a model that was saved with sparse=True, which holds the "
                "median network only; try model='median', or save it without sparse=True."
            )
        drawn = posterior.draw(rng).astype(np.float32)
        return lambda pixels: forward(posterior.architecture, drawn, pixels)

    def _probabilities(self, eta: Float) -> Float:
        response = families.likelihood(self.network_.likelihood).mean(eta)
        if response.shape[-1] > 1:
            return response
        return np.concatenate([1 - response, response], axis=-1)

    # -- reading --------------------------------------------------------------------------

    @property
    def n_used_weights_(self) -> int:
        """Weights on active paths of the median network."""
        check_is_fitted(self)
        return self.network_.n_used_weights

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

    def summary(self) -> ImageSummary:
        """What the model uses, layer by layer, and which kernels were pruned away."""
        check_is_fitted(self)
        return summarise_images(type(self).__name__, self.network_, self.elbo_)

    def explain_local(self, images: Any, **options: Any) -> ImageExplanation:
        """Exact slopes and contributions of every pixel, with credible intervals.

        Parameters
        ----------
        images : (n, height, width) or (n, channels, height, width)
        **options
            Those of :func:`islab.images.explain_images`: ``output``, ``level``, ``n_draws``.
        """
        (pixels,) = pixel_chunks(self._checked(images), rows_at_once=len(images))
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

    def report(self, path: str | Path, images: Any, labels: ArrayLike, **options: Any) -> None:
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

        write_image_report(path, self, self._checked(images), labels, **options)

    # -- keeping --------------------------------------------------------------------------

    def save(self, path: str | Path, *, sparse: bool = False) -> None:
        """Writes the model to one file, replaced if it exists; :meth:`load` reads it.

        Parameters
        ----------
        path : path
        sparse : bool
            Leave out the full posterior: the median network is far smaller, predicts and explains.
        """
        from islab.io.store import save

        save(self, path, sparse=sparse)

    @classmethod
    def load(cls, path: str | Path) -> ISLaBImageClassifier:
        """The model in a file that :meth:`save` wrote."""
        from islab.io.store import load

        return load(path, cls)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")
