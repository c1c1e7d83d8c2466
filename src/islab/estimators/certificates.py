"""Certificates of fitted models: losses of every draw on rows that training has not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.certificate import Certificate, certify
from islab.estimators.predictions import ClassPredictions, NumberPredictions
from islab.tables.targets import interval_levels

Float = NDArray[np.floating]


def certificate_of_classes(found: ClassPredictions, y: ArrayLike, level: float) -> Certificate:
    """Bounds on the share of wrong classes."""
    interval_levels(level)
    codes = np.searchsorted(found.classes, found.observed(y)).astype(float)

    def wrong(draws: Float, own: Float) -> Float:
        return (found.response(draws).argmax(axis=-1) != own).T

    losses = found.reduce(wrong, None, codes)  # (rows, draws), booleans
    average = float((found.mean().argmax(axis=1) != codes).mean())
    return certify(losses.mean(axis=0), average, len(found), level)


def certificate_of_numbers(
    found: NumberPredictions, y: ArrayLike, level: float, size: float | None
) -> Certificate:
    """Bounds on the mean of absolute errors that are clipped at a size."""
    interval_levels(level)
    limit, observed = _checked_size(found, size), found.observed(y)

    def clipped(draws: Float, own: Float) -> Float:
        error = np.abs(found.response(draws)[..., 0] - own[:, 0]) / limit
        return np.minimum(error, 1.0).T.astype(np.float32)

    losses = found.reduce(clipped, None, observed)
    error = np.abs(found.mean()[:, 0] - observed[:, 0]) / limit
    average = float(np.minimum(error, 1.0).mean())
    unit = certify(losses.mean(axis=0, dtype=float), average, len(found), level)
    return replace(
        unit,
        size=limit,
        loss=unit.loss * limit,
        bound=unit.bound * limit,
        average_loss=unit.average_loss * limit,
        average_bound=unit.average_bound * limit,
    )


def _checked_size(found: NumberPredictions, size: float | None) -> float:
    """Where errors are clipped: it must not depend on the certifying rows."""
    if len(found.targets) > 1:
        raise ValueError(
            f"Got a model of {len(found.targets)} outputs, expected one; try a model of each."
        )
    if size is None and not found.likelihood.scales_target:
        raise ValueError(
            f"Got no size with likelihood={found.network.likelihood!r}, expected where absolute "
            "errors are clipped, in units of the target; try size=10."
        )
    limit = float(found.network.scale.y_scale[0] if size is None else size)
    if not 0 < limit < np.inf:
        raise ValueError(f"Got size={size!r}, expected a positive number; try 1.0.")
    return limit
