"""Nothing outside the families decides by the name of one, in Python, C++, scripts or pages."""

import ast
import re
from pathlib import Path

import pytest

import islab
from islab.core import families

HOME = Path(islab.__file__).parent
NAMES = {*families.likelihoods(), *families.activations()}
SPELLED = "|".join(sorted(NAMES))
# Where the engine's compiled families are, each in one of these headers.
HEADERS = ("families.h", "activations.h", "likelihoods.h", "counts.h")
# The chains have their own compiled families, chosen by name in one function for each kind.
CHAINS = HOME / "learn" / "sample" / "native"
OTHERS = [
    path
    for path in sorted(HOME.rglob("*"))
    if path.suffix in (".js", ".html", ".h", ".cpp")
    and path.name not in HEADERS
    and path.parent != CHAINS
]
SOURCES = [path for path in sorted(HOME.rglob("*.py")) if path.parent.name != "families"]


def strings(node):
    """The strings in an expression."""
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}


def decided_by(node):
    """What a node chooses by: sides of comparisons, keys of dicts, patterns of matches."""
    if isinstance(node, ast.Compare):
        return strings(node)
    if isinstance(node, ast.Dict):
        return {key.value for key in node.keys if isinstance(key, ast.Constant)}
    if isinstance(node, ast.MatchValue):
        return strings(node.value)
    return set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(HOME)))
def test_python_does_not_choose_by_a_family_name(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    assert not [(n.lineno, found) for n in nodes if (found := decided_by(n) & NAMES)]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(HOME)))
def test_other_languages_do_not_name_a_family_at_all(path):
    named = rf"""(["'])({SPELLED})\1|::({SPELLED})\b"""
    assert not re.findall(named, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_family_of_the_package_is_compiled(name):
    known = families.likelihoods()
    family = families.likelihood(name) if name in known else families.activation(name)
    assert family.kernel is not None
    headers = [(HOME / "learn/engines/native" / file).read_text() for file in HEADERS]
    assert any(f'name = "{family.kernel.name}"' in header for header in headers)


@pytest.mark.parametrize("kind", ["likelihood", "activation"])
def test_unknown_names_are_refused_with_the_known_ones(kind):
    with pytest.raises(ValueError, match=f"Got {kind}='none', expected one of .*,"):
        getattr(families, kind)("none")
