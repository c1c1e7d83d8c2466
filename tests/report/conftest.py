"""Models of odd tables, and a real browser to open their reports in."""

from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core import families
from islab.report import write_report
from islab.report.whatif import family_script

SCRIPT = "<script>alert('x')</script>"
BREAKOUT = '</script><img src=x onerror="alert(1)">'
QUOTES = "\"' onmouseover=alert(2) {{ 7 * 7 }} & $a$\u2028"
CLASSES = ("no </title>", "yes <b>")


def hostile_table(n_rows=240):
    """Numbers with missing values, levels and booleans under names meant to break pages."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            SCRIPT: rng.normal(3, 2, n_rows),
            BREAKOUT: rng.choice(["a", "b</script>", "c"], n_rows),
            QUOTES: rng.normal(size=n_rows),
            "unused": rng.normal(size=n_rows),
        }
    )
    score = 2 * (table[SCRIPT] - 3) + 3 * (table[BREAKOUT] == "a") - 3 * table[QUOTES]
    missing = rng.random(n_rows) < 0.2
    table.loc[missing, QUOTES] = np.nan
    return table, score.to_numpy() + 2 * missing


@pytest.fixture(scope="session")
def classifier():
    X, score = hostile_table()
    model = ISLaBClassifier(max_epochs=60, n_restarts=1, random_state=0)
    return model.fit(X, np.array(CLASSES)[(score > 0).astype(int)])


@pytest.fixture(scope="session")
def independent():
    """A classifier with a variational posterior."""
    X, score = hostile_table()
    model = ISLaBClassifier(max_epochs=60, n_restarts=1, random_state=0, posterior="independent")
    return model.fit(X, np.array(CLASSES)[(score > 0).astype(int)])


@pytest.fixture(scope="session")
def regressor():
    X, score = hostile_table()
    model = ISLaBRegressor(max_epochs=60, n_restarts=1, random_state=0)
    return model.fit(X, pd.Series(score, name=SCRIPT))


@pytest.fixture(scope="session")
def report_path(classifier, tmp_path_factory):
    X, score = hostile_table()
    path = tmp_path_factory.mktemp("report") / "report.html"
    y = np.array(CLASSES)[(score > 0).astype(int)]
    write_report(path, classifier, X, y, rows=[5, 0], n_draws=60, title=BREAKOUT)
    return path


@pytest.fixture(scope="session")
def tab(chromium):
    """One tab for all tests: opening one costs more than all that they do in it."""
    tab = chromium.new_page(viewport={"width": 1200, "height": 900})
    tab.set_default_timeout(5000)
    tab.said, tab.asked = [], []
    tab.on("console", lambda message: tab.said.append(message.text))
    tab.on("pageerror", lambda error: tab.said.append(str(error)))
    tab.on("dialog", lambda dialog: (tab.said.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: tab.asked.append(request.url))
    return tab


@pytest.fixture
def page(tab, report_path):
    """The report of the classifier, just opened; what the tab says and asks for is kept."""
    tab.said.clear()
    tab.asked.clear()
    tab.goto(report_path.as_uri())
    return tab


@pytest.fixture(scope="module")
def scripted(tab):
    """An empty page with the report's own evaluation."""
    tab.goto("about:blank")
    families_own = family_script(families.likelihoods(), families.activations())
    tab.add_script_tag(content=families_own)
    tab.add_script_tag(content=(files("islab.report") / "network.js").read_text())
    return tab
