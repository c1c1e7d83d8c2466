"""Learning-rate schedules."""

import numpy as np
import pytest

from islab.learn.stage import Schedule


def test_cosine_starts_at_zero_peaks_after_the_warm_up_and_ends_at_its_floor():
    schedule = Schedule("cosine", warm_up=0.02, floor=0.01)
    assert schedule(0.0) == 0
    assert schedule(0.02) == pytest.approx((1 + np.cos(np.pi * 0.02)) / 2)
    assert schedule(1.0) == 0.01


def test_step_multiplies_at_each_milestone():
    schedule = Schedule("step", milestones=(0.3, 0.5), drop=0.7)
    np.testing.assert_allclose(schedule([0.0, 0.29, 0.3, 0.5, 1.0]), [1, 1, 0.7, 0.49, 0.49])


def test_constant_stays_at_one():
    assert (Schedule("constant")(np.linspace(0, 1, 5)) == 1).all()


def test_unknown_kind_is_named_in_the_error():
    with pytest.raises(ValueError, match=r"'linear'.*cosine"):
        Schedule("linear")
