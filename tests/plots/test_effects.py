"""Curves, points and maps of effects show the numbers of the effects they draw."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from islab.explain import explain_global
from islab.plots import effect_curve, effect_curves, importance_bars, joint_effects
from tests.plots.networks import network_of


@pytest.fixture
def explanation():
    network = network_of(30, v=4, name="x{}")
    x = np.random.default_rng(0).normal(size=(60, 4))
    return explain_global(network, x, n_draws=20, random_state=0)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_curve_is_the_mean_effect_within_its_band(explanation):
    effect = explanation.effect("x1", "average")
    ax = effect_curve(effect)
    line = next(line for line in ax.lines if len(line.get_xdata()) == len(effect.values))
    np.testing.assert_allclose(line.get_ydata(), effect.summary.mean[:, 0])
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(effect.summary.upper.max())
    assert band[:, 1].min() == pytest.approx(effect.summary.lower.min())


def test_of_many_outputs_the_three_largest_effects_have_bands():
    network = network_of(60, v=3, m=5, name="x{}")
    x = np.random.default_rng(0).normal(size=(60, 3))
    effect = explain_global(network, x, n_draws=20, random_state=0).effect("x1", "average")
    ax = effect_curve(effect)
    sizes = np.ptp(effect.summary.mean, axis=0)
    tops = [band.get_paths()[0].vertices[:, 1].max() for band in ax.collections]
    expected = effect.summary.upper.max(axis=0)[np.argsort(-sizes)[:3]]
    np.testing.assert_allclose(sorted(tops), sorted(expected))
    assert "bands of the 3 largest" in ax.get_xlabel()


def test_the_rug_shows_where_data_are(explanation):
    ax = effect_curve(explanation.effect("x0", "average"))
    rug = next(line for line in ax.lines if line.get_marker() == "|")
    np.testing.assert_allclose(np.sort(rug.get_xdata()), np.sort(explanation.curves.x[:, 0]))


def test_panels_share_their_scale(explanation):
    axes = effect_curves([explanation.effect(name) for name in ("x0", "x1", "x2", "x3")])
    assert len({ax.get_ylim() for ax in axes}) == 1


def test_one_effect_is_plain_axes_and_none_says_so(explanation):
    assert hasattr(effect_curves([explanation.effect("x0")]), "get_xlabel")
    assert "No variable is used." in [text.get_text() for text in effect_curves([]).texts]


def test_bars_of_importance_add_up_to_a_hundred(explanation):
    ax = importance_bars(explanation.importance, top=99)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(100)


def test_a_map_shows_the_joint_effect(explanation):
    from islab.explain.importance import joint_effect

    joint = joint_effect(explanation.curves, "x0", "x1")
    ax = joint_effects([joint])
    np.testing.assert_allclose(
        np.asarray(ax.collections[0].get_array()).reshape(joint.mean[..., 0].T.shape),
        joint.mean[..., 0].T,
    )


def test_a_joint_effect_is_a_direct_evaluation(explanation):
    from islab.explain.effects import evenly
    from islab.explain.importance import JOINT_BACKGROUND, joint_effect

    curves = explanation.curves
    joint = joint_effect(curves, "x0", "x1")
    rows = evenly(curves.x, JOINT_BACKGROUND)

    def at(first, second):
        moved = rows.copy()
        moved[:, 0], moved[:, 1] = joint.first.values[first], joint.second.values[second]
        return curves.networks.predictor(moved).mean()

    found = joint.mean[3, 5, 0] - joint.mean[0, 1, 0]
    assert found == pytest.approx(at(3, 5) - at(0, 1), abs=1e-9)


def test_nothing_is_drawn_where_nothing_interacts():
    assert "No two variables" in joint_effects([]).texts[0].get_text()
