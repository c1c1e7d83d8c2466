"""Priors, starts and training of convolutional networks, as parameters."""

import numpy as np
import pytest

from islab.estimators.image_training import image_places, image_recipe
from islab.images import ISLaBImageClassifier
from islab.learn.images import starting_posterior
from islab.learn.recipe import paper_recipe
from tests.images.test_classifier import SMALL, bars

BATCHES = 6


def recipe_of(**params):
    model = ISLaBImageClassifier(**{**SMALL, **params})
    net = model._architecture((1, 8, 8), 3)
    return image_recipe(model.get_params(), net, BATCHES), net


def test_blocks_are_kernels_then_the_head():
    _, net = recipe_of()
    assert image_places(net) == [
        *[(0, "kernels"), (1, "kernels")],
        *[(0, "covariates"), (1, "covariates"), (1, "hidden")],
    ]
    assert len(image_places(net)) == len(net.blocks)


def test_priors_by_block_go_to_kernels_and_head():
    given = {"kernels": 3.0, (1, "kernels"): 4.0, -1: 5.0, (-1, "hidden"): 6.0}
    recipe, net = recipe_of(prior_scale=given, prior_inclusion=0.3)
    np.testing.assert_array_equal(recipe.stage.prior(net).tau, [3.0, 4.0, 1.0, 5.0, 6.0])
    assert recipe.stage.empirical_bayes.tau_fixed == (True, True, False, True, True)
    np.testing.assert_array_equal(recipe.stage.prior(net).psi, 0.3)
    assert recipe.stage.empirical_bayes.psi_from == np.inf


def test_kernels_and_weights_of_the_head_start_apart():
    starts = {"kernels": (6, 7), "covariates": (4, 5), "hidden": (-3, -2)}
    recipe, net = recipe_of(inclusion_init=starts)
    start = starting_posterior(net, np.ones(3), 0, recipe.initial, recipe.kernels)
    lam = {"kernels": np.concatenate([kernel.lam for kernel in start.kernels])}
    for block in net.head.blocks:
        source = "covariates" if block.source == "covariate" else "hidden"
        lam.setdefault(source, block.view(start.head.lam))
    for name, (low, high) in starts.items():
        assert ((lam[name] >= low) & (lam[name] <= high)).all()


def test_the_papers_recipe_trains_the_paper_s_way():
    recipe, net = recipe_of(training="paper", max_epochs=10, prior_scale=2.0, prior_inclusion=0.1)
    expected = paper_recipe(
        hidden=net.hidden,
        n_steps=10 * BATCHES,
        batch_size=SMALL["batch_size"],
        rate=SMALL["learning_rate_init"],
        tau=2.0,
        psi=0.1,
        covariate_inclusion=(5.0, 5.0),
        shrink=None,
        bias_tau=1.0,
    )
    np.testing.assert_array_equal(recipe.stage.prior(net).tau, expected.network.tau)
    for name in ("rate", "lambda_rate", "betas", "schedule", "kl_ramp", "empirical_bayes"):
        assert getattr(recipe.stage, name) == getattr(expected.network, name)
    assert recipe.initial == expected.initial


def test_classes_are_found_with_pixels_beside_the_features_and_own_settings():
    images, labels = bars()
    model = ISLaBImageClassifier(
        **SMALL,
        pixel_skip=True,
        prior_inclusion={"kernels": 0.05},
        training={"inclusion_rate": 0.04, "means": (-0.5, 0.5)},
        threshold=0.4,
    ).fit(images, labels)
    new, truth = bars(60, seed=1)
    assert (model.predict(new, model="median") == truth).mean() > 0.95
    assert min(part.alpha.min(initial=1.0) for part in model.network_.layers) > 0.4
    found = model.explain_local(new[:3], n_draws=3)
    total = found.intercept + found.contribution.sum(axis=1)
    pixels = found.x.reshape(3, 8, 8, 1)
    np.testing.assert_allclose(total, model.network_.predictor(pixels), atol=1e-12)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"pixel_skip": "yes"}, "pixel_skip='yes', expected True or False"),
        ({"pixel_skip": True, "channels": ()}, "pixel_skip=True without convolutions"),
        ({"training": {"refine": 3}}, "training with the key 'refine', expected some of recipe"),
        ({"prior_scale": {(5, "kernels"): 1.0}}, "its blocks are (0, 'kernels')"),
        ({"threshold": -1}, "threshold=-1"),
    ],
)
def test_values_that_no_fit_can_use_are_named(params, words):
    with pytest.raises(ValueError, match="Got") as caught:
        ISLaBImageClassifier(**{**SMALL, **params}).fit(*bars(12))
    assert words in str(caught.value)
