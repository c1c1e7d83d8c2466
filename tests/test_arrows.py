"""Who may import whom: the table in docs/design.md, held against every import in the package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "islab"
FILES = sorted(path for path in SOURCE.rglob("*.py"))
TORCH_FREE = ("tables", "explain", "plots", "report", "io", "scores", "cli")


def room_of(module: str) -> str:
    """The part of the package a module belongs to; the package itself is its face."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "islab"


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def allowed() -> dict[str, set[str]]:
    """Rooms and what each may import, from the table in the design page."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", text, flags=re.M)
    return {room: set(re.findall(r"`(\w+)`", names)) for room, names in rows}


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports, inside functions too, but not for types only."""
    found = set()
    nodes = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {existing(node.module, alias.name) for alias in node.names}
        nodes.extend(ast.iter_child_nodes(node))
    return {name for name in found if name.partition(".")[0] == "islab"}


MODULES = {module_of(path) for path in FILES}


def existing(module: str, name: str) -> str:
    """The module that ``from module import name`` reads."""
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


GRAPH = {module_of(path): imports(path) for path in FILES}


def test_the_table_names_every_room():
    rooms = {room_of(module) for module in MODULES} - {"islab", "__main__"}
    assert set(allowed()) == rooms


@pytest.mark.parametrize("room", sorted(allowed()))
def test_a_room_imports_only_what_the_table_allows(room):
    wrong = {
        f"{module} -> {other}"
        for module, others in GRAPH.items()
        for other in others
        if room_of(module) == room and room_of(other) not in {room, *allowed()[room]}
    }
    assert not wrong


def test_the_table_has_no_cycle():
    left = dict(allowed())
    while left:
        free = [room for room, others in left.items() if not others & set(left)]
        assert free, f"a cycle among {sorted(left)}"
        for room in free:
            del left[room]


def test_modules_do_not_import_each_other_in_a_circle():
    left = {module: others - {module} for module, others in GRAPH.items() if module != "islab"}
    while left:
        free = [module for module, others in left.items() if not others & set(left)]
        if not free:
            break
        for module in free:
            del left[module]
    circle = {m: sorted(o & set(left)) for m, o in left.items() if any(m in left[x] for x in left)}
    assert not circle


@pytest.mark.parametrize("room", TORCH_FREE)
def test_what_reads_and_shows_does_not_know_torch(room):
    users = [
        module_of(path)
        for path in FILES
        if room_of(module_of(path)) == room
        and re.search(r"^\s*(import torch|from torch)\b", path.read_text(encoding="utf-8"), re.M)
    ]
    assert not users
