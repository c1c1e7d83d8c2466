"""Figures are drawn off screen and closed after each test."""

import matplotlib as mpl
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")
