"""Names are drawn as they are, whatever they hold, on the axes given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from islab import plots
from islab.explain import explain_global
from islab.explain.importance import joint_effect
from tests.plots.networks import explanation_of, network_of

HOSTILE = "$\\frac{1}$ <b>\n\\$ & % _ ^{"


def hostile_model():
    network = network_of(20, name=HOSTILE + "{}")
    x = np.random.default_rng(0).normal(size=(30, network.n_covariates))
    return explain_global(network, x, n_draws=10, random_state=0)


DRAWINGS = {
    "path_graph": lambda ax: plots.path_graph(network_of(20, name=HOSTILE + "{}"), ax=ax),
    "inclusion_map": lambda ax: plots.inclusion_map(network_of(20, name=HOSTILE + "{}"), ax=ax),
    "local_bars": lambda ax: plots.local_bars(
        explanation_of(network_of(20, name=HOSTILE + "{}"), 1), ax=ax
    ),
    "driver_bars": lambda ax: plots.driver_bars(
        explanation_of(network_of(20, name=HOSTILE + "{}"), 1).drivers(), ax=ax
    ),
    "effect_curve": lambda ax: plots.effect_curve(hostile_model().effect(HOSTILE + "0"), ax=ax),
    "importance_bars": lambda ax: plots.importance_bars(hostile_model().importance, ax=ax),
    "joint_effects": lambda ax: plots.joint_effects(
        [joint_effect(hostile_model().curves, HOSTILE + "0", HOSTILE + "1")], ax=ax
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
