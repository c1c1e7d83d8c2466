"""Runs the code on the pages and puts what it prints and draws below it.

A fence that opens with ``python run`` is executed, one with ``python raises`` must end in an
error, whose message is shown, and in one with ``console run`` the lines that start with ``$`` are
run by the shell. The fences of a page share variables and an empty working folder. Whatever
fails, or warns, fails the build. What a fit says of its own posterior is shown instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

FENCE = re.compile(
    r"^```(?P<language>python|console) (?P<how>run|raises)\n(?P<code>.*?)^```$", re.M | re.S
)
SECONDS = 120
WIDTH = 92
OF_THE_POSTERIOR = "Got (chains that disagree|a readable network that predicts worse)"


class CodeError(Exception):
    """Code on a page that does not do what the page says."""


@dataclass
class Run:
    """The page with results, and its figures as SVG, in order."""

    markdown: str
    figures: list[bytes] = field(default_factory=list)


def run_page(markdown: str, stem: str) -> Run:
    """Executes the fences of a page; figure number k is shown as ``{stem}-{k}.svg``."""
    run = Run("")
    names: dict[str, Any] = {"__name__": "__main__"}

    def with_results(fence: re.Match[str]) -> str:
        language, how, code = fence["language"], fence["how"], fence["code"]
        if language == "console":
            return _block("console", _shell_session(code, fails=how == "raises"))
        printed = _python(code, names, fails=how == "raises")
        shown = [_block("python", code)]
        if printed:
            shown.append(_block("{ .text .output }", _wrapped(printed)))
        for figure in _drawn():
            run.figures.append(figure)
            shown.append(f"![Figure]({stem}-{len(run.figures)}.svg)")
        return "\n\n".join(shown)

    with _working_folder():
        run.markdown = FENCE.sub(with_results, markdown)
    return run


def _python(code: str, names: dict[str, Any], fails: bool) -> str:
    printed = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            warnings.filterwarnings("always", OF_THE_POSTERIOR)
            warnings.showwarning = _as_readers_see_it
            exec(compile(code, "page", "exec"), names)
    except Exception as error:
        if not fails:
            raise CodeError(f"{type(error).__name__}: {error}, in\n{code}") from error
        return printed.getvalue() + f"{type(error).__name__}: {error}\n"
    if fails:
        raise CodeError(f"no error in\n{code}")
    return printed.getvalue()


def _as_readers_see_it(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"{category.__name__}: {message}")


def _shell_session(code: str, fails: bool) -> str:
    """The lines that start with ``$``, each followed by what it writes."""
    lines = []
    here = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": here + os.pathsep + os.environ.get("PATH", "")}
    for line in code.splitlines():
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line.removeprefix("$ ")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if (done.returncode != 0) != fails:
            raise CodeError(f"exit code {done.returncode} of {line!r}:\n{done.stdout}")
        lines += [line, done.stdout.rstrip("\n")]
    return "\n".join(filter(None, lines))


def _drawn() -> list[bytes]:
    """The open figures, closed afterwards."""
    figures = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        # No date and no random names, so that the same figure gives the same file.
        with matplotlib.rc_context({"svg.hashsalt": "islab"}):
            plt.figure(number).savefig(
                file, format="svg", bbox_inches="tight", metadata={"Date": None}
            )
        figures.append(file.getvalue())
    plt.close("all")
    return figures


def _wrapped(printed: str) -> str:
    """Long sentences in several lines; lines of tables, which have gaps, stay whole and scroll."""
    lines = []
    for line in printed.splitlines():
        words = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if len(line) > WIDTH and "  " not in words:
            lines += textwrap.wrap(
                words,
                WIDTH,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
            )
        else:
            lines.append(line)
    return "\n".join(lines)


def _block(language: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    return f"```{language}\n{lines}\n```"


@contextlib.contextmanager
def _working_folder() -> Any:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Called by MkDocs for each page."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    source = Path(page.file.src_uri)
    try:
        run = run_page(markdown, source.stem)
    except CodeError as error:
        raise PluginError(f"{source}: {error}") from error
    for number, figure in enumerate(run.figures, start=1):
        uri = str(source.with_name(f"{source.stem}-{number}.svg"))
        files.append(File.generated(config, uri, content=figure))
    return run.markdown
