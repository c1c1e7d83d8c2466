"""Files that hold the median network only."""

import subprocess
import sys

import numpy as np
import pytest

import islab
from islab.images import ISLaBImageClassifier
from islab.io.store import NO_HASH, read, to_bytes
from tests.images.nets import architecture, classifier, pixels, posterior
from tests.images.test_paths import SPARSE

KINDS = [
    {},
    {"stride": 1, "pool": (2, 3)},
    {"hidden": ()},
    {"outputs": 1},
    {"channels": ()},
    {"pixel_skip": True},
]


def images_of(model, rows=4):
    return np.moveaxis(pixels(model.posterior_.architecture, rows), -1, 1)


def kept(model, tmp_path):
    model.save(tmp_path / "small.islab", sparse=True)
    return ISLaBImageClassifier.load(tmp_path / "small.islab")


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("seed", [0, 3])
def test_a_small_file_predicts_as_the_median_network(options, seed, tmp_path):
    model = classifier(posterior(seed, inclusion=SPARSE, **options))
    again, images = kept(model, tmp_path), images_of(model)
    expected = model.predict_proba(images, model="median")
    np.testing.assert_array_equal(again.predict_proba(images), expected)
    assert again.n_used_weights_ == model.n_used_weights_
    assert again.density_ == model.density_


@pytest.mark.parametrize("options", KINDS)
def test_a_small_file_explains_with_the_same_numbers_and_names(options, tmp_path):
    model = classifier(posterior(3, **options))
    again, images = kept(model, tmp_path), images_of(model)
    expected = model.explain_local(images).to_frame()
    assert again.explain_local(images).to_frame().equals(expected)
    assert again.network_.to_frame().equals(model.network_.to_frame())


def test_multipliers_of_flows_are_kept(tmp_path):
    found = posterior(1, net=architecture())
    rng = np.random.default_rng(0)
    for part in found.layers:
        part.multipliers = rng.normal(1.0, 0.2, size=(6, 2))
        part.input_index = np.arange(len(part.mu)) % 2
    model = classifier(found)
    images = images_of(model)
    expected = model.predict_proba(images, model="median")
    np.testing.assert_array_equal(kept(model, tmp_path).predict_proba(images), expected)


def test_constants_of_places_that_no_pixel_feeds_are_kept(tmp_path):
    models = [classifier(posterior(seed, inclusion=SPARSE)) for seed in range(12)]
    chosen = [m for m in models if any(c.any() for c in m.network_.constants)]
    assert chosen
    for model in chosen:
        again = kept(model, tmp_path)
        for found, expected in zip(again.network_.constants, model.network_.constants, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_small_file_is_far_smaller(tmp_path):
    model = classifier(posterior(0, inclusion=(-6.0, 0.2), channels=(16, 32), hidden=(20,)))
    model.save(tmp_path / "whole.islab")
    kept(model, tmp_path)
    sizes = [(tmp_path / name).stat().st_size for name in ("small.islab", "whole.islab")]
    assert sizes[0] < 0.3 * sizes[1]


def test_islab_load_reads_a_small_file(tmp_path):
    model = classifier(posterior(0))
    kept(model, tmp_path)
    assert isinstance(islab.load(tmp_path / "small.islab"), ISLaBImageClassifier)


def test_a_small_file_needs_no_torch(tmp_path):
    model = classifier(posterior(0))
    kept(model, tmp_path)
    np.save(tmp_path / "images.npy", images_of(model))
    code = (
        "import sys, numpy as np, islab;"
        "model = islab.load('small.islab'); images = np.load('images.npy');"
        "model.explain_local(images); print(model.predict(images), 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    expected = model.predict(images_of(model), model="median")
    assert ran.stdout.strip() == f"{expected} False", ran.stderr


def test_the_full_model_of_a_small_file_is_refused(tmp_path):
    model = classifier(posterior(0))
    with pytest.raises(ValueError, match="saved with sparse=True"):
        kept(model, tmp_path).predict_proba(images_of(model), model="full")


def test_a_small_model_cannot_be_saved_whole(tmp_path):
    again = kept(classifier(posterior(0)), tmp_path)
    with pytest.raises(ValueError, match="try sparse=True"):
        again.save(tmp_path / "whole.islab")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("part0.mu", lambda a: a[:-1]),
        ("part0.edges", lambda a: a + 10**6),
        ("part2.covariates", lambda a: a + 10**6),
        ("constant1", lambda a: np.zeros((1, 1, 1))),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name, change, tmp_path):
    path = tmp_path / "small.islab"
    kept(classifier(posterior(0)), tmp_path)
    description, arrays = read(path)
    arrays[name] = change(arrays.get(name))
    path.write_bytes(to_bytes({**description, "sha256": NO_HASH}, arrays))
    with pytest.raises(ValueError, match="cannot be loaded: array"):
        ISLaBImageClassifier.load(path)
