"""Explain a saved model, or single predictions of it.

With a table: what each variable adds to the prediction of a row, counted from a typical row, with
credible intervals. Without: the whole network, variable by variable.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from islab.cli.tables import FILES
from islab.core.names import counted, printable, shortened

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.fitted import FittedModel

EXAMPLES = """\
examples:
  islab explain model.islab new.csv --row 3
  islab explain model.islab new.csv --row 0 --row 1 --json
  islab explain model.islab new.csv --row 3 --model median
  islab explain model.islab
"""
EXPLAINED = {
    "full": "Of the posterior average, as `islab predict` gives it",
    "median": "Of the readable network; `islab predict` averages over the posterior",
}
BASELINES = {
    "typical": "the typical row of the training data: medians and most frequent categories",
    "center": "the mean of the training rows",
    "zero": "zero",
}
BASELINE_NAMES = {"typical": "at the typical row", "center": "at the mean", "zero": "at zero"}
BOUNDS = {"contribution_lower": "lower", "contribution_upper": "upper"}
VARIABLE = ["variable", "value", "baseline", "contribution", *BOUNDS.values()]
MIRRORED = ("intercept", "predictor", "response", "slope", "contribution")
LONGEST_NAME = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="file that `islab fit` wrote")
    parser.add_argument("data", nargs="?", help=FILES)
    parser.add_argument(
        "--row",
        type=int,
        action="append",
        help="row to explain, counted from 0 (the default); repeatable",
    )
    parser.add_argument(
        "--class", dest="output", metavar="NAME", help="explain this class or output only"
    )
    parser.add_argument(
        "--baseline",
        choices=tuple(BASELINES),
        default="typical",
        help="row that contributions are counted from: a typical one (the default), the mean of "
        "the training rows, or zero",
    )
    parser.add_argument(
        "--model",
        dest="kind",
        choices=("full", "median"),
        help="explain the posterior average (the default), or the readable network",
    )
    parser.add_argument("--level", type=float, default=0.95, help="level of the intervals (0.95)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    from islab import load
    from islab.cli.predict import require_reads_tables

    model = load(args.model)
    require_reads_tables(model)
    _check_class(model, args.output)
    if args.data is None and args.row:
        raise ValueError(f"Got --row {args.row[0]} without a table, expected one after the model")
    if args.data is None:
        _show_network(model, args)
    else:
        _show_rows(model, args)


def _show_network(model: FittedModel, args: argparse.Namespace) -> None:
    # The network of two classes has one output, which is about both.
    explained = model.explain_global(output=None if _is_first(model, args.output) else args.output)
    if args.json:
        print(json.dumps({t: _records(explained.to_frame(t)) for t in ("network", "variables")}))
        return
    print(_text(explained.network))
    used = explained.variables[explained.variables["count"] > 0]
    print("\n" + _text(used.drop(columns=["contribution"])))


def _show_rows(model: FittedModel, args: argparse.Namespace) -> None:
    from islab.cli.predict import model_columns, text_columns
    from islab.core import families
    from islab.tables.reading import UnusableCell

    rows = list(dict.fromkeys(args.row or [0]))
    chosen = _chosen_rows(args.data, rows, text_columns(model))
    X = model_columns(model, chosen, args.data)
    first = _is_first(model, args.output)
    try:
        explained = model.explain_local(
            X,
            model=args.kind,
            output=None if first else args.output,
            level=args.level,
            baseline=args.baseline,
            approximate=True,
        )
    except UnusableCell as error:
        raise error.at(rows[error.row]) from error
    tables = {name: explained.to_frame(name) for name in ("predictions", "variables")}
    if args.json:
        tables["covariates"] = explained.to_frame("covariates")
    if first:
        tables = {name: _mirrored(frame, args.output) for name, frame in tables.items()}
    if args.json:
        print(json.dumps({name: _records(frame) for name, frame in tables.items()}))
        return
    kind = args.kind or ("median" if model.posterior_ is None else "full")
    lines = [f"{EXPLAINED[kind]}\nCounted from {BASELINES[args.baseline]}"]
    if not explained.exact:
        lines.append("Approximate: the network is curved")
    predictions, variables = tables["predictions"], tables["variables"]
    words = families.likelihood(explained.likelihood).words
    for row in rows:
        predicted = predictions[predictions["row"] == row]
        outputs = predicted.to_dict(orient="records")
        told = [_prediction(line, words.symbol, args.level) for line in outputs]
        lines.append("\n".join([f"row {row}", *told]))
        for line in outputs:
            part = variables[(variables["row"] == row) & (variables["output"] == line["output"])]
            order = part["contribution"].abs().sort_values(ascending=False).index
            shown = _text(part.loc[order].rename(columns=BOUNDS), *VARIABLE)
            total = _sum(line, words.predictor, BASELINE_NAMES[args.baseline])
            lines.append(f"contributions to {printable(line['output'])}\n{shown}\n{total}")
    print("\n\n".join(lines))


def _prediction(line: dict[str, Any], symbol: str, level: float) -> str:
    """The prediction of a row, in words."""
    bounds = f"{line['response_lower']:.4g} to {line['response_upper']:.4g}"
    name = _harmless(line["output"])
    return f"{symbol}({name}) = {line['response']:.4g}, {level:.0%} interval {bounds}"


def _sum(line: dict[str, Any], scale: str | None, start: str) -> str:
    """How the contributions lead to the prediction."""
    scale = scale or _harmless(line["output"])
    end, begin = line["predictor"], line["intercept"]
    sign = "-" if end < begin else "+"
    return f"{scale} {end:.4g} = {begin:.4g} {start} {sign} {abs(end - begin):.4g} (contributions)"


def _chosen_rows(path: str, rows: list[int], text: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """These rows of a file, in the order asked for; ``text`` as in :func:`read_table`."""
    import pandas as pd

    from islab.cli.tables import read_pieces

    parts, n_rows = [], 0
    for piece in read_pieces(path, text):
        inside = [row - n_rows for row in sorted(set(rows)) if 0 <= row - n_rows < len(piece)]
        parts.append(piece.iloc[inside].set_axis([n_rows + row for row in inside]))
        n_rows += len(piece)
    wrong = [row for row in rows if not 0 <= row < n_rows]
    if wrong:
        raise ValueError(
            f"Got --row {wrong[0]}, expected a number from 0 to {n_rows - 1}: {path!r} has "
            f"{counted(n_rows, 'row')}"
        )
    return pd.concat([part for part in parts if len(part)]).loc[rows]


def _classes(model: FittedModel) -> list[str]:
    return [str(name) for name in getattr(model, "classes_", [])]


def _check_class(model: FittedModel, output: str | None) -> None:
    """Refuses what is neither of two classes; other outputs are looked up by the network."""
    classes = _classes(model)
    if output is not None and len(classes) == 2 and output not in classes:
        raise ValueError(f"Got --class {output!r}, expected {' or '.join(map(repr, classes))}")


def _is_first(model: FittedModel, output: str | None) -> bool:
    """Whether this is the first of two classes, of which the network's output is the other."""
    classes = _classes(model)
    return len(classes) == 2 and output == classes[0] != classes[1]


def _mirrored(frame: pd.DataFrame, output: str) -> pd.DataFrame:
    """The explanation of the second of two classes, for the first."""
    mirrored = frame.assign(output=output)
    for name in MIRRORED:
        if name not in frame:
            continue
        whole = 1 if name == "response" else 0
        mirrored[name] = whole - frame[name]
        for part, other in (("_lower", "_upper"), ("_upper", "_lower")):
            mirrored[name + part] = whole - frame[name + other]
            mirrored[f"{name}{part}_error"] = frame[f"{name}{other}_error"]
    return mirrored


def _text(frame: pd.DataFrame, *columns: str) -> str:
    shown = frame[[*columns]] if columns else frame
    # A name from a table must not reach the terminal as a command.
    text = shown.select_dtypes(exclude=["number", "bool"]).columns
    shown = shown.assign(**{name: shown[name].map(_harmless) for name in text})
    return shown.to_string(index=False, float_format=lambda number: f"{number + 0:.4g}")


def _harmless(cell: Any) -> Any:
    if isinstance(cell, float) and cell != cell:
        return "missing"
    return shortened(printable(cell), LONGEST_NAME) if isinstance(cell, str) else cell


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(frame.to_json(orient="records"))
