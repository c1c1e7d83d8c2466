"""What scikit-learn asks of an estimator besides its checks."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import partial_dependence
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab import ISLaBClassifier, ISLaBRegressor
from islab.explain import EffectDisplay

plt = pytest.importorskip("matplotlib.pyplot")

QUICK = {"max_epochs": 60, "n_restarts": 1, "hidden_layer_sizes": (), "random_state": 0}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def x(table):
    return table[["size"]].assign(other=np.random.default_rng(5).normal(size=len(table)))


def test_routed_weights_reach_the_fit_in_a_pipeline(routing, x, numbers):
    weight = np.where(np.arange(len(x)) < 60, 1.0, 0.0)
    model = ISLaBRegressor(**QUICK).set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False).set_output(transform="pandas")
    pipeline = make_pipeline(scaler, model).fit(x, numbers, sample_weight=weight)
    plain = ISLaBRegressor(**QUICK).fit(scaler.transform(x), numbers, sample_weight=weight)
    found = pipeline.predict(x)
    np.testing.assert_array_equal(found, plain.predict(scaler.transform(x)))
    assert not np.allclose(found, clone(plain).fit(scaler.transform(x), numbers).predict(x))


def test_a_routed_offset_is_split_with_the_rows(routing, x, numbers):
    offset = 100 * np.random.default_rng(6).normal(size=len(x))
    model = ISLaBRegressor(**QUICK).set_fit_request(offset=True).set_score_request(offset=True)
    found = cross_validate(model, x, numbers + offset, params={"offset": offset}, cv=2)
    without = cross_validate(ISLaBRegressor(**QUICK), x, numbers, cv=2)
    # The offset is most of the target, so what is left unexplained is the same, and R2 is higher.
    assert found["test_score"].min() > 0.999
    assert without["test_score"].max() < 0.99


def test_groups_go_to_the_splitter_and_weights_and_exposures_with_their_rows(routing, x):
    rng = np.random.default_rng(7)
    years = rng.uniform(0.2, 5, len(x))
    weight = rng.uniform(0.5, 2, len(x))
    counts = rng.poisson(years * np.exp(0.5 * x["size"]))
    groups = np.arange(len(x)) % 6
    asked = {"sample_weight": True, "exposure": True}
    model = ISLaBRegressor(**QUICK, likelihood="poisson").set_fit_request(**asked)
    model.set_score_request(**asked)
    given = {"sample_weight": weight, "exposure": years}
    found = cross_validate(
        model,
        x,
        counts,
        params={**given, "groups": groups},
        cv=GroupKFold(2),
        return_indices=True,
        return_estimator=True,
    )
    split = found["indices"]
    for train, test, fitted, score in zip(
        split["train"], split["test"], found["estimator"], found["test_score"], strict=True
    ):
        assert not set(groups[train]) & set(groups[test])
        parts = {name: value[train] for name, value in given.items()}
        alone = clone(model).fit(x.iloc[train], counts[train], **parts)
        np.testing.assert_array_equal(fitted.predict(x), alone.predict(x))
        held = {name: value[test] for name, value in given.items()}
        assert score == alone.score(x.iloc[test], counts[test], **held)


def test_metadata_that_was_not_asked_for_is_refused(routing, x, numbers):
    pipeline = make_pipeline(StandardScaler(), ISLaBRegressor(**QUICK))
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        pipeline.fit(x, numbers, sample_weight=np.ones(len(x)))


def test_the_selected_columns_come_in_the_container_that_was_asked_for(x, numbers):
    model = ISLaBRegressor(**QUICK).fit(x, numbers)
    assert isinstance(model.transform(x), np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        pd.testing.assert_frame_equal(model.transform(x)[["size"]], x[["size"]])
    chosen = clone(model).fit(x, numbers).set_output(transform="polars").transform(x)
    assert chosen.columns == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(chosen["size"].to_numpy(), x["size"])


@pytest.mark.parametrize("estimator", [ISLaBClassifier, ISLaBRegressor])
def test_the_page_of_an_estimator_names_its_parameters(estimator):
    page = estimator(sparsity=0.25, n_restarts=3)._repr_html_()
    for name in estimator().get_params():
        assert name in page
    assert "0.25" in page


@pytest.fixture(scope="module")
def classes(x, numbers):
    labels = np.where(numbers > numbers.median(), "high", "low")
    return ISLaBClassifier(**QUICK).fit(x, labels), labels


def test_the_page_of_a_fitted_model_says_that_it_is_fitted(x, numbers):
    model = ISLaBRegressor(**QUICK)
    assert ">Not fitted<" in model._repr_html_()
    assert ">Fitted<" in model.fit(x, numbers)._repr_html_()


def test_scikit_learns_displays_draw_our_probabilities(classes, x):
    model, labels = classes
    high = model.predict_proba(x)[:, list(model.classes_).index("high")]
    calibration = CalibrationDisplay.from_estimator(model, x, labels, n_bins=5, pos_label="high")
    np.testing.assert_array_equal(calibration.y_prob, high)
    roc = RocCurveDisplay.from_estimator(model, x, labels, pos_label="high")
    assert roc.roc_auc == pytest.approx(roc_auc_score(labels == "high", high))
    table = ConfusionMatrixDisplay.from_estimator(model, x, labels).confusion_matrix
    assert table.trace() == (model.predict(x) == labels).sum()
    plt.close("all")


def test_our_effect_is_scikit_learns_partial_dependence(x, numbers):
    model = ISLaBRegressor(**QUICK).fit(x, numbers)
    ours = EffectDisplay.from_estimator(model, x, "size", kind="average", n_draws=1000)
    effect = ours.effect.summary.mean[:, 0]
    grid = {"size": ours.effect.values}
    theirs = partial_dependence(model, x, ["size"], custom_values=grid)["average"][0]
    np.testing.assert_allclose(effect - effect[0], theirs - theirs[0], rtol=0, atol=1e-6)
    assert np.ptp(effect) > 1
    assert ours.figure_ is ours.ax_.figure
    plt.close("all")


def test_a_clone_has_the_parameters_and_nothing_learned(x, numbers):
    model = ISLaBRegressor(**QUICK, sparsity=0.5).fit(x, numbers)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
