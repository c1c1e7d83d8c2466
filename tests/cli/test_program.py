"""The program as a whole: help, version, pipes."""

import os
import subprocess
import sys

import pytest

import islab
from islab.cli import COMMANDS, main


def python(*arguments, **options):
    command = [sys.executable, "-m", "islab", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from islab.cli import COMMANDS, main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_help_with_examples(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"islab {command}" in capsys.readouterr().out.split("examples:")[1]


def test_the_version_is_the_package_s():
    assert python("--version").stdout == f"islab {islab.__version__}\n"


def test_a_reader_that_has_enough_is_no_error(folder, monkeypatch, capsys):
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["predict", str(folder / "state.islab"), str(folder / "data.csv")]) == 0
    assert capsys.readouterr().err == ""
