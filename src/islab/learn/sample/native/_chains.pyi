from typing import Any

from numpy.typing import NDArray

class Chain:
    def __init__(
        self,
        *,
        x: NDArray,
        y: NDArray,
        weight: NDArray,
        hidden: list[int],
        input_skip: bool,
        activation: str,
        leak: float,
        likelihood: str,
        prior: dict[str, float],
        seed: int,
        slots: NDArray,
        weights: NDArray,
        bias: NDArray,
        tau2: NDArray,
        noise: NDArray,
        linear: list[int],
        include: list[int],
        sign: list[int],
        limited_outputs: int,
        apart: list[int],
        group: list[int],
    ) -> None: ...
    def run(
        self,
        *,
        steps: int,
        every: int,
        warming: bool,
        toggles: int,
        edges: int,
        units: int,
        parts: int,
        largest_part: int,
        keep_rows: bool,
    ) -> dict[str, NDArray]: ...
    def drift(
        self, *, output: int, toggles: int, edges: int, units: int, parts: int, largest_part: int
    ) -> float: ...
    def replace_target(self, y: NDArray) -> None: ...
    def predictor(self) -> NDArray: ...
    def counts(self) -> dict[str, tuple[int, int]]: ...
    def state(self) -> dict[str, NDArray]: ...
    def restore(self, saved: dict[str, Any]) -> None: ...
