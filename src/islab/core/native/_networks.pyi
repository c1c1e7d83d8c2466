from numpy.typing import NDArray

class Networks:
    def __init__(
        self,
        *,
        covariates: int,
        hidden: list[int],
        outputs: int,
        input_skip: bool,
        activation: str,
        constant: float,
        slots: NDArray,
        weights: NDArray,
        ends: NDArray,
        biases: NDArray,
        instructions: str,
    ) -> None: ...
    @property
    def used(self) -> NDArray: ...
    @property
    def parameters(self) -> NDArray: ...
    @property
    def sizes(self) -> NDArray: ...
    def newton_sums(
        self, x: NDArray, residuals: NDArray, roots: NDArray
    ) -> tuple[NDArray, NDArray]: ...
    def predictor(self, x: NDArray) -> NDArray: ...
    def slopes(self, x: NDArray) -> tuple[NDArray, NDArray]: ...
    def contributions(self, start: NDArray, end: NDArray) -> NDArray: ...

def location_quantiles(
    *,
    kind: str,
    centres: NDArray,
    inverse_scale: NDArray,
    levels: NDArray,
    reaches: NDArray,
    instructions: str,
) -> NDArray: ...
def count_quantiles(
    *, rates: NDArray, dispersion: NDArray | None, levels: NDArray, instructions: str
) -> NDArray: ...
def quantiles(*, numbers: NDArray, levels: NDArray) -> NDArray: ...
def exponentials(*, values: NDArray, instructions: str) -> NDArray: ...
def instruction_sets() -> list[str]: ...
def activations() -> list[str]: ...
