"""The draws of a fit in the hands of ArviZ."""

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
