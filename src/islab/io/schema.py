"""What a model file may say: the types of its description and the ranges of its arrays.

One place for all kinds of models. Types and single values are declared below and checked by
msgspec; what depends on several values is checked by the functions after the declarations. Nothing
here builds anything larger than what the file holds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

Arrays = dict[str, NDArray]
Record = TypeVar("Record", bound=Struct)

MOST_LAYERS = 1000
MOST_LEVELS = 1002  # the limit of fits, the others and the missing one
MOST_WORDS = 1000
MOST_NESTED = 4
MOST_DRAWS = 1_000_000

Size = Annotated[int, Meta(ge=0, lt=2**53)]
Width = Annotated[int, Meta(ge=0, lt=2**31)]
Seed = Annotated[int, Meta(ge=0, lt=2**32)]
Pixels = Annotated[int, Meta(ge=1, le=2**16)]
Share = Annotated[float, Meta(ge=0, le=1)]
Line = Annotated[str, Meta(pattern="^[ -~]*$", max_length=200)]
Texts = Annotated[list[str], Meta(min_length=1)]


class TailsRecord(Struct):
    low: float
    high: float


class TrendRecord(Struct):
    name: str
    fill: float
    low: float
    high: float
    indicator: bool
    gaps: bool = False
    tails: TailsRecord | None = None
    unit: Annotated[str, Meta(max_length=20)] = ""
    words: Annotated[list[str], Meta(max_length=MOST_WORDS)] = []


class NumberRecord(TrendRecord, tag_field="kind", tag="number"):
    pass


class WeekdayRecord(Struct):
    name: str
    levels: Annotated[list[str], Meta(min_length=1, max_length=MOST_LEVELS)]
    shares: list[Share]
    pooled: Annotated[list[str], Meta(max_length=MOST_LEVELS)] = []
    n_pooled: Size = 0


class CategoryRecord(WeekdayRecord, tag_field="kind", tag="category"):
    pass


class LeftOutRecord(Struct, tag_field="kind", tag="left out"):
    name: str
    reason: Line


class OrderedRecord(Struct, tag_field="kind", tag="ordered"):
    name: str
    levels: Annotated[list[str], Meta(min_length=2, max_length=MOST_LEVELS)]
    steps: Annotated[list[str], Meta(min_length=1, max_length=MOST_LEVELS)]
    shares: list[Share]
    indicator: bool
    gaps: bool = False


class CycleRecord(Struct):
    name: str
    clock: Literal["year", "day"]


class DateRecord(Struct, tag_field="kind", tag="date"):
    name: str
    start: Annotated[float, Meta(ge=-1e9, le=1e9)]
    trend: TrendRecord
    cycles: Annotated[list[CycleRecord], Meta(max_length=2)] = []
    weekday: WeekdayRecord | None = None
    spelling: Annotated[str, Meta(max_length=20)] = ""


VariableRecord = NumberRecord | CategoryRecord | OrderedRecord | DateRecord | LeftOutRecord


class ColumnsRecord(Struct):
    missing: str
    variables: Annotated[list[VariableRecord], Meta(min_length=1)]


class ArchitectureRecord(Struct):
    n_covariates: Size
    hidden: Annotated[list[Width], Meta(max_length=MOST_LAYERS)]
    n_outputs: Annotated[int, Meta(ge=1, lt=2**31)]
    input_skip: bool
    activation: str | Annotated[list[str], Meta(min_length=1, max_length=MOST_LAYERS)]


class NetworkRecord(Struct):
    """A network of weights; its numbers are arrays."""

    architecture: ArchitectureRecord
    likelihood: str
    n_weights_initial: Size


class TargetRecord(Struct):
    """Of a regressor whether y was one column, of a classifier the classes and their order."""

    flat: bool | None = None
    type: str = ""
    classes: list[bool | int | float | str] = []
    levels: list[Size] | None = None


class PriceRecord(Struct):
    difference: float
    se: float
    n_rows: Annotated[int, Meta(ge=1, lt=2**53)]


class MixingRecord(Struct, frozen=True):
    rhat: float | None = None
    ess: float | None = None
    pareto_k: float | None = None


class AllRowsRecord(Struct):
    """How weights were learned from more rows than chains have seen."""

    n_rows: Annotated[int, Meta(ge=1, lt=2**53)]
    n_sampled: Annotated[int, Meta(ge=1, lt=2**53)]
    n_structures: Size
    promised: float
    pareto_k: float | None = None


class SampledRecord(Struct):
    """Draws of chains and the network that was chosen from them."""

    n_draws: Annotated[list[Size], Meta(min_length=1, max_length=1000)]
    moves: list[dict[str, tuple[Size, Size]]]
    network: NetworkRecord
    price: PriceRecord | None = None
    mixing: MixingRecord = MixingRecord()
    all_rows: AllRowsRecord | None = None
    stacked: bool = False


class OffsetRecord(Struct):
    """Columns that hold an offset or an exposure."""

    offset: str | None = None
    exposure: str | None = None


class TrainingRecord(Struct):
    """What a model explains of its training rows, and shares of the predictor's variance."""

    explained: Annotated[list[float | None], Meta(min_length=1)]
    base_rates: list[Share] = []
    shares: dict[str, tuple[float, float, float]] = {}


class TableRecord(NetworkRecord):
    """A model of tables."""

    params: dict[str, Any]
    n_features: Size
    columns: ColumnsRecord
    outputs: Texts
    sparse: bool
    seed: Seed
    target: TargetRecord
    features: list[str] | None = None
    elbo: float | None = None
    elbo_error: float | None = None
    chosen: dict[str, float] = {}
    interrupted: bool = False
    sampled: SampledRecord | None = None
    disagreement: Line | None = None
    offset: OffsetRecord | None = None
    training: TrainingRecord | None = None


class ImageClassesRecord(Struct):
    type: str
    values: list[bool | int | float | str]


class ImageNetworkRecord(Struct):
    """The median network of images: each convolution, and the head."""

    n_channels: list[Width]
    parts: Annotated[list[NetworkRecord], Meta(min_length=1, max_length=MOST_LAYERS)]


class ImageStackRecord(Struct):
    """Several runs on the same images."""

    shares: Annotated[list[Share], Meta(min_length=2, max_length=1000)]
    best: Size
    price: PriceRecord


class ImageRecord(Struct):
    """A model of images."""

    params: dict[str, Any]
    image_shape: tuple[Pixels, Pixels, Pixels]
    classes: ImageClassesRecord
    elbo: float
    seed: Seed
    network: ImageNetworkRecord | None = None
    stack: ImageStackRecord | None = None
    elbo_error: float | None = None
    interrupted: bool = False


class ArrayRecord(Struct, forbid_unknown_fields=True):
    """An array in the header of a file."""

    dtype: Literal["F32", "F64", "I64"]
    shape: Annotated[list[Size], Meta(max_length=3)]
    data_offsets: tuple[Size, Size]


def as_record(values: Any, record: type[Record]) -> Record:
    """The record that values of JSON are, or ValueError."""
    try:
        return msgspec.convert(values, record)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


# -- arrays ---------------------------------------------------------------------------------

# Weights are on the scale of standardised data. A few layers of larger ones leave single precision.
LARGEST = 1e6
TINY, HUGE, FARTHEST = 1e-150, 1e150, 1e300
LARGEST_LOG, LARGEST_LOG_SD = 200.0, 30.0

# Least and greatest number in arrays; others lie between -LARGEST and LARGEST.
_RANGES: dict[str, tuple[float, float]] = {
    "alpha": (0.0, 1.0),
    "sigma": (0.0, LARGEST),
    "bias_sigma": (0.0, LARGEST),
    "layer_mean": (-LARGEST_LOG, LARGEST_LOG),
    "input_mean": (-LARGEST_LOG, LARGEST_LOG),
    "layer_sd": (0.0, LARGEST_LOG_SD),
    "input_sd": (0.0, LARGEST_LOG_SD),
    "dropout": (0.0, 1.0 - 1e-9),
    "noise": (TINY, LARGEST),
    "x_scale": (TINY, HUGE),
    "y_scale": (TINY, HUGE),
    "x_center": (-FARTHEST, FARTHEST),
    "x_typical": (-FARTHEST, FARTHEST),
    "y_center": (-FARTHEST, FARTHEST),
    "history": (-np.inf, np.inf),
    "chain_weights": (0.0, 1.0),
    "tau2": (TINY, FARTHEST),
    "log_likelihood": (-FARTHEST, FARTHEST),
    "kept_noise": (TINY, LARGEST),
}


class Held:
    """The arrays of a file, handed out by name once they have the right shape and range."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.left = set(arrays)
        self.parts: list[Held] = []

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def part(self, prefix: str) -> Held:
        """The arrays whose names start with this, without it."""
        own = {name for name in self.arrays if name.startswith(prefix)}
        self.left -= own
        part = Held({name.removeprefix(prefix): self.arrays[name] for name in own})
        self.parts.append(part)
        return part

    def length(self, name: str) -> int:
        """Numbers in a vector."""
        return len(self.numbers(name, (None,)))

    def numbers(self, name: str, shape: tuple[int | None, ...]) -> NDArray:
        """Real numbers; None in the shape stands for any size."""
        array = self._take(name, "f", shape)
        low, high = _RANGES.get(name, (-LARGEST, LARGEST))
        if not (np.isfinite(array) & (array >= low) & (array <= high)).all():
            raise ValueError(f"array {name!r} holds numbers outside {low:g} to {high:g}")
        return array

    def positions(self, name: str, shape: tuple[int], below: int, *, rising: bool) -> NDArray:
        """Whole numbers from 0 to ``below``, each larger than the one before if ``rising``."""
        array = self._take(name, "i", shape)
        if ((array < 0) | (array >= below)).any():
            raise ValueError(f"array {name!r} points outside the network")
        if rising and (np.diff(array) <= 0).any():
            raise ValueError(f"array {name!r} is not in order")
        return array

    def require_no_others(self) -> None:
        if self.left:
            raise ValueError(f"it holds an array {min(self.left)!r} that belongs to nothing")
        for part in self.parts:
            part.require_no_others()

    def _take(self, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray:
        array = self.arrays.get(name)
        if array is None or array.dtype.kind != kind:
            raise ValueError(f"array {name!r} is missing or of the wrong type")
        fits = len(array.shape) == len(shape) and all(
            size in (found, None) for found, size in zip(array.shape, shape, strict=True)
        )
        if not fits:
            raise ValueError(f"array {name!r} has shape {array.shape}, expected {shape}")
        self.left.discard(name)
        return array


# -- values that depend on each other -------------------------------------------------------

CLASS_TYPES = {"i": "int64", "u": "int64", "f": "float64", "b": "bool", "U": "str", "O": "object"}
_TYPES = {"int64": int, "float64": float, "bool": bool, "str": str, "object": str}


def classes_of(kind: str, values: list[Any]) -> NDArray:
    """The classes of a classifier: two or more of one type, different and in order."""
    if kind not in _TYPES or len(values) < 2 or any(type(v) is not _TYPES[kind] for v in values):
        raise ValueError("its classes are not two or more values of one type")
    if any(earlier >= later for earlier, later in pairwise(values)):
        raise ValueError("its classes are not different and in order")
    if kind == "int64" and not -(2**63) <= values[0] <= values[-1] < 2**63:
        raise ValueError("its classes are too large numbers")
    return np.array(values, dtype=kind)


def params_of(values: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Parameters as an estimator takes them; tuples and dicts are marked in JSON."""
    unknown = set(values) - known
    if unknown:
        raise ValueError(f"it holds an unknown parameter, {min(unknown)!r}")
    params = {name: _unmarked(value, MOST_NESTED) for name, value in values.items()}
    seed = params.get("random_state")
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise ValueError(f"its random_state is {seed!r}")
    if params.get("posterior") == "lrt":  # the name in version 0.1
        params["posterior"] = "independent"
    draws = params.get("n_draws", 1)
    if type(draws) is not int or not 1 <= draws <= MOST_DRAWS:
        raise ValueError(f"Got n_draws={draws!r}, expected 1 to {MOST_DRAWS}")
    return params


def plain_param(name: str, value: Any) -> Any:
    """A parameter in JSON's types; tuples and dicts are marked, so that they come back."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, tuple | list):
        return {"tuple": [plain_param(name, item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[plain_param(name, k), plain_param(name, v)] for k, v in value.items()]}
    raise ValueError(
        f"Got {name}={value!r}, expected a value that a file can hold: numbers, text, tuples and "
        "dicts of these."
    )


def _unmarked(value: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError("a parameter is nested too deeply")
    if isinstance(value, int | float) and not -(2**63) <= value < 2**63:
        raise ValueError("a parameter is too large a number")
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"tuple": [*items]} if len(value) == 1:
            return _unmarked(items, depth)
        case {"dict": [*pairs]} if len(value) == 1:
            return _unmarked_dict(pairs, depth - 1)
        case [*items] if len(items) <= MOST_LAYERS:  # bare: how image models once wrote tuples
            return tuple(_unmarked(item, depth - 1) for item in items)
    raise ValueError("a parameter is neither a number, text, a short tuple nor a dict")


def _unmarked_dict(pairs: list[Any], depth: int) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], list):
            raise ValueError("a parameter is not a dict")
        key = _unmarked(pair[0], depth)
        if isinstance(key, dict) or key == ():
            raise ValueError("a parameter is not a dict")
        if key in found:
            raise ValueError(f"a parameter has {key!r} twice")
        found[key] = _unmarked(pair[1], depth)
    return found
