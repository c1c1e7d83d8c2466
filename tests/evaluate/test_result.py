"""Tables, pages and the picture of a comparison."""

import re
import sys

import numpy as np
import pandas as pd
import pytest

from islab.evaluate import Comparison

SCORES = {"auc": 0.9, "nll": 0.2, "brier": 0.05, "density": 0.01, "average_depth": 1.0}


def fit(method, seed, accuracy, weights, selected, **more):
    scores = {**SCORES, "accuracy": accuracy, "ece": accuracy / 10, "max_depth": 1.0}
    models = {"full": {**scores, "used_weights": weights}}
    return {
        "method": method,
        "seed": seed,
        "seconds": 1.5,
        "error": None,
        "models": models,
        "selected": selected,
        **more,
    }


@pytest.fixture
def comparison():
    records = [
        fit("tidy", 0, 0.9, 4.0, ["a", "b"]),
        fit("tidy", 1, 0.8, 6.0, ["a"]),
        fit("tidy", 2, 0.85, 7.0, ["a"]),
        fit("<i>big</i>", 0, 0.95, None, None),
        fit("<i>big</i>", 1, 0.96, None, None),
        {"method": "<i>big</i>", "seed": 2, "error": "MemoryError: <script>"},
        {"method": "none", "seed": 0, "error": "ImportError: no package"},
    ]
    return Comparison(tuple(records), "classification", ("a", "b"))


def test_the_frame_has_a_line_for_each_fit(comparison):
    frame = comparison.to_frame()
    assert frame["method"].tolist() == ["tidy"] * 3 + ["<i>big</i>"] * 3 + ["none"]
    assert frame["accuracy"].tolist()[:5] == [0.9, 0.8, 0.85, 0.95, 0.96]
    assert frame["error"].notna().tolist() == [False] * 5 + [True] * 2


def test_the_table_gives_median_least_and_greatest(comparison):
    table = comparison.table()
    assert table.loc[("tidy", "full"), "accuracy"] == "0.850 (0.800, 0.900)"
    assert table.loc[("tidy", "full"), "used_weights"] == "6 (4, 7)"


def test_the_table_keeps_the_order_of_methods(comparison):
    assert comparison.table().index.get_level_values(0).tolist() == ["tidy", "<i>big</i>", "none"]


def test_the_table_counts_failures(comparison):
    assert comparison.table()["failed"].tolist() == ["0", "1", "1"]


def test_stability_is_the_agreement_of_seeds(comparison):
    assert comparison.table().loc[("tidy", "full"), "stability"] == f"{(0.5 + 0.5 + 1) / 3:.3f}"


def test_inclusion_is_the_share_of_seeds(comparison):
    expected = pd.DataFrame({"tidy": [1.0, 1 / 3]}, index=["a", "b"])
    pd.testing.assert_frame_equal(comparison.inclusion(), expected)


def test_what_is_not_known_is_a_dash(comparison):
    assert comparison.table().loc[("<i>big</i>", "full"), "used_weights"] == "-"
    assert comparison.table().loc[("none", "-"), "accuracy"] == "-"


def test_the_text_ends_with_what_failed(comparison):
    assert (
        str(comparison).splitlines()[-1] == "none failed on 1 of 1 seeds: ImportError: no package"
    )


def test_the_text_names_scores_and_sizes(comparison):
    heads = [line for line in str(comparison).splitlines() if line.startswith("method")]
    assert "accuracy" in heads[0]
    assert "used weights" in heads[1]


def test_csv_holds_every_fit(comparison, tmp_path):
    comparison.to_csv(tmp_path / "fits.csv")
    frame = pd.read_csv(tmp_path / "fits.csv")
    assert len(frame) == 7
    assert frame["selected"].tolist()[:2] == ["a;b", "a"]


# -- page -------------------------------------------------------------------------------------


def test_the_page_escapes_names_and_errors(comparison, tmp_path):
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<i>big</i>" not in page
    assert "&lt;i&gt;big&lt;/i&gt;" in page
    assert "<script" not in page


def test_the_page_needs_no_other_file(comparison, tmp_path):
    pytest.importorskip("matplotlib")
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page
    links = re.findall(r"(?:src|href)\s*=\s*[\"']([^\"']*)", page)
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert "@import" not in page


def test_the_page_does_without_matplotlib(comparison, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    comparison.to_html(tmp_path / "page.html")
    assert "<svg" not in (tmp_path / "page.html").read_text()


def test_a_notebook_shows_the_escaped_table(comparison):
    assert "&lt;i&gt;big" in comparison._repr_html_()


# -- picture ----------------------------------------------------------------------------------


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure")
    return figure.Figure().subplots()


def test_the_picture_shows_medians_with_calibration_as_colour(comparison, ax):
    comparison.plot(ax=ax)
    dots = ax.collections[-1]
    np.testing.assert_allclose(dots.get_offsets(), [[6.0, 0.85]])
    np.testing.assert_allclose(dots.get_array(), [0.085])


def test_the_picture_names_methods(comparison, ax):
    comparison.plot(ax=ax)
    assert [text.get_text() for text in ax.texts] == ["tidy"]


def test_the_picture_takes_the_model_asked_for(ax):
    record = fit("net", 0, 0.9, 50.0, ["a"])
    record["models"]["median"] = {**record["models"]["full"], "used_weights": 5.0}
    found = Comparison((record,), "classification", ("a",))
    assert found.plot("median", ax).collections[-1].get_offsets()[0, 0] == 5
    assert found.plot("full").collections[-1].get_offsets()[0, 0] == 50


def test_colour_of_numbers_is_the_distance_of_their_coverage(ax):
    scores = {"rmse": 2.0, "coverage": 0.8, "used_weights": 5.0}
    record = {**fit("net", 0, 0.9, 50.0, ["a"]), "models": {"full": scores}}
    found = Comparison((record,), "regression", ("a",))
    assert found.plot(ax=ax).collections[-1].get_array()[0] == pytest.approx(0.1)


def test_nothing_to_draw_is_said(comparison, ax):
    nothing = Comparison(comparison.records[3:], "classification", ("a", "b"))
    with pytest.raises(ValueError, match="Got no method with a score and a size"):
        nothing.plot(ax=ax)


def test_an_unknown_model_is_refused(comparison, ax):
    with pytest.raises(ValueError, match="Got model='best'"):
        comparison.plot("best", ax)
