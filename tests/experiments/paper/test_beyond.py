"""The page that maps the paper and R's package to calls names calls that exist."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import islab

PAGE = Path(__file__).parents[3] / "docs" / "results" / "beyond.md"
# What the package LBBNN exports, and the generics that it has methods of.
EXPORTED = {
    *("custom_activation", "get_dataloaders", "get_local_explanations_gradient", "lbbnn_conv2d"),
    *("lbbnn_linear", "lbbnn_net", "normalizing_flow", "quants", "rnvp_layer", "torch_available"),
    *("train_lbbnn", "validate_lbbnn"),
    *("coef", "plot", "predict", "print", "residuals", "summary"),
}


def cells(column):
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if "|" in line]
    return [row[column].strip() for row in rows if not set("".join(row)) <= set(" -")]


def calls():
    """The names in the middle column and the last, with the parameters that they name."""
    text = " ".join([*cells(1), *cells(2)])
    found = re.findall(r"`((?:islab|model|[A-Z])[\w.]*)(?:\(([^)]*)\))?`", text)
    return sorted({(name, tuple(re.findall(r"(\w+)=", inner))) for name, inner in found})


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    estimator = islab.ISLaBClassifier(
        posterior="independent", hidden_layer_sizes=(), max_epochs=20, random_state=0
    )
    return estimator.fit(x, x[:, 0] > 0)


def resolved(name, model):
    first, *others = name.split(".")
    if first == "islab" and len(others) > 1:
        import_module(f"islab.{others[0]}")
    at = {"model": model, "islab": islab}.get(first)
    if at is None:
        at = getattr(islab, first)
    for each in others:
        at = getattr(at, each)
    return at


@pytest.mark.parametrize(("name", "parameters"), calls())
def test_what_the_page_names_exists(name, parameters, model):
    if name.startswith("islab.torch"):
        pytest.importorskip("torch")
    target = resolved(name, model)
    if parameters:
        known = set(inspect.signature(target).parameters)
        if "options" in known:  # of the function that the method calls
            known |= set(inspect.signature(getattr(islab, name.split(".")[-1])).parameters)
        assert set(parameters) <= known


def test_the_page_names_many_calls():
    assert len(calls()) > 60


def test_every_function_of_r_is_mapped():
    names = {name for cell in cells(0) for name in re.findall(r"`(\w+)`", cell)}
    assert names == EXPORTED


def test_every_definition_and_result_of_the_paper_is_mapped():
    text = " ".join(cells(0))
    wanted = ("Active path", "depth", "Proposition 1", "Corollaries 1 and 2", "Corollaries 3 and 4")
    assert all(each in text for each in (*wanted, "Corollaries 5 and 6"))
