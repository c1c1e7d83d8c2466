"""Small images and small networks that count what goes through them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")


class Counting(torch.nn.Module):
    """A convolution, batch normalisation and dropout, averaged over the image."""

    seen = 0  # on the class, since extractors copy their module

    def __init__(self, channels=1, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.convolution = torch.nn.Conv2d(channels, 6, 3)
        self.normalisation = torch.nn.BatchNorm2d(6)
        self.dropout = torch.nn.Dropout(0.5)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)

    def forward(self, pixels):
        Counting.seen += len(pixels)
        hidden = self.normalisation(self.convolution(pixels)).relu()
        return self.dropout(hidden).mean((2, 3))


@pytest.fixture
def backbone():
    Counting.seen = 0
    return Counting()


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (10, 8, 8), dtype=np.uint8)
