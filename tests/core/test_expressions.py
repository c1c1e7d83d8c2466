"""Expressions of families agree with their numpy functions, far out as well."""

import math

import numpy as np
import pytest
from scipy import stats

from islab.core import families
from islab.core.expressions import (
    FUNCTIONS,
    Cell,
    Constant,
    Lookup,
    Symbol,
    call,
    cells,
    exp,
    spell,
    symbols,
    where,
)

FAR = np.array([-1e5, -800.0, -40.0, -3.0, -1e-9, 0.0, 1e-9, 0.7, 19.0, 21.0, 45.0])
NUMPY = {
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "abs": np.abs},
    **{"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "floor": np.floor, "sin": np.sin},
    **{"cos": np.cos, "greater": np.greater, "missing": np.isnan, "where": np.where},
    "largest": lambda *values: np.max(np.broadcast_arrays(*values), axis=0),
}


class Values:
    """Computes expressions, of symbols with known values."""

    def __init__(self, **known):
        self.known = known

    def constant(self, value):
        return np.float64(value)

    def symbol(self, name):
        return self.known[name]

    def call(self, function, arguments):
        return NUMPY[function](*arguments)

    def let(self, name, expression):
        self.known[name] = spell(expression, self)
        return Symbol(name)


def value(expression, **known):
    with np.errstate(over="raise", invalid="raise"):
        return spell(expression, Values(**known))


@pytest.mark.parametrize("name", families.activations())
def test_activations_are_spelled_as_they_are_computed(name):
    function = families.activation(name)
    found = value(function.expression(Symbol("z")), z=FAR)
    np.testing.assert_allclose(found, function.value(FAR), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", families.likelihoods())
def test_responses_are_spelled_as_they_are_computed(name):
    family = families.likelihood(name)
    eta = np.column_stack([FAR, FAR[::-1], np.zeros(len(FAR))])
    values = Values(a=eta[:, 0], b=eta[:, 1], c=eta[:, 2])
    with np.errstate(over="raise", invalid="raise"):
        found = family.expressions([Symbol(name) for name in "abc"], values.let)
        responses = np.column_stack([spell(each, values) for each in found])
    np.testing.assert_allclose(responses, family.mean(eta), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", families.likelihoods("numbers", "counts"))
def test_variances_are_spelled_as_they_are_computed(name):
    family = families.likelihood(name)
    eta, noise = np.array([[-2.0], [0.5], [3.0]]), np.array([0.7])
    spelled = family.variance_expression(Symbol("mean"), Symbol("noise"))
    found = value(spelled, mean=family.mean(eta), noise=noise)
    np.testing.assert_allclose(found + 0 * eta, family.variance(eta, noise), rtol=1e-12)


@pytest.mark.parametrize(("name", "known"), [("gaussian", stats.norm()), ("student_t", stats.t(4))])
def test_standard_noise_has_its_distribution(name, known):
    noise, z = families.likelihood(name).standard_noise, np.linspace(-30, 30, 601)
    np.testing.assert_allclose(value(noise.share(Symbol("z")), z=z), known.cdf(z), atol=1e-14)
    np.testing.assert_allclose(value(noise.density(Symbol("z")), z=z), known.pdf(z), atol=1e-14)
    assert noise.quantile(0.95) == pytest.approx(known.ppf(0.95), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("gaussian", lambda mean, noise: stats.norm(mean, noise**0.5)),
        ("student_t", lambda mean, noise: stats.t(4, mean, noise**0.5)),
        ("poisson", lambda mean, noise: stats.poisson(mean)),
        ("negative_binomial", lambda mean, noise: stats.nbinom(1 / noise, 1 / (1 + noise * mean))),
    ],
)
def test_shares_in_python_are_those_of_scipy(name, distribution):
    module = {"math": math}
    body = families.likelihood(name).python_share
    exec(f"def share(value, mean, noise):\n    {body}", module)
    rng = np.random.default_rng(0)
    for mean in (1e-4, 0.3, 2.0, 50.0, 4e4):
        for noise in (0.01, 0.5, 6.0):
            known = distribution(mean, noise)
            for x in (*known.rvs(6, random_state=rng).tolist(), -1.0, 0.0):
                found = module["share"](x, mean, noise)
                assert found == pytest.approx(known.cdf(x), abs=1e-9)


def test_what_an_expression_reads_is_known():
    lookup = Lookup("colour", (("red", 1.0),), 0.0, 0.0)
    expression = exp(Cell("age") * Symbol("w")) + lookup - Cell("age")
    assert cells(expression) == [Cell("age"), lookup]
    assert symbols(expression) == {"w"}


def test_numbers_become_constants():
    assert where(call("missing", Cell("age")), 1, 0).arguments[1] == Constant(1.0)


def test_every_function_is_spelled_in_every_language():
    from islab.export.onnx_model import OPERATORS

    assert set(OPERATORS) == set(FUNCTIONS) == set(NUMPY)


def test_an_unknown_function_is_refused():
    with pytest.raises(ValueError, match="Got function='gamma'"):
        call("gamma", 1.0)
