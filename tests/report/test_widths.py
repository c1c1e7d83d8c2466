"""The report in a real browser on a desk and on a phone: nothing is cut, tiny or broken."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier
from islab.report import write_report

PHONE, DESK = 390, 1280
CLASSES = [f"category number {number}" for number in range(6)]


@pytest.fixture(scope="session")
def long_names(tmp_path_factory):
    """The report of six classes whose columns have long names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "relative_humidity_at_3pm": rng.uniform(0, 100, 600),
            "passengerClass": rng.choice(["first", "second", "third"], 600),
            "distance to the nearest hydrological station": rng.normal(size=600),
        }
    )
    place = X["relative_humidity_at_3pm"] / 17 + 2 * (X["passengerClass"] == "first")
    y = np.array(CLASSES)[np.clip(place.astype(int), 0, 5)]
    model = ISLaBClassifier(max_epochs=60, n_restarts=1, random_state=0).fit(X, y)
    path = tmp_path_factory.mktemp("widths") / "report.html"
    write_report(path, model, X, y, n_draws=40)
    return path


@pytest.fixture(params=[DESK, PHONE])
def width(request, tab):
    before = tab.viewport_size
    tab.set_viewport_size({"width": request.param, "height": 900})
    yield request.param
    tab.set_viewport_size(before)


@pytest.fixture(params=["hostile names", "long names"])
def wide_page(request, tab, width, report_path, long_names):
    tab.goto({"hostile names": report_path, "long names": long_names}[request.param].as_uri())
    return tab


@pytest.fixture
def long_page(tab, width, long_names):
    tab.goto(long_names.as_uri())
    return tab


def test_no_page_needs_sideways_scrolling(wide_page, width):
    assert wide_page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_very_narrow_screen_needs_no_sideways_scrolling(page):
    before = page.viewport_size
    page.set_viewport_size({"width": 360, "height": 700})
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(before)
    assert width <= 360


def test_words_of_pictures_lie_inside_them(wide_page):
    found, cut = wide_page.evaluate("""() => {
      const texts = [...document.querySelectorAll("svg.chart text")];
      const cut = texts.filter((text) => {
        const a = text.getBoundingClientRect(), b = text.closest("svg").getBoundingClientRect();
        return a.left < b.left - 1 || a.right > b.right + 1;
      });
      return [texts.length, cut.map((text) => text.textContent)];
    }""")
    assert found > 20
    assert cut == []


def test_the_graph_is_legible_and_all_of_it_can_be_reached(wide_page, width):
    """It shrinks by a fifth at most; on a desk it fits, on a phone it is scrolled."""
    scale, first, last, told, scrolls = wide_page.evaluate("""() => {
      const graph = document.getElementById("graph"), box = graph.parentElement;
      const inside = (node) => {
        const a = node.getBoundingClientRect(), b = box.getBoundingClientRect();
        return a.left >= b.left - 1 && a.right <= b.right + 1;
      };
      const nodes = [...graph.querySelectorAll(".node")];
      const inputs = nodes.filter((node) => !node.classList.contains("output"));
      const first = inside(inputs[0]);
      const scrolls = box.scrollWidth > box.clientWidth;
      box.scrollLeft = box.scrollWidth;
      const last = nodes.filter((node) => node.classList.contains("output")).every(inside);
      const told = !document.getElementById("graph-wide").hidden;
      const scale = graph.getBoundingClientRect().width / graph.viewBox.baseVal.width;
      return [scale, first, last, told, scrolls];
    }""")
    assert 0.79 < scale < 1.01
    assert first
    assert last
    assert told == scrolls
    assert not scrolls or width == PHONE


def test_words_do_not_break(long_page):
    """Lines of names end between words, or at a sign inside a name; at letters they do not."""
    words, broken = long_page.evaluate(r"""() => {
      const found = [[], []];
      const names = ".bars .name, .setting label, #effect-table th[scope=row], figcaption, caption";
      for (const name of document.querySelectorAll(names)) {
        const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
          const text = walker.currentNode;
          for (const word of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            const boxes = [...range.getClientRects()];
            if (!boxes.length) continue;
            found[0].push(word[0]);
            if (new Set(boxes.map((box) => Math.round(box.top))).size > 1) found[1].push(word[0]);
          }
        }
      }
      return found;
    }""")
    assert {"humidity", "passengerClass", "hydrological", "Covariates"} <= set(words)
    assert broken == []


def test_the_confusion_matrix_of_several_classes_fits_on_a_desk(long_page, width):
    needed, given, columns = long_page.evaluate("""() => {
      const table = document.getElementById("confusion"), box = table.parentElement;
      return [box.scrollWidth, box.clientWidth, table.tHead.rows[0].cells.length];
    }""")
    assert columns == 1 + len(CLASSES)
    assert needed <= given or width == PHONE


def test_choices_show_their_words_in_full(long_page):
    cut = long_page.evaluate("""() => {
      const pen = document.createElement("canvas").getContext("2d");
      return ["begin", "which-model"].map((id) => document.getElementById(id)).filter((box) => {
        const style = getComputedStyle(box);
        pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        const widths = [...box.options].map((option) => pen.measureText(option.text).width);
        return Math.max(...widths) > box.clientWidth - 32;
      }).map((box) => box.id);
    }""")
    assert cut == []
