"""The image classifier: data in, predictions, explanations and files out."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from islab.cli import main
from islab.images import ISLaBImageClassifier
from islab.io.store import NO_HASH, read, to_bytes

SMALL = {
    "channels": (4, 6),
    "hidden_layer_sizes": (4,),
    "batch_size": 20,
    "max_epochs": 30,
    "learning_rate_init": 0.05,
    "n_draws": 10,
    "random_state": 0,
}


def bars(n=120, classes=3, seed=0):
    """Noisy 8 x 8 images with a bright row whose place is the class, as uint8."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    images = rng.integers(0, 60, size=(n, 8, 8))
    images[np.arange(n), 1 + 2 * labels] += 180
    return images.astype(np.uint8), labels


@pytest.fixture(scope="module")
def fitted():
    images, labels = bars()
    return ISLaBImageClassifier(**SMALL).fit(images, np.array(["low", "mid", "top"])[labels])


def test_the_classes_of_new_images_are_found(fitted):
    images, labels = bars(60, seed=1)
    for model in ("full", "median"):
        predicted = fitted.predict(images, model=model)
        assert (predicted == np.array(["low", "mid", "top"])[labels]).mean() > 0.95


def test_needless_weights_are_pruned(fitted):
    assert fitted.n_used_weights_ < 0.5 * fitted.network_.n_weights_initial


def test_densities_are_the_used_shares(fitted):
    network = fitted.network_
    used = [part.n_used_weights for part in network.layers]
    assert fitted.density_ == pytest.approx(
        {
            "convolution": sum(used[:2]) / (4 * 9 + 6 * 4 * 9),
            "dense": used[2] / fitted.posterior_.head.architecture.n_weights,
            "all": sum(used) / network.n_weights_initial,
        }
    )


def test_probabilities_are_the_mean_of_the_draws(fitted):
    images, _ = bars(5)
    for model in ("full", "median"):
        draws = fitted.sample_posterior(images, model=model)
        assert draws.shape == (10, 5, 3)
        np.testing.assert_allclose(draws.mean(axis=0), fitted.predict_proba(images, model=model))


def test_draws_of_an_image_do_not_depend_on_its_neighbours(fitted):
    images, _ = bars(5)
    alone = fitted.sample_posterior(images[3:4])[:, 0]
    np.testing.assert_allclose(alone, fitted.sample_posterior(images)[:, 3], atol=1e-6)


def test_intervals_hold_the_middle_of_the_draws(fitted):
    images, _ = bars(4)
    interval = fitted.predict_interval(images, 0.8)
    expected = np.quantile(fitted.sample_posterior(images), [0.1, 0.9], axis=0)
    np.testing.assert_allclose(interval, np.moveaxis(expected, 0, -1))


def test_explanations_add_up_to_the_median_networks_logit(fitted):
    images, _ = bars(2)
    found = fitted.explain_local(images)
    expected = fitted.network_.predictor(images[..., None] / 255)
    total = found.intercept + found.contribution.sum(axis=1)
    np.testing.assert_allclose(total, expected, atol=1e-5)
    assert found.outputs == ("low", "mid", "top")


def test_the_bright_row_speaks_for_its_class(fitted):
    images, labels = bars(3)
    found = fitted.explain_local(images)
    for row, label in enumerate(labels):
        others = found.contribution_images[row].sum(axis=(1, 2, 3))
        assert others.argmax() == label


def test_summary_counts_pruned_kernels(fitted):
    table = fitted.summary().to_frame()
    kernel = fitted.network_.kernels[1]
    layer = fitted.network_.architecture.convolutions[1]
    pairs = {
        (edge // 9 // layer.in_channels, edge // 9 % layer.in_channels) for edge in kernel.edges
    }
    assert table.loc[1, "pruned kernels"] == 24 - len(pairs)


def test_a_printed_summary_has_a_line_for_each_layer_and_dashes_for_what_it_has_not(fitted):
    lines = str(fitted.summary()).splitlines()
    assert [line.split()[0] for line in lines[-4:]] == [
        "convolution",
        "convolution",
        "head",
        "output",
    ]
    assert lines[-1].split()[1:] == ["-", "3", "-", lines[-1].split()[4], "-", "-"]


def test_a_summary_as_json_has_nulls_for_what_a_layer_has_not(fitted):
    found = json.loads(json.dumps(fitted.summary().to_dict()))
    assert found["facts"] == fitted.summary().facts
    assert [line["layer"] for line in found["layers"]][-2:] == ["head 1", "output"]
    assert found["layers"][1]["weights"] == 4 * 6 * 9
    assert found["layers"][-1]["weights"] is None


def test_the_command_line_summarises_a_model_of_images_and_explains_none(fitted, tmp_path, capsys):
    path = str(tmp_path / "model.islab")
    fitted.save(path)
    assert main(["summary", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == fitted.summary().to_dict()
    assert main(["explain", path]) == 2
    assert "expected one that reads tables" in capsys.readouterr().err


def test_a_saved_model_predicts_the_same(fitted, tmp_path):
    images, _ = bars(6)
    fitted.save(tmp_path / "model.islab")
    again = ISLaBImageClassifier.load(tmp_path / "model.islab")
    for model in ("full", "median"):
        np.testing.assert_array_equal(
            again.predict_proba(images, model=model), fitted.predict_proba(images, model=model)
        )
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.get_params()["channels"] == (4, 6)


def test_a_model_from_a_file_predicts_and_explains_without_torch(fitted, tmp_path):
    fitted.save(tmp_path / "model.islab")
    np.save(tmp_path / "images.npy", bars(2)[0])
    code = (
        "import sys, numpy as np;"
        "from islab.images import ISLaBImageClassifier;"
        "model = ISLaBImageClassifier.load('model.islab'); images = np.load('images.npy');"
        "model.explain_local(images); print(model.predict(images), 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout.strip() == f"{fitted.predict(bars(2)[0])} False", ran.stderr


def test_an_altered_file_is_refused(fitted, tmp_path):
    path = tmp_path / "model.islab"
    fitted.save(path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="hash"):
        ISLaBImageClassifier.load(path)


def test_arrays_that_do_not_fit_the_architecture_are_refused(fitted, tmp_path):
    path = tmp_path / "model.islab"
    fitted.save(path)
    description, arrays = read(path)
    arrays["part0.mu"] = arrays["part0.mu"][:-1]
    path.write_bytes(to_bytes({**description, "sha256": NO_HASH}, arrays))
    with pytest.raises(ValueError, match="cannot be loaded: array"):
        ISLaBImageClassifier.load(path)


@pytest.fixture(scope="module")
def quick():
    return {**SMALL, "channels": (2,), "hidden_layer_sizes": (), "max_epochs": 2, "n_draws": 3}


def test_flows_learn_predict_and_are_kept_in_files(quick, tmp_path):
    images, labels = bars(60)
    model = ISLaBImageClassifier(**{**quick, "posterior": "flow", "max_epochs": 4})
    model.fit(images, labels)
    model.save(tmp_path / "flow.islab")
    again = ISLaBImageClassifier.load(tmp_path / "flow.islab")
    assert again.posterior_.kernels[0].multipliers is not None
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    explained = model.explain_local(images[:1])
    total = explained.draws_intercept + explained.draws_contribution.sum(axis=2)
    np.testing.assert_allclose(total, explained.draws_predictor, atol=1e-9)


def test_the_same_seed_gives_the_same_model(quick):
    images, labels = bars(40)
    one, two = (ISLaBImageClassifier(**quick).fit(images, labels) for _ in range(2))
    np.testing.assert_array_equal(one.posterior_.head.mu, two.posterior_.head.mu)


def test_a_memory_map_is_read_a_batch_at_a_time(quick, tmp_path):
    images, labels = bars(100)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r").view(Spy)
    Spy.most = 0
    model = ISLaBImageClassifier(**quick).fit(mapped, labels)
    assert 0 < Spy.most <= 20
    plain = ISLaBImageClassifier(**quick).fit(images, labels)
    np.testing.assert_array_equal(model.posterior_.head.mu, plain.posterior_.head.mu)


class Spy(np.memmap):
    """A memory map that remembers the most rows ever taken from it at once."""

    most = 0

    def __getitem__(self, rows):
        taken = super().__getitem__(rows)
        if len(self) == 100:
            Spy.most = max(Spy.most, len(taken))
        return taken


def test_a_stream_of_batches_is_learned_from(quick):
    images, labels = bars(60)
    parts = [(images[start : start + 25], labels[start : start + 25]) for start in (0, 25, 50)]
    model = ISLaBImageClassifier(**quick).fit(parts)
    again = ISLaBImageClassifier(**quick).fit(lambda: iter(parts))
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.posterior_.head.mu, again.posterior_.head.mu)
    assert model.history_.column("step")[-1] == 2 * 3


def test_a_stream_that_changes_its_classes_is_refused(quick):
    images, labels = bars(60)
    passes = iter([labels, labels + 5])
    with pytest.raises(ValueError, match="its first pass did not have"):
        ISLaBImageClassifier(**quick).fit(lambda: [(images, next(passes))])


def test_augmentation_sees_every_batch_and_changes_what_is_learned(quick):
    images, labels = bars(40)
    seen = []

    def flip(batch):
        seen.append(tuple(batch.shape))
        return torch.flip(batch, dims=(2,))

    turned = ISLaBImageClassifier(**quick, augment=flip).fit(images, labels)
    expected = ISLaBImageClassifier(**quick).fit(np.ascontiguousarray(images[:, ::-1]), labels)
    assert seen == [(20, 1, 8, 8)] * 4
    np.testing.assert_allclose(turned.posterior_.head.mu, expected.posterior_.head.mu, atol=1e-6)


def test_floats_are_taken_as_they_are(quick):
    images, labels = bars(40)
    scaled = (images / 255).astype(np.float32)
    one = ISLaBImageClassifier(**quick).fit(images, labels)
    two = ISLaBImageClassifier(**quick).fit(scaled, labels)
    np.testing.assert_allclose(one.posterior_.head.mu, two.posterior_.head.mu, atol=1e-5)


def test_colour_images_have_channels_first(quick):
    images, labels = bars(40, classes=2)
    colour = np.repeat(images[:, None], 3, axis=1)
    model = ISLaBImageClassifier(**quick).fit(colour, labels)
    assert model.image_shape_ == (3, 8, 8)
    assert model.predict_interval(colour).shape == (40, 2)
    assert model.predict_proba(colour).shape == (40, 2)


IMAGES, LABELS = bars(12)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES, None, r"images of shape \(12, 8, 8\) and no labels"),
        (IMAGES, LABELS[:5], r"labels of shape \(5,\), expected \(12,\)"),
        (IMAGES, [None, *LABELS[1:]], "1 missing, the first at 0"),
        (IMAGES, np.zeros(12), "a single class"),
        (IMAGES[0], LABELS, r"images of shape \(8, 8\), expected \(n, height, width\)"),
        (IMAGES.astype(int), LABELS, "dtype int64, expected uint8"),
        (np.repeat(IMAGES[..., None], 3, -1), LABELS, r"shape \(12, 8, 8, 3\).*transpose"),
        (iter([(IMAGES, LABELS)]), None, "an iterator, which can be read once"),
        ([(IMAGES, LABELS), IMAGES], None, "batch 1 of the stream"),
        ([], None, "a stream without batches"),
        ([(IMAGES, LABELS), (IMAGES[:, :5], LABELS)], None, r"\(1, 5, 8\) in batch 1"),
    ],
)
def test_bad_data_are_named(quick, images, labels, message):
    with pytest.raises(ValueError, match=message):
        ISLaBImageClassifier(**quick).fit(images, labels)


def test_missing_pixels_are_named(quick):
    images = IMAGES.astype(float)
    images[7, 2, 2] = np.nan
    with pytest.raises(ValueError, match=r"shape \(12, 8, 8\) with NaN .* the first at 7"):
        ISLaBImageClassifier(**quick).fit(images, LABELS)


def test_missing_pixels_are_named_when_predicting(fitted):
    with pytest.raises(ValueError, match=r"NaN or infinite pixels in 1 of images of shape"):
        fitted.predict(np.full((1, 8, 8), np.nan))


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (2, 8, 9)])
def test_images_of_another_shape_are_named_when_predicting(fitted, shape):
    with pytest.raises(ValueError, match=r"expected \(n, 1, 8, 8\) or \(n, 8, 8\)"):
        fitted.predict(np.zeros(shape, dtype=np.uint8))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("channels", 32),
        ("kernel_size", 0),
        ("stride", (2, 2, 2)),
        ("activation", "tanh"),
        ("posterior", "laplace"),
        ("device", "abacus"),
        ("device", "cuda:99"),
        ("learning_rate_init", -1.0),
        ("augment", "flip"),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"Got {name}="):
        ISLaBImageClassifier(**{**SMALL, name: value}).fit(IMAGES, LABELS)


def test_augmentation_must_keep_the_shape(quick):
    model = ISLaBImageClassifier(**quick, augment=lambda batch: batch[:, :, 1:])
    with pytest.raises(ValueError, match=r"from augment for a batch of shape \(12, 1, 8, 8\)"):
        model.fit(IMAGES, LABELS)


def test_a_model_name_that_does_not_exist_is_named(fitted):
    with pytest.raises(ValueError, match="model='mean'"):
        fitted.predict(IMAGES, model="mean")
