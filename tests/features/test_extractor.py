import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from islab import ISLaBClassifier
from islab.features import FeatureExtractor, extractor

from .conftest import Counting

QUICK = {"max_epochs": 20, "n_restarts": 1, "n_draws": 50, "hidden_layer_sizes": ()}


def expected(backbone, images):
    pixels = torch.from_numpy(images.reshape(len(images), -1, 8, 8)).float() / 255
    with torch.no_grad():
        return backbone.eval()(pixels).numpy()


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_features_are_those_of_the_network_in_use(backbone, images, batch_size):
    found = FeatureExtractor(backbone, batch_size=batch_size).fit_transform(images)
    np.testing.assert_allclose(found, expected(backbone, images), rtol=1e-4, atol=1e-5)


def test_no_more_than_a_batch_goes_through_at_once(images):
    sizes = []

    class Watching(torch.nn.Flatten):
        def forward(self, pixels):
            sizes.append(len(pixels))
            return super().forward(pixels)

    FeatureExtractor(Watching(), batch_size=4).fit(images).transform(images)
    assert sizes == [1, 4, 4, 2]


def test_outputs_with_more_axes_are_flattened(images):
    assert FeatureExtractor(torch.nn.AvgPool2d(4)).fit_transform(images).shape == (10, 4)


def test_a_memory_map_gives_the_same_features(backbone, images, tmp_path):
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    fitted = FeatureExtractor(backbone).fit(images)
    np.testing.assert_array_equal(fitted.transform(mapped), fitted.transform(images))


def test_images_may_come_in_another_size_when_they_are_resized(backbone, images):
    fitted = FeatureExtractor(torch.nn.Flatten(), image_size=4).fit(images)
    assert fitted.transform(images[:, :6, :5]).shape == (10, 16)


# -- features on disk -----------------------------------------------------------------------


def test_an_image_goes_through_the_backbone_once(backbone, images, tmp_path):
    fitted = FeatureExtractor(backbone, cache=tmp_path).fit(images)
    first = fitted.transform(images)
    Counting.seen = 0
    again = fitted.transform(images[[5, 2, 2]])
    assert Counting.seen == 0
    np.testing.assert_array_equal(again, first[[5, 2, 2]])


def test_equal_images_of_one_set_go_through_once(backbone, images, tmp_path):
    fitted = FeatureExtractor(backbone, cache=tmp_path).fit(images)
    Counting.seen = 0
    found = fitted.transform(images[[1, 0, 1, 1]])
    assert Counting.seen == 2
    np.testing.assert_array_equal(found, fitted.transform(images)[[1, 0, 1, 1]])


def test_only_new_images_go_through(backbone, images, tmp_path):
    fitted = FeatureExtractor(backbone, cache=tmp_path).fit(images)
    fitted.transform(images[:6])
    Counting.seen = 0
    found = fitted.transform(images)
    assert Counting.seen == 4
    np.testing.assert_allclose(found, expected(backbone, images), rtol=1e-4, atol=1e-5)


def test_a_new_extractor_finds_the_features_of_an_old_one(backbone, images, tmp_path):
    first = FeatureExtractor(backbone, cache=tmp_path).fit_transform(images)
    other = FeatureExtractor(Counting(), cache=tmp_path).fit(images)
    Counting.seen = 0
    np.testing.assert_array_equal(other.transform(images), first)
    assert Counting.seen == 0


def test_another_network_does_not_find_them(backbone, images, tmp_path):
    FeatureExtractor(backbone, cache=tmp_path).fit_transform(images)
    other = Counting(seed=1)
    found = FeatureExtractor(other, cache=tmp_path).fit_transform(images)
    np.testing.assert_allclose(found, expected(other, images), rtol=1e-4, atol=1e-5)


def test_what_was_done_before_an_interruption_is_kept(backbone, images, tmp_path, monkeypatch):
    monkeypatch.setattr(extractor, "IMAGES_PER_FILE", 3)
    fitted = FeatureExtractor(backbone, cache=tmp_path).fit(images)
    broken = images.astype(float) / 255
    broken[7] = np.nan
    with pytest.raises(ValueError, match="in image 7"):
        fitted.transform(broken)
    Counting.seen = 0
    fitted.transform(broken[:6])
    assert Counting.seen == 0


def test_without_a_cache_nothing_is_written(backbone, images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FeatureExtractor(backbone).fit_transform(images)
    assert not list(tmp_path.iterdir())


# -- among scikit-learn's tools -------------------------------------------------------------


def test_features_have_names(backbone, images):
    names = FeatureExtractor(backbone).fit(images).get_feature_names_out()
    assert names.tolist() == [f"feature{number}" for number in range(6)]


def test_features_may_come_as_a_data_frame(backbone, images):
    frame = FeatureExtractor(backbone).set_output(transform="pandas").fit_transform(images)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns[2] == "feature2"


def test_a_clone_has_the_same_parameters(backbone, tmp_path):
    given = FeatureExtractor(backbone, batch_size=3, image_size=4, cache=tmp_path)
    params = clone(given).get_params()
    assert {name: params[name] for name in ("batch_size", "image_size", "cache")} == {
        "batch_size": 3,
        "image_size": 4,
        "cache": tmp_path,
    }


def test_a_clone_gives_the_same_features(backbone, images):
    given = FeatureExtractor(backbone)
    np.testing.assert_array_equal(clone(given).fit_transform(images), given.fit_transform(images))


def test_a_pickled_extractor_gives_the_same_features(backbone, images):
    fitted = FeatureExtractor(backbone).fit(images)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(images), fitted.transform(images))


@pytest.fixture
def bright():
    """Images that are bright in the left or in the right half."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    images = rng.integers(0, 100, (80, 8, 8), dtype=np.uint8)
    images[labels == 0, :, :4] += 120
    images[labels == 1, :, 4:] += 120
    return images, np.array(["left", "right"])[labels]


def test_a_pipeline_classifies_images(bright):
    images, labels = bright
    model = make_pipeline(
        FeatureExtractor(torch.nn.AvgPool2d(4)), ISLaBClassifier(random_state=0, **QUICK)
    )
    assert model.fit(images[:60], labels[:60]).score(images[60:], labels[60:]) == 1


def test_the_head_of_a_pipeline_knows_features_by_name(bright):
    model = make_pipeline(
        FeatureExtractor(torch.nn.AvgPool2d(4)), ISLaBClassifier(random_state=0, **QUICK)
    )
    model.set_output(transform="pandas").fit(*bright)
    assert model[-1].feature_names_in_.tolist() == [f"feature{number}" for number in range(4)]


def test_cross_validation_sees_each_image_once(backbone, bright, tmp_path):
    images, labels = bright
    head = ISLaBClassifier(random_state=0, **QUICK)
    model = make_pipeline(FeatureExtractor(backbone, cache=tmp_path), head)
    cross_val_score(model, images, labels, cv=4)
    fits = 4  # each looks at one image to count the features
    assert Counting.seen == len(images) + fits


# -- errors ---------------------------------------------------------------------------------


def test_an_extractor_must_be_fitted(backbone, images):
    with pytest.raises(NotFittedError):
        FeatureExtractor(backbone).transform(images)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None])
def test_a_batch_size_below_one_is_refused(backbone, images, batch_size):
    with pytest.raises(ValueError, match=r"Got batch_size=.*, expected at least 1; try 64"):
        FeatureExtractor(backbone, batch_size=batch_size).fit(images)


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(backbone, images, device):
    with pytest.raises(ValueError, match=f"Got device='{device}', which torch cannot use here"):
        FeatureExtractor(backbone, device=device).fit(images)


def test_other_channels_than_in_fit_are_refused(backbone, images):
    fitted = FeatureExtractor(backbone).fit(images)
    with pytest.raises(ValueError, match=r"shape \(2, 3, 8, 8\), which have 3 .* expected 1 as in"):
        fitted.transform(np.zeros((2, 3, 8, 8)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 8, 8, 3), r"shape \(2, 8, 8, 3\), expected .*transpose\(0, 3, 1, 2\)"),
        ((2, 2, 8, 8), r"shape \(2, 2, 8, 8\), expected 1 or 3 channels.*moveaxis"),
    ],
)
def test_channels_of_another_number_or_in_the_last_place_are_refused(monkeypatch, shape, message):
    from islab.features import backbones

    coloured = backbones.Backbone(Counting(channels=3), channels=3)
    monkeypatch.setattr(backbones, "find_backbone", lambda name, size: coloured)
    with pytest.raises(ValueError, match=message):
        FeatureExtractor("made_up").fit(np.zeros(shape))


def test_images_whose_features_differ_in_number_are_refused(images):
    fitted = FeatureExtractor(torch.nn.Flatten()).fit(images)
    with pytest.raises(ValueError, match="25 features, expected 64 as in fit; try image_size"):
        fitted.transform(images[:, :5, :5])


# -- showing --------------------------------------------------------------------------------


def test_a_bar_counts_images_when_asked(backbone, images, capsys):
    FeatureExtractor(backbone, verbose=True).fit_transform(images)
    assert "/10" in capsys.readouterr().err


def test_nothing_is_shown_by_default(backbone, images, capsys):
    FeatureExtractor(backbone).fit_transform(images)
    assert capsys.readouterr() == ("", "")
