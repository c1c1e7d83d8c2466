"""Steps of a chain in numpy, to time the compiled ones against.

`LinearStep` is the whole step of a linear Gaussian model: columns of the regression are toggled and
swapped with their weights integrated out, then noise, slab variance and weights are drawn.
`WeightStep` moves weights of a network of one hidden layer with counts as its target: Newton
proposals for the output and for hidden units, alone or with the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.floating]
BIAS_VARIANCE = 2.5**2
LEAK = 0.01
LARGEST = 20.0  # log rate


class LinearStep:
    """A chain over linear models of standardised data.

    Parameters
    ----------
    x : (rows, covariates)
    y : (rows,)
    """

    def __init__(self, x: Float, y: Float, rng: np.random.Generator) -> None:
        self.rng, self.n_rows = rng, len(x)
        columns = np.column_stack([np.ones(len(x)), x, y])
        self.cross = columns.T @ columns
        self.size = x.shape[1] + 1
        self.inside = np.zeros(self.size, dtype=bool)
        self.inside[0] = True
        self.noise = self.tau2 = 1.0

    def step(self, toggles: int) -> Float:
        """The weights after a step, the constant first."""
        self._build()
        for t in range(toggles):
            self._toggle(1 + self.rng.integers(self.size - 1))
            if t % 2 == 0:
                self._swap()
        self._walk_noise()
        self._walk_scale()
        return self._draw()

    def _precision(self, tau2: float) -> Float:
        precision = np.full(self.size, 1 / tau2)
        precision[0] = 1 / BIAS_VARIANCE
        return precision

    def _build(self) -> None:
        self.precision = self._precision(self.tau2)
        self.swept = self.cross / self.noise
        self.swept[np.arange(self.size), np.arange(self.size)] += self.precision
        for j in np.flatnonzero(self.inside):
            self._sweep(j, out=False)

    def _sweep(self, j: int, *, out: bool) -> None:
        row, pivot = self.swept[j].copy(), self.swept[j, j]
        self.swept -= np.outer(row, row) / pivot
        self.swept[j] = self.swept[:, j] = (-row if out else row) / pivot
        self.swept[j, j] = -1 / pivot

    def _gain(self, j: int) -> float:
        """Log evidence that a column outside brings, or that one inside has brought."""
        pivot, right = self.swept[j, j], self.swept[j, -1]
        if self.inside[j]:
            pivot = -1 / pivot
            right = right * pivot
        return 0.5 * float(right**2 / pivot - np.log(pivot) + np.log(self.precision[j]))

    def _log_odds(self, k: int) -> float:
        return float(np.log(1 + k) - np.log(1 + self.size - 1 - k - 1))

    def _toggle(self, j: int) -> None:
        k = int(self.inside[1:].sum())
        if self.inside[j]:
            change = -self._gain(j) - self._log_odds(k - 1)
        else:
            change = self._gain(j) + self._log_odds(k)
        if np.log(self.rng.random()) < change:
            self._sweep(j, out=bool(self.inside[j]))
            self.inside[j] = not self.inside[j]

    def _likeness(self, i: int, others: NDArray[np.intp]) -> Float:
        own = np.diag(self.cross)
        return (self.cross[i, others] ** 2 / (own[i] * own[others])) ** 2 + 1e-3

    def _swap(self) -> None:
        inside, outside = np.flatnonzero(self.inside[1:]) + 1, np.flatnonzero(~self.inside)
        if not len(inside) or not len(outside):
            return
        i = self.rng.choice(inside)
        ways = self._likeness(i, outside) if self.rng.random() < 0.5 else np.ones(len(outside))
        alike = ways[0] != 1
        j = self.rng.choice(outside, p=ways / ways.sum())
        back = self._likeness(j, np.where(outside == j, i, outside)) if alike else ways
        s = self.swept
        pivot = s[j, j] - s[i, j] ** 2 / s[i, i]
        right = s[j, -1] - s[i, j] * s[i, -1] / s[i, i]
        change = -self._gain(i) + np.log(ways.sum() / back.sum())
        change += 0.5 * (right**2 / pivot - np.log(pivot) + np.log(self.precision[j]))
        if np.log(self.rng.random()) < change:
            self._sweep(i, out=True)
            self._sweep(j, out=False)
            self.inside[i], self.inside[j] = False, True

    def _normal(self, noise: float, tau2: float) -> tuple[Float, Float, float]:
        """Mean and Cholesky factor of the weights, and their log evidence."""
        inside = np.flatnonzero(self.inside)
        precision = self._precision(tau2)[inside]
        factor = np.linalg.cholesky(self.cross[np.ix_(inside, inside)] / noise + np.diag(precision))
        half = np.linalg.solve(factor, self.cross[inside, -1] / noise)
        height = 0.5 * (np.log(precision).sum() + half @ half - self.cross[-1, -1] / noise)
        height -= np.log(np.diag(factor)).sum() + 0.5 * self.n_rows * np.log(noise)
        return np.linalg.solve(factor.T, half), factor, float(height)

    def _walk_noise(self) -> None:
        def height(noise: float) -> float:
            return self._normal(noise, self.tau2)[2] - np.log(noise) - 0.01 / noise

        self.noise = self._walked(height, self.noise, 2.4 * np.sqrt(2 / (self.n_rows + 2)))

    def _walk_scale(self) -> None:
        def height(tau2: float) -> float:
            return self._normal(self.noise, tau2)[2] - np.log(tau2) - 1 / tau2

        self.tau2 = self._walked(height, self.tau2, 1.2)

    def _walked(self, height: Callable[[float], float], value: float, step: float) -> float:
        now = height(value)
        for _ in range(3):
            other = value * np.exp(step * self.rng.standard_normal())
            then = height(other)
            if np.log(self.rng.random()) < then - now:
                value, now = other, then
        return value

    def _draw(self) -> Float:
        mean, factor, _ = self._normal(self.noise, self.tau2)
        weights = np.zeros(self.size)
        drawn = mean + np.linalg.solve(factor.T, self.rng.standard_normal(len(mean)))
        weights[self.inside] = drawn
        return weights


class WeightStep:
    """Weights of a network with fixed edges: every unit reads all covariates.

    Parameters
    ----------
    x : (rows, covariates)
    y : (rows,)
        Counts.
    n_units : int
    """

    def __init__(self, x: Float, y: Float, n_units: int, rng: np.random.Generator) -> None:
        self.x, self.y, self.rng = np.column_stack([np.ones(len(x)), x]), y, rng
        self.hidden = 0.3 * rng.standard_normal((n_units, x.shape[1] + 1))  # bias first
        self.out = 0.1 * rng.standard_normal(n_units + 1)
        self.tau2 = np.ones(2)

    def step(self, parts: int) -> None:
        n_units = len(self.hidden)
        self._move(None, whole=True)
        for _ in range(parts):
            self._move(int(self.rng.integers(n_units)), whole=bool(self.rng.random() < 0.5))
        for number, weights in enumerate((self.hidden[:, 1:], self.out[1:])):
            square, count = (weights**2).sum(), weights.size
            self.tau2[number] = (1 + square / 2) / self.rng.gamma(1 + count / 2)

    def _parameters(self, unit: int | None, *, whole: bool) -> Float:
        hidden = self.hidden[unit] if unit is not None else np.zeros(0)
        return np.concatenate([hidden, self.out]) if whole else hidden.copy()

    def _set(self, unit: int | None, values: Float, *, whole: bool) -> None:
        size = self.x.shape[1] if unit is not None else 0
        if unit is not None:
            self.hidden[unit] = values[:size]
        if whole:
            self.out = values[size:]

    def _log_posterior(self) -> float:
        eta = self._forward()[2]
        height = self.y @ eta - np.exp(np.minimum(eta, LARGEST)).sum()
        for weights, variance in self._slabs():
            height -= 0.5 * (weights**2 / variance).sum()
        return float(height)

    def _slabs(self) -> Iterator[tuple[Float, float]]:
        yield self.hidden[:, 0], BIAS_VARIANCE
        yield self.hidden[:, 1:], self.tau2[0]
        yield self.out[:1], BIAS_VARIANCE
        yield self.out[1:], self.tau2[1]

    def _forward(self) -> tuple[Float, Float, Float]:
        z = self.x @ self.hidden.T
        value = np.where(z > 0, z, LEAK * z)
        return z, value, self.out[0] + value @ self.out[1:]

    def _proposal(self, unit: int | None, *, whole: bool) -> tuple[Float, Float]:
        """Mean and Cholesky factor of the precision, a Newton step from here."""
        z, value, eta = self._forward()
        rate = np.exp(np.minimum(eta, LARGEST))
        columns, variances = [], []
        if unit is not None:
            slope = np.where(z[:, unit] > 0, 1.0, LEAK) * self.out[1 + unit]
            columns.append(self.x * slope[:, None])
            variances += [BIAS_VARIANCE] + [self.tau2[0]] * (self.x.shape[1] - 1)
        if whole:
            columns += [np.ones((len(self.y), 1)), value]
            variances += [BIAS_VARIANCE] + [self.tau2[1]] * len(self.hidden)
        jacobian, precision = np.column_stack(columns), 1 / np.array(variances)
        here = self._parameters(unit, whole=whole)
        gradient = jacobian.T @ (self.y - rate) - precision * here
        factor = np.linalg.cholesky((jacobian.T * rate) @ jacobian + np.diag(precision))
        return here + np.linalg.solve(factor.T, np.linalg.solve(factor, gradient)), factor

    def _move(self, unit: int | None, *, whole: bool) -> None:
        here, before = self._parameters(unit, whole=whole), self._log_posterior()
        mean, factor = self._proposal(unit, whole=whole)
        there = mean + np.linalg.solve(factor.T, self.rng.standard_normal(len(mean)))
        self._set(unit, there, whole=whole)
        try:
            back_mean, back_factor = self._proposal(unit, whole=whole)
        except np.linalg.LinAlgError:  # so far away that there is no way back
            self._set(unit, here, whole=whole)
            return
        ratio = self._log_posterior() - before
        ratio += _log_density(here, back_mean, back_factor) - _log_density(there, mean, factor)
        if not np.log(self.rng.random()) < ratio:
            self._set(unit, here, whole=whole)


def _log_density(values: Float, mean: Float, factor: Float) -> float:
    square = ((factor.T @ (values - mean)) ** 2).sum()
    return float(np.log(np.diag(factor)).sum() - 0.5 * square)
