"""What chains tell about themselves: convergence, acceptance, agreement, ArviZ."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.core.diagnostics import disagreeing_variable
from islab.core.sampled import ReadingPrice
from tests.estimators.conftest import QUICK


@pytest.fixture(scope="module")
def linear(table, numbers):
    settings = {**QUICK, "hidden_layer_sizes": (), "posterior": "sampled"}
    return ISLaBRegressor(**settings).fit(table, numbers)


def test_chains_of_a_linear_model_have_converged(linear):
    found = linear.diagnostics()
    assert found.converged
    assert found.quantities["rhat"].max() < 1.05
    assert found.quantities.loc["predictions", "ess_bulk"] > 100


def test_quantities_are_those_of_the_draws(linear):
    found = linear.diagnostics().quantities
    sizes = np.concatenate([chain.sizes for chain in linear.posterior_.chains])
    assert found.loc["used weights", "mean"] == pytest.approx(sizes.mean())
    assert found.loc["size is used", "mean"] == 1.0
    assert found.loc["noise is used", "mean"] < 0.5


def test_noise_has_the_name_and_the_units_of_the_summary(linear):
    found = linear.diagnostics().quantities.loc["noise sd of price", "mean"]
    assert found == pytest.approx(float(linear.summary().facts["noise sd"]), rel=0.05)


@pytest.mark.parametrize("n_levels", [3, 5])
def test_all_gaps_between_thresholds_are_diagnosed(table, numbers, n_levels):
    settings = {**QUICK, "hidden_layer_sizes": (), "posterior": "sampled"}
    levels = pd.qcut(numbers, n_levels, labels=False)
    model = ISLaBClassifier(**settings, likelihood="ordinal").fit(table, levels)
    found = model.diagnostics().quantities
    gaps = found.loc[found.index.str.startswith("gaps between thresholds"), "mean"]
    drawn = np.concatenate([chain.noise for chain in model.posterior_.chains])
    np.testing.assert_allclose(gaps, drawn.mean(axis=0))


def test_arviz_takes_several_gaps_of_one_output(table, numbers):
    pytest.importorskip("arviz_base")
    settings = {**QUICK, "hidden_layer_sizes": (), "posterior": "sampled"}
    levels = pd.qcut(numbers, 5, labels=False)
    model = ISLaBClassifier(**settings, likelihood="ordinal").fit(table, levels)
    assert model.to_arviz()["posterior"]["noise"].shape[-1] == 3


def test_a_category_is_used_if_one_of_its_levels_is(linear):
    names, used = linear.posterior_.used_variables()
    levels = [name.startswith("colour") for name in linear.columns_.names]
    by_level = linear.posterior_.chains[0].uses_covariate(linear.posterior_.architecture)
    expected = by_level[:, levels].any(axis=1)
    np.testing.assert_array_equal(used[0][:, names.index("colour")], expected)


def test_moves_are_added_up_over_chains(linear):
    moves = linear.diagnostics().to_frame("moves")
    proposed = [chain.moves["toggle output edge"][1] for chain in linear.posterior_.chains]
    assert moves.loc["toggle output edge", "proposed"] == sum(proposed)
    assert moves["rate"].dropna().between(0, 1).all()


def test_shares_of_chains_add_up(linear):
    assert linear.diagnostics().to_frame("chains")["share"].sum() == pytest.approx(1)


def test_files_keep_what_chains_tell(linear, tmp_path):
    linear.save(tmp_path / "m.islab")
    again = load(tmp_path / "m.islab").diagnostics()
    for name in ("quantities", "moves", "chains"):
        pd.testing.assert_frame_equal(again.to_frame(name), linear.diagnostics().to_frame(name))


def test_an_unknown_table_is_refused(linear):
    with pytest.raises(ValueError, match="expected one of quantities, moves, chains"):
        linear.diagnostics().to_frame("units")


def test_a_model_without_chains_says_so(table, numbers):
    model = ISLaBRegressor(**QUICK, posterior="independent").fit(table, numbers)
    with pytest.raises(ValueError, match="try posterior='sampled'"):
        model.diagnostics()


def test_arviz_has_what_every_draw_has(linear):
    pytest.importorskip("arviz_base")
    tree = linear.to_arviz()["posterior"]
    names, used = linear.posterior_.used_variables()
    assert list(tree["table_column"].to_numpy()) == list(names)
    np.testing.assert_array_equal(tree["used"].to_numpy(), np.array(used))
    assert tree["noise"].sizes["output"] == 1


def test_chains_that_differ_on_a_variable_are_named(linear):
    posterior = linear.posterior_
    assert disagreeing_variable(posterior) is None
    first, second = posterior.chains[:2]
    size = linear.columns_.names.index("size")
    slots = np.flatnonzero(posterior.architecture.ends[0] == size)
    kept = ~np.isin(second.slots, slots)
    owner = np.repeat(np.arange(second.n_draws), second.sizes)[kept]
    without = replace(
        second,
        slots=second.slots[kept],
        weights=second.weights[kept],
        ends=np.cumsum(np.bincount(owner, minlength=second.n_draws)),
    )
    name, lowest, highest = disagreeing_variable(replace(posterior, chains=(first, without)))
    assert (name, lowest, highest) == ("size", 0.0, 1.0)


def test_a_fit_warns_of_a_readable_network_that_predicts_much_worse(table, numbers, monkeypatch):
    monkeypatch.setattr(ReadingPrice, "large", True)
    with pytest.warns(UserWarning, match="readable network that predicts worse") as caught:
        model = ISLaBRegressor(**QUICK, posterior="sampled").fit(table, numbers)
    assert model.posterior_.price.words in str(caught[0].message)


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (2.0, "0.020 a row lower than that of all draws"),
        (-2.0, "0.020 a row higher than that of all draws"),
        (0.04, "a row within 0.001 of that of all draws"),
    ],
)
def test_the_price_of_reading_says_which_way_it_goes(difference, words):
    assert words in ReadingPrice(difference, 1.0, 100).words


@pytest.mark.parametrize(
    ("price", "large"),
    [
        (ReadingPrice(50.0, 10.0, 100), True),
        (ReadingPrice(50.0, 30.0, 100), False),  # not clear
        (ReadingPrice(50.0, 10.0, 10_000), False),  # clear, and small
        (ReadingPrice(3.0, 0.1, 10), False),  # few rows
    ],
)
def test_a_price_is_large_if_it_is_clear_and_matters(price, large):
    assert price.large == large
