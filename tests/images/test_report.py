"""The report: one file that stands alone, with the right numbers."""

import re

import numpy as np
import pytest

from islab.evaluate import score_classes
from islab.images import ISLaBImageClassifier
from islab.report.images import telling_rows
from tests.images.nets import classifier, pixels, posterior

OPTIONS = {"n_examples": 3, "n_draws": 4}


def made(outputs=3, **options):
    model = classifier(posterior(1, outputs=outputs, **options))
    images = np.moveaxis(pixels(model.posterior_.architecture, rows=12), -1, 1)
    return model, images, np.resize(model.classes_, 12)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model, images, labels = made()
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(path, images, labels, title="<b>Shapes</b>", **OPTIONS)
    return model, images, labels, path.read_text(encoding="utf-8")


def test_the_file_asks_for_nothing_from_outside(page):
    text = page[-1]
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert "url(" not in text
    assert "<script" not in text


def test_text_is_escaped(page):
    assert "<b>Shapes" not in page[-1]
    assert "&lt;b&gt;Shapes&lt;/b&gt;" in page[-1]


def test_there_is_a_map_of_all_classes_and_one_picture_for_each_example(page):
    assert page[-1].count("data:image/png;base64,iVBOR") == 1 + OPTIONS["n_examples"]


@pytest.mark.parametrize("kind", ["full", "median"])
def test_scores_are_those_of_the_metrics(page, kind):
    model, images, labels, text = page
    scores = score_classes(labels, model.predict_proba(images, model=kind), model.classes_)
    for name in ("accuracy", "nll", "ece", "brier"):
        assert f'<td class="right">{scores[name]:.4f}</td>' in text


def test_the_worst_example_tells_probability_and_interval(page):
    model, images, labels, text = page
    median = model.predict_proba(images, model="median")
    row = int(median[np.arange(12), labels].argmin())
    found = model.explain_local(images[row : row + 1], output=str(labels[row]), n_draws=4)
    low, high = found.response_summary.lower[0, 0], found.response_summary.upper[0, 0]
    told = f"{labels[row]} {found.response[0, 0]:.3f} ({low:.3f} to {high:.3f})"
    assert told in text


@pytest.mark.parametrize("options", [{"outputs": 1}, {"stride": 1, "pool": 2}])
def test_two_classes_and_pooled_networks_are_reported_too(options, tmp_path):
    model, images, labels = made(**options)
    model.report(tmp_path / "report.html", images, labels, **OPTIONS)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_small_model_is_reported_without_its_full_posterior(tmp_path):
    model, images, labels = made()
    model.save(tmp_path / "small.islab", sparse=True)
    again = ISLaBImageClassifier.load(tmp_path / "small.islab")
    again.report(tmp_path / "report.html", images, labels, **OPTIONS)
    assert ">full</th>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_examples_are_the_most_doubtful_and_then_the_surest_of_each_class():
    probability = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7], [0.8, 0.2]])
    codes = np.array([0, 0, 0, 1, 1])
    assert telling_rows(probability, codes, 4) == [1, 4, 0, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, r"labels of shape \(2,\), expected \(12,\): one for each image"),
        ({"labels": np.full(12, 7)}, "class 7 in y, expected those of the training: 0, 1, 2"),
        ({"n_examples": 0}, "n_examples=0"),
        ({"path": "missing/report.html"}, "folder does not exist"),
    ],
)
def test_what_cannot_be_reported_is_a_sentence(change, message, tmp_path):
    model, images, labels = made()
    given = {"path": "report.html", "images": images, "labels": labels, **OPTIONS, **change}
    given["path"] = tmp_path / given["path"]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        model.report(**given)
    assert not list(tmp_path.glob("**/*.html"))
