"""Small random convolutional networks for the tests."""

import numpy as np

from islab.core.posterior import Initial
from islab.images import ImageArchitecture, ImagePosterior, ISLaBImageClassifier
from islab.learn.history import History


def architecture(shape=(2, 8, 8), channels=(3, 2), hidden=(3,), outputs=3, activation="relu", **kw):
    kernel, stride, pool = kw.get("kernel", 3), kw.get("stride", 2), kw.get("pool", 1)
    return ImageArchitecture.build(
        shape,
        channels,
        kernel,
        stride,
        pool=pool,
        hidden=hidden,
        n_outputs=outputs,
        activation=activation,
        pixel_skip=kw.get("pixel_skip", False),
    )


def posterior(seed=0, *, inclusion=(-2.0, 2.0), bias_sd=0.3, net=None, **options):
    """A posterior whose weights are in or out by chance, with biases that matter."""
    net = net or architecture(**options)
    rng = np.random.default_rng(seed)
    start = Initial(
        covariate_inclusion=inclusion,
        hidden_inclusion=inclusion,
        output_scale=(1.0, 1.0),
        bias_sd=bias_sd,
    )
    likelihood = "categorical" if net.head.n_outputs > 1 else "bernoulli"
    found = ImagePosterior.initialise(net, rng, start, likelihood)
    for part in found.layers:
        part.bias_mu[:] = bias_sd * rng.standard_normal(len(part.bias_mu))
    return found


def classifier(found):
    """A classifier as if fitted, with this posterior."""
    n_outputs, layers = found.architecture.head.n_outputs, found.architecture.convolutions
    model = ISLaBImageClassifier(
        channels=[layer.out_channels for layer in layers],
        kernel_size=[layer.kernel_size for layer in layers],
        stride=[layer.stride for layer in layers],
        pool=[layer.pool for layer in layers],
        hidden_layer_sizes=found.architecture.head.hidden,
        activation=found.architecture.activation,
        pixel_skip=found.architecture.pixel_skip,
        n_draws=5,
    )
    model.classes_ = np.arange(max(n_outputs, 2))
    model.image_shape_ = found.architecture.image_shape
    model.seed_, model.elbo_, model.history_ = 0, -1.0, History()
    model.elbo_error_ = None
    model.interrupted_ = False
    model._take(found)
    return model


def pixels(net, rows=4, seed=1):
    """Images as the networks read them, (rows, height, width, channels)."""
    return np.random.default_rng(seed).standard_normal((rows, *net.pixel_shape))
