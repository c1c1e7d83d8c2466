"""Names are drawn as they are, whatever they hold, on the axes given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from islab import plots
from islab.explain import integrated_gradients
from tests.plots.networks import explanation_of, network_of

HOSTILE = "$\\frac{1}$ <b>\n\\$ & % _ ^{"


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
