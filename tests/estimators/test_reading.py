"""Summaries, explanations and pictures of fitted models, and what training leaves."""

import subprocess
import sys

import numpy as np
import pytest

import islab
from islab import ISLaBClassifier

from .conftest import QUICK


def test_the_summary_has_a_line_for_each_used_covariate(classifier):
    frame = classifier.summary().to_frame("covariates")
    names = {classifier.network_.scale.names[column] for column in classifier.network_.covariates}
    assert set(frame["covariate"]) == names
    assert frame["weights"].sum() == classifier.network_.from_covariate().sum()


def test_the_summary_says_how_surely_a_covariate_is_used(classifier):
    frame = classifier.summary().to_frame("covariates")
    assert frame["inclusion"].between(0.5, 1).all()
    assert frame["used_probability"].between(0, 1).all()


def test_the_summary_prints_its_covariates(regressor):
    text = str(regressor.summary())
    assert text.startswith("ISLaBRegressor")
    assert "noise sd" in text
    assert "size" in text


def test_a_summary_without_covariates_says_so(table, labels):
    shuffled = labels.sample(frac=1, random_state=0).to_numpy()
    model = ISLaBClassifier(**{**QUICK, "max_epochs": 600}, sparsity=1.0)
    model.fit(table[["noise"]], shuffled)
    assert "No covariate is kept" in str(model.summary())


def test_html_shows_the_summary_once_fitted(classifier):
    assert "used weights" not in ISLaBClassifier()._repr_html_()
    assert "used weights" in classifier._repr_html_()
    assert "used weights" in classifier._repr_mimebundle_()["text/html"]


def test_used_weights_are_those_of_the_network(classifier):
    assert classifier.n_used_weights_ == classifier.network_.n_used_weights > 0


def test_the_history_ends_with_the_last_step(classifier):
    frame = classifier.history_.to_frame()
    assert frame["step"].is_monotonic_increasing
    assert np.isfinite(classifier.elbo_)


def test_local_contributions_add_up_to_the_predictor(regressor, table):
    explained = regressor.explain_local(table[:5])
    total = explained.intercept + explained.contribution.sum(axis=1)
    predicted = regressor.predictions(table[:5]).predictor("full").mean(axis=0)
    np.testing.assert_allclose(total, predicted, rtol=1e-9)


def test_the_readable_network_is_explained_on_request(regressor, table):
    explained = regressor.explain_local(table[:5], model="median")
    total = explained.intercept + explained.contribution.sum(axis=1)
    predicted = regressor.predictions(table[:5]).predictor("median").mean(axis=0)
    np.testing.assert_allclose(total, predicted, rtol=1e-9)


def test_local_explanations_are_the_same_each_time(regressor, table):
    first, second = (regressor.explain_local(table[:2]).draws_predictor for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_contributions_may_count_from_a_row_of_a_frame(regressor, table):
    found = regressor.explain_local(table[:3], baseline=table[7:8])
    covariates = regressor.columns_.encode(table[7:8])[0]
    expected = regressor.explain_local(table[:3], baseline=covariates)
    np.testing.assert_array_equal(found.contribution, expected.contribution)


def test_a_baseline_of_two_rows_is_refused(regressor, table):
    with pytest.raises(ValueError, match="Got a baseline of 2 rows, expected one row; try"):
        regressor.explain_local(table[:3], baseline=table[7:9])


def test_one_hot_columns_are_explained_as_one_variable(classifier, table):
    frame = classifier.explain_local(table[:3]).to_frame("variables")
    assert (frame["variable"] == "colour").sum() == 3


def test_global_explanations_average_contributions_over_rows(classifier, table):
    frame = classifier.explain_global(table).to_frame("variables").set_index("variable")
    assert frame.loc["size", "contribution"] > 0


def test_outputs_are_explained_by_class(three_classes, table):
    explained = three_classes.explain_local(table[:2], output="b")
    assert explained.outputs == ("b",)


SCRIPT = """
import sys
import numpy as np
import islab
from islab import ISLaBClassifier
try:
    import islab.learn.engines.native
except ImportError:
    sys.exit(77)
x = np.random.default_rng(0).normal(size=(60, 3))
model = ISLaBClassifier(max_epochs=20, n_restarts=1, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)
model.predict_proba(x)
model.explain_local(x[:1])
model.explain_global(x)
model.summary()
for name, held in (("full", "full"), ("sparse", "median")):
    model.save(f"{name}.islab", sparse=name == "sparse")
    np.save(f"{name}.npy", model.predict_proba(x, model=held))
islab.load("sparse.islab").predict_proba(x)
np.save("x.npy", x)
assert "torch" not in sys.modules
assert "matplotlib" not in sys.modules
"""


@pytest.fixture(scope="module")
def other_process(tmp_path_factory):
    """The script's result and the folder that it worked in."""
    folder = tmp_path_factory.mktemp("process")
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("the native engine is not compiled")
    return done, folder


def test_torch_is_not_imported_by_fitting_predicting_explaining_or_loading(other_process):
    done, _ = other_process
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["full", "sparse"])
def test_a_model_of_another_process_predicts_the_same_numbers(other_process, name):
    _, folder = other_process
    found = islab.load(folder / f"{name}.islab").predict_proba(np.load(folder / "x.npy"))
    np.testing.assert_array_equal(found, np.load(folder / f"{name}.npy"))


def test_importing_the_package_is_light():
    code = "import sys, islab; assert 'numpy' not in sys.modules and 'sklearn' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_names_what_it_offers():
    assert set(islab.__all__) <= set(dir(islab))
    for name in islab.__all__:
        assert getattr(islab, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = islab.nothing


def test_the_global_explanation_is_drawn_by_variable(regressor):
    ax = regressor.explain_global().plot(by_variable=True)
    drawn = {text.get_text() for text in ax.texts}
    assert "colour" in drawn
    assert not any(text.startswith("colour=") for text in drawn)
