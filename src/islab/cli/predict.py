"""Predict the rows of a table with a saved model.

Classes come with the probability of each, numbers with their standard deviation; --interval adds
the ends of an interval. Columns are found by name; other columns are ignored. Files are read and
predictions written some rows at a time, so that they need not fit in memory. A model of images
reads an array of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from islab.cli.tables import FILES
from islab.core.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from islab.core.fitted import FittedModel

IMAGES_AT_ONCE = 10_000
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
EXAMPLES = """\
examples:
  islab predict model.islab new.csv -o predictions.csv
  islab predict model.islab new.csv --interval 0.9 | head
  islab predict model.islab new.csv --json
  islab predict model.islab folder/*.parquet -o predictions.parquet
  islab predict model.islab images.npy
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="file that `islab fit` wrote")
    parser.add_argument(
        "data", nargs="+", help=f"{FILES}, in one file or several; of images: .npy or .npz"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="CSV to write, or Parquet if it ends in .parquet; CSV to stdout if not given",
    )
    parser.add_argument(
        "--interval", type=float, metavar="LEVEL", help="level of the interval, for example 0.9"
    )
    parser.add_argument(
        "--average",
        choices=("full", "median"),
        help="average over the full posterior or the median network",
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put ' before text that a spreadsheet would run, such as a class =cmd()",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each row")


def run(args: argparse.Namespace) -> None:
    from islab import load
    from islab.cli.tables import PARQUET, require_output

    require_output(args.output, args.model, *args.data)
    parquet = args.output is not None and args.output.lower().endswith(PARQUET)
    if parquet and (args.json or args.escape_formulas):
        raise ValueError(
            f"Got --json or --escape-formulas with {args.output!r}, expected neither with Parquet; "
            "try a name that ends in .csv"
        )
    model = load(args.model)
    if hasattr(model, "image_shape_"):
        frames = _predicted_images(model, args)
    else:
        frames = _predicted(model, args)
    if parquet:
        _write_parquet(frames, args.output)
    else:
        _write_text(frames, args)


def _write_text(frames: Iterator[pd.DataFrame], args: argparse.Namespace) -> None:
    from islab.io.files import replacing

    pieces = (_as_text(frame, n, args) for n, frame in enumerate(frames))
    if args.output is None:
        for text in pieces:
            sys.stdout.write(_harmless(text) if sys.stdout.isatty() else text)
        return
    with replacing(args.output) as file:
        for text in pieces:
            file.write(text.encode())


def _write_parquet(frames: Iterator[pd.DataFrame], path: str) -> None:
    """Writes predictions as they come; the file is there once all are in it."""
    from contextlib import ExitStack

    from islab.core.dependencies import needed
    from islab.io.files import replacing

    arrow = needed("pyarrow", "Writing Parquet files")
    parquet = needed("pyarrow.parquet", "Writing Parquet files")
    with replacing(path) as file, ExitStack() as stack:
        writer = None
        for frame in frames:
            table = arrow.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(file, table.schema))
            writer.write_table(table)


def _predicted_images(model: FittedModel, args: argparse.Namespace) -> Iterator[pd.DataFrame]:
    from islab.cli.images import read_images

    if len(args.data) > 1:
        raise ValueError(f"Got {len(args.data)} files of images, expected one; try one at a time")
    images = read_images(args.data[0])
    for start in range(0, len(images), IMAGES_AT_ONCE):
        yield predictions(model, images[start : start + IMAGES_AT_ONCE], args)


def _predicted(model: FittedModel, args: argparse.Namespace) -> Iterator[pd.DataFrame]:
    """Predictions of tables in pieces; an error names the row of the whole file."""
    from islab.cli.tables import read_pieces
    from islab.tables.reading import UnusableCell

    text = text_columns(model)
    for path in args.data:
        n_rows = 0
        for table in read_pieces(path, text):
            try:
                yield predictions(model, model_columns(model, table, path), args)
            except UnusableCell as error:
                if len(args.data) == 1:
                    raise error.at(n_rows + error.row) from error
                raise ValueError(f"{path}: {error.at(n_rows + error.row)}") from error
            n_rows += len(table)


def require_reads_tables(model: FittedModel) -> None:
    """Refuses models of images, whose rows no table holds."""
    if not hasattr(model, "columns_"):
        raise ValueError(
            f"Got a model of type {type(model).__name__}, expected one that reads tables; try "
            "islab.load in Python"
        )


def text_columns(model: FittedModel) -> dict[str, tuple[str, ...]]:
    """The columns that the model knows as text, with their levels: 007 keeps its spelling.

    Levels that are spelled as numbers are read as numbers, so that 1.0 is level 1.
    """
    from islab.core.names import is_number
    from islab.tables.categories import Category
    from islab.tables.orders import Ordered
    from islab.tables.reading import labelled

    require_reads_tables(model)

    def is_text(level: str) -> bool:
        return not is_number(level) or labelled([float(level)], declared=True).levels != (level,)

    return {
        variable.name: variable.spelled
        for variable in model.columns_.variables
        if isinstance(variable, Category | Ordered) and any(map(is_text, variable.spelled))
    }


def model_columns(model: FittedModel, table: pd.DataFrame, path: str) -> Any:
    """The columns that the model reads, in its order."""
    from islab.cli.tables import require_columns

    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return table.to_numpy()
    offsets = getattr(model, "offset_columns_", None)
    wanted = [*names, *(offsets.names if offsets is not None else [])]
    require_columns(table, wanted, path, "which the model reads")
    return table[wanted]


def predictions(model: FittedModel, X: Any, args: argparse.Namespace) -> pd.DataFrame:
    """A line of predictions for each row."""
    from islab.tables.predicted import predicted_table

    return predicted_table(model, X, args.interval, args.average)


def _as_text(frame: pd.DataFrame, number: int, args: argparse.Namespace) -> str:
    if args.json:
        lines = frame.to_dict(orient="records")
        return "".join(json.dumps(line) + "\n" for line in lines)
    if args.escape_formulas:
        frame = frame.rename(columns=_escaped)
        text = frame.select_dtypes(exclude="number").columns
        frame = frame.assign(**{name: frame[name].map(_escaped) for name in text})
    return frame.to_csv(index=False, header=number == 0)


def _escaped(cell: Any) -> Any:
    """The cell as a spreadsheet shows it; one that begins as a formula would be run."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def _harmless(text: str) -> str:
    """Lines without the control characters to which a terminal listens."""
    return "".join(printable(line) + "\n" for line in text.splitlines())
