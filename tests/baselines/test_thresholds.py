"""Which inputs a horseshoe network keeps by itself."""

from dataclasses import replace

import numpy as np

from islab.baselines.shrinkage import Horseshoe, best_thresholds
from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.learn.engines import Problem

LINEAR = Architecture(4, (), 1, input_skip=False)


def linear_horseshoe(**changes):
    rng = np.random.default_rng(0)
    found = Horseshoe(
        architecture=LINEAR,
        mu=rng.normal(size=4),
        sigma=np.full(4, 0.01),
        bias_mu=rng.normal(size=1),
        bias_sigma=np.full(1, 0.2),
        layer_mean=np.array([0.1]),
        layer_sd=np.full(1, 0.01),
        input_mean=rng.normal(scale=0.3, size=4),
        input_sd=np.full(4, 0.01),
        threshold=np.full(1, np.inf),
        likelihood="gaussian",
        noise=np.ones(1),
        n_weights_initial=4,
    )
    return replace(found, **changes)


def test_automatic_threshold_keeps_one_input_where_nothing_can_be_learned():
    rng = np.random.default_rng(0)
    nothing = Problem(rng.normal(size=(50, 4)), rng.normal(size=(50, 1)))
    found = linear_horseshoe()
    threshold = best_thresholds(found, nothing, np.ones(4), rng)
    assert replace(found, threshold=threshold).kept().sum() == 1


def test_automatic_threshold_keeps_what_predicts():
    found = linear_horseshoe()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    mean = forward(LINEAR, *(part.mean(axis=0) for part in found.draw(100, rng)), x)
    problem = Problem(x, mean + 0.1 * rng.normal(size=mean.shape))
    threshold = best_thresholds(replace(found, noise=np.array([0.02])), problem, np.ones(4), rng)
    assert replace(found, threshold=threshold).kept().all()
