import numpy as np
import pytest
import torch

from islab.features.backbones import Backbone
from islab.features.store import FeatureStore, backbone_key, image_keys

from .conftest import Counting


@pytest.fixture
def store(tmp_path):
    return FeatureStore(tmp_path, Backbone(Counting()))


@pytest.fixture
def features():
    return np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)


def test_equal_images_have_equal_keys(images):
    twice = np.concatenate([images, images])
    keys = image_keys(twice)
    np.testing.assert_array_equal(keys[:10], keys[10:])
    assert len(set(keys)) == 10


def test_one_pixel_makes_another_key(images):
    changed = images.copy()
    changed[:, 7, 7] ^= 1
    assert not set(image_keys(images)) & set(image_keys(changed))


def test_shape_and_type_belong_to_the_key():
    zeros = np.zeros((1, 4, 4), np.uint8)
    others = [zeros.reshape(1, 2, 8), zeros[:, None], np.zeros((1, 2, 2), np.float32)]
    assert len({image_keys(array)[0] for array in [zeros, *others]}) == 4


def test_a_view_has_the_key_of_its_pixels(images):
    assert image_keys(images[:, ::-1])[0] == image_keys(np.ascontiguousarray(images[:, ::-1]))[0]


def test_weights_belong_to_the_key_of_a_backbone():
    same, other = Counting(seed=0), Counting(seed=1)
    keys = [backbone_key(Backbone(module)) for module in (Counting(), same, other)]
    assert keys[0] == keys[1] != keys[2]


def test_what_is_done_to_pixels_belongs_to_the_key_of_a_backbone():
    module = Counting()
    kinds = [{}, {"size": (4, 4)}, {"mean": (0.5,)}, {"interpolation": "bicubic"}, {"channels": 3}]
    assert len({backbone_key(Backbone(module, **kind)) for kind in kinds}) == 5


def test_structure_belongs_to_the_key_of_a_backbone():
    relu, tanh = torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential(torch.nn.Tanh())
    assert backbone_key(Backbone(relu)) != backbone_key(Backbone(tanh))


def test_half_precision_weights_have_a_key():
    assert backbone_key(Backbone(Counting().to(torch.bfloat16)))


def test_an_empty_store_knows_nothing(store, images, features):
    assert not store.fill(image_keys(images), features).any()


def test_what_was_added_is_found_in_any_order(store, images, features):
    keys = image_keys(images)
    store.add(keys[:4], features[:4])
    store.add(keys[4:], features[4:])
    order = np.array([7, 0, 0, 9, 3])
    found = np.zeros((5, 6), np.float32)
    assert store.fill(keys[order], found).all()
    np.testing.assert_array_equal(found, features[order])


def test_what_was_not_added_is_left_alone(store, images, features):
    keys = image_keys(images)
    store.add(keys[:4], features[:4])
    found = np.full((10, 6), -1, np.float32)
    known = store.fill(keys, found)
    assert known.tolist() == [True] * 4 + [False] * 6
    assert (found[4:] == -1).all()


def test_backbones_do_not_share_features(tmp_path, store, images, features):
    keys = image_keys(images)
    store.add(keys, features)
    other = FeatureStore(tmp_path, Backbone(Counting(seed=1)))
    assert not other.fill(keys, features).any()


def test_a_damaged_file_is_named(store, images, features):
    store.add(image_keys(images), features)
    path = next(store.folder.iterdir())
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match=f"{path.name}, which is not a file of features; try to d"):
        store.fill(image_keys(images), features)
