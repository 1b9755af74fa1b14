"""A command is a file of `cli/commands/`, and a name of `lmlab` is a line of `__init__.pyi`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmlab
from command_line import Lmlab, done
from lmlab.cli import commands

COMMAND = '''"""`lmlab reverse`: a text backwards."""

SECTION = "Other tasks"


def command(text: str) -> None:
    """Write a text backwards."""
    print(text[::-1])
'''


@pytest.fixture
def with_reverse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "reverse.py").write_text(COMMAND)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    commands.names.cache_clear()
    yield
    commands.names.cache_clear()
    commands.load.cache_clear()
    sys.modules.pop("lmlab.cli.commands.reverse", None)


@pytest.mark.usefixtures("with_reverse")
def test_a_file_of_the_folder_is_a_command_and_stands_in_the_help(lmlab: Lmlab) -> None:
    assert done(lmlab("reverse", "abc")) == "cba\n"
    section = done(lmlab("--help")).partition("Other tasks:")[2].partition("Mathematics:")[0]
    assert "reverse     Write a text backwards." in section
    assert done(lmlab("reverse", "--help")).startswith("Usage: lmlab reverse")


def test_a_line_of_the_stub_is_a_name_of_the_package() -> None:
    stub = Path(lmlab.__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
    assert {line.rpartition(" ")[2] for line in stub.splitlines() if line.startswith("from ")} == {
        *lmlab.__all__,
        "__version__",
    }
