"""The lowest versions of the run-time dependencies, which `make test-floors` installs."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def named_floors() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["plots"]]
    return [requirement.replace(">=", "==") for requirement in needed]


def test_the_tested_floors_are_those_of_the_package():
    lines = (ROOT / "constraints-floors.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == named_floors()


def test_the_conda_recipe_asks_for_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    lines = [line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()]
    assert lines == ["python", *project["dependencies"]]


def test_recipe_and_citation_name_the_released_version():
    released = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), flags=re.M)[1]
    assert f'version: "{released}"' in (ROOT / "recipe" / "recipe.yaml").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    numbers = [int(part) for part in version.removesuffix(".dev0").split(".")]
    if version.endswith(".dev0"):
        assert numbers > [int(part) for part in released.split(".")]
    else:
        assert version == released
