"""The settings of the paper's appendix, and what is trained with them."""

from pathlib import Path

import pytest

from experiments.paper import tuned_parameters
from experiments.paper.hand_tuned import recipe_of
from experiments.paper.methods import make_estimator, posterior_of
from experiments.paper.settings import (
    CHOSEN,
    DATASETS,
    HIDDEN,
    METHODS,
    NOT_AS_PRINTED,
    NOT_RUN,
    PRUNED,
    SETTINGS,
    family,
    method_of,
    setting,
)
from experiments.paper.tasks import load_task
from islab.core.architecture import Architecture
from islab.evaluate.runner import read_records

RAW = Path(__file__).parents[3] / "docs" / "results" / "raw"


@pytest.mark.parametrize(
    ("name", "covariates", "outputs", "weights"),
    [
        ("linear", 4, 1, 1_544),
        ("wbc", 30, 1, 5_580),
        ("abalone", 9, 1, 43_809),
        ("mice", 77, 8, 62_216),
        ("mnist", 784, 10, 1_314_640),
        ("fer2013", 48 * 48, 3, 969_112),
    ],
)
def test_the_networks_have_as_many_weights_as_the_paper_says(name, covariates, outputs, weights):
    assert Architecture(covariates, HIDDEN[name], outputs).n_weights == weights


def test_each_data_set_has_the_methods_the_paper_ran():
    simulated = [method for method in METHODS if ("linear", method) in SETTINGS]
    assert simulated == list(METHODS[:5])
    for name in ("wbc", "abalone", "mice", "mnist", "fer2013"):
        assert all((name, method) in SETTINGS for method in METHODS)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("method", METHODS[:4])
def test_spike_and_slab_settings_are_complete(dataset, method):
    found = setting(dataset, method)
    assert found.tau is not None
    assert found.psi is not None
    assert found.covariates is not None
    assert (found.hidden is not None) == method.startswith("islab")


def test_a_setting_that_the_paper_lacks_is_a_sentence():
    with pytest.raises(ValueError, match="no setting of horseshoe on linear; try"):
        setting("linear-0.5", "horseshoe")


def test_both_splits_of_the_mice_share_their_settings():
    assert setting("mice-by-mouse", "islab") == setting("mice", "islab")


@pytest.mark.parametrize(
    ("name", "covariates", "outputs", "used"),
    [
        ("wbc", 30, 1, 140),
        ("abalone", 9, 1, 2_290),
        ("mice", 77, 8, 1_931),
        ("mnist", 784, 10, 22_608),
        ("fer2013", 48 * 48, 3, 5_608),
    ],
)
def test_pruning_leaves_the_papers_number_of_weights(name, covariates, outputs, used):
    net = Architecture(covariates, HIDDEN[name], outputs, input_skip=False)
    last = HIDDEN[name][-1] * outputs
    assert last + round((1 - PRUNED[name]) * (net.n_weights - last)) == used


def test_a_recipe_has_the_papers_steps_batches_and_start():
    recipe = recipe_of(setting("wbc", "islab"), HIDDEN["wbc"], "independent", 512)
    stage = recipe.network
    assert (stage.n_steps, stage.batch_size) == (200 * 8, 64)
    assert (stage.rate, stage.tau, stage.psi) == (0.1, 1, 0.01)
    assert recipe.initial.covariate_inclusion == (5, 5)
    assert recipe.initial.hidden_inclusion == (-9, -5)
    assert recipe.activation == "sigmoid"
    assert stage.empirical_bayes is None


def test_flows_start_from_small_means():
    recipe = recipe_of(setting("wbc", "islab-flow"), HIDDEN["wbc"], "flow", 512)
    assert recipe.initial.means == (-0.01, 0.01)


@pytest.mark.parametrize(
    ("name", "method", "rates"),
    [
        ("mnist", "islab", (0.01, 0.1)),
        ("nonlinear", "islab", (0.01, 0.1)),
        ("mice", "islab", (0.01, 0.002)),
        ("mice", "islab-flow", (0.01, 0.01)),
    ],
)
def test_the_inclusion_parameters_have_their_own_rate(name, method, rates):
    stage = recipe_of(setting(name, method), HIDDEN[name], posterior_of(method), 60_000).network
    assert (stage.rate, stage.lambda_rate) == rates


def test_rates_are_lowered_where_the_authors_lower_them():
    stage = recipe_of(setting("abalone", "islab"), HIDDEN["abalone"], "independent", 3_759).network
    assert stage.schedule([0.2, 0.4, 0.6, 0.8, 0.95]).tolist() == [1.0, 0.5, 0.25, 0.125, 0.0625]


@pytest.mark.parametrize(("name", "method", "printed", "run"), [*NOT_AS_PRINTED])
def test_settings_are_of_the_runs_that_the_tables_summarise(name, method, printed, run):
    found = setting(name, method)
    assert printed.keys() == run.keys()
    assert {key: getattr(found, key) for key in run} == run
    assert all(printed[key] != run[key] for key in run)


def test_one_setting_is_as_printed_although_another_was_run():
    name, method, printed, run = NOT_RUN
    found = setting(name, method)
    assert {key: getattr(found, key) for key in run} == printed


def test_linear_models_start_small_with_a_constant_rate():
    recipe = recipe_of(setting("abalone", "blr"), (), "independent", 3_759)
    assert recipe.initial.means == (-0.01, 0.01)
    assert recipe.initial.sigma == pytest.approx(0.011, abs=1e-3)
    assert recipe.network.bias_tau == 1.0
    assert recipe.network.schedule([0.0, 0.99]).tolist() == [1.0, 1.0]


def test_the_family_of_a_data_set_is_its_experiment():
    assert [family(name) for name in ("nonlinear-0.9", "mice-by-mouse", "wbc")] == [
        "nonlinear",
        "mice",
        "wbc",
    ]


def test_what_the_paper_does_not_say_is_what_the_study_of_choices_found():
    found = {
        (family(record["task"]), method_of(record["method"])): {
            record["parameter"]: record["value"]
        }
        for record in read_records(RAW / "choices.jsonl")
    }
    assert found.keys() == CHOSEN.keys()
    for key, values in found.items():
        assert CHOSEN[key] == pytest.approx(values, rel=0.05), key


@pytest.mark.parametrize("method", tuned_parameters.METHODS)
def test_the_paper_recipe_takes_what_was_chosen(method):
    task = load_task("wbc", "paper", quick=True)
    params = make_estimator(method, task, "paper", 0).get_params()
    assert params | CHOSEN["wbc", method] == params


@pytest.mark.parametrize("method", tuned_parameters.METHODS)
def test_a_choice_names_its_parameter_and_value(method):
    record = tuned_parameters.choose("wbc", method, quick=True)
    assert list(CHOSEN["wbc", method]) == [record["parameter"]]
    assert record["value"] > 0
