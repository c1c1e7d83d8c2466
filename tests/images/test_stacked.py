"""Several networks for the same images: all are kept, stacked, and one is read."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from islab.core.convolution.network import forward
from islab.core.convolution.posterior import ImagePosterior
from islab.core.convolution.stacked import StackedImagePosterior
from islab.core.leave_one_out import leave_one_out, mixture_density
from islab.images import ISLaBImageClassifier
from islab.io.store import read, to_bytes
from islab.learn.engines.torch.convolution import ConvolutionEngine
from islab.learn.stacking import stacked_images
from islab.tables.images import as_pixels, make_source
from tests.images.test_classifier import SMALL

RESTARTS = {
    **SMALL,
    "channels": (6, 12),
    "hidden_layer_sizes": (),
    "batch_size": 40,
    "max_epochs": 10,
    "n_restarts": 3,
    "n_draws": 30,
}


def digits(n=400, first=0):
    """Handwritten digits of 8 x 8 pixels: networks differ in which they take for which."""
    found = load_digits()
    rows = slice(first, first + n)
    return (found.images[rows] * 15).astype(np.uint8), found.target[rows]


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Got a readable network")
        return ISLaBImageClassifier(**RESTARTS).fit(*digits())


def log_densities(run, images, labels, n_draws=60):
    """Log probability of each label under draws of a run, (draws, images)."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(n_draws):
        eta = forward(run.architecture, run.draw(rng), as_pixels(images))
        eta = eta - np.logaddexp.reduce(eta, axis=1, keepdims=True)
        found.append(eta[np.arange(len(labels)), labels])
    return np.array(found, dtype=float)


def test_every_network_is_kept_with_its_share(fitted):
    posterior = fitted.posterior_
    assert isinstance(posterior, StackedImagePosterior)
    assert len(posterior.runs) == 3
    assert posterior.shares.sum() == pytest.approx(1)
    assert len({run.head.mu.tobytes() for run in posterior.runs}) == 3


def test_one_network_is_the_first_of_several(fitted):
    one = ISLaBImageClassifier(**{**RESTARTS, "n_restarts": 1}).fit(*digits())
    assert isinstance(one.posterior_, ImagePosterior)
    np.testing.assert_array_equal(one.posterior_.head.mu, fitted.posterior_.runs[0].head.mu)


def test_draws_come_from_the_runs_by_their_shares(fitted):
    posterior, n_draws = fitted.posterior_, 1000
    chosen = [posterior.of_draw(number, n_draws) for number in range(n_draws)]
    counts = [sum(each is run for each in chosen) for run in posterior.runs]
    np.testing.assert_allclose(counts, n_draws * posterior.shares, atol=1)


def test_probabilities_are_the_mean_over_the_draws_of_all_runs(fitted):
    images = digits(20, first=1000)[0]
    samples = fitted.predictions(images).samples()
    np.testing.assert_allclose(fitted.predict_proba(images), samples.mean(axis=0), atol=1e-6)
    runs = [fitted.posterior_.of_draw(number, 30) for number in range(30)]
    rng = np.random.default_rng([fitted.seed_, 29])
    eta = forward(runs[29].architecture, runs[29].draw(rng), as_pixels(images))
    expected = np.exp(eta - np.logaddexp.reduce(eta, axis=1, keepdims=True))
    np.testing.assert_allclose(samples[29], expected, atol=1e-4)


def test_the_mixture_predicts_no_worse_than_the_best_run_left_one_out(fitted):
    images, labels = digits()
    elpd = [leave_one_out(log_densities(run, images, labels))[0] for run in fitted.posterior_.runs]
    mixed = mixture_density(np.array(elpd), fitted.posterior_.shares).sum()
    assert mixed > max(own.sum() for own in elpd)


def test_the_mixture_predicts_new_images_better_than_the_run_with_the_highest_bound(fitted):
    images, labels = digits(900, first=500)
    alone = [log_densities(run, images, labels) for run in fitted.posterior_.runs]
    means = np.array([np.log(np.exp(own).mean(axis=0)) for own in alone])
    mixed = mixture_density(means, fitted.posterior_.shares).mean()
    assert mixed > means[fitted.posterior_.best].mean()


def test_the_readable_network_is_that_of_the_run_with_the_highest_bound(fitted):
    best = fitted.posterior_.runs[fitted.posterior_.best].median(0.5, tuple("0123456789"))
    images = as_pixels(digits(10)[0])
    np.testing.assert_array_equal(fitted.network_.predictor(images), best.predictor(images))


def test_explanations_of_the_readable_network_add_up(fitted):
    explained = fitted.explain_local(digits(4)[0])
    total = explained.draws_intercept + explained.draws_contribution.sum(axis=2)
    np.testing.assert_allclose(total, explained.draws_predictor, atol=1e-9)


def test_a_file_keeps_all_runs(fitted, tmp_path):
    images = digits(20, first=1000)[0]
    fitted.save(tmp_path / "m.islab")
    again = ISLaBImageClassifier.load(tmp_path / "m.islab")
    np.testing.assert_array_equal(again.predict_proba(images), fitted.predict_proba(images))
    assert again.posterior_.stacking == fitted.posterior_.stacking
    assert again.posterior_.price == fitted.posterior_.price
    fitted.save(tmp_path / "small.islab", sparse=True)
    small = ISLaBImageClassifier.load(tmp_path / "small.islab")
    expected = fitted.predict_proba(images, model="median")
    np.testing.assert_allclose(small.predict_proba(images), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shares": [0.5, 0.5, 0.5]}, "do not sum to 1"),
        ({"shares": [0.5, 0.5]}, "belongs to nothing"),
        ({"best": 3}, "none of them is the best"),
        ({"shares": [1.0]}, "length >= 2"),
    ],
)
def test_runs_that_do_not_fit_are_refused(change, reason, fitted, tmp_path):
    fitted.save(tmp_path / "m.islab")
    description, arrays = read(tmp_path / "m.islab")
    description["stack"] |= change
    for name in ("format", "version", "sha256"):
        description.pop(name, None)
    (tmp_path / "m.islab").write_bytes(to_bytes(description, arrays))
    with pytest.raises(ValueError, match=reason):
        ISLaBImageClassifier.load(tmp_path / "m.islab")


def test_summary_and_report_tell_of_the_runs(fitted, tmp_path):
    facts = fitted.summary().facts
    assert facts["restarts"] == fitted.posterior_.stacking
    assert "a row" in facts["readable network"]
    fitted.report(tmp_path / "r.html", *digits(30, first=1000))
    assert fitted.posterior_.stacking in (tmp_path / "r.html").read_text()


def test_flows_are_stacked_too():
    settings = {**RESTARTS, "posterior": "flow", "n_restarts": 2, "max_epochs": 4}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Got a readable network")
        model = ISLaBImageClassifier(**settings).fit(*digits(60))
    assert all(run.head.multipliers is not None for run in model.posterior_.runs)
    assert np.isfinite(model.predict_proba(digits(10)[0])).all()


def test_a_stream_is_stacked_from_its_first_batches():
    images, labels = digits(60)
    batches = [(images[first : first + 20], labels[first : first + 20]) for first in (0, 20, 40)]
    source = make_source(batches, None, 20)
    some, codes = source.some(30)
    np.testing.assert_array_equal(some, as_pixels(images[:30]))
    np.testing.assert_array_equal(codes, labels[:30])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Got a readable network")
        model = ISLaBImageClassifier(**{**RESTARTS, "max_epochs": 2}).fit(batches)
    assert model.posterior_.price.n_rows == 60


def test_some_images_of_an_array_are_evenly_spaced():
    images, labels = digits(60)
    some, codes = make_source(images, labels, 20).some(20)
    np.testing.assert_array_equal(some, as_pixels(images[::3]))
    np.testing.assert_array_equal(codes, labels[::3])


def test_a_readable_network_that_predicts_worse_is_said(monkeypatch):
    import islab.estimators.images as module

    def dear(fits, source, **options):
        found = stacked_images(fits, source, **options)
        price = type(found.price)(50.0, 1.0, 60)
        return StackedImagePosterior(found.runs, found.shares, found.best, price)

    monkeypatch.setattr(module, "stacked_images", dear)
    with pytest.warns(UserWarning, match="predicts worse than the full model: log predictive"):
        ISLaBImageClassifier(**{**RESTARTS, "max_epochs": 2}).fit(*digits(60))


@pytest.fixture
def stop_in(monkeypatch):
    """Ctrl-C at a run of steps, once."""

    def stop(number):
        calls, run = iter(range(sys.maxsize)), ConvolutionEngine.run

        def impatient(self, steps):
            if next(calls) == number:
                raise KeyboardInterrupt
            return run(self, steps)

        monkeypatch.setattr(ConvolutionEngine, "run", impatient)

    return stop


@pytest.mark.filterwarnings("ignore:Got a readable network")
def test_fits_that_were_stopped_go_on_with_the_network_they_were_at(stop_in, tmp_path, monkeypatch):
    params = {**RESTARTS, "n_restarts": 2}
    whole = ISLaBImageClassifier(**params).fit(*digits())
    model = ISLaBImageClassifier(**params, checkpoint=tmp_path)
    stop_in(3)  # A network takes two runs of 50 steps.
    with pytest.raises(KeyboardInterrupt):
        model.fit(*digits())
    firsts, run = [], ConvolutionEngine.run
    monkeypatch.setattr(
        ConvolutionEngine,
        "run",
        lambda self, steps: (firsts.append(steps.first), run(self, steps))[1],
    )
    model.fit(*digits())
    assert firsts == [50]
    images = digits(10)[0]
    np.testing.assert_array_equal(model.predict_proba(images), whole.predict_proba(images))
    assert not list(tmp_path.glob("*/*"))


@pytest.mark.filterwarnings("ignore:Got a readable network")
def test_an_interrupt_keeps_the_networks_that_have_ended(stop_in):
    model = ISLaBImageClassifier(**RESTARTS, on_interrupt="keep")
    stop_in(5)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(*digits())
    assert model.interrupted_
    assert len(model.posterior_.runs) == 2
