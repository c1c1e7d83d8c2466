"""The native engine for FLOW posteriors: means multiplied by ``z`` from a normalizing flow."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core.posterior import Posterior
from islab.learn.engines.base import Problem, State, Steps
from islab.learn.engines.flows import (
    BANK,
    KL_SAMPLES,
    LARGEST_LOG_SCALE,
    N_VECTORS,
    FlowGroup,
    FlowOptions,
    inputs_of_layers,
    kept_inputs,
    tied_layers,
    with_multipliers,
)
from islab.learn.engines.native import NativeEngine, _kernel

__all__ = ["NativeFlowEngine"]

FLOW_NUMBERS = ("flows", "flows_first", "flows_second")


class NativeFlowEngine(NativeEngine):
    """Learns a dense posterior whose weights a multiplicative normalizing flow ties together.

    Parameters
    ----------
    posterior, problem, seed, **options
        See :class:`~islab.learn.engines.native.NativeEngine`.
        And those of :class:`~islab.learn.engines.flows.FlowOptions`.
    """

    ties_weights: ClassVar[bool] = True

    def __init__(
        self, posterior: Posterior, problem: Problem, *, seed: int, **options: Any
    ) -> None:
        own = FlowOptions.taken_from(options)
        self.flow_step = own.flow_step
        net = posterior.architecture
        self.groups = [own.group((layer,), net.n_inputs(layer)) for layer in tied_layers(net)]
        self.layer_inputs = inputs_of_layers(net)
        self.n_inputs = [len(index) for index in self.layer_inputs]
        super().__init__(posterior, problem, seed=seed, **options)
        starts = map(turned, self.groups, own.starts(self.groups, seed))
        self.flows = self._array(np.concatenate([np.zeros(0), *starts]))
        self.flows_first, self.flows_second = np.zeros_like(self.flows), np.zeros_like(self.flows)
        self._connect()

    def run(
        self,
        steps: Steps,
        random_normals: NDArray | None = None,
        flow_normals: NDArray | None = None,
    ) -> float:
        """Takes the steps, as the protocol says.

        ``flow_normals`` (steps, inputs of all tied layers + units) replaces the standard normal
        numbers behind ``z`` and behind what ``r`` knows of the weights.
        """
        given = None if flow_normals is None else self._array(flow_normals)
        return self._run(steps, random_normals, self._flow(given))

    def posterior(self) -> Posterior:
        drawn = self._learner.multipliers(
            generator=self.generator.copy(), draws=BANK, flow=self._flow()
        )
        bank = [np.ones((BANK, size)) for size in self.n_inputs]
        ends = accumulate(group.n_inputs for group in self.groups)
        for group, end in zip(self.groups, ends, strict=True):
            bank[group.layers[0]] = drawn[:, end - group.n_inputs : end].astype(float)
        return with_multipliers(super().posterior(), bank, self.layer_inputs)

    def kl(self) -> float:
        return float(self.kl_draws(KL_SAMPLES).mean())

    def kl_draws(self, draws: int) -> NDArray[np.float64]:
        generator, flow = self.generator.copy(), self._flow()
        found = [
            self._learner.divergence(theta=self.theta, generator=generator, flow=flow)
            for _ in range(draws)
        ]
        return np.array(found)

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: NDArray) -> None:
        """Drops the units; the flows keep their width, the dropped entries of ``z`` go unused."""
        super().keep_units(masks, bias_shift)
        self.layer_inputs = kept_inputs(self.layer_inputs, masks)
        self._connect()

    def state(self) -> State:
        own = {name: getattr(self, name).copy() for name in FLOW_NUMBERS}
        inputs = {f"inputs{layer}": index for layer, index in enumerate(self.layer_inputs)}
        return super().state() | own | inputs

    def restore(self, state: State) -> None:
        self.layer_inputs = [state[f"inputs{layer}"] for layer in range(len(self.layer_inputs))]
        for name in FLOW_NUMBERS:
            setattr(self, name, self._array(state[name]))
        super().restore(state)
        self._connect()

    # -- memory -------------------------------------------------------------------------

    def _flow(self, given: NDArray | None = None) -> _kernel.FlowArrays:
        return _kernel.FlowArrays(
            value=self.flows,
            first=self.flows_first,
            second=self.flows_second,
            step=self.flow_step,
            given=given,
        )

    def _connect(self) -> None:
        """Tells the kernel how the flows are wired to the network that it has now."""
        by_layer = {group.layers[0]: group for group in self.groups}
        layers = [by_layer.get(layer) for layer in range(len(self.n_inputs))]
        self._learner.set_flows(
            first=[_reach(group, "first") for group in layers],
            middle=[_reach(group, "middle") for group in layers],
            last=[_reach(group, "last") for group in layers],
            moved=[self._array(_moved(group)) for group in layers],
            used=[
                np.ascontiguousarray(index if group else [], dtype=np.int64)
                for group, index in zip(layers, self.layer_inputs, strict=True)
            ],
            largest_log_scale=LARGEST_LOG_SCALE,
        )


def turned(group: FlowGroup, flat: NDArray) -> NDArray:
    """Parameters of one layer's flow with the last map of each transform by its targets."""
    parts = []
    pieces = np.split(flat, np.cumsum(group.sizes)[:-1])
    for number, (piece, shape) in enumerate(zip(pieces, group.shapes, strict=True)):
        last = number >= N_VECTORS and (number - N_VECTORS) % 6 == 4
        parts.append(piece.reshape(shape)[0].T.ravel() if last else piece)
    return np.concatenate(parts)


def _reach(group: FlowGroup | None, name: str) -> NDArray[np.int32]:
    """Where each row of the transforms' maps begins and ends, (transforms, rows, 2).

    Rows are sources, and targets for the last map.
    """
    if group is None:
        return np.zeros((0, 0, 2), dtype=np.int32)
    n_rows = {"first": group.n_inputs, "middle": group.width, "last": 2 * group.n_inputs}[name]
    reach = np.zeros((group.n_transforms, n_rows, 2), dtype=np.int32)
    for transform, pairs in zip(group.transforms, reach, strict=True):
        mask = transform.last.T if name == "last" else getattr(transform, name)
        pairs[:, 0] = mask.argmax(axis=1)
        pairs[:, 1] = pairs[:, 0] + mask.sum(axis=1)
    return reach


def _moved(group: FlowGroup | None) -> NDArray:
    """The entries that each transform moves, (transforms, inputs)."""
    if group is None:
        return np.zeros((0, 0))
    moved = [transform.moved for transform in group.transforms]
    return np.array(moved).reshape(group.n_transforms, group.n_inputs)
