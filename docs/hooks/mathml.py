"""Turns formulas into MathML at build time, so that pages need no script and no network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)


def on_page_content(html: str, **_: Any) -> str:
    """Called by MkDocs with the HTML of each page."""
    html = DISPLAY.sub(lambda formula: convert(unescape(formula[1]), display="block"), html)
    return INLINE.sub(lambda formula: convert(unescape(formula[1]), display="inline"), html)
