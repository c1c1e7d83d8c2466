"""The history of training is drawn column by column."""

import numpy as np
import pandas as pd
import pytest

from islab.plots import training_history


def test_the_history_draws_each_column():
    history = pd.DataFrame({"step": [0, 1, 2], "loss": [3.0, 2.0, np.nan], "note": ["a", "b", "c"]})
    axes = training_history(history)
    assert len(axes) == 1
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), [3.0, 2.0])


def test_a_history_without_steps_is_refused():
    with pytest.raises(ValueError, match="step='step'"):
        training_history(pd.DataFrame({"loss": [1.0]}))
