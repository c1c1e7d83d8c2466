"""Whether explanations and selections are true, on simulated tables whose truth is known.

Twelve covariates, equally correlated, of which four matter and eight do not; noise of SD 1. Truths:
``linear`` (slopes 1, .5, .5 and .25), ``curved`` (a sine, a square, a kink and a slope) and
``product`` (one interaction and two slopes). Compared are

- effects: the root mean squared error of each covariate's centred effect at the rows, true 0 for
  those that do not matter, where effects add up (linear and curved); and how often 90 % bands hold
  them, for methods that have any;
- selection: false discovery rate and power of what is selected;
- interactions: whether the true pair is the first of all pairs.

Methods: islab; boosting with TreeSHAP; lasso, its stability selection, and knockoffs of known
covariance; an additive model of splines; an explainable boosting machine; averaging over all
4,096 linear models, exact where the truth is linear. Defaults throughout.

``python -m experiments.benchmarks.truth [--tables 10] [--methods ...]`` adds to
``results/truth.jsonl`` what is not there yet; ``--page`` prints the page of the documentation.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from islab import ISLaBRegressor
from islab.baselines.peers import make_peer
from islab.evaluate.runner import Cell, Record, append_record, read_cells, run_cells

FILE = Path(__file__).parent / "results" / "truth.jsonl"
N_ROWS, N_COVARIATES, RELEVANT = 300, 12, 4
LEVEL = 0.9
CORRELATIONS = (0.0, 0.7)
N_HALVES, STABLE = 50, 0.75
TARGET_FDR = 0.25
BACKGROUND = 100

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]


class Found(NamedTuple):
    """What a method says of one table.

    ``effects`` (rows, covariates), centred, and ends of their bands; ``selected`` by what rule;
    ``pair`` is the pair of covariates that interact most.
    """

    selected: dict[str, Mask]
    effects: Float | None = None
    lower: Float | None = None
    upper: Float | None = None
    pair: tuple[int, int] | None = None


# -- truths -----------------------------------------------------------------------------------

ADDITIVE: dict[str, tuple[Callable[[Float], Float], ...]] = {
    "linear": (lambda v: v, lambda v: 0.5 * v, lambda v: 0.5 * v, lambda v: 0.25 * v),
    "curved": (
        lambda v: 1.5 * np.sin(1.5 * v),
        lambda v: 0.7 * v**2,
        lambda v: 1.5 * np.maximum(v - 0.5, 0),
        lambda v: 0.5 * v,
    ),
}
TRUTHS = (*ADDITIVE, "product")


def simulate(truth: str, correlation: float, seed: int) -> tuple[Float, Float, Float | None]:
    """Covariates, targets and true effects (rows, covariates), None where they do not add up."""
    rng = np.random.default_rng([seed, TRUTHS.index(truth), round(100 * correlation)])
    own, shared = rng.standard_normal((N_ROWS, N_COVARIATES)), rng.standard_normal((N_ROWS, 1))
    x = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared
    noise = rng.standard_normal(N_ROWS)
    if truth == "product":
        return x, x[:, 0] * x[:, 1] + 0.5 * x[:, 2] + 0.5 * x[:, 3] + noise, None
    effects = np.zeros_like(x)
    for number, function in enumerate(ADDITIVE[truth]):
        effects[:, number] = function(x[:, number])
    return x, effects.sum(axis=1) + noise, effects - effects.mean(axis=0)


# -- methods ----------------------------------------------------------------------------------


def by_islab(x: Float, y: Float, seed: int, correlation: float) -> Found:
    model = ISLaBRegressor(random_state=seed).fit(x, y)
    used = model.posterior_.to_frame()["p_used"].to_numpy()
    curves = model.explain_global(x, level=LEVEL)
    parts = [curves.effect(name, kind="average") for name in model.columns_.names]
    pairs = model.posterior_.pairs()
    names = list(model.columns_.names)
    first = None
    if len(pairs):
        best = pairs.iloc[int(pairs["p"].to_numpy().argmax())]
        first = (names.index(best["first"]), names.index(best["second"]))
    at = [
        partial(np.interp, x[:, number], effect.values.astype(float))
        for number, effect in enumerate(parts)
    ]
    summaries = [effect.summary for effect in parts]
    mean, low, high = (
        np.column_stack(
            [each(getattr(s, side)[:, 0]) for each, s in zip(at, summaries, strict=True)]
        )
        for side in ("mean", "lower", "upper")
    )
    return Found({"P(used) > .5": used > 0.5, "P(used) > .9": used > 0.9}, mean, low, high, first)


def by_boosting(x: Float, y: Float, seed: int, correlation: float) -> Found:
    import shap

    model = make_peer("boosting", "regression").set_params(random_state=seed).fit(x, y)
    background = x[np.random.default_rng(seed).permutation(len(x))[:BACKGROUND]]
    effects = shap.TreeExplainer(model, background).shap_values(x, check_additivity=False)
    effects = effects - effects.mean(axis=0)
    size = np.abs(effects).mean(axis=0)
    joint = np.abs(shap.TreeExplainer(model).shap_interaction_values(x)).mean(axis=0)
    np.fill_diagonal(joint, 0)
    first, second = np.unravel_index(joint.argmax(), joint.shape)
    # There is no rule; people look at the largest.
    chosen = {"four largest mean absolute SHAP": size >= np.sort(size)[-RELEVANT]}
    return Found(chosen, effects, pair=(int(first), int(second)))


def by_lasso(x: Float, y: Float, seed: int, correlation: float) -> Found:
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    folds = KFold(5, shuffle=True, random_state=seed)
    slopes = LassoCV(cv=folds).fit(x, y).coef_
    effects = (x - x.mean(axis=0)) * slopes
    return Found({"slope not 0": slopes != 0}, effects)


def by_stability(x: Float, y: Float, seed: int, correlation: float) -> Found:
    """Meinshausen and Buehlmann (2010): on average at most one false selection."""
    from sklearn.linear_model import lars_path

    n_first = int(np.floor(np.sqrt((2 * STABLE - 1) * x.shape[1])))
    rng, count = np.random.default_rng(seed), np.zeros(x.shape[1])
    for _ in range(N_HALVES):
        rows = rng.permutation(len(x))[: len(x) // 2]
        own, target = x[rows] - x[rows].mean(axis=0), y[rows] - y[rows].mean()
        path = lars_path(own, target, method="lasso", max_iter=4 * n_first)[2]
        sizes = (path != 0).sum(axis=0)
        count += path[:, int(np.flatnonzero(sizes <= n_first).max())] != 0
    return Found({f"in {STABLE:.0%} of halves": count >= STABLE * N_HALVES})


def by_knockoffs(x: Float, y: Float, seed: int, correlation: float) -> Found:
    """Candes et al. (2018), covariates of known covariance, differences of lasso slopes."""
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    v, copy = x.shape[1], knockoff_copy(x, correlation, np.random.default_rng(seed))
    folds = KFold(5, shuffle=True, random_state=seed)
    slopes = np.abs(LassoCV(cv=folds).fit(np.hstack([x, copy]), y).coef_)
    lead = slopes[:v] - slopes[v:]
    limits = np.sort(np.abs(lead[lead != 0]))
    share = [(1 + (lead <= -t).sum()) / max((lead >= t).sum(), 1) for t in limits]
    good = limits[np.array(share) <= TARGET_FDR] if len(limits) else limits
    limit = good[0] if len(good) else np.inf
    return Found({f"FDR of {TARGET_FDR:.0%} wanted": lead >= limit})


def knockoff_copy(x: Float, correlation: float, rng: np.random.Generator) -> Float:
    """Copies that may change places with their covariates, equally correlated normal ones."""
    v = x.shape[1]
    sigma = (1 - correlation) * np.eye(v) + correlation
    s = min(1.0, 2 * np.linalg.eigvalsh(sigma)[0]) * 0.999 * np.eye(v)
    shrink = np.linalg.solve(sigma, s)
    spread = np.linalg.cholesky(2 * s - s @ shrink)
    return x - x @ shrink + rng.standard_normal(x.shape) @ spread.T


def by_splines(x: Float, y: Float, seed: int, correlation: float) -> Found:
    model = make_peer("gam", "regression").fit(x, y)
    effects = np.column_stack([model.gam_.partial_dependence(k, x) for k in range(x.shape[1])])
    p = np.array(model.gam_.statistics_["p_values"][: x.shape[1]])
    return Found({"p < .05": p < 0.05}, effects - effects.mean(axis=0))


def by_ebm(x: Float, y: Float, seed: int, correlation: float) -> Found:
    model = make_peer("ebm", "regression").set_params(random_state=seed).fit(x, y)
    terms, size = model.eval_terms(x), model.term_importances()
    effects, own = np.zeros_like(x), np.zeros(x.shape[1])
    pairs = {}
    for number, features in enumerate(model.term_features_):
        if len(features) == 1:
            effects[:, features[0]] = terms[:, number]
            own[features[0]] = size[number]
        else:
            pairs[tuple(features)] = size[number]
    chosen = {"four largest importances": own >= np.sort(own)[-RELEVANT]}
    best = max(pairs, key=pairs.__getitem__) if pairs else None
    return Found(chosen, effects - effects.mean(axis=0), pair=best)


def by_averaging(x: Float, y: Float, seed: int, correlation: float) -> Found:
    """All linear models: slab variance 1 after scaling, each number of covariates equally likely.

    The noise variance has the prior 1 / s^2; slopes have slab s^2.
    """
    from scipy.special import betaln

    n, v = x.shape
    x_, y_ = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    masks = (np.arange(2**v)[:, None] >> np.arange(v)) & 1 == 1  # (models, covariates)
    gram, moment = x_.T @ x_, x_.T @ y_
    matrix = gram * (masks[:, :, None] & masks[:, None, :]) + np.eye(v)
    vector = np.where(masks, moment, 0.0)
    slopes = np.linalg.solve(matrix, vector[..., None])[..., 0]
    left = y_ @ y_ - (vector * slopes).sum(axis=1)
    log_evidence = -0.5 * np.linalg.slogdet(matrix)[1] - 0.5 * (n - 1) * np.log(left)
    size = masks.sum(axis=1)
    log_prior = betaln(1 + size, 1 + v - size)
    weight = np.exp(log_evidence + log_prior - (log_evidence + log_prior).max())
    weight /= weight.sum()
    used = weight @ masks
    rng = np.random.default_rng(seed)
    models = rng.choice(len(masks), 1000, p=weight)
    drawn = np.empty((1000, v))
    for k, model in enumerate(models):
        noise = left[model] / 2 / rng.gamma((n - 1) / 2)
        root = np.linalg.cholesky(np.linalg.inv(matrix[model])) * np.sqrt(noise)
        drawn[k] = np.where(masks[model], slopes[model] + root @ rng.standard_normal(v), 0.0)
    drawn *= y.std() / x.std(axis=0)
    centred = x - x.mean(axis=0)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    ends = np.sort(np.stack([centred * low, centred * high]), axis=0)
    rules = {"P(used) > .5": used > 0.5, "P(used) > .9": used > 0.9}
    return Found(rules, centred * drawn.mean(axis=0), *ends)


METHODS: dict[str, Callable[[Float, Float, int, float], Found]] = {
    "islab": by_islab,
    "exact averaging": by_averaging,
    "boosting, SHAP": by_boosting,
    "lasso": by_lasso,
    "stability selection": by_stability,
    "knockoffs": by_knockoffs,
    "splines": by_splines,
    "EBM": by_ebm,
}


def run(cell: Cell) -> Record:
    """Scores of one method on one table."""
    truth, correlation = cell.dataset.rsplit(" ", 1)
    x, y, true = simulate(truth, float(correlation), cell.seed)
    cpu = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[cell.method](x, y, cell.seed, float(correlation))
    record: Record = {"cpu_seconds": time.process_time() - cpu}
    real = np.arange(N_COVARIATES) < RELEVANT
    record["selected"] = {
        rule: [int((chosen & real).sum()), int((chosen & ~real).sum())]
        for rule, chosen in found.selected.items()
    }
    if true is not None and found.effects is not None:
        error = np.sqrt(((found.effects - true) ** 2).mean(axis=0))
        record["error_relevant"] = float(error[real].mean())
        record["error_irrelevant"] = float(error[~real].mean())
    if true is not None and found.lower is not None:
        inside = (found.lower - 1e-9 <= true) & (true <= found.upper + 1e-9)
        record["covered_relevant"] = float(inside[:, real].mean())
        record["covered_irrelevant"] = float(inside[:, ~real].mean())
    if truth == "product" and found.pair is not None:
        record["pair_found"] = sorted(found.pair) == [0, 1]
    return record


# -- what is stored ---------------------------------------------------------------------------


def frames(records: list[Record]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Effects, and selections: a line for each table and method, and rule."""
    effects, selections = [], []
    for record in records:
        truth, correlation = record["dataset"].rsplit(" ", 1)
        base = {"truth": truth, "correlation": float(correlation), "method": record["method"]}
        names = [
            *("error_relevant", "error_irrelevant", "covered_relevant", "covered_irrelevant"),
            "pair_found",
        ]
        effects.append({**base, **{n: record.get(n) for n in (*names, "cpu_seconds")}})
        for rule, (right, wrong) in record["selected"].items():
            share = wrong / max(right + wrong, 1)
            selections.append({**base, "rule": rule, "fdr": share, "power": right / RELEVANT})
    return pd.DataFrame(effects), pd.DataFrame(selections)


def page(records: list[Record]) -> Iterator[str]:
    """The page, as Markdown."""
    effects, selections = frames(records)
    counts = effects.groupby(["truth", "correlation", "method"]).size()
    low, high = counts.min(), counts.max()
    tables = f"{low} tables" if low == high else f"From {low} to {high} tables"
    yield INTRODUCTION.format(tables=tables, rows=N_ROWS)
    yield "## Effects\n"
    yield (
        "Error of effect curves in noise SDs, for covariates that matter / that do not; and the "
        "share of rows at which 90 % bands hold the truth, likewise.\n"
    )
    settings = [(t, c) for t in ADDITIVE for c in CORRELATIONS]
    heads = [f"{t}, correlation {c:g}" for t, c in settings]
    yield f"| method | {' | '.join(heads)} |\n| --- |{' --- |' * len(heads)}"
    grouped = effects.groupby(["method", "truth", "correlation"])
    numbers = grouped[[c for c in effects if c.startswith(("error", "covered"))]].mean()
    for method in METHODS:
        if not effects.loc[effects["method"] == method, "error_relevant"].notna().any():
            continue
        cells = [_effect_cell(numbers, (method, *setting)) for setting in settings]
        yield f"| {method} | {' | '.join(cells)} |"
    yield "\n## Selection\n"
    yield "False discovery rate / power, of four covariates that matter among twelve.\n"
    every = [(t, c) for t in TRUTHS for c in CORRELATIONS]
    heads = [f"{t}, {c:g}" for t, c in every]
    yield f"| method | selected | {' | '.join(heads)} |\n| --- | --- |{' --- |' * len(heads)}"
    chosen = selections.groupby(["method", "rule", "truth", "correlation"])[["fdr", "power"]].mean()
    for method in METHODS:
        for rule in dict.fromkeys(selections.loc[selections["method"] == method, "rule"]):
            cells = [_pair_cell(chosen, (method, rule, *setting)) for setting in every]
            yield f"| {method} | {rule} | {' | '.join(cells)} |"
    yield "\n## Interactions\n"
    yield "Share of tables with a product in which the true pair comes first of all 66.\n"
    pairs = effects[effects["truth"] == "product"].dropna(subset=["pair_found"])
    shares = pairs.assign(found=pairs["pair_found"].astype(float)).pivot_table(
        index="method", columns="correlation", values="found"
    )
    yield f"| method | {' | '.join(f'correlation {c:g}' for c in shares)} |"
    yield f"| --- |{' --- |' * shares.shape[1]}"
    for method, row in shares.iterrows():
        yield f"| {method} | {' | '.join(f'{value:.2f}' for value in row)} |"
    yield END


INTRODUCTION = """\
# Are explanations and selections true?

On simulated tables the truth is known. Each has {rows} rows and twelve covariates, independent or
with correlation .7, of which four matter; the noise has SD 1. {tables} of each kind, so that shares
are rough; all methods by default.

- *linear*: slopes 1, .5, .5 and .25.
- *curved*: a sine, a square, a kink and a slope.
- *product*: the product of two covariates, and two slopes of .5.

Effects of boosting are TreeSHAP values over 100 rows as background. Boosting and EBM have no rule
of what to select: their row takes as many as there really are, which nobody knows in practice.
Knockoffs are told the covariance. Exact averaging goes over all 4,096 linear models, so it is right
where the truth is linear, and is what chains approximate there, with a prior of their own.
"""
END = """
## Run it

```console
$ python -m experiments.benchmarks.truth
$ python -m experiments.benchmarks.truth --page
```"""


def _effect_cell(numbers: pd.DataFrame, key: Any) -> str:
    if key not in numbers.index:
        return ""
    line = numbers.loc[key]
    text = f"{line['error_relevant']:.2f} / {line['error_irrelevant']:.2f}"
    if np.isnan(line["covered_relevant"]):
        return text
    return f"{text}; {line['covered_relevant']:.0%} / {line['covered_irrelevant']:.0%}"


def _pair_cell(chosen: pd.DataFrame, key: Any) -> str:
    if key not in chosen.index:
        return ""
    return f"{chosen.loc[key, 'fdr']:.2f} / {chosen.loc[key, 'power']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10, help="of each kind")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no fit after these")
    parser.add_argument("--results", type=Path, default=FILE, help="JSON lines to add to")
    parser.add_argument("--page", action="store_true", help="print the page and stop")
    arguments = parser.parse_args()
    done, end = read_cells(arguments.results), time.monotonic() + 60 * arguments.minutes
    if arguments.page:
        print("\n".join(page(list(done.values()))))
        return
    for seed in range(arguments.tables):
        for method in arguments.methods:
            for truth in TRUTHS:
                for correlation in CORRELATIONS:
                    cell = Cell(f"{truth} {correlation}", method, "defaults", seed)
                    if cell in done or time.monotonic() > end:
                        continue
                    record = run_cells([cell], run, n_jobs=1)[cell]
                    if record.get("error"):
                        print(f"{cell.dataset} {method}: {record['error']}", file=sys.stderr)
                    else:
                        append_record(arguments.results, record)


if __name__ == "__main__":
    main()
