"""Makes links of the roles in docstrings, such as ``:func:`islab.load```."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|meth|attr|mod):`~?([\w.]+)`")


class Roles(griffe.Extension):
    """Full names become links, short ones code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = ROLE.sub(_link, obj.docstring.value)


def _link(role: re.Match[str]) -> str:
    name = role[1]
    return f"[`{name}`][{name}]" if name.startswith("islab.") else f"`{name}`"
