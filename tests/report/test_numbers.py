"""The page's own evaluation gives Python's numbers for the same draws, in a real browser."""

import numpy as np
import pytest

from islab.core import families
from islab.core.drawn import DrawnNetworks
from islab.explain import explain_local
from islab.report.whatif import PageModel, network_data
from tests.explain.conftest import posterior_of, scale_of

LIKELIHOODS = [
    ("gaussian", 2),
    ("bernoulli", 1),
    ("categorical", 3),
    ("poisson", 1),
    ("negative_binomial", 1),
    ("student_t", 1),
    ("ordinal", 1),
    ("heteroscedastic", 2),
    ("zero_inflated_poisson", 1),
    ("zero_inflated_negative_binomial", 1),
]
N_DRAWS, SEED, LEVEL = 50, 4, 0.9


def network_of(n_outputs, activation, likelihood, flow=False):
    posterior = posterior_of(n_outputs, activation, flow=flow, likelihood=likelihood)
    return posterior.median(scale=scale_of(n_outputs, likelihood))


def rows_of(network, n_rows=3):
    noise = np.random.default_rng(1).normal(size=(n_rows, network.n_covariates))
    return network.scale.x_center + 0.7 * network.scale.x_scale * noise


def in_browser(scripted, network, rows):
    """What the page's script predicts for each row."""
    drawn = network.draw(N_DRAWS, np.random.default_rng(SEED))
    networks = DrawnNetworks.from_dense(network.architecture, *drawn)
    model = PageModel(networks, network.covariates, network.noise_in_units())
    data = network_data(network, {"median": model}, LEVEL)
    used = rows[:, network.covariates].tolist()
    script = (
        "([data, rows]) => { const n = new Network(data, data.models.median);"
        " return rows.map(x => n.predict(x)); }"
    )
    return scripted.evaluate(script, [data, used])


def in_python(network, rows, **options):
    return explain_local(
        network,
        rows,
        level=LEVEL,
        n_draws=N_DRAWS,
        random_state=SEED,
        approximate=True,
        **options,
    )


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("likelihood", "n_outputs"), LIKELIHOODS)
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "sigmoid", "tanh", "identity"])
def test_predictions_and_contributions_are_pythons(scripted, likelihood, n_outputs, activation):
    network = network_of(n_outputs, activation, likelihood)
    rows = rows_of(network)
    expected = in_python(network, rows)
    summary = expected.response_summary
    parts = expected.contribution_summary
    for row, found in enumerate(in_browser(scripted, network, rows)):
        assert_close(found["draws"], expected.draws_response[:, row])
        assert_close(found["mean"], summary.mean[row])
        assert_close(found["lower"], summary.lower[row])
        assert_close(found["upper"], summary.upper[row])
        assert_close(found["predictor"], expected.predictor[row])
        assert_close(found["intercept"], expected.intercept[row])
        each = found["contributions"]
        assert_close([part["mean"] for part in each], parts.mean[row])
        assert_close([part["lower"] for part in each], parts.lower[row])
        assert_close([part["upper"] for part in each], parts.upper[row])


@pytest.mark.parametrize("activations", [("tanh", "relu"), ("identity", "relu")])
def test_contributions_are_pythons_where_layers_have_their_own_activations(scripted, activations):
    network = network_of(2, activations, "gaussian")
    rows = rows_of(network)
    parts = in_python(network, rows).contribution_summary
    for row, found in enumerate(in_browser(scripted, network, rows)):
        assert_close([part["mean"] for part in found["contributions"]], parts.mean[row])


def test_draws_of_a_flow_are_pythons(scripted):
    network = network_of(2, "leaky_relu", "gaussian", flow=True)
    rows = rows_of(network, 1)
    found = in_browser(scripted, network, rows)[0]
    assert_close(found["draws"], in_python(network, rows).draws_response[:, 0])


@pytest.mark.parametrize(
    ("likelihood", "n_outputs"),
    [
        *(("gaussian", 2), ("poisson", 1), ("negative_binomial", 1), ("student_t", 1)),
        *(("zero_inflated_poisson", 1), ("zero_inflated_negative_binomial", 1)),
    ],
)
def test_intervals_of_new_values_are_pythons(scripted, likelihood, n_outputs):
    network = network_of(n_outputs, "leaky_relu", likelihood)
    rows = rows_of(network)
    draws = in_python(network, rows).draws_predictor
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    expected = families.likelihood(likelihood).predictive_quantiles(
        draws, network.noise_in_units(), ends
    )
    for row, found in enumerate(in_browser(scripted, network, rows)):
        assert_close(found["predictive"], expected[:, row])


def test_the_share_of_the_normal_below_is_scipys(scripted):
    from scipy.special import ndtr

    z = np.linspace(-9, 9, 181)
    found = scripted.evaluate("(z) => z.map(normalShare)", z.tolist())
    np.testing.assert_allclose(found, ndtr(z), rtol=1e-10, atol=1e-300)


def test_the_share_of_poisson_counts_is_scipys(scripted):
    from scipy.special import pdtr

    pairs = [(k, rate) for rate in (0.2, 3.0, 40.0, 900.0) for k in range(0, 1200, 37)]
    found = scripted.evaluate(
        "(pairs) => pairs.map(([k, rate]) => LIKELIHOODS.poisson.countShare(k, rate))", pairs
    )
    expected = [pdtr(k, rate) for k, rate in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [1e6, 1e12, 1e300])
def test_intervals_of_huge_counts_take_no_time(scripted, rate):
    found = scripted.evaluate(
        """(rate) => {
          const start = performance.now();
          const ends = [0.05, 0.95].map((p) =>
            LIKELIHOODS.poisson.interval(new Array(200).fill(rate), p));
          return [...ends, performance.now() - start];
        }""",
        rate,
    )
    reach = 1.645 * np.sqrt(rate)
    np.testing.assert_allclose(found[:2], [rate - reach, rate + reach], rtol=1e-5)
    assert found[2] < 2000
