"""The nine UCI regression sets with their usual splits, beside published numbers.

Defaults only; the sets serve to report, never to choose anything. Each set is one file of numpy in
``--data``, or in the folder ``uci`` of the cache: ``x``, ``y`` and ``test``, for each split which
rows are held out, packed to bits. A run stores every split as soon as it is done and goes on from
what is stored.

``python -m experiments.benchmarks.uci [--sets yacht ...] [--splits 20] [--minutes 30]`` runs and
adds to ``results/uci.jsonl``; ``--page`` prints the page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from islab.evaluate import make_method
from islab.evaluate.runner import (
    Cell,
    NoData,
    Record,
    append_record,
    cache_folder,
    fit_timed,
    read_cells,
    run_cells,
    scored,
)

FILE = Path(__file__).parent / "results" / "uci.jsonl"
PUBLISHED = Path(__file__).parent / "results" / "uci_published.json"
SETS = ("yacht", "boston", "energy", "concrete", "wine", "power", "kin8nm", "naval", "protein")
SETTINGS = "defaults"
N_SPLITS = 20
SMALL = 100  # weights that a person can read

INTRODUCTION = """\
# UCI regression

Nine regression sets with the random splits of Hernández-Lobato and Adams (2015), which
most papers on Bayesian neural networks use. Defaults only: nothing was tuned on these sets. Log
likelihood and RMSE are means over splits with standard errors, in the unit of the target.

Splits run so far (of 20; protein has 5): {counts}. Where not all, they are the first ones,
and the comparison with published means over all splits is rough.

**The posterior average is first, or within one standard error of the first, in log likelihood on
{n_first} of the {n_sets} sets run** ({firsts}). The readable network, one network,
has fewer than {limit} weights on {n_small} of them ({small}); both hold on {n_both}.
"""
END = """
Published numbers are copied, not run again. Other methods chose hyperparameters within each
training set. Other splits give other numbers, so DVI compares roughly. Zeros in RMSE are numbers
below .005.

## Run it

```console
$ python -m experiments.benchmarks.uci --data FOLDER
$ python -m experiments.benchmarks.uci --page
```

FOLDER has a file for each set, such as `yacht.npz`, with arrays `x`, `y` and `test`: for each split
which rows are held out, as `numpy.packbits` packs them."""


@lru_cache(maxsize=2)
def load(name: str, folder: Path) -> tuple[NDArray, NDArray, NDArray]:
    """Covariates, targets, and which rows each split holds out, (splits, rows)."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise NoData(f"Got no file {path.name} in the folder of data; try --data.")
    with np.load(path) as file:
        x, y = file["x"], file["y"]
        test = np.unpackbits(file["test"], axis=1)[:, : len(y)].astype(bool)
    return x, y, test


def run_in(folder: Path, cell: Cell) -> Record:
    """One official split; its number is the seed."""
    x, y, test = load(cell.dataset, folder)
    held = test[cell.seed]
    model = make_method(cell.method, "regression").set_params(random_state=cell.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        effort = fit_timed(model, x[~held], y[~held])
        scores = scored(model, x[held], y[held])
    return {"error": None, **effort, **scores}


# -- what is stored ---------------------------------------------------------------------------


def means(records: list[Record], method: str = "islab") -> pd.DataFrame:
    """Of each set and model: mean and standard error over splits."""
    lines = [
        {
            "set": record["dataset"],
            "model": which,
            "ll": -scores["nll"],
            "rmse": scores["rmse"],
            "coverage": scores["coverage"],
            "weights": scores["used_weights"],
            "seconds": record["cpu_seconds"],
        }
        for record in records
        if record["method"] == method
        for which, scores in record["models"].items()
    ]
    groups = pd.DataFrame(lines).groupby(["set", "model"])
    found = groups.mean()
    errors = groups.sem()
    found["ll_se"], found["rmse_se"] = errors["ll"], errors["rmse"]
    found["splits"] = groups.size()
    return found


def is_first(mean: float, error: float, others: list[float]) -> bool:
    """Whether a log likelihood is the first, or within one standard error of the first."""
    return mean + (0.0 if np.isnan(error) else error) >= max(others)


def page(records: list[Record]) -> Iterator[str]:
    """The page, as Markdown."""
    published = json.loads(PUBLISHED.read_text())
    found, ll = means(records), published["log_likelihood"]
    sets = [name for name in SETS if (name, "full") in found.index]
    names = list(published["sources"])
    firsts, small = [], []
    for name in sets:
        own = found.loc[(name, "full")]
        if is_first(own["ll"], own["ll_se"], list(ll[name].values())):
            firsts.append(name)
        if found.loc[(name, "median"), "weights"] < SMALL:
            small.append(name)
    both = [name for name in firsts if name in small]
    counts = ", ".join(f"{name} {found.loc[(name, 'full'), 'splits']:.0f}" for name in sets)
    yield INTRODUCTION.format(
        counts=counts,
        n_first=len(firsts),
        n_sets=len(sets),
        firsts=", ".join(firsts) or "none",
        limit=SMALL,
        n_small=len(small),
        small=", ".join(small) or "none",
        n_both=len(both),
    )
    yield "## Log likelihood\n"
    yield "Higher is better. Bold: the largest, and ours within one standard error of it.\n"
    yield f"| set | islab | readable network | {' | '.join(names)} |"
    yield f"| --- | --- | --- | {' | '.join('---' for _ in names)} |"
    for name in sets:
        best = max(*ll[name].values(), found.loc[(name, "full"), "ll"])
        cells = [_ours(found, name, which, "ll", best) for which in ("full", "median")]
        others = [_marked(ll[name].get(each), best) for each in names]
        yield f"| {' | '.join([name, *cells, *others])} |"
    rmse = published["rmse"]
    compared = [name for name in names if any(name in row for row in rmse.values())]
    yield "\n## RMSE\n"
    yield f"| set | islab | readable network | {' | '.join(compared)} |"
    yield f"| --- | --- | --- | {' | '.join('---' for _ in compared)} |"
    for name in sets:
        cells = [_ours(found, name, which, "rmse", None) for which in ("full", "median")]
        others = [f"{rmse[name][each]:.2f}" if each in rmse[name] else "" for each in compared]
        yield f"| {' | '.join([name, *cells, *others])} |"
    yield "\n## Size, intervals and time\n"
    yield (
        "| set | weights of the readable network | of a draw | coverage of 90 % intervals "
        "| CPU seconds of a fit |\n| --- | --- | --- | --- | --- |"
    )
    for name in sets:
        full, median = found.loc[(name, "full")], found.loc[(name, "median")]
        yield (
            f"| {name} | {median['weights']:.0f} | {full['weights']:.0f} | "
            f"{full['coverage']:.1%} | {full['seconds']:.1f} |"
        )
    yield "\n## Sources\n"
    yield from (f"- {name}: {source}." for name, source in published["sources"].items())
    yield END


def _ours(found: pd.DataFrame, name: str, which: str, score: str, best: float | None) -> str:
    line, digits = found.loc[(name, which)], 4 if name == "naval" and score == "rmse" else 2
    error = line[f"{score}_se"]
    text = f"{line[score]:.{digits}f}"
    if best is not None and is_first(line[score], error, [best]):
        text = f"**{text}**"
    return text if np.isnan(error) else f"{text} ± {error:.{digits}f}"


def _marked(value: float | None, best: float) -> str:
    if value is None:
        return ""
    return f"**{value:.2f}**" if value >= best else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--methods", nargs="*", default=["islab"])
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="the first so many")
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no fit after these")
    parser.add_argument("--data", type=Path, default=cache_folder() / "uci")
    parser.add_argument("--results", type=Path, default=FILE, help="JSON lines to add to")
    parser.add_argument("--page", action="store_true", help="print the page and stop")
    arguments = parser.parse_args()
    if arguments.page:
        print("\n".join(page(list(read_cells(arguments.results).values()))))
        return
    _run_all(arguments)


def _run_all(arguments: Any) -> None:
    from functools import partial

    done, end = read_cells(arguments.results), time.monotonic() + 60 * arguments.minutes
    for name in arguments.sets:
        try:
            n_splits = min(arguments.splits, len(load(name, arguments.data)[2]))
        except NoData as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for method in arguments.methods:
            for split in range(n_splits):
                cell = Cell(name, method, SETTINGS, split)
                if cell in done or time.monotonic() > end:
                    continue
                record = run_cells([cell], partial(run_in, arguments.data), n_jobs=1)[cell]
                if record.get("error"):
                    print(f"{name} {method} {split}: {record['error']}", file=sys.stderr)
                    continue
                append_record(arguments.results, record)
                score = record["models"]["full"]["nll"]
                print(f"{name} {method} {split}: log likelihood {-score:.3f}", flush=True)


if __name__ == "__main__":
    main()
