"""Files of image models through the same door as all others."""

import numpy as np

import islab


def test_load_gives_image_models_back(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.random((40, 8, 8))
    labels = np.repeat(["dark", "light"], 20)
    images[20:] += 1
    model = islab.ISLaBImageClassifier(channels=(2,), max_epochs=1, n_draws=5, random_state=0)
    model.fit(images, labels).save(tmp_path / "model.islab")
    loaded = islab.load(tmp_path / "model.islab")
    assert isinstance(loaded, islab.ISLaBImageClassifier)
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
