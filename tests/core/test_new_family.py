"""A likelihood and an activation, each written once, serve from fit to report."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from array_api_compat import array_namespace

from islab import ISLaBRegressor
from islab.core import families
from islab.core.expressions import call, exp, greater, largest, where
from islab.core.families import Activation, Likelihood, StandardNoise, Words
from islab.core.families.contract import check
from islab.explain import explain_local
from islab.export import to_latex, to_onnx, to_python, to_text, to_torch
from islab.io.store import load
from islab.learn.engines.choice import EngineChoice


def _tail(z):
    """Probability beyond the distance of z, of a variance of 1."""
    return exp(-(2**0.5) * call("abs", z)) / 2


class Laplace(Likelihood):
    """Real numbers with double-exponential noise of a learned variance."""

    name = "laplace"
    target = "numbers"
    learns_noise = True
    scales_target = True
    words = Words(
        predictor=None,
        ratio=None,
        response="expected value",
        prediction="its expectation",
        symbol="E",
        predicts="{} with outliers",
        linear_model="robust linear",
    )
    python_share = """def _share(value, mean, noise):
    z = (value - mean) / math.sqrt(noise / 2)
    return math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2"""
    standard_noise = StandardNoise(
        share=lambda z: where(greater(z, 0.0), 1.0 - _tail(z), _tail(z)),
        density=lambda z: 2**0.5 * _tail(z),
        quantile=lambda p: float(scipy.stats.laplace.ppf(p, scale=0.5**0.5)),
    )
    javascript = """{
  response: (eta) => eta.slice(),
  interval: (means, share, noise) => {
    const b = noise.map((each) => Math.sqrt(each / 2));
    const one = (z) => (z < 0 ? Math.exp(z) / 2 : 1 - Math.exp(-z) / 2);
    const below = (value) => average(means, (mean, draw) => one((value - mean) / b[draw]));
    const reach = 700 * Math.max(...b);
    return bisected(below, share, Math.min(...means) - reach, Math.max(...means) + reach);
  },
}"""

    def nll(self, y, eta, noise):
        xp = array_namespace(eta)
        width = (noise / 2) ** 0.5
        return xp.sum(xp.log(2 * width) + xp.abs(y - eta) / width, axis=-1)

    def mean(self, eta):
        return eta

    def gradient(self, y, eta, noise):
        return np.sign(eta - y) / np.sqrt(noise / 2)

    def variance(self, eta, noise):
        return noise + 0 * eta

    def initial_bias(self, y):
        return np.median(y, axis=0)

    def sample(self, eta, noise, rng):
        return rng.laplace(eta, np.sqrt(noise / 2))

    def predictive_quantiles(self, draws, noise, levels):
        width = np.sqrt(np.asarray(noise) / 2)
        levels = np.atleast_1d(levels).reshape(-1, 1, 1)
        shape = (len(levels), *draws.shape[1:])
        low = np.broadcast_to((draws - 700 * width).min(axis=0), shape)
        high = np.broadcast_to((draws + 700 * width).max(axis=0), shape)
        for _ in range(70):
            middle = (low + high) / 2
            z = (middle[:, None] - draws) / width
            tail = np.exp(-np.abs(z)) / 2
            below = np.where(z < 0, tail, 1 - tail).mean(axis=1) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    def formula(self, eta, every):
        return eta

    def latex(self, eta, every):
        return eta

    def expressions(self, eta, noise, let):
        return list(eta)

    def variance_expression(self, mean, noise):
        return noise[0]


class HardTanh(Activation):
    """The sum itself between -1 and 1, and constant outside."""

    name = "hard_tanh"
    bends = (-1.0, 1.0)
    javascript = """{
  value: (z) => Math.max(-1, Math.min(1, z)),
  slope: (z) => (Math.abs(z) < 1 ? 1 : 0),
}"""

    def value(self, z):
        return np.clip(z, -1, 1)

    def slope(self, z, value=None):
        return (np.abs(z) < 1).astype(z.dtype)

    def formula(self, z):
        return f"max(-1, min(1, {z}))"

    def latex(self, z):
        return rf"\max\left(-1, \min\left(1, {z}\right)\right)"

    def expression(self, z):
        return largest(where(greater(z, 1.0), 1.0, z), -1.0)

    def torch(self, z):
        return z.clamp(-1, 1)


@pytest.fixture(scope="module")
def registered():
    own = (Laplace(), HardTanh())
    for family in own:
        families.register(family)
    yield
    for family in own:
        families.unregister(family)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    return x, np.clip(3 * x[:, 0], -1, 1) + 0.1 * rng.laplace(size=300)


@pytest.fixture(scope="module")
def model(registered, data):
    model = ISLaBRegressor(
        likelihood="laplace",
        activation="hard_tanh",
        hidden_layer_sizes=(4,),
        max_epochs=150,
        n_restarts=1,
        random_state=0,
    )
    return model.fit(*data)


def test_families_without_a_compiled_version_are_learned_by_torch(registered):
    assert EngineChoice().serving("laplace", "relu").name == "torch"
    assert EngineChoice().serving("gaussian", "hard_tanh").name == "torch"


def test_compiled_families_keep_the_engine_that_was_chosen():
    assert EngineChoice().serving("gaussian", "relu") == EngineChoice()


def test_the_native_engine_refuses_a_family_that_is_not_compiled(registered, data):
    model = ISLaBRegressor(likelihood="laplace", engine="native", max_epochs=1)
    with pytest.raises(ValueError, match=r"'laplace'.*try engine='torch'"):
        model.fit(*data)


def test_it_fits(model, data):
    assert model.score(*data) > 0.8
    assert model.network_.max_depth == 2


def test_its_intervals_cover(model, data):
    low, high = model.predict_interval(data[0], 0.9).T
    assert 0.8 < np.mean((low <= data[1]) & (data[1] <= high)) < 0.98


def test_its_explanations_are_exact(model, data):
    at_mean = model.network_.mean_weights()[None], model.network_.bias_mu[None]
    local = explain_local(model.network_, data[0][:20], draws=at_mean)
    assert local.exact
    near = model.network_.predictor(data[0][:20] + 1e-7)
    moved = local.predictor + 1e-7 * local.slope.sum(axis=1)
    np.testing.assert_allclose(near, moved, atol=1e-12)


def test_contributions_between_its_bends_add_up(model, data):
    found = model.explain_local(data[0][:20], baseline=[[-2.0, 0.0]], model="median")
    total = found.intercept + found.contribution.sum(axis=1)
    np.testing.assert_allclose(total, found.predictor, atol=1e-10)
    line = model.explain_local(data[0][:20], baseline=[[-2.0, 0.0]], model="median", kind="linear")
    assert np.abs(found.contribution - line.contribution).max() > 0.01


def test_its_python_source_predicts_the_same(model, data):
    module = {}
    exec(to_python(model.network_), module)
    found = [module["predict"](row) for row in data[0][:5].tolist()]
    np.testing.assert_allclose(found, model.network_.predictor(data[0][:5]), rtol=1e-12)


def test_its_torch_module_predicts_the_same(model, data):
    found = to_torch(model.network_)(torch.tensor(data[0])).detach().numpy()
    np.testing.assert_allclose(found, model.network_.predictor(data[0]), rtol=1e-12)


def test_its_onnx_model_predicts_the_same(model, data):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    # Optimised by onnxruntime, a network with one covariate was off by 1e-7.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(to_onnx(model.network_).SerializeToString(), options)
    (found,) = session.run(["response"], {"x": data[0]})
    np.testing.assert_allclose(found, model.network_.predictor(data[0]), rtol=1e-12)


def test_its_exports_hold_its_intervals(model, data):
    rows = data[0][:5]
    right = model.predictions(rows, n_draws=20).interval(0.9)[:, 0]
    module = {}
    exec(model.export("python", n_draws=20), module)
    found = [module["predict_interval"](row) for row in rows.tolist()]
    np.testing.assert_allclose(found, right, rtol=1e-9)
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("data", pd.DataFrame(rows, columns=["x0", "x1"]))
    found = connection.execute(model.export("sql", n_draws=20)).df()
    np.testing.assert_allclose(found[["lower", "upper"]], right, rtol=1e-6)


def test_its_formulas_are_in_its_own_spelling(model):
    assert "max(-1, min(1, " in to_text(model.network_)
    assert r"\max\left(-1, \min\left(1, " in to_latex(model.network_)


def test_it_is_saved_and_loaded(model, data, tmp_path):
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(found.predict(data[0]), model.predict(data[0]))


def test_a_file_is_refused_where_its_families_are_not_registered(model, tmp_path):
    model.save(tmp_path / "model.islab")
    function = families.activation("hard_tanh")
    families.unregister(function)
    try:
        with pytest.raises(
            ValueError, match=r"needs the activation 'hard_tanh'.*families.register"
        ):
            load(tmp_path / "model.islab")
    finally:
        families.register(function)


def test_its_report_holds_its_script_once_and_speaks_its_words(model, data, tmp_path):
    model.report(tmp_path / "report.html", *data)
    page = (tmp_path / "report.html").read_text()
    assert page.count(HardTanh.javascript) == page.count(Laplace.javascript) == 1
    assert "predicts y with outliers" in page


def test_a_second_family_of_a_name_is_refused(registered):
    with pytest.raises(ValueError, match="second family named 'laplace'"):
        families.register(Laplace())


def test_a_family_says_all_that_it_lacks():
    half = type("Half", (Activation,), {"name": "half", "value": lambda self, z: z / 2})()
    with pytest.raises(ValueError, match=r"without javascript, slope\(\), .*torch\(\);"):
        families.register(half)
    whole = type("Bare", (Likelihood,), {"name": "bare"})()
    with pytest.raises(ValueError, match=r"without javascript, target, words, .*nll\(\)"):
        families.register(whole)


def test_a_wrong_derivative_is_refused_before_anything_is_learned_with_it():
    steep = type("Steep", (HardTanh,), {"name": "steep", "slope": lambda self, z: 2 * z**0})()
    with pytest.raises(ValueError, match=r"slope\(\) is 2 at -2.3, expected .* value\(\), 0"):
        families.register(steep)

    class Turned(Laplace):
        name = "turned"

        def gradient(self, y, eta, noise):
            return -super().gradient(y, eta, noise)

    with pytest.raises(ValueError, match=r"gradient\(\) is .*, expected the derivative of its nll"):
        families.register(Turned())


def test_what_is_no_family_is_refused():
    with pytest.raises(TypeError, match="subclass of Likelihood or Activation"):
        families.register(np.tanh)


@pytest.mark.parametrize("name", [*families.likelihoods(), *families.activations()])
def test_the_package_s_own_families_keep_the_contract(name):
    known = families.likelihoods()
    check(families.likelihood(name) if name in known else families.activation(name))


def test_a_file_of_a_likelihood_says_what_to_register(model, tmp_path):
    model.save(tmp_path / "model.islab")
    own = families.likelihood("laplace")
    families.unregister(own)
    try:
        with pytest.raises(ValueError, match=r"needs the likelihood 'laplace'.*families.register"):
            load(tmp_path / "model.islab")
    finally:
        families.register(own)


def test_names_of_families_are_plain():
    bad = type("Bad", (HardTanh,), {"name": "</script>"})()
    with pytest.raises(ValueError, match="lower-case letters"):
        families.register(bad)


def test_the_summary_is_json(model):
    assert "laplace" in json.dumps(model.summary().to_dict())
