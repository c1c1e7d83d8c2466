"""What users may ask of an explanation, checked: outputs, baselines, references, rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.names import is_number
from islab.core.scale import Scale

Output = str | int  # a class may be any number or boolean
Baseline = str | ArrayLike


def output_number(names: tuple[str, ...], output: Output) -> int:
    """Position of an output given by its name or, if no name is a number, by its position."""
    if str(output) in names:
        return names.index(str(output))
    numbered = any(map(is_number, names))
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if whole and not numbered and -len(names) <= int(output) < len(names):
        return int(output) % len(names)
    otherwise = "" if numbered else f" or a position below {len(names)}"
    raise ValueError(
        f"Got output={output!r}, expected one of {', '.join(map(repr, names))}{otherwise}."
    )


def output_numbers(names: tuple[str, ...], outputs: Output | Sequence[Output] | None) -> list[int]:
    """Positions of the outputs asked for, all of them for None."""
    if outputs is None:
        return list(range(len(names)))
    if isinstance(outputs, str) or not isinstance(outputs, Sequence | np.ndarray):
        return [output_number(names, outputs)]
    return [output_number(names, output) for output in outputs]


def checked_rows(scale: Scale, x: ArrayLike) -> Float:
    """The rows as (rows, covariates) floats."""
    try:
        rows = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            "Got rows with text or dates, expected the network's covariates as numbers; try the "
            "estimator in place of its network, which takes tables as they are."
        ) from None
    if rows.ndim != 2 or rows.shape[1] != len(scale.names):
        raise ValueError(
            f"Got x of shape {rows.shape}, expected (rows, {len(scale.names)}); "
            "try x.reshape(1, -1) for a single row."
        )
    return rows


def baseline_values(scale: Scale, baseline: Baseline) -> Float:
    """Where contributions are counted from, (covariates,) in the user's units."""
    named = {"typical": scale.typical, "center": scale.x_center, "zero": np.zeros(len(scale.names))}
    if isinstance(baseline, str):
        if baseline not in named:
            raise ValueError(
                f"Got baseline={baseline!r}, expected {', '.join(map(repr, named))} or one value "
                "per covariate."
            )
        return named[baseline]
    if hasattr(baseline, "columns"):
        raise ValueError(
            "Got a data frame as baseline, expected one value per covariate; try "
            "model.explain_local(X, baseline=...), which knows what its columns become."
        )
    values = np.asarray(baseline, dtype=float)
    wrong = values[~np.isfinite(values)]
    if wrong.size:
        raise ValueError(
            f"Got {wrong[0]} in the baseline, expected finite numbers; try baseline='typical'."
        )
    if values.shape != (len(scale.names),):
        raise ValueError(
            f"Got a baseline of shape {values.shape}, expected ({len(scale.names)},): "
            "one value for each covariate."
        )
    return values


def baseline_name(scale: Scale, baseline: Float) -> str:
    """The baseline in words, for labels."""
    if scale.x_typical is not None and np.array_equal(baseline, scale.x_typical):
        return "the typical row"
    if not baseline.any():
        return "zero"
    return "the center" if np.array_equal(baseline, scale.x_center) else "the baseline"


def contrast_matrix(scale: Scale, likelihood: str, reference: Output | None) -> Float:
    """The matrix that takes predictors to predictors against the reference."""
    identity = np.eye(len(scale.outputs))
    if reference is None:
        return identity
    if not families.likelihood(likelihood).relative_predictor:
        raise ValueError(
            f"Got reference={reference!r} with the {likelihood} likelihood, expected "
            "None; a reference is for classes."
        )
    if reference == "center":
        return identity - 1 / len(identity)
    return identity - identity[output_number(scale.outputs, reference)]


def current_reference(reference: Output | None) -> Output | None:
    """The reference by its present name, with a warning for ``"centred"`` of version 0.1."""
    if not (isinstance(reference, str) and reference == "centred"):
        return reference
    warnings.warn("reference='centred' is now called 'center'", FutureWarning, stacklevel=3)
    return "center"


def reference_name(scale: Scale, reference: Output | None) -> str | None:
    """``"center"``, the class that predictors are given against, or None."""
    if reference is None or reference == "center":
        return reference
    return scale.outputs[output_number(scale.outputs, reference)]


class HasArchitecture(Protocol):
    """A network, or a distribution over networks."""

    @property
    def architecture(self) -> Architecture: ...


def is_piecewise_linear(network: HasArchitecture) -> bool:
    """Whether the slope at a row is exact for the whole region around it."""
    return network.architecture.piecewise_linear


def require_piecewise_linear(network: HasArchitecture, remedy: str) -> None:
    """Refuses a network that is not linear around each row."""
    if not is_piecewise_linear(network):
        linear = ", ".join(families.activations(piecewise_linear=True))
        raise ValueError(
            f"Got activation={network.architecture.activation!r}, expected one of {linear}, "
            "whose networks are exactly linear around each row; "
            f"try {remedy}."
        )
