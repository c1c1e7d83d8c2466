"""The command line: ``islab fit | predict | explain | report | compare | ... | demo``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from islab.cli import check, compare, demo, explain, export, fit, predict, report, summary
from islab.core.names import printable, shortened

COMMANDS = {
    "check": check,
    "fit": fit,
    "predict": predict,
    "explain": explain,
    "export": export,
    "report": report,
    "summary": summary,
    "compare": compare,
    "demo": demo,
}
EXAMPLES = """\
examples:
  islab check patients.csv --target diagnosis
  islab fit patients.csv --target diagnosis -o model.islab
  islab summary model.islab
  islab predict model.islab new.csv -o predictions.csv --interval 0.9
  islab explain model.islab new.csv --row 3
  islab export model.islab --to sql -o model.sql
  islab report model.islab new.csv -o report.html
  islab compare patients.csv --target diagnosis --jobs 2
  islab demo
"""
WRONG_INPUT = 2
INTERRUPTED, TERMINATED = 130, 143
LONGEST_MESSAGE = 2000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code.

    Errors in the input give one line on stderr and exit code 2. Ctrl-C ends
    with 130 and SIGTERM with 143; files that were there before are left as they were.
    """
    parser = make_parser()
    args = parser.parse_args(arguments)
    if sys.stdout is None:
        # A file that is opened later would take its place, and get what is printed.
        _say("error: standard output is closed; try > /dev/null")
        return WRONG_INPUT
    try:
        with _sigterm_interrupts(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", UserWarning)
            COMMANDS[args.command].run(args)
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()  # the reader has enough
    except _Terminated:
        _say("terminated")
        return TERMINATED
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except (ValueError, OSError, ImportError, TypeError, RuntimeError, MemoryError) as error:
        _say(f"error: {error or type(error).__name__}")
        with suppress(ValueError):  # closed meanwhile
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()
        return WRONG_INPUT
    return 0


def _drop_output() -> None:
    """Sends what is left to print nowhere: a second error at exit adds nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Terminated(KeyboardInterrupt):
    """SIGTERM: ends a command as Ctrl-C does."""


def _raise_terminated(*_: Any) -> NoReturn:
    raise _Terminated


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM raises an exception inside, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="islab",
        description="Bayesian neural networks that learn their own structure and explain every "
        "prediction exactly.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, module in COMMANDS.items():
        description = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=description.partition("\n")[0].rstrip("."),
            description=description,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from islab import __version__

        print(f"islab {__version__}")
        parser.exit()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


def _say(message: str) -> None:
    """One line on stderr, whatever a table has put into the message."""
    if sys.stderr is not None:
        line = " ".join(printable(message).split())
        print("islab: " + shortened(line, LONGEST_MESSAGE), file=sys.stderr)
