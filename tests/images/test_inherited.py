"""What a classifier of images has from the estimators of tables: progress kept, predictions."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest

from islab import load
from islab.cli import main
from islab.images import ISLaBImageClassifier
from islab.learn.engines.torch.convolution import ConvolutionEngine

RNG = np.random.default_rng(3)
LABELS = RNG.integers(3, size=40)
IMAGES = RNG.integers(200, size=(40, 8, 8)).astype(np.uint8)
IMAGES[np.arange(40), 2 * LABELS] = 255
# 120 steps: three runs.
QUICK = {
    "channels": (2,),
    "hidden_layer_sizes": (),
    "batch_size": 20,
    "max_epochs": 60,
    "n_draws": 5,
    "random_state": 0,
}


@pytest.fixture
def stop_in(monkeypatch):
    """Presses Ctrl-C in the n-th run of steps, once."""

    def stop(number):
        run, left = ConvolutionEngine.run, [number]

        def impatient(self, steps):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return run(self, steps)

        monkeypatch.setattr(ConvolutionEngine, "run", impatient)

    return stop


@pytest.fixture(scope="module")
def fitted():
    return ISLaBImageClassifier(**QUICK).fit(IMAGES, LABELS)


@pytest.mark.parametrize("posterior", ["independent", "flow"])
def test_a_fit_that_was_stopped_goes_on_and_ends_in_the_same_model(posterior, stop_in, tmp_path):
    params = {**QUICK, "posterior": posterior}
    whole = ISLaBImageClassifier(**params).fit(IMAGES, LABELS)
    model = ISLaBImageClassifier(**params, checkpoint=tmp_path)
    stop_in(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(IMAGES, LABELS)
    assert list(tmp_path.glob("*/images.npz"))
    model.fit(IMAGES, LABELS)
    np.testing.assert_array_equal(model.predict_proba(IMAGES), whole.predict_proba(IMAGES))
    np.testing.assert_array_equal(model.history_.to_array(), whole.history_.to_array())


def test_what_goes_on_does_not_begin_again(stop_in, tmp_path, monkeypatch):
    model = ISLaBImageClassifier(**QUICK, checkpoint=tmp_path)
    stop_in(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(IMAGES, LABELS)
    firsts, run = [], ConvolutionEngine.run
    monkeypatch.setattr(
        ConvolutionEngine,
        "run",
        lambda self, steps: (firsts.append(steps.first), run(self, steps))[1],
    )
    model.fit(IMAGES, LABELS)
    assert firsts[0] >= 50


def test_a_stream_goes_on_at_its_batch(stop_in, tmp_path):
    parts = [(IMAGES[start : start + 16], LABELS[start : start + 16]) for start in (0, 16, 32)]
    whole = ISLaBImageClassifier(**QUICK).fit(parts)
    model = ISLaBImageClassifier(**QUICK, checkpoint=tmp_path)
    stop_in(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(parts)
    model.fit(parts)
    np.testing.assert_array_equal(model.predict_proba(IMAGES), whole.predict_proba(IMAGES))


def test_checkpoints_are_gone_when_the_fit_is_done(tmp_path):
    ISLaBImageClassifier(**QUICK, checkpoint=tmp_path).fit(IMAGES, LABELS)
    assert not list(tmp_path.iterdir())


def test_other_images_do_not_go_on_from_a_checkpoint(stop_in, tmp_path):
    model = ISLaBImageClassifier(**QUICK, checkpoint=tmp_path)
    stop_in(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(IMAGES, LABELS)
    others = IMAGES[:, ::-1]
    expected = ISLaBImageClassifier(**QUICK).fit(others, LABELS)
    model.fit(others, LABELS)
    np.testing.assert_array_equal(model.posterior_.head.mu, expected.posterior_.head.mu)


def test_a_checkpoint_without_a_seed_is_of_no_use(tmp_path):
    model = ISLaBImageClassifier(**{**QUICK, "random_state": None}, checkpoint=tmp_path)
    with pytest.warns(UserWarning, match="a checkpoint without a random_state"):
        model.fit(IMAGES, LABELS)


def test_an_interrupted_fit_is_kept_where_that_is_asked_for(stop_in, tmp_path):
    model = ISLaBImageClassifier(**QUICK, on_interrupt="keep", checkpoint=tmp_path / "state")
    stop_in(2)
    with pytest.warns(UserWarning, match="interrupted; the best model so far is kept"):
        model.fit(IMAGES, LABELS)
    assert model.interrupted_
    assert "interrupted" in model.summary().facts["training"]
    model.save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    assert again.interrupted_
    assert again.checkpoint is None


def test_an_interrupt_before_anything_is_learned_is_raised(stop_in):
    model = ISLaBImageClassifier(**QUICK, on_interrupt="keep")
    stop_in(1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(IMAGES, LABELS)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(("name", "value"), [("checkpoint", 3), ("on_interrupt", "stop")])
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"Got {name}="):
        ISLaBImageClassifier(**{**QUICK, name: value}).fit(IMAGES, LABELS)


def test_predictions_are_drawn_once_for_all_that_is_asked_of_them(fitted, monkeypatch):
    found = fitted.predictions(IMAGES)
    expected = fitted.predict_proba(IMAGES)
    np.testing.assert_array_equal(fitted.predict_proba(found), expected)
    monkeypatch.setattr(type(fitted.posterior_), "draw", None)
    np.testing.assert_allclose(fitted.sample_posterior(found).mean(axis=0), expected, rtol=1e-5)


def test_quantiles_hold_the_interval(fitted):
    quantiles = fitted.predict_quantiles(IMAGES, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles[..., [0, 2]], fitted.predict_interval(IMAGES, 0.9))


def test_the_parts_of_the_variance_sum_to_that_of_a_class(fitted):
    found, p = fitted.decompose_uncertainty(IMAGES), fitted.predict_proba(IMAGES)
    np.testing.assert_allclose(found.total, p * (1 - p), atol=1e-6)
    assert (found.epistemic >= 0).all()


def test_residuals_name_the_observed_class_and_its_probability(fitted):
    frame = fitted.residuals(IMAGES, LABELS)
    own = fitted.predict_proba(IMAGES)[np.arange(40), LABELS]
    np.testing.assert_array_equal(frame["observed"], LABELS)
    np.testing.assert_array_equal(frame["probability"], own)


def test_a_fitted_model_shows_its_layers_in_a_notebook(fitted):
    assert "<td>convolution 1</td>" in fitted._repr_mimebundle_()["text/html"]


def test_the_command_line_predicts_an_array_of_images(fitted, tmp_path, capsys):
    fitted.save(tmp_path / "model.islab")
    np.save(tmp_path / "images.npy", IMAGES)
    assert main(["predict", str(tmp_path / "model.islab"), str(tmp_path / "images.npy")]) == 0
    frame = pd.read_csv(StringIO(capsys.readouterr().out))
    np.testing.assert_array_equal(frame["prediction"], fitted.predict(IMAGES))
    np.testing.assert_allclose(
        frame["probability_1"], fitted.predict_proba(IMAGES)[:, 1], atol=1e-6
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no array", "cannot be read as an array"),
        (b"PK\3\4 half of an archive", "cannot be read as an array"),
        (None, "cannot be read"),
    ],
)
def test_the_command_line_names_a_file_without_images(fitted, content, message, tmp_path, capsys):
    fitted.save(tmp_path / "model.islab")
    if content is not None:
        (tmp_path / "images.npy").write_bytes(content)
    assert main(["predict", str(tmp_path / "model.islab"), str(tmp_path / "images.npy")]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def labelled(tmp_path):
    np.savez(tmp_path / "images.npz", images=IMAGES, labels=LABELS)
    return str(tmp_path / "images.npz")


def test_the_command_line_predicts_images_beside_labels(fitted, labelled, tmp_path, capsys):
    fitted.save(tmp_path / "model.islab")
    assert main(["predict", str(tmp_path / "model.islab"), labelled]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(IMAGES)


def test_the_command_line_reports_on_a_model_of_images(fitted, labelled, tmp_path, capsys):
    fitted.save(tmp_path / "model.islab")
    page = str(tmp_path / "report.html")
    assert main(["report", str(tmp_path / "model.islab"), labelled, "-o", page]) == 0
    assert f"report of {len(IMAGES)} images written" in capsys.readouterr().err
    assert "calibration error" in (tmp_path / "report.html").read_text()


def test_the_command_line_compares_methods_on_images(labelled, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path))
    options = ["--methods", "ridge", "--seeds", "2", "--test-size", "0.5"]
    assert main(["compare", labelled, *options]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"classification of {len(IMAGES)} images\n"
    assert captured.out.splitlines()[1].startswith("ridge")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": IMAGES}, "without an array 'labels', expected the label of each image"),
        ({"images": IMAGES, "other": LABELS}, "with arrays images, other, expected one of images"),
    ],
)
def test_images_without_labels_are_named(arrays, message, tmp_path, capsys):
    np.savez(tmp_path / "images.npz", **arrays)
    assert main(["compare", str(tmp_path / "images.npz")]) == 2
    assert message in capsys.readouterr().err


def test_options_of_tables_are_not_for_images(labelled, capsys):
    assert main(["compare", labelled, "--groups", "patient"]) == 2
    assert "Got --groups for images" in capsys.readouterr().err
