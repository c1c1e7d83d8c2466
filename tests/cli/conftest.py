"""Files for the command line to read."""

import numpy as np
import pandas as pd
import pytest

from islab.cli import main

QUICK = ["--set", "max_epochs=40", "--set", "n_restarts=1", "--set", "hidden_layer_sizes=(3,)"]


def make_table(n_rows=90):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(10, 2, n_rows),
            "colour": rng.choice(["red", "blue", "green"], n_rows),
            "noise": rng.normal(size=n_rows),
        }
    )
    score = table["size"] - 10 + 3 * (table["colour"] == "red")
    table["state"] = np.where(score > 0.5, "ill", "well")
    table["price"] = 100 + 5 * score + rng.normal(size=n_rows)
    table["visits"] = rng.poisson(np.exp(0.2 * score))
    return table


@pytest.fixture(scope="session")
def table():
    return make_table()


@pytest.fixture(scope="session")
def folder(tmp_path_factory, table):
    """A table in several formats, and two models fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    table.to_csv(folder / "data.csv", index=False)
    table.to_csv(folder / "data.tsv", index=False, sep="\t")
    table.to_csv(folder / "data.csv.gz", index=False)
    for target, other in (("state", "price"), ("price", "state")):
        arguments = ["--target", target, "--drop", other, "--drop", "visits", *QUICK]
        output = ["-o", str(folder / f"{target}.islab")]
        assert main(["fit", str(folder / "data.csv"), *arguments, *output]) == 0
    return folder


def run(capsys, *arguments):
    """Exit code, stdout and stderr of a command."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
