"""Effects of all variables in one table, against analytic values."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.scale import Scale
from islab.explain import explain_global
from tests.explain.test_effects import network_with

SCALE = Scale(
    x_center=np.array([10.0, 0.3, 0.5]),
    x_scale=np.array([2.0, 0.5, 0.5]),
    y_center=np.array([0.0]),
    y_scale=np.array([3.0]),
    names=("size", "kind=a", "kind=b"),
    outputs=("y",),
    variables=("size", "kind", "kind"),
    x_typical=np.array([9.0, 0.0, 1.0]),
)


def test_effects_of_a_linear_model_are_its_coefficients():
    network = network_with([4.0, 1.0, -0.5], Architecture(3, (), 1), scale=SCALE)
    frame = explain_global(network).effects.set_index("term")
    assert frame.loc["size", "effect"] == pytest.approx(3 * 4.0 / 2.0)
    assert frame.loc["size", "size"] == pytest.approx(3 * 4.0 * 2)
    # From b, the typical level, to a: both columns change.
    assert frame.loc["kind: a vs b", "effect"] == pytest.approx(3 * (1.0 + 0.5) / 0.5)
    assert frame["p_used"].tolist() == [1.0, 1.0]
    assert frame["p_nonlinear"].tolist() == [0.0, 0.0]
    assert "ratio" not in frame


def bent(skip=0.0, scale=None):
    """A unit that bends at the centre, beside a line of some slope."""
    net = Architecture(1, (1,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    net.covariate_matrix(flat)[0, 0] = 1.0
    net.covariate_matrix(flat)[1, 0] = skip
    net.hidden_block(1).view(flat)[...] = 1.0
    return explain_global(network_with(flat, net, scale=scale or Scale.plain(1, 1))).effects


def test_a_bent_number_has_a_slope_below_and_one_above_its_typical_value():
    frame = bent(skip=-0.5).set_index("term")
    assert frame.loc["x0 from -1 to 0", "effect"] == pytest.approx(-0.5)
    assert frame.loc["x0 from 0 to 1", "effect"] == pytest.approx(0.5)
    assert frame["p_nonlinear"].tolist() == [1.0, 1.0]


def test_ends_of_slopes_are_round_and_written_in_full():
    scale = Scale(
        x_center=np.array([12_000.0]),
        x_scale=np.array([4_137.0]),
        y_center=np.zeros(1),
        y_scale=np.ones(1),
        names=("income",),
        variables=("income",),
        outputs=("y",),
        x_typical=np.array([12_000.0]),
    )
    terms = sorted(bent(skip=-0.5, scale=scale)["term"])
    assert terms == ["income from 12000 to 16000", "income from 8000 to 12000"]


def test_a_number_that_hardly_bends_has_its_mean_slope_within_a_standard_deviation():
    frame = bent(skip=2.0)
    assert frame["term"].tolist() == ["x0"]
    assert frame["effect"].tolist() == pytest.approx([2.5])
    assert frame["p_nonlinear"].tolist() == [1.0]


def test_effects_over_rows_are_averages_over_them(make_network, make_rows):
    network = make_network(activation="relu")
    x = make_rows(network, 40)
    found = explain_global(network, x, n_draws=20, random_state=0)
    line = found.effects.set_index("term").loc["height"]
    low, high = network.scale.x_center[4] + network.scale.x_scale[4] * np.array([-1, 1])
    ends = []
    for value in (low, high):
        moved = x.copy()
        moved[:, 4] = value
        ends.append(found.curves.networks.predictor(moved).mean(axis=1)[:, 0])
    drawn = (ends[1] - ends[0]) / (high - low)
    assert line["effect"] == pytest.approx(drawn.mean())
    assert line["effect_lower"] == pytest.approx(np.quantile(drawn, 0.025))
    assert line["effect_upper"] == pytest.approx(np.quantile(drawn, 0.975))


def test_ratios_are_exponentials(make_network, make_rows):
    network = make_network(likelihood="bernoulli")
    frame = explain_global(network, make_rows(network, 20), n_draws=20).effects
    for part in ("", "_lower", "_upper"):
        np.testing.assert_allclose(frame[f"ratio{part}"], np.exp(frame[f"effect{part}"]))


def test_there_is_a_line_for_each_class(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    frame = explain_global(network, make_rows(network, 20), n_draws=10).effects
    assert frame.groupby("term")["output"].nunique().tolist() == [3] * frame["term"].nunique()
    np.testing.assert_allclose(frame.groupby("term")["effect"].sum(), 0, atol=1e-9)


def test_the_largest_comes_first(make_network, make_rows):
    network = make_network()
    size = explain_global(network, make_rows(network, 20), n_draws=10).effects["size"].abs()
    assert size.is_monotonic_decreasing
