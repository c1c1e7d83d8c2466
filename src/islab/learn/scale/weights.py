"""The weights of given structures given all rows: Gauss-Newton to the mode, and a Gaussian there.

The posterior of weights given a structure is approximated by a Gaussian at its mode (Laplace), with
the expected information for its curvature, and its evidence accordingly. That is good where rows
are many, but not along directions of which data say nothing: a hidden unit may be scaled up where
what it sends is scaled down, and one that no row bends does what direct weights do. Predictions do
not change along them until a row meets a bend, where a Gaussian as wide as the prior goes far
beyond. Directions whose standard deviation is not a tenth of the prior's are held fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index, Mask
from islab.core.chain_draws import ChainDraws
from islab.core.drawn import DrawnNetworks
from islab.core.paths import active_weights
from islab.core.priors import BIAS_TAU
from islab.learn.scale.passes import NewtonPass, Rows

MOST_PASSES = 8
TOLERANCE = 0.04  # nats a parameter: three tenths of a standard deviation each
SLACK = 1e-6  # of the log posterior, for rounding
LEAST_TOLD = 100.0  # precision given the data, of a direction of which the prior's is 1
NOISE_PRECISION = 0.01  # of the logarithm of noise, to compare directions with
LEAST_DAMPING, MORE_DAMPING = 10.0, 8.0
LEAST_LEFT = 0.5  # of the information on noise, where weights are not known
SMALLEST_VARIANCE = 1e-12
POOR_SHARE, GOOD_SHARE = 0.25, 0.75


@dataclass(frozen=True, eq=False)
class Structures:
    """Networks whose weights are to be learned, with what their prior needs.

    Attributes
    ----------
    networks : DrawnNetworks
    noise : (structures, numbers)
    tau2 : (structures, blocks)
        Slab variances.
    likelihood : str
    df : float
        Degrees of freedom of a Student-t slab; 0 for the Gaussian.
    """

    networks: DrawnNetworks
    noise: Float
    tau2: Float
    likelihood: str
    df: float = 0.0

    @classmethod
    def of(
        cls, chains: Sequence[ChainDraws], architecture: Architecture, likelihood: str, df: float
    ) -> Self:
        """Those of all draws of some chains."""
        return cls(
            networks=DrawnNetworks.joined([chain.networks(architecture) for chain in chains]),
            noise=np.concatenate([chain.noise for chain in chains]),
            tau2=np.concatenate([chain.tau2 for chain in chains]),
            likelihood=likelihood,
            df=df,
        )

    @classmethod
    def joined(cls, parts: Sequence[Structures]) -> Self:
        """The structures of several, one after the other."""
        return cls(
            networks=DrawnNetworks.joined([part.networks for part in parts]),
            noise=np.concatenate([part.noise for part in parts]),
            tau2=np.concatenate([part.tau2 for part in parts]),
            likelihood=parts[0].likelihood,
            df=parts[0].df,
        )

    def __len__(self) -> int:
        return len(self.networks)

    def slots(self, number: int) -> Index:
        """Where the edges of a structure lie, in the order of its parameters."""
        return self.networks.slots[self.networks.parameters[number][0]]

    def take(self, which: Index) -> Structures:
        """Some of them."""
        return replace(
            self,
            networks=self.networks.take(which),
            noise=self.noise[which],
            tau2=self.tau2[which],
        )

    def at(self, theta: Sequence[Float]) -> Structures:
        """The same with other parameters: weights, biases, logarithms of learned noise."""
        weights, biases = self.networks.weights.copy(), self.networks.biases.copy()
        noise = self.noise.copy()
        for number, (own, (edges, units)) in enumerate(
            zip(theta, self.networks.parameters, strict=True)
        ):
            split = np.split(own, [len(edges), len(edges) + len(units)])
            weights[edges], biases[number, units] = split[:2]
            if len(split[2]):
                noise[number] = np.exp(split[2])
        return replace(
            self, networks=replace(self.networks, weights=weights, biases=biases), noise=noise
        )

    def without(self, edges: Sequence[Mask]) -> Structures:
        """The same without some edges of each network, and without those that then lead nowhere.

        Parameters
        ----------
        edges : list of (edges,) bool
            Those to leave out, as :attr:`DrawnNetworks.parameters` has them.
        """
        net = self.networks.architecture
        weights, biases = self.networks.dense()
        for number, (flat, out) in enumerate(zip(weights, edges, strict=True)):
            flat[self.slots(number)[out]] = 0.0
        weights *= active_weights(net, weights != 0)
        networks = DrawnNetworks.from_dense(net, weights, biases)
        return replace(self, networks=networks)

    def log_odds_of_fewer(self, number: int, forced: Index) -> Float:
        """Prior log odds against each edge of a structure, given how many its block has.

        Parameters
        ----------
        number : int
        forced : array of int
            Slots that must not be left out.
        """
        net, slots = self.networks.architecture, self.slots(number)
        own = net.by_block(np.arange(len(net.blocks)))[slots]
        used = np.bincount(own, minlength=len(net.blocks))
        sizes = np.array([block.size for block in net.blocks])
        odds = np.log((sizes - used + 1) / np.maximum(used, 1))[own]
        return np.where(np.isin(slots, forced), -np.inf, odds)

    def climbs(self) -> list[Climb]:
        """A climb for each, from where it stands."""
        net, learned = self.networks.architecture, self.learned_noise
        blocks = net.by_block(np.arange(len(net.blocks)))
        climbs = []
        for number, (edges, units) in enumerate(self.networks.parameters):
            slots, weights = self.networks.slots[edges], self.networks.weights[edges]
            noise = np.log(self.noise[number]) if learned else np.zeros(0)
            climbs.append(
                Climb(
                    theta=np.concatenate([weights, self.networks.biases[number, units], noise]),
                    tau2=self.tau2[number, blocks[slots]],
                    n_units=len(units),
                    df=self.df,
                )
            )
        return climbs

    @property
    def learned_noise(self) -> bool:
        return families.likelihood(self.likelihood).learns_noise


class Place(NamedTuple):
    """What is known of one point, in units of the prior's standard deviations.

    The curvature of the log posterior is ``sum_k size_k axis_k axis_k'``.
    """

    theta: Float
    log_posterior: float  # up to a constant
    unit: Float  # (parameters,)
    axes: Float  # (parameters, told directions)
    sizes: Float  # (told directions,)
    slope: Float  # (told directions,)
    log_volume: float  # of the Gaussian in all directions, up to a constant

    @property
    def promised(self) -> float:
        """What a whole step gains if the log posterior is quadratic."""
        return float((self.slope**2 / self.sizes).sum()) / 2

    def step(self, damping: float) -> tuple[Float, float]:
        """A step of Levenberg and Marquardt, and what it promises."""
        along = self.slope / (self.sizes + damping)
        gain = float((along * (self.slope - self.sizes * along / 2)).sum())
        return self.unit * (self.axes @ along), gain


@dataclass(eq=False)
class Climb:
    """One structure's way to the mode: sums over rows in, the next point out.

    Attributes
    ----------
    theta : (parameters,)
        Where sums are wanted next: weights, biases, logarithms of learned noise.
    tau2 : (edges,)
        Slab variance of each edge.
    n_units : int
        Units with a bias.
    df : float
        Degrees of freedom of a Student-t slab; 0 for the Gaussian.
    """

    theta: Float
    tau2: Float
    n_units: int
    df: float = 0.0
    _place: Place | None = None
    _damping: float = 0.0
    _expected: float = np.inf  # of the step that led to theta
    _gained: float = np.inf  # by the last step that was taken

    @property
    def found(self) -> Place:
        """The best point so far."""
        assert self._place is not None, "sums come first"
        return self._place

    @property
    def done(self) -> bool:
        """Whether a further step promises next to nothing, or the last one gained that little.

        Where a unit bends between rows, steps promise some nats for ever and do not keep them.
        """
        if self._place is None:
            return False
        return min(self._place.promised, self._gained) <= TOLERANCE * len(self._place.sizes)

    @property
    def mode(self) -> Float:
        return self.found.theta + self.found.step(0.0)[0] if self.done else self.found.theta

    @property
    def log_likelihood(self) -> float:
        """At the mode, by the quadratic."""
        height = self.found.log_posterior + self.found.promised * self.done
        return height - self._log_prior(self.mode)

    @property
    def evidence(self) -> float:
        """Logarithm of the Laplace evidence, up to what data do not change."""
        return self.found.log_posterior + self.found.promised * self.done + self.found.log_volume

    def see(self, log_likelihood: float, gradient: Float, information: Float) -> None:
        """Takes the sums at ``theta``, and decides where to go."""
        precision = self._precision(self.theta)
        height = log_likelihood + self._log_prior(self.theta)
        if self._place is not None:
            gain = height - self._place.log_posterior
            if not gain >= -SLACK * abs(height):
                self._damping = max(self._damping, LEAST_DAMPING) * MORE_DAMPING
                self._go_on()
                return
            self._trust(gain / max(self._expected, SLACK * abs(height)))
            self._gained = max(gain, 0.0) if self._damping == 0 else np.inf
        information = _positive(information, len(self.theta) - len(self.tau2) - self.n_units)
        unit = np.where(precision > 0, precision, NOISE_PRECISION) ** -0.5
        whole = unit[:, None] * (information + np.diag(precision)) * unit
        sizes, axes = np.linalg.eigh(whole)
        told = sizes >= LEAST_TOLD
        slope = (unit * (gradient - precision * self.theta)) @ axes[:, told]
        volume = -np.log(np.maximum(sizes, 1.0)).sum() / 2
        self._place = Place(
            self.theta, height, unit, axes[:, told], sizes[told], slope, float(volume)
        )
        self._go_on()

    def _trust(self, share: float) -> None:
        """Shorter steps after one that kept little of its promise, else longer ones."""
        if share < POOR_SHARE:
            self._damping = max(self._damping, LEAST_DAMPING) * 2
        elif share > GOOD_SHARE:
            self._damping /= MORE_DAMPING
            if self._damping < LEAST_DAMPING:
                self._damping = 0.0

    def _go_on(self) -> None:
        step, self._expected = self.found.step(self._damping)
        self.theta = self.found.theta + step

    def unneeded(self, log_odds: Float) -> tuple[Mask, Float]:
        """Edges that are more probably 0, and the parameters if they are.

        One after the other is left out, the least needed first: the density of the Gaussian at 0
        against that of the prior is the Bayes factor against the edge (Savage and Dickey).

        Parameters
        ----------
        log_odds : (edges,)
            Of the prior, for leaving out an edge.
        """
        place, n = self.found, len(self.tau2)
        mean, out = self.mode / place.unit, np.zeros(n, dtype=bool)
        spread = (place.axes / place.sizes) @ place.axes.T
        while not out.all():
            variance = np.maximum(np.diag(spread)[:n], SMALLEST_VARIANCE)
            score = log_odds - (mean[:n] ** 2 / variance + np.log(variance)) / 2
            score[out | (variance == SMALLEST_VARIANCE)] = -np.inf
            worst = int(score.argmax())
            if not score[worst] > 0:
                break
            share = spread[:, worst] / variance[worst]
            mean = mean - share * mean[worst]
            spread -= share[:, None] * spread[worst]
            out[worst] = True
        return out, mean * place.unit

    def draws(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Draws from the Gaussian at the mode, and their log likelihoods by its quadratic.

        Returns
        -------
        theta : (draws, parameters)
        log_likelihood : (draws,)
        """
        place = self.found
        normal = rng.standard_normal((n_draws, len(place.sizes)))
        drawn = self.mode + place.unit * ((normal / np.sqrt(place.sizes)) @ place.axes.T)
        prior = np.array([self._log_prior(theta) for theta in drawn])
        height = place.log_posterior + place.promised * self.done
        return drawn, height - (normal**2).sum(axis=1) / 2 - prior

    # -- prior ----------------------------------------------------------------------------

    def _precision(self, theta: Float) -> Float:
        """Minus the slope of the log prior, divided by the parameter; of noise it is flat."""
        edges = 1 / self.tau2
        if self.df:
            edges = (self.df + 1) / (self.df * self.tau2 + theta[: len(self.tau2)] ** 2)
        n_noise = len(theta) - len(self.tau2) - self.n_units
        return np.concatenate([edges, np.full(self.n_units, BIAS_TAU**-2.0), np.zeros(n_noise)])

    def _log_prior(self, theta: Float) -> float:
        """Up to a constant."""
        weights, others = np.split(theta, [len(self.tau2)])
        bias = -((others[: self.n_units] / BIAS_TAU) ** 2).sum() / 2
        share = weights**2 / self.tau2
        if self.df:
            return float(bias - (self.df + 1) / 2 * np.log1p(share / self.df).sum())
        return float(bias - share.sum() / 2)


def _positive(information: Float, n_noise: int) -> Float:
    """The information; far from the mode, without the observed part that ties noise to weights.

    It is the residuals' part there, which may be large; its expectation is mostly 0.
    """
    if not n_noise:
        return information
    n = len(information) - n_noise
    noise, ties = information[n:, n:], information[n:, :n]
    size = np.maximum(np.abs(np.diag(noise)), 1.0)
    taken = ties @ np.linalg.pinv(information[:n, :n], hermitian=True) @ ties.T
    left = np.linalg.eigvalsh((noise - taken) / np.sqrt(size[:, None] * size))
    if left.min() >= LEAST_LEFT:
        return information
    apart = np.zeros_like(information)
    apart[:n, :n] = information[:n, :n]
    apart[n:, n:] = np.diag(size)
    return apart


def climb(structures: Structures, rows: Rows, most_passes: int = MOST_PASSES) -> list[Climb]:
    """Goes to the mode of each structure's weights by passes over the rows."""
    climbs = structures.climbs()
    for _ in range(most_passes):
        left = [k for k, each in enumerate(climbs) if not each.done]
        if not left:
            break
        see_all(structures, rows, climbs, left)
    return climbs


def see_all(
    structures: Structures, rows: Rows, climbs: Sequence[Climb], which: Sequence[int]
) -> None:
    """One pass over the rows for some of the structures."""
    some = structures.take(np.array(which)).at([climbs[k].theta for k in which])
    sums = rows.total(NewtonPass(some.networks, some.noise, some.likelihood))
    sizes = [len(edges) + len(units) for edges, units in some.networks.parameters]
    for k, own in zip(which, sums.by_network(sizes), strict=True):
        climbs[k].see(*own)
