"""One environment for all pages: escaped text, no address from outside."""

import pytest
from jinja2 import UndefinedError

from islab.report.environment import render


def page(**content):
    defaults = {"title": "t", "n_methods": 1, "task": "t", "scores": "", "failures": {}}
    nothing = {"notes": [], "picture": None, "inclusion": None, "differences": None}
    return render("comparison.html", **{**defaults, **nothing, **content})


def test_text_of_the_user_is_escaped():
    text = page(failures={"<i>big</i>": "<script>alert(1)</script>"})
    assert "&lt;i&gt;big" in text
    assert "<script" not in text


def test_a_page_without_some_of_its_content_is_an_error():
    with pytest.raises(UndefinedError, match="failures"):
        render(
            "comparison.html",
            title="t",
            n_methods=1,
            task="t",
            scores="",
            notes=[],
            differences=None,
        )


def test_every_page_forbids_to_load_anything():
    assert "default-src 'none'" in page()
