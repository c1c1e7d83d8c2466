"""The release script, in a repository of its own; workflows that cannot drift from the Makefile."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "recipe/recipe.yaml")


def git(root, *words):
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    return subprocess.run(
        ["git", *names, *words], cwd=root, check=True, text=True, capture_output=True
    ).stdout.strip()


@pytest.fixture
def clone(tmp_path, monkeypatch):
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "a")
        monkeypatch.setenv(f"{name}_EMAIL", "a@b.c")
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    project = (tmp_path / "pyproject.toml").read_text()
    address = '[project.urls]\nRepository = "https://example.org/islab"'
    (tmp_path / "pyproject.toml").write_text(project.replace("[project.urls]", address))
    # Whatever the changelog says today, here the next version is not released yet.
    log = "# Changelog\n\n## 9.1 (unreleased)\n\n### Added\n- This.\n\n## 0.1.0 (2026-11-01)\n"
    (tmp_path / "CHANGELOG.md").write_text(log)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "start")
    return tmp_path


def release(root, *words):
    command = [sys.executable, str(ROOT / "release.py"), *words, "--no-build"]
    return subprocess.run(command, cwd=root, text=True, capture_output=True, check=False)


def kept(root, name, commit="v9.1.0"):
    return git(root, "show", f"{commit}:{name}")


def test_a_release_names_its_version_everywhere_and_is_tagged(clone):
    done = release(clone, "9.1.0", "--date", "2030-01-02")
    assert done.returncode == 0, done.stderr
    assert git(clone, "tag") == "v9.1.0"
    assert git(clone, "status", "--porcelain") == ""
    assert 'version = "9.1.0"' in kept(clone, "pyproject.toml")
    assert "version: 9.1.0" in kept(clone, "CITATION.cff")
    assert 'version: "9.1.0"' in kept(clone, "recipe/recipe.yaml")
    assert "## 9.1.0 (2030-01-02)" in kept(clone, "CHANGELOG.md")
    # Nothing else on these lines, nor on others.
    assert git(clone, "diff", "--shortstat", "v9.1.0~1", "v9.1.0") == (
        "4 files changed, 4 insertions(+), 4 deletions(-)"
    )


def test_after_a_release_the_next_version_begins(clone):
    release(clone, "9.1.0")
    assert git(clone, "rev-parse", "HEAD~1") == git(clone, "rev-parse", "v9.1.0^{commit}")
    assert 'version = "9.2.0.dev0"' in (clone / "pyproject.toml").read_text()
    assert "version: 9.1.0" in (clone / "CITATION.cff").read_text()
    headings = re.findall("^## .*", (clone / "CHANGELOG.md").read_text(), flags=re.M)
    assert headings[0] == "## 9.2 (unreleased)"
    assert headings[1].startswith("## 9.1.0 (")
    assert release(clone, "9.2.0").returncode == 0
    assert git(clone, "tag").split() == ["v9.1.0", "v9.2.0"]


def test_what_is_released_cannot_be_released_again(clone):
    project = clone / "pyproject.toml"
    project.write_text(
        re.sub('version = "[^"]*"', 'version = "9.1.0"', project.read_text(), count=1)
    )
    git(clone, "commit", "--quiet", "--all", "--message", "as released")
    assert "expected one after 9.1.0" in release(clone, "9.1.0").stderr


@pytest.mark.parametrize(
    ("version", "words"),
    [("9.1", "three numbers"), ("0.0.1", "expected one after"), ("9.2.0", "expected once")],
)
def test_a_version_that_cannot_be_is_refused(clone, version, words):
    done = release(clone, version)
    assert done.returncode == 1
    assert words in done.stderr
    assert git(clone, "tag") == ""
    assert git(clone, "status", "--porcelain") == ""


def test_without_the_address_of_the_repository_nothing_is_released(clone):
    project = clone / "pyproject.toml"
    project.write_text(re.sub("^Repository = .*\n", "", project.read_text(), flags=re.M))
    git(clone, "commit", "--quiet", "--all", "--message", "no address")
    done = release(clone, "9.1.0")
    assert done.returncode == 1
    assert "Repository in [project.urls]" in done.stderr
    assert git(clone, "tag") == ""


def test_changes_that_are_not_committed_are_not_released(clone):
    (clone / "CHANGELOG.md").write_text("other")
    assert "not committed" in release(clone, "9.1.0").stderr
    assert git(clone, "log", "--oneline").count("\n") == 0


def test_the_paper_is_cited_alike_in_the_readme_and_the_citation_file():
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))[
        "preferred-citation"
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    bibtex = dict(re.findall(r"^  (\w+) += \{(.*)\},?$", readme, flags=re.M))
    assert paper["title"] == bibtex["title"].replace("{", "").replace("}", "")
    for name, field in {"journal": "journal", "volume": "volume", "issue": "number"}.items():
        assert str(paper[name]) == bibtex[field]
    assert (str(paper["year"]), paper["doi"]) == (bibtex["year"], bibtex["doi"])
    assert len(paper["authors"]) == bibtex["author"].count(" and ") + 1


# -- workflows ------------------------------------------------------------------------------

TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))


def steps(name):
    """What the workflow runs, with the words of its matrix filled in."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
    for job in workflow["jobs"].values():
        lines = [step["run"] for step in job["steps"] if "run" in step]
        matrix = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for words in matrix:
            for line in lines:
                yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda m, w=words: w[m[1]], line)


@pytest.mark.parametrize("name", ["ci.yml", "wheels.yml"])
def test_workflows_run_nothing_but_the_common_targets(name):
    for line in steps(name):
        target = line.removeprefix("make ")
        assert line == ".ci/run" or (line.startswith("make ") and target in TARGETS), line


def test_every_change_is_checked_by_the_script_that_is_used_elsewhere():
    assert ".ci/run" in list(steps("ci.yml"))
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"^make (\S+)$", script, flags=re.M) == ["lint", "test", "docs"]


def test_the_page_of_the_package_has_absolute_links_and_pictures():
    """Read from the function's own text: importing setup.py would build."""
    text = (ROOT / "setup.py").read_text()
    source = text[text.index("def absolute_readme") : text.index("ROOT = ")]
    names = {"re": re, "Any": object}
    exec(source, names)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    project = {"version": "1.2.3", "urls": {"Repository": "https://example.org/islab"}}
    page = names["absolute_readme"](readme, project)
    links = re.findall(r"\]\(([^)\s]+)", re.sub(r"```.*?```", "", page, flags=re.S))
    assert [link for link in links if not re.match(r"https://|#", link)] == []
    assert "https://example.org/islab/raw/v1.2.3/docs/images/paths.svg" in links
    assert "https://example.org/islab/blob/v1.2.3/CHANGELOG.md" in links
