"""Makes links of the roles in docstrings, such as ``:func:`islab.load```; fills in shared parts."""

from __future__ import annotations

import re
from typing import Any

import griffe

from islab.baselines.base import SHARED_PARAMETERS

ROLE = re.compile(r":(?:func|class|meth|attr|mod):`~?([\w.]+)`")


class Roles(griffe.Extension):
    """Full names become links, short ones code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = obj.docstring.value.replace("{shared}", SHARED_PARAMETERS)
            obj.docstring.value = ROLE.sub(_link, text)


def _link(role: re.Match[str]) -> str:
    name = role[1]
    return f"[`{name}`][{name}]" if name.startswith("islab.") else f"`{name}`"
