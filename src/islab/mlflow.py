"""Models in MLflow: logged with their report and scores, loaded, and served.

A logged model is islab's own file beside MLflow's description of it: no pickle. Any tool that reads
the ``python_function`` flavour can predict with it, ``mlflow models serve`` among them.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from islab.core.dependencies import needed, own_version
from islab.evaluate import evaluate
from islab.io.store import load, save
from islab.tables.predicted import predicted_table

FLAVOR_NAME = "islab"
FILE = "data/model.islab"  # where MLflow puts what it is given


def log_model(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    name: str = "model",
    sparse: bool = False,
    **options: Any,
) -> Any:
    """Logs a fitted model, and with rows its report and its scores, to the active run.

    Parameters
    ----------
    model : estimator
        Of tables or of images.
    X : DataFrame, (rows, columns) or images, optional
        Rows that the model has not seen. Their report is the artifact ``report.html``.
    y : (rows,) or (rows, outputs), optional
        Their targets; their scores are logged as metrics.
    name : str
        Of the model in MLflow.
    sparse : bool
        Leave out the full posterior, as :func:`islab.io.store.save` does.
    **options
        Those of ``mlflow.models.Model.log``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what ``load_model`` and ``mlflow.pyfunc.load_model`` read.
    """
    mlflow = _mlflow()
    import islab.mlflow as flavor

    if y is not None and X is None:
        raise ValueError("Got y without X, expected the rows that y belongs to.")
    info = mlflow.models.Model.log(
        artifact_path=None, flavor=flavor, name=name, model=model, sparse=sparse, **options
    )
    mlflow.log_params({key: str(value) for key, value in model.get_params(deep=False).items()})
    if X is not None:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "report.html")
            model.report(page, X, y)
            mlflow.log_artifact(str(page))
    if y is not None:
        scores = evaluate(model, X, y)
        mlflow.log_metrics({key: float(value) for key, value in scores.items() if _finite(value)})
    return info


def save_model(
    model: Any, path: str | Path, mlflow_model: Any = None, *, sparse: bool = False
) -> None:
    """Writes a fitted model as a folder that MLflow reads.

    Parameters
    ----------
    model : estimator
    path : path
        Of a folder that is not there yet.
    mlflow_model : mlflow.models.Model, optional
        What the folder's description is added to.
    sparse : bool
        Leave out the full posterior.
    """
    mlflow = _mlflow()
    described = mlflow.models.Model() if mlflow_model is None else mlflow_model
    described.add_flavor(FLAVOR_NAME, data=FILE, version=own_version())
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        file = Path(folder, Path(FILE).name)
        save(model, file, sparse=sparse)
        # An example would be rows of the user's table in a file that is passed on.
        warnings.filterwarnings("ignore", "(?s).*An input example was not provided")
        mlflow.pyfunc.save_model(
            path,
            loader_module="islab.mlflow",
            data_path=str(file),
            mlflow_model=described,
            signature=_signature(model),
            pip_requirements=[f"islab-bnn=={own_version()}"],
        )


def load_model(model_uri: str) -> Any:
    """The estimator of a logged or saved model.

    Parameters
    ----------
    model_uri : str
        A folder, or an address of MLflow: ``models:/name/1``, ``runs:/.../model``.
    """
    folder = _mlflow().artifacts.download_artifacts(artifact_uri=str(model_uri))
    return load(Path(folder, FILE))


class Served:
    """What MLflow predicts with: a table in, a table of predictions out."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Predictions of some rows, with an interval if ``params`` has a ``level``."""
        chosen = params or {}
        level = chosen.get("level") or None
        return predicted_table(self.model, model_input, level, chosen.get("average") or None)


def _load_pyfunc(path: str) -> Served:
    """MLflow calls this by its name."""
    return Served(load(path))


def _mlflow() -> Any:
    module = needed("mlflow", "Logging a model to MLflow", "mlflow-skinny")
    needed("mlflow.pyfunc", "Logging a model to MLflow", "mlflow-skinny")
    return module


def _signature(model: Any) -> Any:
    """Names of columns, of any type: the model itself says what is wrong with a cell.

    MLflow's own types would refuse a whole number where training has seen a fraction, or nothing
    where it has seen no missing value.
    """
    if not hasattr(model, "feature_names_in_"):
        return None
    schema = needed("mlflow.types.schema", "Logging a model to MLflow", "mlflow-skinny")
    signature: Callable[..., Any] = _mlflow().models.ModelSignature
    offsets = getattr(model, "offset_columns_", None)
    names = [*model.feature_names_in_, *(offsets.names if offsets is not None else [])]
    columns = [schema.ColSpec(schema.AnyType(), name=name) for name in names]
    params = [
        schema.ParamSpec("level", schema.DataType.double, 0.0),
        schema.ParamSpec("average", schema.DataType.string, ""),
    ]
    return signature(inputs=schema.Schema(columns), params=schema.ParamSchema(params))


def _finite(value: Any) -> bool:
    return isinstance(value, Real) and isfinite(value)
