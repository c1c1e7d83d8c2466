"""Writes some pages as notebooks: ``python docs/make_notebooks.py``, with ``--run`` to run them.

Text becomes text, code becomes code, and what code prints is left out: a notebook makes its own.
Running needs nbclient and ipykernel; a cell that fails, or warns, fails the command.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from hooks.run_code import FENCE

DOCS = Path(__file__).parent
FOLDER = DOCS.parent / "notebooks"
PAGES = {
    "getting-started": DOCS / "getting-started.md",
    "breast-cancer": DOCS / "gallery" / "breast-cancer.md",
}
SETTINGS = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(page: Path) -> dict[str, Any]:
    """The page as a notebook of format 4."""
    cells, end = [], 0
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        cells.append(_cell("markdown", _without_links(text[end : fence.start()])))
        cells.append(_cell("code", fence["code"]))
        end = fence.end()
    cells.append(_cell("markdown", _without_links(text[end:])))
    kept = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(kept):
        cell["id"] = f"cell-{number}"
    return {"cells": kept, "metadata": SETTINGS, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _without_links(text: str) -> str:
    """Links to other pages lead nowhere from a notebook; those to other sites stay."""
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


def written(page: Path) -> str:
    """The notebook's file."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


def run(path: Path) -> None:
    """Runs a notebook as Jupyter does."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    strict = "import warnings; warnings.simplefilter('error', UserWarning)"
    book.cells.insert(0, nbformat.v4.new_code_cell(strict))
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=300, kernel_name="python3", resources=place).execute()
    print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in book.cells) - 1} cells run")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path = FOLDER / f"{name}.ipynb"
        path.write_text(written(page), encoding="utf-8")
        if "--run" in sys.argv[1:]:
            run(path)


if __name__ == "__main__":
    main()
