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
NOISE = np.array([0.7, 0.2, 1.9, 0.4, 2.5, 0.1, 0.9, 1.3])
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


def given(family, eta):
    """Symbols of predictors and noise, and their values."""
    n_noise = family.n_noise(eta.shape[1]) or len(NOISE)
    etas = {f"eta{k}": column for k, column in enumerate(eta.T)}
    noise = {f"noise{k}": each for k, each in enumerate(NOISE[:n_noise])}
    return list(map(Symbol, etas)), list(map(Symbol, noise)), Values(**etas, **noise)


def expected(family, eta):
    """What exports predict: expected targets, and probabilities of classes."""
    known = family.given(NOISE[: family.n_noise(eta.shape[1]) or len(NOISE)])
    if family.ordered:
        return known.class_probabilities(eta)
    return known.mean(eta)[:, : eta.shape[1] // family.n_predictors]


@pytest.mark.parametrize("name", families.likelihoods())
def test_responses_are_spelled_as_they_are_computed(name):
    family = families.likelihood(name)
    eta = np.column_stack([FAR, FAR[::-1], np.zeros(len(FAR)), FAR - 1.0])
    eta = eta[:, :1] if family.ordered else eta
    etas, noise, values = given(family, eta)
    with np.errstate(over="raise", invalid="raise"):
        found = family.expressions(etas, noise, values.let)
        responses = np.column_stack([spell(each, values) for each in found])
    # Probabilities of ordered classes are differences.
    atol = 1e-15 if family.ordered else 1e-300
    np.testing.assert_allclose(responses, expected(family, eta), rtol=1e-12, atol=atol)


@pytest.mark.parametrize("name", families.likelihoods("numbers", "counts"))
def test_variances_are_spelled_as_they_are_computed(name):
    family = families.likelihood(name)
    eta = np.array([[-2.0, 0.3], [0.5, 16.0], [3.0, -20.0]])
    etas, noise, values = given(family, eta)
    own = family.noise_expressions(etas, noise)
    means = family.expressions(etas, noise, values.let)
    spelled = map(family.variance_expression, means, own)
    right = family.variance(eta, NOISE[: family.n_noise(2)])
    assert len(own) == right.shape[1]
    for number, each in enumerate(spelled):
        found = spell(each, values) + 0 * eta[:, 0]
        np.testing.assert_allclose(found, right[:, number], rtol=1e-12)


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
    exec(families.likelihood(name).python_share, module)
    rng = np.random.default_rng(0)
    for mean in (1e-4, 0.3, 2.0, 50.0, 4e4):
        for noise in (0.01, 0.5, 6.0):
            known = distribution(mean, noise)
            for x in (*known.rvs(6, random_state=rng).tolist(), -1.0, 0.0):
                found = module["_share"](x, mean, noise)
                assert found == pytest.approx(known.cdf(x), abs=1e-9)


@pytest.mark.parametrize("counts", ["poisson", "negative_binomial"])
def test_shares_with_other_zeros_are_those_of_the_mixture(counts):
    mixed, alone = {"math": math}, {"math": math}
    exec(families.likelihood(f"zero_inflated_{counts}").python_share, mixed)
    exec(families.likelihood(counts).python_share, alone)
    own = () if counts == "poisson" else (0.5,)
    for odds in (1e-3, 0.4, 8.0):
        for count in (-1.0, 0.0, 3.0):
            zero = odds / (1 + odds)
            right = zero * (count >= 0) + (1 - zero) * alone["_share"](count, 2.0, *own)
            found = mixed["_share"](count, 2.0 * (1 - zero), *own, odds)
            assert found == pytest.approx(right, abs=1e-12)


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
