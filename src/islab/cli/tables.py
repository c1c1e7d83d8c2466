"""Tables in files, read in pieces that fit in memory, and the options that say how."""

from __future__ import annotations

import argparse
import gzip
import lzma
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from islab.cli.binary_files import (
    ARROW,
    BINARY,
    EXCEL,
    PARQUET,
    read_arrow,
    read_excel,
    read_parquet,
)
from islab.core.names import shortened
from islab.io.files import writable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
FILES = "table: .csv, .tsv, .parquet, .feather, .arrow or .xlsx"
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
ROWS_AT_ONCE = 50_000
LARGE_FILE = 64 * 2**20
LARGEST_LOSS = 1e-5
COLUMNS_SHOWN = 10
AS_SPELLED: dict[str, Any] = {"dtype": str, "keep_default_na": False}
# What pandas takes for a missing value.
MISSING_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# What the modules that decompress say of a file that is cut short or altered.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
Text = Mapping[str, Collection[str]]
NO_TEXT: Text = {}


def read_table(path: str | Path, text: Text = NO_TEXT) -> pd.DataFrame:
    """All rows of a file.

    Numbers of a large file are held in single precision where that loses nothing that matters,
    and its text as categories, so that the table is no larger than the file. A column with text
    anywhere is text everywhere, as it is spelled.

    Parameters
    ----------
    path : path
    text : dict of collections of str
        Columns to read as text even if all of it could be numbers, and for each the words, such
        as "None", that are values of it and not a sign that the value is missing.
    """
    import pandas as pd

    path = Path(path)
    large = path.exists() and path.stat().st_size > LARGE_FILE
    pieces = [_smaller(piece) if large else piece for piece in read_pieces(path, text)]
    if len(pieces) == 1:
        return pieces[0]
    mixed = [name for name in pieces[0] if len({_is_text(piece[name]) for piece in pieces}) > 1]
    if set(mixed) - set(text):
        pieces.clear()  # the table would be in memory twice
        return read_table(path, {**dict.fromkeys(mixed, ()), **text})
    return pd.DataFrame({name: _joined([p.pop(name) for p in pieces]) for name in list(pieces[0])})


def read_pieces(path: str | Path, text: Text = NO_TEXT) -> Iterator[pd.DataFrame]:
    """The rows of a file, some at a time; ``text`` as in :func:`read_table`."""
    path = Path(path)
    if not path.exists():
        raise ValueError(f"Got {str(path)!r}, expected a file; there is none")
    if not path.is_file():
        raise ValueError(f"Got {str(path)!r}, expected a file; it is not a regular file")
    if path.stat().st_size == 0:
        raise ValueError(f"Got {str(path)!r}, which is empty, expected a table")
    n_rows = 0
    for piece in _pieces(path, text):
        n_rows += len(piece)
        yield piece
    if n_rows == 0:
        raise ValueError(f"Got {str(path)!r} without a single row, expected a table")


def _pieces(path: Path, text: Text) -> Iterator[pd.DataFrame]:
    kind = _kind(path)
    if kind in PARQUET:
        return read_parquet(path, ROWS_AT_ONCE)
    if kind in ARROW:
        return read_arrow(path)
    if kind in EXCEL:
        return iter([read_excel(path, text, MISSING_WORDS)])
    return _text(path, text)


def add_column_arguments(parser: argparse.ArgumentParser, *, images: bool = False) -> None:
    """Options that say how to read a table to learn from; images may bring their own target."""
    parser.add_argument("--target", required=not images, metavar="COLUMN", help="column to predict")
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="column to leave out; repeatable",
    )
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="COLUMN",
        help="read this column as categories, as spelled, such as 007 or None; repeatable",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="use this column even if it looks like an id or free text; repeatable",
    )


def read_training(
    args: argparse.Namespace, sampled: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """Covariates and targets, from a file and the options of :func:`add_column_arguments`.

    Of several files, or a large one, ``sampled`` has the rows to learn from.
    """
    text = dict.fromkeys(args.text, MISSING_WORDS[1:])
    table = read_table(args.data, text) if sampled is None else sampled
    require_columns(
        table, [args.target, *args.drop, *args.text, *args.keep], args.data, "which you named"
    )
    if args.target in args.drop:
        raise ValueError(f"Got --drop {args.target}, which is the target, expected other columns")
    table, y = known_targets(table, args.target, args.data, whole=sampled is None)
    X = table.drop(columns=[args.target, *args.drop])
    if X.shape[1] == 0:
        raise ValueError(
            f"Got {args.data!r} with no column other than the target, expected covariates"
        )
    X = X.astype({name: "category" for name in args.text if name in X})
    return X.astype({name: _kept(X[name]) for name in args.keep if name in X}), y


def _kept(column: pd.Series) -> Any:
    """A type of which no column is left out."""
    import pandas as pd

    if pd.api.types.is_integer_dtype(column):
        return float
    return "category" if _is_text(column) else column.dtype


class SampledFiles(NamedTuple):
    """A random sample of the rows of some files, and a function that reads all rows again."""

    table: pd.DataFrame
    n_rows: int
    words: str
    pieces: Callable[[], Iterator[pd.DataFrame]]


def read_sample(args: argparse.Namespace, paths: list[str], n_rows: int) -> SampledFiles:
    """A random sample of the rows of some files, which need not fit in memory."""
    from islab.tables.batches import Batches

    text: dict[str, Collection[str]] = dict.fromkeys(args.text, MISSING_WORDS[1:])
    is_text: dict[str, set[bool]] = {}

    def pieces() -> Iterator[pd.DataFrame]:
        for path in paths:
            for piece in read_pieces(path, text):
                for name in piece:
                    is_text.setdefault(name, set()).add(_is_text(piece[name]))
                yield piece

    found = Batches(pieces, n_rows=n_rows).sample(args.seed)
    mixed = [name for name, kinds in is_text.items() if len(kinds) > 1 and name not in text]
    if mixed:  # text anywhere is text everywhere, as it is spelled
        text |= dict.fromkeys(mixed, ())
        found = Batches(pieces, n_rows=n_rows).sample(args.seed)
    return SampledFiles(found.table, found.n_rows, found.words, pieces)


def training_pieces(
    args: argparse.Namespace, pieces: Callable[[], Iterator[pd.DataFrame]]
) -> Callable[[], Iterator[pd.DataFrame]]:
    """The pieces without rows that have no target, and without columns to drop."""

    def wanted() -> Iterator[pd.DataFrame]:
        for piece in pieces():
            yield piece[piece[args.target].notna()].drop(columns=args.drop)

    return wanted


def require_output(path: str | None, *others: str) -> None:
    """Refuses a file to write, if any, that cannot be written or that is one of the others."""
    if path is None:
        return
    place = writable(path).resolve()
    if place in [Path(other).resolve() for other in others]:
        raise ValueError(f"Got {path!r} to write, which is already in use, expected another")


def require_columns(table: pd.DataFrame, names: list[str], path: str | Path, why: str) -> None:
    """Refuses a table without these columns."""
    missing = [name for name in names if name not in table.columns]
    if not missing:
        return
    present = [str(name) for name in table.columns]
    near = get_close_matches(missing[0], present, n=1)
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    shown = ", ".join(present[:COLUMNS_SHOWN]) + (", ..." if len(present) > COLUMNS_SHOWN else "")
    hint = f"did you mean {near[0]!r}?" if near else f"it has {shown}"
    raise ValueError(f"Got {str(path)!r} without column {missing[0]!r}{more}, {why}; {hint}")


def known_targets(
    table: pd.DataFrame, target: str, path: str | Path, *, whole: bool = True
) -> tuple[pd.DataFrame, pd.Series]:
    """The rows whose target is known, and their targets; says what is left out.

    Only of a ``whole`` file it is said how missing targets are spelled.
    """
    require_columns(table, [target], path, "which you named")
    known = table[target].notna()
    if not known.any():
        raise ValueError(f"Got {str(path)!r} without a single value in column {target!r}")
    if not known.all():
        spelled = _spelled(Path(path), target, ~known.to_numpy()) if whole else ""
        print(
            f"{(~known).sum()} rows without a target{spelled} are left out and not numbered",
            file=sys.stderr,
        )
        table = table[known]
    return table, table[target]


def _spelled(path: Path, column: str, missing: NDArray[np.bool_]) -> str:
    """The words that a text file has in place of missing values, if any."""
    import pandas as pd

    if _kind(path) in BINARY:
        return ""
    cells = pd.read_csv(path, usecols=[column], **AS_SPELLED, **_format(path))[column]
    words = [repr(shortened(word, 40)) for word in cells[missing].unique()[:COLUMNS_SHOWN] if word]
    return f" (in words, {', '.join(words)})" if words else ""


def _is_text(column: pd.Series) -> bool:
    import pandas as pd

    categorical = isinstance(column.dtype, pd.CategoricalDtype)
    return pd.api.types.infer_dtype(column.cat.categories if categorical else column) == "string"


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if kind not in (*SEPARATORS, *BINARY):
        raise ValueError(
            f"Got {str(path)!r}, expected a name that ends in "
            f"{', '.join((*SEPARATORS, *BINARY))} (text may be compressed: .csv.gz)"
        )
    return kind


def _text(path: Path, text: Text) -> Iterator[pd.DataFrame]:
    import pandas as pd

    try:
        _check_header(path)
        with pd.read_csv(
            path,
            chunksize=ROWS_AT_ONCE,
            dtype=dict.fromkeys(text, str),
            low_memory=False,
            **_missing_words(path, text),
            **_format(path),
        ) as pieces:
            yield from pieces
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip()
        if "fields in line" in reason:
            reason += "; try to name every column, and to end lines without a separator"
        raise ValueError(f"Got {str(path)!r}, which cannot be read as a table: {reason}") from error
    except DAMAGED as error:
        raise ValueError(
            f"Got {str(path)!r}, which cannot be decompressed ({error}), expected a whole file; "
            "try to copy or download it again"
        ) from error


def _missing_words(path: Path, text: Text) -> dict[str, Any]:
    """What to take for a missing value, where a column has such a word among its values."""
    import pandas as pd

    own = {name: set(words) & set(MISSING_WORDS) for name, words in text.items()}
    if not any(own.values()):
        return {}
    names = pd.read_csv(path, nrows=0, **_format(path)).columns
    missing = {name: [w for w in MISSING_WORDS if w not in own.get(name, ())] for name in names}
    return {"keep_default_na": False, "na_values": missing}


def _format(path: Path) -> dict[str, Any]:
    return {"sep": SEPARATORS[_kind(path)], "encoding": "utf-8-sig"}


def _check_header(path: Path) -> None:
    """Refuses another separator, names that stand twice, and fewer names than fields."""
    import pandas as pd

    def first(n_lines: int) -> pd.DataFrame:
        return pd.read_csv(path, header=None, nrows=n_lines, **AS_SPELLED, **_format(path))

    names = first(1).iloc[0].tolist()
    if len(names) == 1 and ";" in names[0]:
        raise ValueError(
            f"Got {str(path)!r}, whose columns are separated by ';', expected commas; try to "
            "export it with commas and decimal points, or as .xlsx or .parquet"
        )
    for name, count in Counter(names).items():
        if name and count > 1:
            raise ValueError(
                f"Got {str(path)!r} with column name {name!r} more than once, expected names that "
                "differ; try to rename or drop columns"
            )
    # With a header, pandas takes surplus fields of the first row for names of rows; now it refuses.
    first(2)


def _smaller(piece: pd.DataFrame) -> pd.DataFrame:
    """The piece with single precision and categories where they serve."""
    import numpy as np
    import pandas as pd

    columns: dict[Any, Any] = {}
    for name, column in piece.items():
        if pd.api.types.is_float_dtype(column) or pd.api.types.is_integer_dtype(column):
            single = column.astype(np.float32)
            spread = column.max() - column.min()
            fine = not (abs(single - column) > LARGEST_LOSS * spread).any()
            columns[name] = single if fine else column
        elif pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
            columns[name] = column.astype("category")
        else:
            columns[name] = column
    return pd.DataFrame(columns)


def _joined(parts: list[pd.Series]) -> pd.Series:
    """Pieces of one column, one below the other."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        orders = {tuple(part.cat.categories) for part in parts if part.cat.ordered}
        return pd.Series(union_categoricals(parts, ignore_order=len(orders) != 1))
    return pd.concat(parts, ignore_index=True)
