"""Prepares a release: ``python release.py 0.2.0``, or ``make release VERSION=0.2.0``.

Writes the version and the date into the files that name them, commits, builds and checks the
package, and sets the tag. A second commit opens the next minor version: until it is released, its
name ends in ``.dev0``. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

# Where the version stands: file, and what comes before and after it.
PLACES = (
    ("pyproject.toml", r'^(version = ")[^"]*(")'),
    ("CITATION.cff", r"^(version: )\S+()"),
    ("recipe/recipe.yaml", r'^(  version: ")[^"]*(")'),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--no-build", action="store_true", help="leave out `make package`")
    args = parser.parse_args()
    try:
        release(Path.cwd(), args.version, args.date, build=not args.no_build)
    except ValueError as error:
        sys.exit(f"release: {error}")
    print(f"Look at the commits and at dist, then: git push origin HEAD v{args.version}")


def release(root: Path, version: str, date: str, *, build: bool) -> None:
    """Commit and tag of a version, in the repository at ``root``."""
    require_ready(root, version)
    minor = re.escape(version.rpartition(".")[0])
    heading = rf"^## {minor}(\.\d+)? \(unreleased\)$"
    changes = [(name, pattern, rf"\g<1>{version}\g<2>") for name, pattern in PLACES]
    changes.append(("CHANGELOG.md", heading, f"## {version} ({date})"))
    texts = {root / name: replaced(root / name, pattern, new) for name, pattern, new in changes}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", f"Version {version}")
    if build:
        run(root, "make", "package")
    run(root, "git", "tag", "--annotate", f"v{version}", "--message", f"Version {version}")
    open_next(root, version)


def open_next(root: Path, version: str) -> None:
    """A commit in which the package and the changelog are those of the next minor version."""
    major, minor, _ = numbers(version)
    coming = f"{major}.{minor + 1}"
    name, pattern = PLACES[0]
    project = replaced(root / name, pattern, rf"\g<1>{coming}.0.dev0\g<2>")
    heading = rf"^(## {re.escape(version)} \()"
    log = replaced(root / "CHANGELOG.md", heading, rf"## {coming} (unreleased)\n\n\1")
    (root / name).write_text(project, encoding="utf-8")
    (root / "CHANGELOG.md").write_text(log, encoding="utf-8")
    run(root, "git", "commit", "--quiet", "--all", "--message", f"Version {coming} begins")


def require_ready(root: Path, version: str) -> None:
    """Refuses what would make a wrong release, before anything is changed."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"Got version {version!r}, expected three numbers, such as 0.2.0")
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    present = re.search(r'^version = "([\d.]+?)(\.dev0)?"', project, re.M)
    if present is None:
        raise ValueError("Found no version in pyproject.toml, expected one such as 0.2.0.dev0")
    too_early = numbers(version) < numbers(present[1])
    if too_early or (not present[2] and version == present[1]):
        raise ValueError(f"Got version {version}, expected one after {present[1]}")
    if not re.search(r'^Repository = "https://', project, re.M):
        raise ValueError(
            "Got no Repository in [project.urls] of pyproject.toml, expected the address of the "
            "public repository, where the links of the package's page lead to"
        )
    if run(root, "git", "status", "--porcelain"):
        raise ValueError("Got changes that are not committed; commit them or put them away first")
    if run(root, "git", "tag", "--list", f"v{version}"):
        raise ValueError(f"Got version {version}, whose tag is there already")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def replaced(path: Path, pattern: str, new: str) -> str:
    text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"), flags=re.M)
    if count != 1:
        raise ValueError(f"Found {pattern!r} {count} times in {path.name}, expected once")
    return text


def run(root: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=root, text=True, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(f"{' '.join(command[:2])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
