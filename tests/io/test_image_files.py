"""Files of image models through the same door as all others."""

import json
from pathlib import Path

import numpy as np
import pytest

import islab

OLD = Path(__file__).parent / "files" / "v0.1"


def test_load_gives_image_models_back(tmp_path):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    images = rng.random((40, 8, 8))
    labels = np.repeat(["dark", "light"], 20)
    images[20:] += 1
    model = islab.ISLaBImageClassifier(channels=(2,), max_epochs=1, n_draws=5, random_state=0)
    model.fit(images, labels).save(tmp_path / "model.islab")
    loaded = islab.load(tmp_path / "model.islab")
    assert isinstance(loaded, islab.ISLaBImageClassifier)
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))


@pytest.mark.parametrize("name", ["images.islab", "images-sparse.islab"])
def test_image_models_of_the_first_version_predict_what_they_did(name):
    expected = json.loads((OLD / "images.json").read_text())
    images, loaded = np.array(expected["images"], dtype=np.uint8), islab.load(OLD / name)
    assert loaded.classes_.tolist() == expected["classes"]
    assert loaded.n_used_weights_ == expected[name]["used"]
    np.testing.assert_allclose(loaded.predict_proba(images), expected[name]["proba"], atol=1e-6)
