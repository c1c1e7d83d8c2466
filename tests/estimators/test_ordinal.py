"""Ordered classes: thresholds found, probabilities right, order kept from fit to file."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from islab import ISLaBClassifier
from islab.export import to_onnx, to_python, to_text, to_torch
from islab.io.store import load

CUTS = np.array([-1.0, 0.5, 2.0])
SLOPES = np.array([1.5, -1.0, 0.0])
LEVELS = ["low", "medium", "high", "top"]  # not in the order of the alphabet
# Chains are short here.
pytestmark = pytest.mark.filterwarnings("ignore:Got chains that disagree")
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "n_draws": 200, "random_state": 0}
PARAMS |= {"posterior": "independent"}
SAMPLED = {**PARAMS, "posterior": "sampled"}


def ordered(codes):
    names = np.array(LEVELS)[codes]
    return pd.Series(pd.Categorical(names, categories=LEVELS, ordered=True))


def simulate(rng, n):
    x = rng.standard_normal((n, 3))
    latent = x @ SLOPES + rng.logistic(size=n)
    return pd.DataFrame(x, columns=["a", "b", "c"]), (latent[:, None] > CUTS).sum(axis=1)


def maximum_likelihood(x, codes):
    """Slopes and thresholds of cumulative logits by a general optimiser."""

    def split(theta):
        return theta[:3], np.r_[theta[3], theta[3] + np.cumsum(np.exp(theta[4:]))]

    def nll(theta):
        slopes, cuts = split(theta)
        up_to = expit(np.r_[-np.inf, cuts, np.inf] - (x @ slopes)[:, None])
        return -np.log(np.diff(up_to)[np.arange(len(x)), codes]).sum()

    return split(minimize(nll, np.r_[0.0, 0, 0, -1, 0, 0], method="BFGS").x)


@pytest.fixture(scope="module")
def data():
    return simulate(np.random.default_rng(0), 800)


@pytest.fixture(scope="module", params=["independent", "sampled"])
def model(request, data):
    return ISLaBClassifier(**{**PARAMS, "posterior": request.param}).fit(data[0], ordered(data[1]))


def test_slopes_and_thresholds_are_those_of_maximum_likelihood(model, data):
    slopes, cuts = maximum_likelihood(data[0].to_numpy(), data[1])
    zero, one = model.network_.predictor(np.array([[0.0, 0, 0], [1.0, 0, 0]]))[:, 0]
    assert one - zero == pytest.approx(slopes[0], abs=0.1)
    found = np.cumsum(np.r_[-zero, model.network_.noise])
    np.testing.assert_allclose(found, cuts, atol=0.12)


def test_classes_are_sorted_and_levels_in_their_order(model):
    assert model.classes_.tolist() == sorted(LEVELS)
    assert model.levels_.tolist() == LEVELS
    assert model.network_.architecture.n_outputs == 1


def test_probabilities_stand_in_the_order_of_the_classes(model, data):
    x = pd.DataFrame({"a": [-6.0, 6.0], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    probability = pd.DataFrame(model.predict_proba(x), columns=model.classes_)
    assert probability["low"].tolist()[0] > 0.99
    assert probability["top"].tolist()[1] > 0.9
    assert model.predict(x).tolist() == ["low", "top"]


def test_probabilities_are_calibrated(model):
    x, codes = simulate(np.random.default_rng(1), 2000)
    found = model.predict_proba(x)[:, np.searchsorted(model.classes_, LEVELS)]
    latent = (x.to_numpy() @ SLOPES)[:, None]
    exact = np.diff(expit(np.r_[-np.inf, CUTS, np.inf] - latent))
    assert np.abs(found - exact).mean() < 0.02
    np.testing.assert_allclose(found.mean(axis=0), np.bincount(codes) / len(codes), atol=0.03)


def test_scorers_of_scikit_learn_see_the_right_columns(model, data):
    x, codes = data
    own = model.predictions(x).log_score(ordered(codes)).mean()
    assert log_loss(ordered(codes).astype(str), model.predict_proba(x)) == pytest.approx(own)


@pytest.mark.filterwarnings("ignore:Got a median network unlike")
def test_the_order_helps_where_rows_are_few():
    x, codes = simulate(np.random.default_rng(5), 120)
    new, observed = simulate(np.random.default_rng(6), 2000)
    scores = [
        ISLaBClassifier(likelihood=name, **SAMPLED)
        .fit(x, ordered(codes))
        .predictions(new)
        .log_score(ordered(observed))
        .mean()
        for name in ("auto", "categorical")
    ]
    assert scores[0] < scores[1]


def covered(seed):
    """Which gaps and which probabilities of new rows lie in their 95 % intervals."""
    rng = np.random.default_rng(seed)
    x, codes = simulate(rng, 400)
    model = ISLaBClassifier(**SAMPLED).fit(x, ordered(codes))
    gaps = model.predictions(x[:2]).noise("full")[:, 0]
    low, high = np.quantile(gaps, [0.025, 0.975], axis=0)
    new, _ = simulate(rng, 200)
    exact = np.diff(expit(np.r_[-np.inf, CUTS, np.inf] - (new.to_numpy() @ SLOPES)[:, None]))
    exact = exact[:, [LEVELS.index(name) for name in model.classes_]]
    lower, upper = np.moveaxis(model.predict_interval(new, 0.95), -1, 0)
    inside = (low < np.diff(CUTS)) & (np.diff(CUTS) < high)
    return inside, (lower <= exact) & (exact <= upper), gaps.std(axis=0)


def test_intervals_of_gaps_and_probabilities_hold_the_truth():
    gaps, probabilities, spread = covered(3)
    assert gaps.all()
    assert probabilities.mean() > 0.75  # of one table, whose rows err together
    assert (spread > 0.05).all()


@pytest.mark.slow
def test_intervals_of_gaps_and_probabilities_cover():
    found = [covered(seed) for seed in range(40)]
    assert np.mean([gaps for gaps, _, _ in found]) > 0.88
    assert 0.88 < np.mean([probabilities for _, probabilities, _ in found]) < 0.99


def test_numbers_are_ordered_on_request(data):
    x, numbers = data[0], data[1] * 10
    model = ISLaBClassifier(likelihood="ordinal", max_epochs=20, **PARAMS).fit(x, numbers)
    assert model.levels_.tolist() == [0, 10, 20, 30]
    assert model.network_.likelihood == "ordinal"
    plain = ISLaBClassifier(max_epochs=20, **PARAMS).fit(x, numbers)
    assert plain.levels_ is None
    assert plain.network_.likelihood == "categorical"


def test_an_order_can_be_ignored(data):
    params = {"likelihood": "categorical", "max_epochs": 20, **PARAMS}
    assert ISLaBClassifier(**params).fit(data[0], ordered(data[1])).levels_ is None


def test_two_ordered_classes_are_a_logistic_regression(data):
    model = ISLaBClassifier(likelihood="ordinal", max_epochs=20, **PARAMS)
    assert model.fit(data[0], data[1] > 1).network_.likelihood == "bernoulli"


def test_text_without_an_order_is_refused(data):
    with pytest.raises(ValueError, match=r"order is not known.*ordered=True"):
        ISLaBClassifier(likelihood="ordinal").fit(data[0], ordered(data[1]).astype(str))


def test_levels_that_no_row_has_are_left_out(data):
    x, codes = data
    model = ISLaBClassifier(max_epochs=20, **PARAMS).fit(x[codes != 1], ordered(codes)[codes != 1])
    assert model.levels_.tolist() == ["low", "high", "top"]
    assert len(model.network_.noise) == 1


def test_it_is_saved_and_loaded(model, data, tmp_path):
    for sparse in (False, True):
        model.save(tmp_path / "model.islab", sparse=sparse)
        found = load(tmp_path / "model.islab")
        assert found.levels_.tolist() == LEVELS
        which = "median" if sparse else None
        np.testing.assert_array_equal(
            found.predict_proba(data[0], model=which), model.predict_proba(data[0], model=which)
        )


def test_exports_give_the_probability_of_each_class_in_order(model, data):
    torch = pytest.importorskip("torch")
    x = data[0].to_numpy()[:5]
    known = model.network_.known_likelihood()
    expected = known.class_probabilities(model.network_.predictor(x))
    module = {}
    exec(to_python(model.network_), module)
    in_python = [module["predict"](row) for row in data[0][:5].to_dict("records")]
    assert module["OUTPUTS"] == LEVELS
    np.testing.assert_allclose(in_python, expected, rtol=1e-9)
    in_torch = to_torch(model.network_)(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(in_torch, expected, rtol=1e-9)
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    written = to_onnx(model.network_)
    (found,) = runtime.InferenceSession(written.SerializeToString()).run(["response"], {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    properties = {each.key: json.loads(each.value) for each in written.metadata_props}
    assert properties["responses"] == LEVELS
    assert onnx is not None


def test_its_formula_is_the_expected_level(model, data):
    line = to_text(model.network_).splitlines()[-1]
    eta = model.network_.predictor(data[0].to_numpy()[:1])[0, 0]
    name = "eta(`low < medium < high < top`)"
    value = eval(line.split(" = ")[1].replace(name, repr(float(eta))), {"exp": np.exp})
    assert value == pytest.approx(model.network_.known_likelihood().mean(np.array([[eta]]))[0, 0])


def test_it_is_reported(model, data, tmp_path):
    model.report(tmp_path / "report.html", data[0][:80], ordered(data[1])[:80])
    page = (tmp_path / "report.html").read_text()
    assert "each of 4 ordered classes\n    (low, medium, high, top)" in page
    assert "gaps between thresholds" in page
    assert "expected level (low &lt; medium &lt; high &lt; top) = " in page
    assert '"range":[1.0,4.0]' in page.replace(" ", "")


def test_it_works_in_cross_validation(data):
    model = ISLaBClassifier(max_epochs=50, **PARAMS)
    scores = cross_val_score(model, data[0], ordered(data[1]), cv=3, scoring="neg_log_loss")
    assert scores.min() > -1.2
