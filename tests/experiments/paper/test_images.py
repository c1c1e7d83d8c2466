"""Experiments with images, on a few small ones."""

import json
import sys

import numpy as np
import pytest
import torch

from experiments.datasets import ImageDataset
from experiments.paper import images, tables
from experiments.paper.cells import plan, run_cell
from experiments.paper.images import draw_digits, make_convolutional
from experiments.paper.pages import write_pages
from experiments.paper.settings import IMAGES, METHODS, RECIPES
from experiments.paper.verdict import paper_entry, tables_of
from islab.evaluate.runner import Cell

DIGITS = tuple("0479")


@pytest.fixture
def few_images(monkeypatch, tmp_path):
    """Forty images with a bright row for each class, grey as MNIST and coloured as CIFAR-10."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % len(DIGITS)
    grey = rng.integers(0, 60, size=(40, 8, 8))
    grey[np.arange(40), 2 * labels] += 180
    grey = grey.astype(np.uint8)
    split = (np.arange(28), np.arange(28, 40))
    coloured = np.repeat(grey[:, None], 3, axis=1)
    for name, pixels in (("mnist", grey), ("cifar10", coloured)):
        data = ImageDataset(name, pixels, labels, DIGITS, *split)
        monkeypatch.setattr(f"experiments.datasets.load_{name}", lambda data=data: data)
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path))
    monkeypatch.setattr(images, "CIFAR10_CHANNELS", (4, 4, 8))
    monkeypatch.setattr(images, "CIFAR10_HEADS", {"islab": (4, 4), "islab-flow": (4,)})
    monkeypatch.setattr(images, "BACKBONE", torch.nn.AvgPool2d(2))
    monkeypatch.setattr(images, "IMAGE_SIZE", None)


@pytest.mark.parametrize("dataset", IMAGES)
@pytest.mark.parametrize("method", ["islab", "islab-flow"])
def test_a_record_has_what_the_tables_show(few_images, dataset, method):
    cell = Cell(dataset, method, "default", 0)
    found = {**cell.to_dict(), **run_cell(cell, quick=True)}
    assert json.loads(json.dumps(found)) == found
    for metrics in tables_of(dataset).values():
        for metric in metrics:
            assert metric.value(found) >= 0
    assert (found["rows"], found["test_rows"]) == (28, 12)
    assert dataset in tables.text_table(dataset, [found])


def test_missing_data_are_a_sentence(monkeypatch):
    def missing():
        raise OSError("MNIST could not be fetched")

    monkeypatch.setattr("experiments.datasets.load_mnist", missing)
    with pytest.raises(OSError, match="MNIST could not be fetched"):
        run_cell(Cell("mnist-bcnn", "islab", "default", 0), quick=True)


def test_a_missing_backbone_is_a_sentence(few_images, monkeypatch):
    monkeypatch.setattr(images, "BACKBONE", "efficientnet_lite0")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ImportError, match="pip install"):
        run_cell(Cell("cifar10-hybrid", "islab", "default", 0), quick=True)


def test_only_spike_and_slab_learns_from_images_and_without_settings_of_the_paper():
    found = plan(["mnist-bcnn"], METHODS, RECIPES, [0])
    assert found == [Cell("mnist-bcnn", method, "default", 0) for method in ("islab", "islab-flow")]


@pytest.mark.parametrize(("method", "hidden"), [("islab", (256, 256)), ("islab-flow", (512,))])
def test_the_network_for_cifar10_is_the_papers(method, hidden):
    model = make_convolutional(Cell("cifar10-bcnn", method, "default", 0))
    assert model.channels == (64, 64, 128)
    assert (model.kernel_size, model.stride) == (3, 2)
    assert model.hidden_layer_sizes == hidden


def test_convolutional_networks_stand_beside_the_papers_numbers():
    accuracy = tables_of("cifar10-bcnn")["Accuracy, used weights and channels"][0]
    assert paper_entry("cifar10-bcnn", "islab", accuracy).median == 47.8
    assert paper_entry("mnist-bcnn", "islab", accuracy).median == 98.4
    assert paper_entry("cifar10-hybrid", "islab", accuracy) is None


def test_maps_are_drawn_of_a_model_that_is_kept(few_images, tmp_path):
    drawn = list(draw_digits(tmp_path, quick=True))
    assert [path.rpartition("/")[2] for path in drawn] == [
        "maps-mnist-bcnn.png",
        "contributions-mnist-bcnn-4.png",
    ]
    kept = (tmp_path / "models" / "mnist-bcnn.islab").read_bytes()
    assert list(draw_digits(tmp_path, quick=True)) == drawn
    assert (tmp_path / "models" / "mnist-bcnn.islab").read_bytes() == kept


def test_pages_have_a_place_for_images(tmp_path):
    (tmp_path / "images.md").write_text("<!-- results: mnist-bcnn -->\n\n<!-- end -->\n")
    (tmp_path / "wbc.jsonl").touch()
    list(write_pages(tmp_path, tmp_path))
    assert "Nothing has been run yet." in (tmp_path / "images.md").read_text()
