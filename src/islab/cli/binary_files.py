"""Tables in files that are not text: Parquet, Feather or Arrow, and Excel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from islab.core.dependencies import needed

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow")
EXCEL = (".xlsx", ".xlsm")
BINARY = (*PARQUET, *ARROW, *EXCEL)


def read_parquet(path: Path, n_rows: int) -> Iterator[pd.DataFrame]:
    """So many rows at a time."""
    parquet = needed("pyarrow.parquet", "Reading Parquet files")
    try:
        for batch in parquet.ParquetFile(path).iter_batches(n_rows):
            yield _frame(batch)
    except Exception as error:  # damaged metadata raise whatever the first use of them meets
        raise ValueError(f"Got {str(path)!r}, which cannot be read as Parquet: {error}") from error


def read_arrow(path: Path) -> Iterator[pd.DataFrame]:
    """The batches of a file or of a stream."""
    ipc = needed("pyarrow.ipc", "Reading Feather and Arrow files")
    try:
        with path.open("rb") as file:
            if file.read(6) == b"ARROW1":
                reader = ipc.open_file(str(path))
                for number in range(reader.num_record_batches):
                    yield _frame(reader.get_batch(number))
                return
            file.seek(0)
            for batch in ipc.open_stream(file):
                yield _frame(batch)
    except Exception as error:
        raise ValueError(
            f"Got {str(path)!r}, which cannot be read as Feather or Arrow: {error}"
        ) from error


def _frame(batch: Any) -> pd.DataFrame:
    """The rows of a batch whose text is UTF-8; other text would fail at its first use."""
    batch.validate(full=True)
    return batch.to_pandas(date_as_object=False)


def read_excel(
    path: Path, text: Mapping[str, Collection[str]], missing: Collection[str]
) -> pd.DataFrame:
    """The first sheet, whose first row has the names.

    Parameters
    ----------
    path : Path
    text : dict of collections of str
        Columns with words that are values although they are among those of ``missing``.
    missing : collection of str
        What stands for a missing value.
    """
    import pandas as pd

    needed("openpyxl", "Reading Excel files")
    options: dict[str, Any] = {"keep_default_na": False, "na_values": []}
    try:
        cells = pd.read_excel(path, header=None, dtype=object, engine="openpyxl", **options)
    except Exception as error:  # whatever the first use of a damaged part meets
        raise ValueError(f"Got {str(path)!r}, which cannot be read as Excel: {error}") from error
    cells = cells.mask(cells.map(lambda cell: cell is None or cell == ""))
    cells = cells.dropna(how="all").dropna(how="all", axis="columns")
    names = [f"Unnamed: {n}" if pd.isna(name) else str(name) for n, name in _header(cells)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"Got {str(path)!r} with column name {twice[0]!r} more than once, expected names that "
            "differ; try to rename or drop columns"
        )
    table = cells.iloc[1:].set_axis(names, axis=1).reset_index(drop=True)
    for name in names:
        words = [word for word in missing if word not in text.get(name, ())]
        table[name] = table[name].mask(table[name].isin(words))
    return table.infer_objects()


def _header(cells: pd.DataFrame) -> Iterator[tuple[int, Any]]:
    return enumerate(cells.iloc[0].tolist() if len(cells) else [])
