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
        leaky_slope: float,
        largest_log_rate: float,
        noise_rate: float,
    ) -> None: ...

class Learner32:
    def __init__(
        self,
        x: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        offset: NDArray | None,
        *,
        likelihood: str,
        widths: Sequence[int],
        input_skip: bool,
        activation: str,
        rules: Rules,
        instructions: str,
    ) -> None: ...
    def set_network(self, *, widths: Sequence[int], input_skip: bool, activation: str) -> None: ...
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
    ) -> float: ...
    def expected_nll(
        self, *, theta: NDArray, noise: NDArray, generator: NDArray[np.uint32], passes: int
    ) -> float: ...
    def divergence(self, *, theta: NDArray) -> float: ...
    def normals(self, *, generator: NDArray[np.uint32], count: int) -> NDArray: ...

class Learner64(Learner32): ...
