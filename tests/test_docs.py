"""The README and the code that runs the documentation's examples."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "sources")


@pytest.fixture
def run_code(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "docs" / "hooks")
    return import_module("run_code")


def targets(text):
    """What a page links to, without addresses, anchors and names of the reference."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.S))
    return [link for link in links if "://" not in link]


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_what_a_page_links_to_exists(page):
    text = page.read_text(encoding="utf-8")
    assert [link for link in targets(text) if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    assert [page for page in pages if page not in navigation] == []


def test_the_list_of_the_guide_has_all_its_pages_and_tasks_lead_to_each():
    guide = ROOT / "docs" / "guide"
    pages = {page.name for page in guide.glob("*.md")} - {"index.md"}
    assert pages <= set(targets((guide / "index.md").read_text(encoding="utf-8")))
    tasks = "".join(page.read_text(encoding="utf-8") for page in guide.parent.glob("tasks/*.md"))
    assert pages <= {link.rpartition("/")[2] for link in targets(tasks)}


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import train_test_split

    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README, flags=re.S)[1]
    parts = train_test_split(*load_iris(return_X_y=True, as_frame=True), random_state=0)
    names = dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True))
    exec(example, names)
    assert (tmp_path / "report.html").exists()


def test_the_commands_of_the_readme_exist():
    from islab.cli import make_parser

    parser = make_parser()
    for line in re.findall(r"^\$ islab (.*)$", README, flags=re.M):
        parser.parse_args(line.split())


def test_what_code_prints_stands_below_it(run_code):
    page = "```python run\nx = 1\n```\n\n```python run\nprint(x + 1)\n```\n"
    assert run_code.run_page(page, "page").markdown.endswith("```{ .text .output }\n2\n```\n")


def test_long_sentences_that_code_prints_are_wrapped_and_tables_are_not(run_code):
    words, table = "  " + "word " * 40, "column  " * 20
    page = f"```python run\nprint({words!r})\nprint({table!r})\n```\n"
    output = run_code.run_page(page, "page").markdown.partition(".output }\n")[2]
    lines = output.removesuffix("\n```\n").splitlines()
    assert lines[-1] == table.rstrip()
    assert " ".join(lines[:-1]).split() == words.split()
    assert all(line.startswith("  word") and len(line) <= 92 for line in lines[:-1])


def test_a_figure_is_linked_and_returned(run_code):
    page = "```python run\nimport matplotlib.pyplot as plt\n_ = plt.figure(figsize=(1, 1))\n```"
    run = run_code.run_page(page, "page")
    assert "![Figure](page-1.svg)" in run.markdown
    assert run.figures[0].startswith(b"<?xml")


def test_code_that_fails_stops_the_build(run_code):
    with pytest.raises(run_code.CodeError, match="ZeroDivisionError"):
        run_code.run_page("```python run\n1 / 0\n```", "page")


def test_code_that_warns_stops_the_build(run_code):
    page = "```python run\nimport warnings\nwarnings.warn('careful')\n```"
    with pytest.raises(run_code.CodeError, match="careful"):
        run_code.run_page(page, "page")


def test_a_promised_error_that_does_not_come_stops_the_build(run_code):
    with pytest.raises(run_code.CodeError, match="no error"):
        run_code.run_page("```python raises\nx = 1\n```", "page")


def test_a_command_that_fails_stops_the_build(run_code):
    with pytest.raises(run_code.CodeError, match="exit code 3"):
        run_code.run_page("```console run\n$ exit 3\n```", "page")


def test_other_fences_stay_as_they_are(run_code):
    page = "```python\nnot python at all\n```\n"
    assert run_code.run_page(page, "page").markdown == page


def test_notebooks_are_what_their_pages_give(monkeypatch, run_code):
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = import_module("make_notebooks")
    for name, page in made.PAGES.items():
        kept = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        assert kept == made.written(page), f"{name}: run `python docs/make_notebooks.py`"


def test_a_notebook_has_all_the_code_of_its_page(monkeypatch, run_code):
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = import_module("make_notebooks")
    page = made.PAGES["getting-started"]
    cells = made.notebook(page)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    fences = re.findall(r"```python run\n(.*?)\n```", page.read_text(encoding="utf-8"), flags=re.S)
    assert code == fences


@pytest.mark.parametrize("source", sorted((ROOT / "docs/gallery/sources").glob("*.md")), ids=str)
def test_a_page_that_was_run_beforehand_shows_its_sources_code(source):
    def fences(page):
        found = re.findall(r"```python(?: run)?\n(.*?)\n```", page.read_text("utf-8"), flags=re.S)
        return [code.strip() for code in found]

    assert fences(source.parents[1] / source.name) == fences(source)


def test_what_a_fit_says_of_its_posterior_is_shown(run_code):
    page = "```python run\nimport warnings\nwarnings.warn('Got chains that disagree.')\n```\n"
    assert "UserWarning: Got chains that disagree." in run_code.run_page(page, "page").markdown
    with pytest.raises(run_code.CodeError, match="another"):
        run_code.run_page(page.replace("Got chains that", "another"), "page")
