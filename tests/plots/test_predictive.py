"""Calibration and intervals count observed events."""

import numpy as np
import pytest

from islab.evaluate import calibration_error
from islab.plots import calibration_curve, predictive_intervals


def test_the_calibration_curve_of_true_probabilities_has_a_small_error():
    rng = np.random.default_rng(0)
    stated = rng.random(20_000)
    ax = calibration_curve(rng.random(20_000) < stated, stated)
    assert float(ax.get_title(loc="left").split()[-1]) < 0.02


def test_the_calibration_error_of_overconfidence_is_its_size():
    y = np.tile([1, 1, 1, 0], 100)
    ax = calibration_curve(y, np.full((400, 2), [0.05, 0.95]), n_bins=1)
    assert ax.get_title(loc="left").endswith("0.200")


def test_the_heading_states_the_calibration_error_of_the_metrics():
    rng = np.random.default_rng(1)
    stated = rng.random(300) ** 4
    y = rng.random(300) < np.sqrt(stated)
    heading = calibration_curve(y, stated, n_bins=3).get_title(loc="left")
    assert heading.endswith(f"{calibration_error(y, stated):.3f}")


def test_predictive_intervals_count_their_coverage():
    ax = predictive_intervals([0, 1, 5, 2], [0, 1, 2, 3], [[-1, 3]] * 4)
    assert ax.get_title(loc="left").startswith("75.0%")


def test_intervals_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"expected .* try model\.predict_interval"):
        predictive_intervals([0, 1], [0, 1], [[0, 0], [1, 1], [2, 2]])


@pytest.mark.parametrize(
    ("y", "probability", "message"),
    [
        ([0, 1], [0.5], "shape"),
        ([], [], "not 0"),
        ([[0], [1]], [0.5, 0.5], "shape"),
        ([0, 1], [0.5, 1.5], "1.5"),
        ([0, 1], [0.5, np.nan], "from 0 to 1"),
        ([0, 2], [0.5, 0.5], "0 to 1; try"),
        ([1, 3], [[0.2, 0.3, 0.5]] * 2, "0 to 2; try"),
        (["no", "yes"], [0.5, 0.5], "'no'"),
    ],
)
def test_what_is_no_classes_and_probabilities_is_refused(y, probability, message):
    with pytest.raises(ValueError, match=message):
        calibration_curve(y, probability)


def test_no_bins_are_refused():
    with pytest.raises(ValueError, match="n_bins=0"):
        calibration_curve([0, 1], [0.5, 0.5], n_bins=0)
