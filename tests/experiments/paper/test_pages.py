"""Results in pages and tables."""

import pytest

from experiments.paper.cells import Results
from experiments.paper.pages import write_pages
from experiments.paper.tables import markdown_tables, text_table
from islab.evaluate.runner import Cell

from .conftest import record

PAGE = "# Title\n\nBefore.\n\n<!-- results: {} -->\nold\n<!-- end -->\n\nAfter.\n"


@pytest.fixture
def folders(tmp_path, wbc_records):
    results, pages = tmp_path / "raw", tmp_path / "pages"
    pages.mkdir()
    for line in wbc_records:
        Results(results).add(line)
    return results, pages


def filled(folders, name):
    results, pages = folders
    page = pages / "page.md"
    page.write_text(PAGE.format(name))
    changed = list(write_pages(results, pages))
    assert changed == [str(page)]
    return page.read_text()


def test_tables_take_the_place_between_the_marks(folders):
    text = filled(folders, "wbc")
    assert "| islab | ours, default | 96.5 (96.5, 96.5) =" in text
    assert "\nold\n" not in text


def test_what_people_wrote_stays(folders):
    text = filled(folders, "wbc")
    assert text.startswith("# Title\n\nBefore.\n")
    assert text.endswith("<!-- end -->\n\nAfter.\n")


def test_marks_with_nothing_between_them_are_filled_each(folders):
    results, pages = folders
    marks = "<!-- results: {} -->\n<!-- end -->\n"
    (pages / "page.md").write_text(marks.format("wbc") + "Between.\n" + marks.format("mice"))
    list(write_pages(results, pages))
    first, second = (pages / "page.md").read_text().split("Between.")
    assert "islab" in first
    assert "Nothing has been run yet." in second


def test_writing_again_changes_nothing(folders):
    filled(folders, "wbc")
    assert list(write_pages(*folders)) == []


def test_the_papers_row_stands_above_ours(folders):
    lines = filled(folders, "wbc").splitlines()
    [ours] = [number for number, line in enumerate(lines) if "ours" in line and "0.99" in line]
    assert lines[ours - 1].startswith("| islab | the paper | 0.998 (0.995, 0.999)")


def test_the_overview_counts_verdicts(folders):
    text = filled(folders, "overview")
    # Better: both calibration errors and log scores; the same: accuracies and weights; worse:
    # both areas under the curve.
    assert "| wbc | islab | default | 3 | 4 | 3 | 2 | 0 | 1.0 |" in text
    assert "| **all** |  | default |  | 4 | 3 | 2 | 0 |  |" in text


def test_a_data_set_without_results_says_so(folders):
    assert "Nothing has been run yet." in filled(folders, "mice")


def test_an_unknown_mark_is_an_error(folders):
    with pytest.raises(ValueError, match="results: wcb"):
        filled(folders, "wcb")


def test_a_folder_without_pages_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="pages"):
        list(write_pages(tmp_path, tmp_path))


def test_a_folder_without_results_empties_no_page(folders, tmp_path):
    before = filled(folders, "wbc")
    with pytest.raises(FileNotFoundError, match="results"):
        list(write_pages(tmp_path / "nowhere", folders[1]))
    assert (folders[1] / "page.md").read_text() == before


@pytest.mark.parametrize("page", [PAGE.replace("<!-- end -->\n", ""), "<!-- results: wbc -->"])
def test_a_mark_without_an_end_is_an_error_and_nothing_is_written(folders, page):
    results, pages = folders
    (pages / "a.md").write_text(PAGE.format("wbc"))
    text = page.format("wbc") + PAGE.format("mice")
    (pages / "b.md").write_text(text)
    with pytest.raises(ValueError, match=r"b\.md.*end"):
        list(write_pages(results, pages))
    assert (pages / "a.md").read_text() == PAGE.format("wbc")
    assert (pages / "b.md").read_text() == text


def test_a_page_that_is_no_text_is_named(folders):
    (folders[1] / "page.md").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"page\.md"):
        list(write_pages(*folders))


def test_line_ends_stay_as_they_are(folders):
    results, pages = folders
    (pages / "page.md").write_bytes(PAGE.format("wbc").replace("\n", "\r\n").encode())
    list(write_pages(results, pages))
    content = (pages / "page.md").read_bytes()
    assert b"islab" in content
    assert content.count(b"\n") == content.count(b"\r\n")


def test_one_name_fills_only_its_marks(folders):
    results, pages = folders
    (pages / "page.md").write_text(PAGE.format("wbc") + PAGE.format("overview"))
    list(write_pages(results, pages, "wbc"))
    text = (pages / "page.md").read_text()
    assert "islab" in text
    assert PAGE.format("overview") in text


def test_the_terminal_tells_how_few_epochs_a_run_had():
    run = record(Cell("mnist", "islab", "paper", 0), epochs=40)
    title = text_table("mnist", [run]).partition("\n")[0]
    assert title == "mnist, islab, paper recipe, 40 of 1,000 epochs: 1 seed, 1.0 s each"


def test_the_paper_has_several_strengths_on_mnist():
    table = markdown_tables("mnist", [record(Cell("mnist", "islab", "default", 0))])
    assert "| l1-skip-0.2 | the paper | 92.3 (92.1, 92.4) |" in table


def test_a_number_of_the_paper_is_shown_as_printed_even_where_it_contradicts_itself():
    table = markdown_tables("mice", [record(Cell("mice", "blr-flow", "default", 0))])
    assert "0.040 (0.050, 0.085)" in table


def test_a_score_without_a_value_is_shown_as_nothing():
    runs = [record(Cell("wbc", "islab", "default", 0), nll=None)]
    lines = text_table("wbc", runs).splitlines()
    [nll] = [" ".join(line.split()) for line in lines if "nll, full" in line]
    assert nll == "nll, full 0.206 (0.192, 0.229)"


def test_the_terminal_shows_ours_the_papers_and_the_verdict(wbc_records):
    lines = text_table("wbc", wbc_records).splitlines()
    [nll] = [" ".join(line.split()) for line in lines if "nll, full" in line]
    assert nll == "nll, full 0.100 (0.100, 0.100) 0.206 (0.192, 0.229) better p≈.014"


def test_a_table_without_numbers_of_the_paper_shows_ours(wbc_records):
    runs = [record(Cell("mice-by-mouse", "islab", "default", seed)) for seed in range(2)]
    assert "| islab | ours, default | 96.5 (96.5, 96.5) |" in markdown_tables("mice-by-mouse", runs)


def test_each_processor_that_computed_is_named_once(wbc_records):
    other = record(Cell("wbc", "blr", "paper", 0), machine={"cores": 8, "cpu": "another processor"})
    table = markdown_tables("wbc", [*wbc_records, other])
    assert "on one core of 8 (another processor) or one core of 2 (some processor): " in table


def test_a_name_that_no_page_marks_is_an_error(folders):
    results, pages = folders
    (pages / "page.md").write_text(PAGE.format("wbc"))
    with pytest.raises(ValueError, match="results: structures"):
        list(write_pages(results, pages, "structures"))


def test_a_page_without_marks_keeps_its_bytes(folders):
    results, pages = folders
    (pages / "page.md").write_bytes(b"one\r\ntwo\n")
    assert list(write_pages(results, pages)) == []


def test_a_study_with_a_score_that_is_none_can_be_shown(folders):
    line = {"method": "islab", "low": 0.1, "high": 0.2, "rmse_median": 2.0, "used_weights": 3}
    Results(folders[0]).add(
        {"dataset": "initialisation", "pearson_median": float("nan"), "epochs": 5, "seconds": 1.0}
        | line
    )
    assert "| islab | 0.1 to 0.2 | nan | 2.000 | 3 | 5 | 1 |" in filled(folders, "initialisation")
