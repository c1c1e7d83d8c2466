"""The environment in which every page is made: one file of HTML that needs no other."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from islab.core.dependencies import own_version
from islab.core.names import printable
from islab.plots import style
from islab.plots.effects import COLOURS as SERIES

if TYPE_CHECKING:
    from jinja2 import Environment

WORD_ENDS = r"(?<=[_/.-])(?=[^\W\d_])"
COLOURS = ("POSITIVE", "NEGATIVE", "INK", "MUTED", "FAINT", "PAPER")
LIGHT = {
    **{name.lower(): getattr(style, name) for name in COLOURS},
    **{f"c{number}": colour for number, colour in enumerate(SERIES)},
    **{"page": "#fbfcfd", "surface": "#fff", "soft": "#5c6875", "bar": style.INK},
    **{"lit": "#e4edf8", "link": "#2a5f9e", "border": "#b4bdc8", "hover": "#e1e8f1"},
    **{"warning": "#a8480f", "shadow": "rgb(34 54 77 / 0.14)"},
}
DARK = {
    **{"positive": "#6fabee", "negative": "#f09a5c", "ink": "#e2e9f1", "muted": "#8b98a7"},
    **{"faint": "#323d49", "paper": "#28323d"},
    **{"c0": "#6fabee", "c1": "#f09a5c", "c2": "#64bf88", "c3": "#bb94de", "c4": "#d6b155"},
    **{"c5": "#e583b5", "c6": "#74c7d8", "c7": "#9aa6b4"},
    **{"page": "#13181e", "surface": "#1b222a", "soft": "#a6b2bf", "bar": "#0c1014"},
    **{"lit": "#24394f", "link": "#84b9f2", "border": "#4b5866", "hover": "#34404d"},
    **{"warning": "#f2a673", "shadow": "rgb(0 0 0 / 0.5)"},
}


def render(template: str, **content: Any) -> str:
    """The text of a page: all content is escaped, but for what is marked as our own."""
    return _environment().get_template(template).render(**content)


def own_script(*names: str, first: str = "") -> dict[str, str]:
    """Scripts that come with the package, and the hash by which the page lets them run.

    ``first`` is trusted code that goes before them; it must hold nothing from data or files.
    """
    from markupsafe import Markup

    script = '"use strict";\n' + first + "".join(_own_file(name) for name in names)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": digest}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_own_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {"number": style.number, "percent": percent, "printable": printable}
    environment.filters["breakable"] = breakable
    environment.globals |= {
        "css": Markup(_own_file("page.css")),
        "light": LIGHT,
        "dark": DARK,
        "version": own_version(),
    }
    return environment


def percent(share: float) -> str:
    """A share in percent with one digit, 0 without a sign."""
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "\N{MINUS SIGN}")


def breakable(name: str) -> Any:
    """A name, escaped, that lines may break where its words end, as in ``humidity_at_3pm``."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(WORD_ENDS, name))


def _own_file(name: str) -> str:
    """A style sheet, script or template that comes with the package."""
    return (files("islab.report") / name).read_text(encoding="utf-8")
