"""The page that maps the paper and R's package to calls names calls that exist."""

import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone

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
    """The names on the page, in tables and beside them, with the parameters that they name."""
    text = PAGE.read_text()
    found = re.findall(r"`((?:islab|model|[A-Z])[\w.]*)(?:\(([^)]*)\))?`", text)
    return sorted({(name, tuple(re.findall(r"(\w+)=", inner))) for name, inner in found})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    return x, x[:, 0] + 0.5 * rng.standard_normal(60) > 0


@pytest.fixture(scope="module")
def model(data):
    estimator = islab.ISLaBClassifier(
        posterior="independent", hidden_layer_sizes=(), max_epochs=20, random_state=0
    )
    return estimator.fit(*data)


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


# Values of the parameters that the page names, and of those that calls cannot do without.
CHOSEN = {
    "activation": "tanh",
    "baseline": "zero",
    "batch_size": 20,
    "bias_psi": 0.2,
    "flow": "rnvp",
    "flow_width": 4,
    "hidden_layer_sizes": (3,),
    "inclusion_init": (0, 1),
    "input_skip": False,
    "kind": "linear",
    "learning_rate_init": 0.02,
    "level": 0.8,
    "likelihood": "student_t",
    "max_epochs": 3,
    "model": "median",
    "n_transforms": 1,
    "posterior": "flow",
    "prior_inclusion": 0.2,
    "prior_scale": 2.0,
    "slab_df": 4.0,
    "threshold": 0.6,
    "training": {"drop": 0.5},
}
SHORT = {"max_epochs": 3, "n_restarts": 1, "random_state": 0, "posterior": "independent"}


def given(data, model, folder):
    x, y = data
    found = {
        "X": x,
        "y": y,
        "path": folder / "model.islab",
        "probability": model.predict_proba(x)[:, 1],
        "quantiles": np.tile(np.linspace(-1, 1, 19), (60, 1)),
        "estimator": model,
        "explanation": model.explain_local(x[:1]),
        "network": model.network_,
        "selections": [["x0"], ["x0", "x1"]],
        "names": ["x0", "x1"],
        "backbone": "resnet18",
        "in_channels": 1,
        "out_channels": 2,
        "kernel_size": 3,
        "in_features": 2,
        "out_features": 1,
    }
    if find_spec("torch"):
        import torch

        from islab.torch import SpikeSlabLinear

        found["module"] = torch.nn.Sequential(SpikeSlabLinear(2, 1))
        found["x"] = torch.ones(1, 2)
    return found


def outcome(name, parameters, data, model, folder):
    """What the call returns; of an estimator, once it is fitted."""
    target, own = resolved(name, model), {each: CHOSEN[each] for each in parameters}
    if not callable(target):
        return target
    # A feature extractor would fetch the weights of its backbone.
    if inspect.isclass(target) and hasattr(target, "score"):
        short = {key: value for key, value in SHORT.items() if key in target().get_params()}
        x, y = data
        if name == "ISLaBImageClassifier":
            x = np.tile(x[:, :1, None], (1, 6, 6))
        return target(**short | own).fit(x, y.astype(float) if "Regressor" in name else y)
    needed = [
        each.name
        for each in inspect.signature(target).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    values = given(data, model, folder)
    if name == "model.fit":
        target = clone(model).fit
    if name == "islab.compare":
        own = {"methods": ["islab", "lasso"], "n_jobs": 1}
    return target(**{each: values[each] for each in needed}, **own)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "parameters"), calls())
def test_what_the_page_names_runs(name, parameters, data, model, tmp_path):
    if name.startswith(("islab.torch", "FeatureExtractor", "ISLaBImage")):
        pytest.importorskip("torch")
    plt.close("all")
    found = outcome(name, parameters, data, model, tmp_path)
    assert found is not None or (tmp_path / "model.islab").exists()


def test_the_page_names_many_calls():
    assert len(calls()) > 60


def test_every_function_of_r_is_mapped():
    names = {name for cell in cells(0) for name in re.findall(r"`(\w+)`", cell)}
    assert names == EXPORTED


def test_every_definition_and_result_of_the_paper_is_mapped():
    text = " ".join(cells(0))
    wanted = ("Active path", "depth", "Proposition 1", "Corollaries 1 and 2", "Corollaries 3 and 4")
    assert all(each in text for each in (*wanted, "Corollaries 5 and 6"))
