"""Plots draw what they are given, on the axes they are given, with names as they are."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from islab import plots
from islab.architecture import Architecture
from islab.explain import explain_global, explain_local, integrated_gradients
from islab.posterior import Initial, Posterior
from islab.sparse import Units

HOSTILE = "$\\frac{1}$ <b>\n\\$ & % _ ^{"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def network_of(n_edges, v=16, hidden=(5, 4), m=1, name="a rather long name of covariate {}"):
    """A network with at least that many used weights, and the fewest."""
    rng = np.random.default_rng(0)
    net = Architecture(v, hidden, m)
    likelihood = "categorical" if m > 1 else "bernoulli"
    posterior = Posterior.initialise(net, rng, Initial(), likelihood)
    order = np.argsort(np.argsort(rng.random(net.n_weights)))
    names = tuple(name.replace("{}", str(column)) for column in range(v))
    units = Units(
        np.zeros(v),
        np.ones(v),
        np.zeros(m),
        np.ones(m),
        names,
        tuple(f"{name} class {k}" for k in range(m)),
        names,
    )
    for size in range(n_edges, net.n_weights + 1):
        lam = np.where(order < size, 3.0, -3.0)
        found = posterior.copy(lam=lam).median(units=units)
        if found.n_used_weights >= n_edges:
            return found
    raise AssertionError


def explanation_of(network, n_rows=2, **options):
    x = np.random.default_rng(0).normal(size=(n_rows, network.n_covariates))
    return explain_local(network, x, n_draws=50, random_state=0, **options)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes_of_nodes(ax):
    ax.figure.canvas.draw()
    return [patch.get_window_extent() for patch in ax.patches]


@pytest.mark.parametrize("n_edges", [2, 20, 60, 200])
def test_no_two_nodes_of_a_path_graph_overlap(n_edges):
    network = network_of(n_edges, v=30, hidden=(8, 6), m=3)
    boxes = boxes_of_nodes(plots.path_graph(network, max_edges=300))
    overlaps = [
        (i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)
    ]
    assert overlaps == []


def test_names_fit_into_their_nodes():
    ax = plots.path_graph(network_of(20), label=None)
    ax.figure.canvas.draw()
    # Without labels on edges the first texts are those of the nodes, in the nodes' order.
    for text, box in zip(ax.texts, ax.patches, strict=False):
        assert text.get_window_extent().width <= box.get_window_extent().width


def test_a_path_graph_has_a_line_for_each_weight():
    network = network_of(20)
    ax = plots.path_graph(network)
    key = 2
    assert len(ax.lines) == network.n_used_weights + key


def test_a_covariate_stands_in_each_layer_it_enters():
    network = network_of(40, v=4, name="covariate {}")
    ax = plots.path_graph(network, label=None)
    entries = (network.covariate_counts() > 0).sum()
    assert sum(text in network.units.names for text in texts(ax)) == entries


def test_one_class_at_a_time_draws_its_paths_only():
    network = network_of(60, m=3)
    ax = plots.path_graph(network, output=1)
    assert len(ax.lines) == network.edges_of_output(1).sum() + 2


def test_edges_can_be_labelled_with_their_inclusion():
    network = network_of(2)
    assert f"{network.alpha[0]:.2f}" in texts(plots.path_graph(network, label="alpha"))


def test_too_many_edges_become_a_matrix_that_says_so():
    network = network_of(60)
    ax = plots.path_graph(network, max_edges=50)
    assert f"{network.n_used_weights} active edges" in ax.get_title(loc="left")
    assert len(ax.images) == 1


def test_a_network_without_paths_says_so():
    posterior = Posterior.initialise(Architecture(2, (2,), 1), np.random.default_rng(0))
    empty = posterior.copy(lam=np.full_like(posterior.lam, -5)).median()
    assert "No active path" in texts(plots.path_graph(empty))[0]


def test_the_inclusion_map_shows_the_mean_inclusion():
    network = network_of(40, v=4)
    ax = plots.inclusion_map(network)
    drawn = np.sort(np.asarray(ax.images[0].get_array(), dtype=float).ravel())
    expected = np.sort(network.covariate_inclusion()[network.covariates].ravel())
    np.testing.assert_allclose(drawn, expected)


def test_bars_are_the_contributions_from_large_to_small():
    found = explanation_of(network_of(20))
    ax = plots.local_bars(found, rows=[1], top=50)[0, 0]
    widths = [patch.get_width() for patch in ax.patches]
    sizes = found.contribution_used[1, :, 0]
    np.testing.assert_allclose(widths, sizes[np.argsort(-np.abs(sizes), kind="stable")])


def test_left_over_bars_add_up():
    found = explanation_of(network_of(20))
    ax = plots.local_bars(found, rows=[0], top=2)[0, 0]
    total = sum(patch.get_width() for patch in ax.patches)
    assert total == pytest.approx(found.contribution_used[0, :, 0].sum())


def test_rows_and_classes_have_a_panel_each():
    found = explanation_of(network_of(60, m=3))
    assert found.plot().shape == (2, 3)


def test_an_approximation_is_labelled():
    network = network_of(20)
    from dataclasses import replace

    curved = replace(network, architecture=replace(network.architecture, activation="tanh"))
    ax = explanation_of(curved, approximate=True).plot(rows=[0])[0, 0]
    assert "gradient" in ax.get_xlabel()


def test_driver_bars_add_up_to_the_whole():
    found = explanation_of(network_of(20)).drivers()
    ax = found.plot(rows=[0], top=3)[0, 0]
    assert sum(patch.get_width() for patch in ax.patches) == pytest.approx(100)


def test_attribution_bars_add_up_to_the_change():
    network = network_of(20)
    found = integrated_gradients(network, np.ones((1, 16)), "zero")
    ax = found.plot(top=3)[0, 0]
    total = sum(patch.get_width() for patch in ax.patches)
    assert total == pytest.approx(float(found.link[0, 0] - found.baseline_link[0]))


def test_pixel_maps_show_the_counts_of_each_layer():
    network = network_of(30)
    axes = plots.pixel_maps(network, (4, 4), mean_image=np.ones(16))
    counts = network.covariate_counts()
    for layer in range(3):
        drawn = np.ma.filled(axes[0, layer].images[1].get_array(), 0)
        np.testing.assert_array_equal(drawn, counts[:, layer].reshape(4, 4))
    drawn = np.ma.filled(axes[0, 3].images[1].get_array(), 0)
    np.testing.assert_array_equal(drawn, counts.sum(axis=1).reshape(4, 4))


def test_pixel_maps_by_class_show_the_paths_to_each():
    network = network_of(60, m=3)
    axes = plots.pixel_maps(network, (4, 4), by_class=True, mean_image=np.ones((3, 16)))
    drawn = np.ma.filled(axes[1, 3].images[1].get_array(), 0)
    frame = explain_global(network, output=1).covariates
    np.testing.assert_array_equal(drawn.ravel(), frame["count"])


def test_contribution_maps_show_the_contributions():
    found = explanation_of(network_of(60, m=3))
    panels = plots.contribution_map(found, (4, 4), row=1)
    drawn = np.asarray(panels[2].images[1].get_array())
    np.testing.assert_allclose(drawn.ravel(), found.contribution[1, :, 2])


def test_a_wrong_image_shape_is_named():
    with pytest.raises(ValueError, match=r"image_shape=\(3, 4\)"):
        plots.pixel_maps(network_of(2), (3, 4))


def test_the_calibration_curve_of_true_probabilities_has_a_small_error():
    rng = np.random.default_rng(0)
    stated = rng.random(20_000)
    ax = plots.calibration_curve(rng.random(20_000) < stated, stated)
    assert float(ax.get_title(loc="left").split()[-1]) < 0.02


def test_the_calibration_error_of_overconfidence_is_its_size():
    y = np.tile([1, 1, 1, 0], 100)
    ax = plots.calibration_curve(y, np.full((400, 2), [0.05, 0.95]), n_bins=1)
    assert ax.get_title(loc="left").endswith("0.200")


def test_predictive_intervals_count_their_coverage():
    ax = plots.predictive_intervals([0, 1, 5, 2], [0, 1, 2, 3], [-1] * 4, [3] * 4)
    assert ax.get_title(loc="left").startswith("75.0%")


def test_the_history_draws_each_column():
    history = pd.DataFrame({"step": [0, 1, 2], "loss": [3.0, 2.0, np.nan], "note": ["a", "b", "c"]})
    axes = plots.training_history(history)
    assert len(axes) == 1
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), [3.0, 2.0])


def test_a_history_without_steps_is_refused():
    with pytest.raises(ValueError, match="step='step'"):
        plots.training_history(pd.DataFrame({"loss": [1.0]}))


DRAWINGS = {
    "path_graph": lambda ax: plots.path_graph(network_of(20, name=HOSTILE + "{}"), ax=ax),
    "inclusion_map": lambda ax: plots.inclusion_map(network_of(20, name=HOSTILE + "{}"), ax=ax),
    "local_bars": lambda ax: plots.local_bars(
        explanation_of(network_of(20, name=HOSTILE + "{}"), 1), ax=ax
    ),
    "driver_bars": lambda ax: plots.driver_bars(
        explanation_of(network_of(20, name=HOSTILE + "{}"), 1).drivers(), ax=ax
    ),
    "attribution_bars": lambda ax: plots.attribution_bars(
        integrated_gradients(network_of(20, name=HOSTILE + "{}"), np.ones((1, 16))), ax=ax
    ),
    "contribution_map": lambda ax: plots.contribution_map(
        explanation_of(network_of(20, name=HOSTILE + "{}"), 1), (4, 4), ax=ax
    ),
    "training_history": lambda ax: plots.training_history(
        pd.DataFrame({"step": [1, 2], HOSTILE: [1, 2]}), ax=ax
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_hostile_names_are_drawn_on_the_axes_given(name):
    ax = plt.figure(figsize=(7, 5)).add_subplot()
    returned = np.atleast_1d(DRAWINGS[name](ax)).ravel()
    assert returned.tolist() == [ax]
    ax.figure.canvas.draw()


def test_dollars_stay_dollars():
    from matplotlib import cbook

    from islab.plots.style import shown

    assert not cbook.is_math_text(shown("$a$ costs $5"))


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install islab-bnn\[plots\]"):
        plots.path_graph(network_of(2))
