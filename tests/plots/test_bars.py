"""Bars of single rows show the numbers of the explanation they draw."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale
from islab.explain import explain_local
from islab.plots import driver_bars, local_bars
from islab.plots.style import number
from tests.plots.networks import explanation_of, network_of

NAMES = ("$broken^{", "two\nlines", "sex_F", "sex_M", "a long name " * 9, "_hidden", "plain")
VARIABLES = ("$broken^{", "two\nlines", "sex", "sex", "a long name " * 9, "_hidden", "plain")


@pytest.fixture
def network():
    rng = np.random.default_rng(0)
    net = Architecture(len(NAMES), (4,), 3)
    start = Initial("dense", "dense", means=(-1, 1), output_scale=(1.0, 1.0), sigma=0.3)
    posterior = Posterior.initialise(net, rng, start, likelihood="categorical")
    scale = Scale.plain(len(NAMES), 3)
    outputs = ("$a$", "b", "c")
    return posterior.median(scale=replace(scale, names=NAMES, variables=VARIABLES, outputs=outputs))


@pytest.fixture
def explanation(network):
    x = np.random.default_rng(1).normal(size=(4, len(NAMES)))
    return explain_local(network, x, n_draws=200, random_state=0)


def widths(ax):
    return np.array([bar.get_width() for bar in ax.patches])


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def intervals(ax):
    """Ends of the horizontal interval lines, (bars, 2)."""
    return np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])


def test_there_is_a_panel_for_each_row_and_output(explanation):
    assert local_bars(explanation, rows=[0, 2]).shape == (2, 3)


def test_bars_are_the_contributions_from_the_largest_on(explanation):
    ax = local_bars(explanation, rows=1, outputs="b", top=20, by_variable=False)
    own = explanation.contribution_summary.mean[1, :, 1]
    np.testing.assert_allclose(widths(ax), own[np.argsort(-np.abs(own))])


def test_intervals_are_those_of_the_draws(explanation):
    ax = local_bars(explanation, rows=1, outputs="b", top=20)
    summary = explanation.variable_summary
    order = np.argsort(-np.abs(summary.mean[1, :, 1]))
    expected = np.stack([summary.lower, summary.upper], axis=-1)[1, order, 1]
    np.testing.assert_allclose(intervals(ax), expected)


def test_bars_with_the_rest_added_up_make_the_predictor(explanation):
    ax = local_bars(explanation, rows=0, outputs=0, top=2)
    assert len(ax.patches) == 3
    total = widths(ax).sum() + explanation.intercept[0, 0]
    np.testing.assert_allclose(total, explanation.predictor[0, 0])


def test_the_interval_of_the_rest_is_that_of_its_sum(explanation):
    ax = local_bars(explanation, rows=0, outputs=0, top=2, by_variable=False)
    rest = np.argsort(-np.abs(explanation.contribution_summary.mean[0, :, 0]))[2:]
    drawn = explanation.draws_contribution[:, 0, explanation.used[rest], 0].sum(axis=1)
    np.testing.assert_allclose(intervals(ax)[-1], np.quantile(drawn, [0.025, 0.975]))


def test_a_rest_of_one_has_its_own_name(explanation):
    ax = local_bars(explanation, rows=0, outputs=0, top=len(explanation.variables) - 1)
    assert not [label for label in labels(ax) if "others" in label]


def test_one_hot_columns_share_the_bar_of_their_variable(explanation):
    ax = local_bars(explanation, rows=0, outputs=0, top=20)
    together = explanation.contribution[0, [2, 3], 0].sum()
    own = [label.startswith("sex = ") for label in labels(ax)]
    np.testing.assert_allclose(widths(ax)[own], [together])


def test_bars_lead_from_the_baseline_to_the_row(network):
    x = np.random.default_rng(1).normal(size=(2, len(NAMES)))
    found = explain_local(network, x, n_draws=20, random_state=0)
    ax = local_bars(found, rows=1, outputs="c", top=3)
    expected = found.predictor[1, 2] - found.baseline_predictor[2]
    np.testing.assert_allclose(widths(ax).sum(), expected)
    start, end = number(found.baseline_predictor[2]), number(found.predictor[1, 2])
    assert ax.get_xlabel().endswith(f"{start} at zero, {end} at this row")


def test_of_many_classes_the_most_probable_of_each_row_are_shown():
    explanation = explanation_of(network_of(60, m=7), n_rows=3)
    axes = local_bars(explanation)
    assert axes.shape == (3, 3)
    order = np.argsort(-explanation.response, axis=1)[:, :3]
    for row in range(3):
        for place, output in enumerate(order[row]):
            assert f"class {output})" in axes[row, place].get_title(loc="left")
    assert local_bars(explanation, rows=0, outputs=[5, 6]).shape == (1, 2)


def test_labels_say_what_the_baseline_has_instead(network):
    typical = np.arange(7.0)
    known = replace(network, scale=replace(network.scale, x_typical=typical))
    x = typical + np.eye(7)[[0]]
    found = explain_local(known, x, n_draws=5, random_state=0)
    ax = local_bars(found, outputs=0, top=20)
    assert labels(ax)[0] == r"\$broken^{ = 1 vs 0"
    assert "plain = 6" in labels(ax)
    assert "at the typical row" in ax.get_xlabel()


def test_rows_go_by_the_labels_of_the_table(explanation):
    named = replace(explanation, labels=np.array(["a", "b", "c", "d"], dtype=object))
    assert local_bars(named, rows=1, outputs=0).get_title(loc="left").startswith("row b, ")


def test_drivers_add_up_to_a_hundred_percent(explanation):
    ax = driver_bars(explanation.drivers(), rows=3, outputs=-1, top=3)
    np.testing.assert_allclose(widths(ax).sum(), 100)


def test_names_are_drawn_without_mathematics(explanation):
    figure = local_bars(explanation, rows=0)[0, 0].get_figure()
    figure.canvas.draw()
    texts = [label for ax in figure.axes for label in labels(ax)]
    assert any(text.startswith(r"\$broken^{ = ") for text in texts)


def test_axes_given_are_the_axes_drawn_on(explanation):
    mine = plt.subplots(1, 3)[1]
    drawn = local_bars(explanation, rows=0, ax=mine)
    assert drawn.ravel().tolist() == mine.tolist()


def test_the_wrong_number_of_axes_is_refused(explanation):
    with pytest.raises(ValueError, match="Got 2 axes, expected 3"):
        local_bars(explanation, rows=0, ax=plt.subplots(1, 2)[1])


def test_too_many_panels_are_refused(network):
    many = explain_local(network, np.zeros((50, len(NAMES))), n_draws=2, random_state=0)
    with pytest.raises(ValueError, match="Got 50 rows x 3 outputs, expected 1 to 40"):
        local_bars(many)


@pytest.mark.parametrize("choice", [{"rows": 4}, {"rows": -5}, {"outputs": "d"}, {"outputs": 3}])
def test_rows_and_outputs_that_are_not_there_are_refused(explanation, choice):
    with pytest.raises(ValueError, match="expected"):
        local_bars(explanation, **choice)


def test_an_approximation_is_labelled():
    network = network_of(20)
    curved = replace(network, architecture=replace(network.architecture, activation="tanh"))
    ax = explanation_of(curved, approximate=True).plot(rows=[0])
    assert "approximate" in ax.get_xlabel()


def test_linear_bars_add_up_with_the_intercept_and_say_so(network):
    center = np.arange(7.0)
    moved = replace(network, scale=replace(network.scale, x_center=center))
    x = np.random.default_rng(1).normal(size=(1, len(NAMES)))
    found = explain_local(moved, x, n_draws=20, random_state=0, kind="linear")
    ax = found.plot(outputs=0, top=20)
    np.testing.assert_allclose(widths(ax).sum(), found.contribution[0, :, 0].sum())
    assert f"= {number(found.intercept[0, 0])} intercept" in ax.get_xlabel()
    centred = found.plot(outputs=0, baseline="center")
    assert "(slopes times distance from the center)" in centred.get_xlabel()


def test_one_panel_is_plain_axes_and_several_are_an_array(explanation):
    assert hasattr(local_bars(explanation, rows=0, outputs=0), "get_xlabel")
    assert local_bars(explanation, rows=[0, 1], outputs=0).shape == (2, 1)
