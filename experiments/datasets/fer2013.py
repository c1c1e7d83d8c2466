"""FER2013, faces in a table that the user has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets.images import ImageDataset, Pixels
from experiments.datasets.split import tenth_for_testing
from islab.evaluate.runner import NoData

FACES = {3: "happy", 5: "surprise", 6: "neutral"}
COLUMNS = ("emotion", "pixels", "Usage")
SIDE = 48


def load_fer2013(path: str | Path) -> ImageDataset:
    """FER2013: happy, surprised and neutral faces of 48 by 48 pixels, a tenth for testing.

    Parameters
    ----------
    path : path
        ``fer2013.csv`` of Kaggle's facial expression recognition challenge, with the columns
        ``emotion``, ``pixels`` and ``Usage``. It may not be passed on, hence is not fetched.
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise NoData(
            f"Got path={str(path)!r}, expected the file fer2013.csv; try to download it from "
            "Kaggle's facial expression recognition challenge."
        )
    frame = pd.read_csv(path)
    if not set(COLUMNS) <= set(frame.columns):
        raise ValueError(
            f"Got {path} with columns {', '.join(map(str, frame.columns))}, expected "
            f"{', '.join(COLUMNS)}."
        )
    frame = frame[frame["emotion"].isin(list(FACES))]
    images = np.stack([_face(text, row) for row, text in frame["pixels"].items()])
    labels = np.searchsorted(list(FACES), frame["emotion"].to_numpy())
    # The paper splits its own way, not by Usage.
    train, test = tenth_for_testing(len(frame), labels)
    return ImageDataset("fer2013", images, labels, tuple(FACES.values()), train, test)


def _face(text: str, row: Any) -> Pixels:
    try:
        return np.array(text.split(), dtype=np.uint8).reshape(SIDE, SIDE)
    except (AttributeError, OverflowError, ValueError) as error:
        raise ValueError(
            f"Got pixels={text!r:.40} in row {row}, expected {SIDE * SIDE} numbers from 0 to 255."
        ) from error
