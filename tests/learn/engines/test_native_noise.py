"""The native engine's random numbers are independent standard normals."""

import numpy as np
import pytest
from scipy import stats

native = pytest.importorskip("islab.learn.engines.native")

from islab.core.architecture import Architecture  # noqa: E402
from islab.core.posterior import Posterior  # noqa: E402
from islab.learn.engines import Problem  # noqa: E402
from islab.learn.engines.native import NativeEngine  # noqa: E402

N = 1_000_000
STREAMS = 8
INSTRUCTIONS = native._kernel.instruction_sets()


def draw(seed: int, count: int = N, instructions: str = INSTRUCTIONS[0]) -> np.ndarray:
    kind = type("Variant", (NativeEngine,), {"instructions": instructions})
    net = Architecture(1, (), 1)
    posterior = Posterior.initialise(net, np.random.default_rng(0))
    engine = kind(posterior, Problem(np.zeros((1, 1)), np.zeros((1, 1))), seed=seed)
    return engine._learner.normals(generator=engine.generator, count=count).astype(float)


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return draw(seed=7)


def test_moments_are_those_of_a_standard_normal(numbers):
    # Standard errors of the raw moments: sqrt(E z^2k - (E z^k)^2) / sqrt(N).
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        error = np.mean(numbers**power) - moment
        assert abs(error) < 4 * np.sqrt(variance / N), power


def test_the_distribution_is_normal(numbers):
    assert stats.kstest(numbers, "norm").pvalue > 1e-3


def test_each_stream_is_normal(numbers):
    pvalues = [stats.kstest(numbers[i::STREAMS], "norm").pvalue for i in range(STREAMS)]
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("level", [3.0, 4.0, 4.5])
def test_tails_have_their_share(numbers, level):
    for tail in (numbers, -numbers):
        count, expected = (tail > level).sum(), N * stats.norm.sf(level)
        assert abs(count - expected) < 4 * np.sqrt(expected) + 1


@pytest.mark.parametrize("power", [1, 2])
def test_numbers_are_uncorrelated_at_every_lag(numbers, power):
    series = numbers**power - np.mean(numbers**power)
    series /= series.std()
    correlations = [np.mean(series[:-lag] * series[lag:]) for lag in range(1, 65)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(N)


def test_pairs_of_one_transform_fill_the_plane_evenly(numbers):
    blocks = numbers.reshape(-1, 2, STREAMS)
    angle = np.arctan2(blocks[:, 0], blocks[:, 1]).ravel() / (2 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 1e-3


def test_seeds_give_unrelated_numbers(numbers):
    for seed in (8, 9, 10):
        assert abs(np.mean(numbers * draw(seed))) < 4.5 / np.sqrt(N)


def test_the_same_seed_gives_the_same_numbers(numbers):
    np.testing.assert_array_equal(draw(seed=7), numbers)


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_every_instruction_set_gives_the_same_stream(numbers, instructions):
    np.testing.assert_allclose(draw(7, 4096, instructions), numbers[:4096], atol=2e-6)
