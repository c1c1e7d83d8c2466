"""The paper's settings as public parameters train as the runner of the paper's cells does."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.paper.hand_tuned import recipe_of
from experiments.paper.presets import ROWS, paper_settings
from experiments.paper.settings import HIDDEN, SETTINGS, SPIKE_AND_SLAB, setting
from islab import ISLaBRegressor
from islab.estimators.settings import check_params, engine_choice, make_recipe

CELLS = sorted(key for key in SETTINGS if key[1] in SPIKE_AND_SLAB)


@pytest.mark.parametrize(("dataset", "method"), CELLS)
def test_presets_stand_for_the_recipe_of_the_runner(dataset, method):
    params = ISLaBRegressor(**paper_settings(dataset, method)).get_params()
    check_params(params)
    found = make_recipe(params, ROWS[dataset])
    hidden = () if method.startswith("blr") else HIDDEN[dataset]
    posterior = engine_choice(params).posterior
    expected = recipe_of(setting(dataset, method), hidden, posterior, ROWS[dataset])
    # Noise is fixed at each stage; only targets with noise have one.
    assert found.network.noise_rate == (0.0 if found.noise else 0.02)
    same = replace(found.network, noise_rate=0.0, schedule=None)
    assert same == replace(expected.network, schedule=None)
    t = np.linspace(0, 1, 101)
    np.testing.assert_array_equal(found.network.schedule(t), expected.network.schedule(t))
    left = ("network", "noise", "linear_initial")
    rest = dict.fromkeys(left)
    assert replace(found, **rest) == replace(expected, **rest)


def test_presets_fit_as_the_runner_does():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 3))
    y = 10 + 2 * x[:, 0] + rng.standard_normal(200)
    params = paper_settings("abalone", "blr", n_rows=200) | {"max_epochs": 400}
    model = ISLaBRegressor(**params, random_state=0).fit(x, y)
    scale = model.network_.scale
    assert (scale.x_center == 0).all()
    assert (scale.y_scale == 1).all()
    assert np.abs(model.predict(x) - (10 + 2 * x[:, 0])).max() < 0.6
    assert model.network_.noise_in_units() == pytest.approx(1.0, abs=0.3)


def test_a_method_without_spike_and_slab_has_no_preset():
    with pytest.raises(ValueError, match="Got method='spam', expected one of islab"):
        paper_settings("wbc", "spam")
