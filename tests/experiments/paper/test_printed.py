"""The settings beside what the paper's appendix prints and what its authors' scripts add.

Both are written out here a second time, so that a setting cannot change unseen.
"""

from dataclasses import replace

import pytest

from experiments.paper.hand_tuned import recipe_of
from experiments.paper.methods import posterior_of
from experiments.paper.presets import ROWS
from experiments.paper.settings import (
    HIDDEN,
    NOT_AS_PRINTED,
    SETTINGS,
    SPIKE_AND_SLAB,
    WEAKER,
    setting,
)

# Of the table of hyperparameters: prior scale and inclusion, learning rate, epochs, batches.
PRINTED = """
linear islab 2.5 0.001 0.1 200 50
linear islab-flow 2.5 0.001 0.01 200 10
linear blr 2.5 0.001 0.01 200 50
linear blr-flow 2.5 0.001 0.01 200 50
linear l1-skip - - 0.01 750 50
nonlinear islab 30 0.01 0.01 750 50
nonlinear islab-flow 30 0.05 0.01 750 10
nonlinear blr 30 0.001 0.01 200 50
nonlinear blr-flow 30 0.001 0.01 200 50
nonlinear l1-skip - - 0.01 750 50
wbc islab 1 0.01 0.1 200 8
wbc islab-flow 1 0.01 0.05 200 8
wbc blr 1 0.01 0.01 200 8
wbc blr-flow 1 0.01 0.01 200 8
wbc l1-skip - - 0.01 200 8
wbc horseshoe - - 0.01 1000 8
wbc concrete-dropout - - 0.01 200 8
wbc spam - - 0.1 200 8
abalone islab 25 0.25 0.01 5000 5
abalone islab-flow 25 0.25 0.01 2000 5
abalone blr 25 0.25 0.005 2000 5
abalone blr-flow 15 0.25 0.01 2000 5
abalone l1-skip - - 0.01 2000 5
abalone horseshoe - - 0.01 2000 5
abalone concrete-dropout - - 0.005 2000 5
abalone spam - - 0.01 2000 5
mice islab 25 0.05 0.01 2000 27
mice islab-flow 25 0.05 0.01 500 27
mice blr 25 0.05 0.01 500 27
mice blr-flow 25 0.05 0.01 500 27
mice l1-skip - - 0.001 20000 1
mice horseshoe - - 0.001 20000 1
mice concrete-dropout - - 0.001 20000 1
mice spam - - 0.01 500 27
mnist islab 15 0.01 0.01 1000 50
mnist islab-flow 10 0.01 0.005 2000 50
mnist blr 15 0.1 0.01 250 50
mnist blr-flow 10 0.1 0.005 250 50
mnist l1-skip - - 0.01 250 50
mnist horseshoe - - 0.001 250 600
mnist concrete-dropout - - 0.001 250 600
mnist spam - - 0.001 250 50
fer2013 islab 30 0.05 0.005 10000 10
fer2013 islab-flow 30 0.1 0.0025 10000 10
fer2013 blr 30 0.05 0.005 1000 10
fer2013 blr-flow 30 0.1 0.0025 1000 10
fer2013 l1-skip - - 0.005 1000 10
fer2013 horseshoe - - 0.005 1000 10
fer2013 concrete-dropout - - 0.005 1000 10
fer2013 spam - - 0.001 1000 10
"""

# Of the table of starts: bounds of the inclusion parameters from hidden units and from covariates.
STARTS = """
linear islab -10 -7 5 5
linear islab-flow -10 -7 5 5
linear blr - - 0 1
linear blr-flow - - 0 1
nonlinear islab -5 -4 5 5
nonlinear islab-flow 4 6 5 15
nonlinear blr - - 0 1
nonlinear blr-flow - - 0 1
wbc islab -9 -5 5 5
wbc islab-flow -9 -5 5 15
wbc blr - - 0 1
wbc blr-flow - - 0 1
abalone islab -9 -4 5 5
abalone islab-flow -9 -4 5 5
abalone blr - - 0 1
abalone blr-flow - - 0 1
mice islab 10 15 10 15
mice islab-flow 10 15 10 15
mice blr - - 10 15
mice blr-flow - - 10 15
mnist islab 5 15 5 15
mnist islab-flow 10 15 10 15
mnist blr - - 0 1
mnist blr-flow - - 0 1
fer2013 islab -8 -6 -8 -6
fer2013 islab-flow -8 -6 -8 -6
fer2013 blr - - 0 1
fer2013 blr-flow - - 0 1
"""

# Of the scripts: where the inclusion parameters have a rate of their own. That of the linear
# problem prepares one of 1.5, and then gives its optimiser all parameters with one rate.
INCLUSION_RATES = {
    ("nonlinear", "islab"): 0.1,
    ("nonlinear", "islab-flow"): 0.1,
    ("mice", "islab"): 0.2 * 0.01,
    ("mnist", "islab"): 0.1,
    ("mnist", "islab-flow"): 0.01,
}

# And when networks lower their rates, and to which share, where it is not by half at 50, 70, 90 %.
LOWERED = {
    "abalone": ((0.3, 0.5, 0.7, 0.9), 0.5),
    "mnist": ((0.3, 0.5, 0.7, 0.9), 0.7),
    "fer2013": ((0.7, 0.9), 0.5),
}


def rows(table):
    """Numbers by data set and method; None stands where the paper has a dash."""
    lines = [line.split() for line in table.strip().splitlines()]
    return {
        (dataset, method): [None if each == "-" else float(each) for each in numbers]
        for dataset, method, *numbers in lines
    }


def printed(dataset, method):
    """The setting with what the appendix prints where another run was summarised."""
    found = setting(dataset, method)
    for name, own, as_printed, _ in NOT_AS_PRINTED:
        if (name, own) == (dataset, method):
            found = replace(found, **as_printed)
    return found


def test_the_tables_have_all_settings():
    others = {("mnist", name) for name in WEAKER}
    assert rows(PRINTED).keys() == SETTINGS.keys() - others
    assert rows(STARTS).keys() == {key for key in SETTINGS if key[1] in SPIKE_AND_SLAB}


@pytest.mark.parametrize(("key", "numbers"), rows(PRINTED).items())
def test_a_setting_has_the_hyperparameters_of_the_appendix(key, numbers):
    found = printed(*key)
    assert [found.tau, found.psi, found.rate, found.epochs, found.batches] == numbers


@pytest.mark.parametrize(("key", "bounds"), rows(STARTS).items())
def test_inclusion_starts_where_the_appendix_says(key, bounds):
    found = printed(*key)
    assert [*(found.hidden or (None, None)), *(found.covariates or ())] == bounds


@pytest.mark.parametrize("key", rows(STARTS))
def test_rates_are_those_of_the_scripts(key):
    dataset, method = key
    hidden = () if method.startswith("blr") else HIDDEN[dataset]
    stage = recipe_of(setting(*key), hidden, posterior_of(method), ROWS[dataset]).network
    own = setting(*key)
    assert stage.lambda_rate == pytest.approx(INCLUSION_RATES.get(key, own.rate))
    milestones, drop = LOWERED.get(dataset, ((0.5, 0.7, 0.9), 0.5)) if hidden else ((), 1.0)
    for number, at in enumerate(milestones, start=1):
        around = [drop ** (number - 1), drop**number]
        assert stage.schedule([at - 1e-6, at]) == pytest.approx(around)
    assert stage.schedule([1.0]) == pytest.approx(drop ** len(milestones))


@pytest.mark.parametrize("method", WEAKER)
def test_weaker_penalties_are_trained_alike(method):
    assert setting("mnist", method) == setting("mnist", "l1-skip")
