from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def instruction_sets() -> list[str]: ...

class Rules:
    def __init__(
        self,
        *,
        beta1: float,
        beta2: float,
        epsilon: float,
        largest_rho: float,
        largest_lambda: float,
        noise_rate: float,
    ) -> None: ...

class FlowArrays:
    def __init__(
        self,
        *,
        value: NDArray,
        first: NDArray,
        second: NDArray,
        step: float,
        given: NDArray | None,
    ) -> None: ...

class Learner32:
    def __init__(
        self,
        x: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        constant: NDArray | None,
        offset: NDArray | None,
        *,
        likelihood: tuple[str, float],
        widths: Sequence[int],
        input_skip: bool,
        activation: tuple[str, float],
        rules: Rules,
        instructions: str,
    ) -> None: ...
    def set_network(
        self, *, widths: Sequence[int], input_skip: bool, activation: tuple[str, float]
    ) -> None: ...
    def set_prior(
        self,
        *,
        tau: NDArray[np.float64],
        psi: NDArray[np.float64],
        mu_step: NDArray[np.float64],
        bias_tau: float,
        df: float,
        log_constant: float,
        nodes: NDArray[np.float64],
        node_weights: NDArray[np.float64],
    ) -> None: ...
    def set_flows(
        self,
        *,
        first: Sequence[NDArray[np.int32]],
        middle: Sequence[NDArray[np.int32]],
        last: Sequence[NDArray[np.int32]],
        moved: Sequence[NDArray],
        used: Sequence[NDArray[np.int64]],
        largest_log_scale: float,
    ) -> None: ...
    def run(
        self,
        *,
        theta: NDArray,
        first: NDArray,
        second: NDArray,
        noise: NDArray,
        generator: NDArray[np.uint32],
        n_steps: int,
        rows: NDArray[np.int64],
        sizes: NDArray[np.int64],
        rate: NDArray[np.float64],
        lambda_rate: NDArray[np.float64],
        kl_weight: NDArray[np.float64],
        given: NDArray | None,
        flow: FlowArrays | None,
    ) -> float: ...
    def expected_nll(
        self,
        *,
        theta: NDArray,
        noise: NDArray,
        generator: NDArray[np.uint32],
        passes: int,
        flow: FlowArrays | None,
    ) -> float: ...
    def divergence(
        self, *, theta: NDArray, generator: NDArray[np.uint32], flow: FlowArrays | None
    ) -> float: ...
    def multipliers(
        self, *, generator: NDArray[np.uint32], draws: int, flow: FlowArrays
    ) -> NDArray: ...
    def normals(self, *, generator: NDArray[np.uint32], count: int) -> NDArray: ...

class Learner64(Learner32): ...
