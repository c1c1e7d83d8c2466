"""Draws the numbered pictures of the page on reports, with Chromium.

``python docs/make_report_pictures.py`` fits a classifier to simulated passengers of a ship, writes
its report, and keeps pictures of its sections in ``docs/images``. It needs Playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Page, sync_playwright

from islab import ISLaBClassifier

IMAGES = Path(__file__).parent / "images"
WIDTH = 1100
FLAGS = ["--no-sandbox", "--disable-gpu"]
# Of each picture: the section, or its first and last part, and what its numbers stand at.
PICTURES = {
    "report-effects.png": (
        ["#effects"],
        [
            "#effects .charts > :nth-child(1) figcaption",
            "#effects .charts > :nth-child(3) figcaption",
            "#importance h3",
            "#interactions h3",
            "#effects .columns + .charts figcaption",
            "#effect-table",
        ],
    ),
    "report-scores.png": (
        ["#scores"],
        [
            "#scores table caption",
            "#confusion caption",
            "#scores .columns > :nth-child(2) figcaption",
            "#scores > .charts figcaption",
        ],
    ),
    "report-paths.png": (
        ["#paths h2", "#paths .key"],
        ["#graph .node", "#graph .hidden", "#graph .output", "#paths .key"],
    ),
    "report-rows.png": (
        ["#rows"],
        [
            "#rows article:nth-of-type(1) p",
            "#rows article:nth-of-type(1) .bars",
            "#rows article:nth-of-type(1) .fine",
        ],
    ),
}
BADGES = """(places) => {
  document.querySelectorAll(".badge").forEach((each) => each.remove());
  places.forEach((place, k) => {
    const box = document.querySelector(place).getBoundingClientRect();
    const badge = document.createElement("div");
    badge.className = "badge";
    badge.textContent = k + 1;
    badge.style.cssText = `position:absolute;left:${box.left + scrollX - 30}px;` +
      `top:${box.top + scrollY - 2}px;width:24px;height:24px;border-radius:50%;` +
      "background:#b3261e;color:#fff;font:600 14px/24px sans-serif;text-align:center;z-index:9";
    document.body.append(badge);
  });
}"""


def passengers(n_rows: int = 3000) -> tuple[pd.DataFrame, pd.Series]:
    """Women of the upper classes and children are more likely to be saved; the port is nothing."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], n_rows, p=[0.4, 0.6]),
            "class": rng.choice(["first", "second", "third"], n_rows, p=[0.25, 0.2, 0.55]),
            "age": np.where(rng.random(n_rows) < 0.1, np.nan, rng.gamma(3, 9, n_rows).round()),
            "relatives": rng.poisson(0.8, n_rows),
            "port": rng.choice(["east", "north", "south"], n_rows),
        }
    )
    woman, third = table["sex"] == "female", table["class"] == "third"
    score = -2.2 + 1.2 * woman + 0.8 * (table["class"] == "first") + 3.0 * (woman & ~third)
    score += 0.3 * np.maximum(15 - table["age"].fillna(28), 0) - 0.3 * table["relatives"]
    saved = rng.random(n_rows) < 1 / (1 + np.exp(-score))
    return table, pd.Series(np.where(saved, "saved", "lost"), name="outcome")


def take(page: Page, name: str, parts: list[str], places: list[str]) -> None:
    """One picture, from the top of its first part to the foot of its last."""
    page.evaluate(BADGES, places)
    boxes = [page.locator(part).first.bounding_box() for part in parts]
    top = min(box["y"] for box in boxes) - 12
    foot = max(box["y"] + box["height"] for box in boxes) + 12
    clip = {"x": 0, "y": top, "width": WIDTH, "height": foot - top}
    page.screenshot(path=str(IMAGES / name), full_page=True, clip=clip)


def main() -> None:
    table, outcome = passengers()
    model = ISLaBClassifier(random_state=0).fit(table[:2000], outcome[:2000])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        model.report(path, table[2000:], outcome[2000:])
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(path.as_uri())
        for name, (parts, places) in PICTURES.items():
            take(page, name, parts, places)
        browser.close()


if __name__ == "__main__":
    main()
