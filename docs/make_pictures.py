"""Draws the pictures of the README: the figures of one example of the gallery.

``python docs/make_pictures.py`` runs the code of that page and writes ``docs/images``.
"""

from __future__ import annotations

from pathlib import Path

from hooks.run_code import run_page

DOCS = Path(__file__).parent
PAGE = DOCS / "gallery" / "bicycles.md"
# The curves between them stay on the page.
PICTURES = {"paths.svg": 0, "local.svg": 2}


def main() -> None:
    figures = run_page(PAGE.read_text(encoding="utf-8"), PAGE.stem).figures
    for name, number in PICTURES.items():
        (DOCS / "images" / name).write_bytes(figures[number])


if __name__ == "__main__":
    main()
