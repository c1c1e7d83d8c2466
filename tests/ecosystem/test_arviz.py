"""The draws of a fit in the hands of ArviZ."""

import warnings

import numpy as np
import pytest

from islab import ISLaBRegressor

pytest.importorskip("arviz_base")
stats = pytest.importorskip("arviz_stats")
# ArviZ divides by the variance of a trace, which is 0 for a variable that every draw uses.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def model(table, numbers):
    return ISLaBRegressor(max_epochs=30, n_restarts=2, random_state=0).fit(table, numbers)


def test_a_summary_has_a_line_for_each_variable_and_its_probability_of_use(model):
    summary = stats.summary(model.to_arviz(), round_to="none")
    names, used = model.posterior_.used_variables()
    n_draws = min(len(each) for each in used)
    expected = np.mean([each[:n_draws] for each in used], axis=(0, 1))
    found = summary.loc[[f"used[{name}]" for name in names], "mean"].astype(float)
    np.testing.assert_allclose(found, expected)


def test_r_hat_is_that_of_diagnostics(model):
    theirs = stats.rhat(model.to_arviz(), var_names=["n_used_weights"])
    theirs = float(theirs["n_used_weights"])
    ours = model.diagnostics().to_frame("quantities").loc["used weights", "rhat"]
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.fixture
def plots(monkeypatch):
    """ArviZ's plots in its own style: its release 0.8 does not start with matplotlib 3.11."""
    style = pytest.importorskip("matplotlib.style")
    monkeypatch.setattr(style, "core", style, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plots = pytest.importorskip("arviz_plots")
        pytest.importorskip("arviz_plots.backend.matplotlib")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with pyplot.rc_context():
        plots.style.use("arviz-variat")
        yield plots
    pyplot.close("all")


def test_a_trace_plot_draws_each_chain(plots, model):
    draws = model.to_arviz()
    drawn = plots.plot_trace(draws, var_names=["n_used_weights"], backend="matplotlib")
    lines = drawn.viz["trace"]["n_used_weights"].values
    expected = draws["posterior"]["n_used_weights"].values
    assert lines.shape == expected.shape[:1]
    for line, values in zip(lines, expected, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)


def test_a_forest_plot_has_a_line_for_each_variable(plots, model):
    names, used = model.posterior_.used_variables()
    drawn = plots.plot_forest(
        model.to_arviz(),
        var_names=["used"],
        combined=True,
        point_estimate="mean",
        backend="matplotlib",
    )
    points = drawn.viz["point_estimate"]["used"]
    assert points["table_column"].values.tolist() == list(names)
    n_draws = min(len(each) for each in used)
    shares = np.mean([each[:n_draws] for each in used], axis=(0, 1))
    found = [point.get_offsets()[0, 0] for point in points.values]
    np.testing.assert_allclose(found, shares)


@pytest.mark.parametrize("name", ["plot_rank", "plot_ess", "plot_autocorr", "plot_mcse"])
def test_plots_of_convergence_have_a_panel_for_each_quantity(plots, model, name):
    draws = model.to_arviz()
    names = ["n_used_weights", "noise", "log_likelihood"]
    drawn = getattr(plots, name)(draws, var_names=names, backend="matplotlib")
    assert set(drawn.viz["plot"].data_vars) == set(names)
