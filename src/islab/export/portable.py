"""What an export holds: formulas of covariates and drawn networks, in the user's units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index, Mask
from islab.core.expressions import Cell, Expression, Let, cells
from islab.core.families.mixtures import scattered_levels
from islab.core.paths import active_weights, fed_units
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork

MOST_NUMBERS = 2_000_000
NEWTON_STEPS = 9  # to ends of intervals; some mixtures of draws need seven for six digits


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer of all draws.

    Attributes
    ----------
    covariate : (draws, units, covariates)
    hidden : (draws, units, units below)
    bias : (draws, units)
    """

    covariate: Float
    hidden: Float
    bias: Float


@dataclass(frozen=True, eq=False)
class Portable:
    """A model as it leaves the package.

    Attributes
    ----------
    columns : tuple of str
        Of the table.
    named : bool
        Whether the table has column names; else rows are known by the places of their values.
    covariates : dict of Expression
        Those that the networks read, by their names, from cells of the table.
    layers : tuple of Layer
        In the user's units: the scales of covariates and of the target are in the weights.
    activation, likelihood : str
    noise : (draws, numbers)
        What the likelihood learned besides, in the user's units.
    outputs : tuple of str
    classes : tuple, optional
        Of a classifier.
    order : tuple of int, optional
        Where each class stands among what the likelihood predicts, if not in its own place.
    offset : Expression, optional
        Added to the first predictor of each target.
    flat : bool
        Whether a prediction is one number rather than a list.
    """

    columns: tuple[str, ...]
    named: bool
    covariates: dict[str, Expression]
    layers: tuple[Layer, ...]
    activations: tuple[families.Activation, ...]
    likelihood: str
    noise: Float
    outputs: tuple[str, ...]
    classes: tuple[Any, ...] | None = None
    order: tuple[int, ...] | None = None
    offset: Expression | None = None
    flat: bool = False

    @property
    def n_draws(self) -> int:
        return len(self.noise)

    @property
    def family(self) -> families.Likelihood:
        return families.likelihood(self.likelihood)

    @property
    def n_targets(self) -> int:
        return len(self.outputs) // self.family.n_predictors

    @property
    def results(self) -> tuple[str, ...]:
        """Names of :meth:`responses`: of targets, or classes; of two classes the second."""
        if self.classes is None:
            return self.family.given(self.noise[0]).response_names(self.outputs)
        return tuple(str(c) for c in (self.classes[1:] if self.two_classes else self.classes))

    @property
    def two_classes(self) -> bool:
        """Whether the one output is the probability of the second of two classes."""
        return self.classes is not None and len(self.classes) == 2

    def responses(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        """What is predicted, from the predictors of all outputs."""
        found = self.family.expressions(eta, noise, let)
        return found if self.order is None else [found[place] for place in self.order]

    def standard_draws(self) -> Float:
        """One value of the standard noise for each draw, evenly spread and in no order.

        Means plus these are about a sample of new targets, whose quantiles are good starts.
        """
        noise = self.family.standard_noise
        assert noise is not None
        levels = scattered_levels(self.n_draws)
        return np.array([noise.quantile(level) for level in levels.tolist()])

    @property
    def cells(self) -> list[Any]:
        """What is read of the table, each cell or lookup once."""
        every = [*self.covariates.values(), *([] if self.offset is None else [self.offset])]
        return list(dict.fromkeys(cell for expression in every for cell in cells(expression)))


def portable(source: Any, model: str | None = None, n_draws: int | None = None) -> Portable:
    """A fitted estimator, or a network that reads covariates, as it leaves the package."""
    if isinstance(source, SparseNetwork):
        return of_network(source)
    if not hasattr(source, "portable"):
        raise TypeError(
            f"Got {type(source).__name__}, expected a fitted estimator of tables or its network_."
        )
    return source.portable(model, n_draws)


def readable(source: Any) -> tuple[SparseNetwork, Portable]:
    """The network to read of an estimator, or a network, and how its covariates are made."""
    content = portable(source, "median")
    return (source if isinstance(source, SparseNetwork) else source.network_), content


def of_network(network: SparseNetwork) -> Portable:
    """The network at the mean of its weights; its columns are its covariates."""
    layers, used = drawn_layers(
        network.architecture,
        network.mean_weights()[None],
        network.bias_mu[None],
        network.scale,
        network.covariates,
    )
    return Portable(
        columns=network.scale.names,
        named=False,
        covariates={name: Cell(name) for name in (network.scale.names[k] for k in used)},
        layers=layers,
        activations=network.architecture.activations,
        likelihood=network.likelihood,
        noise=network.noise_in_units()[None],
        outputs=network.scale.outputs,
    )


def drawn_layers(
    architecture: Architecture,
    weights: Float,
    biases: Float,
    scale: Scale,
    columns: Index,
    varies: Mask | None = None,
) -> tuple[tuple[Layer, ...], Index]:
    """Drawn networks without what no prediction needs, and the covariates that they read.

    Units that no covariate feeds are folded into the biases that they reach. Used units come first
    in each layer of each draw, and units that no draw uses are left out.

    Parameters
    ----------
    weights : (draws, weights)
        On standardised covariates and targets.
    biases : (draws, units)
    scale : Scale
    columns : (covariates of the architecture,)
        Where they stand among those of the scale.
    varies : (covariates of the scale,), optional
        Those that did in training; the others are 0 on the standardised scale.
    """
    active = active_weights(architecture, weights != 0)
    biases = _folded(architecture, weights, biases)
    weights = np.where(active, weights, 0.0)
    if np.count_nonzero(weights) > MOST_NUMBERS:
        raise ValueError(
            f"Got {len(weights)} draws with {np.count_nonzero(weights)} weights in all, expected "
            f"at most {MOST_NUMBERS}; try a smaller n_draws, or model='median'."
        )
    layers = list(_by_layer(architecture, weights, biases))
    read = np.any([layer.covariate.any(axis=(0, 1)) for layer in layers], axis=0)
    used = np.flatnonzero(read if varies is None else read & varies[columns])
    layers = _compact(layers)
    center, spread = scale.x_center[columns[used]], scale.x_scale[columns[used]]
    found = []
    for number, layer in enumerate(layers):
        last = number == len(layers) - 1
        factor, shift = (scale.y_scale, scale.y_center) if last else (1.0, 0.0)
        covariate = layer.covariate[:, :, used] / spread * np.expand_dims(factor, -1)
        hidden = layer.hidden * np.expand_dims(factor, -1)
        bias = shift + factor * layer.bias - covariate @ center
        found.append(Layer(covariate, hidden, bias))
    return tuple(found), columns[used]


def _folded(architecture: Architecture, weights: Float, biases: Float) -> Float:
    """Biases with the constants of units that no covariate feeds."""
    fed = fed_units(architecture, weights != 0)
    total = np.array(biases, dtype=float)
    for layer in range(1, architecture.n_layers):
        below, here = architecture.units[layer - 1], architecture.units[layer]
        value = architecture.activations[layer - 1].value
        constant = np.where(fed[:, below], 0.0, value(total[:, below]))
        wires = architecture.hidden_block(layer).view(weights)
        total[:, here] += (wires @ constant[..., None])[..., 0]
    return total


def _by_layer(architecture: Architecture, weights: Float, biases: Float) -> Iterator[Layer]:
    n_draws = len(weights)
    for layer, units in enumerate(architecture.units):
        width = architecture.widths[layer]
        block = architecture.block(layer, "covariate")
        nothing = np.zeros((n_draws, width, architecture.n_covariates))
        yield Layer(
            nothing if block is None else block.view(weights),
            architecture.hidden_block(layer).view(weights)
            if layer
            else np.zeros((n_draws, width, 0)),
            biases[:, units],
        )


def _compact(layers: list[Layer]) -> list[Layer]:
    """The used hidden units of each draw first, and as many of them as the largest draw has."""
    for number in range(len(layers) - 1):
        layer, above = layers[number], layers[number + 1]
        used = layer.covariate.any(axis=2) | layer.hidden.any(axis=2)
        order = np.argsort(~used, axis=1, kind="stable")[:, : used.sum(axis=1).max(initial=0)]
        kept = np.take_along_axis(used, order, axis=1)
        layers[number] = Layer(
            np.take_along_axis(layer.covariate, order[..., None], axis=1),
            np.take_along_axis(layer.hidden, order[..., None], axis=1),
            np.where(kept, np.take_along_axis(layer.bias, order, axis=1), 0.0),
        )
        hidden = np.take_along_axis(above.hidden, order[:, None], axis=2)
        layers[number + 1] = Layer(above.covariate, hidden, above.bias)
    return layers
