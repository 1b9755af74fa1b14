"""Claims in a notebook, and files that are checked again when they are saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab_derive.command import check as check_command
from lmlab_derive.notebook import check_cell, load_ipython_extension
from lmlab_derive.shared.mistakes import Mistake


class Shell:
    """What an extension sees of IPython."""

    def __init__(self) -> None:
        self.magics: dict[tuple[str, str], Callable[..., object]] = {}

    def register_magic_function(self, function: Callable[..., object], kind: str, name: str) -> None:
        self.magics[kind, name] = function


def test_a_cell_is_checked_and_shown_as_mathematics() -> None:
    shell = Shell()
    load_ipython_extension(shell)
    report = shell.magics["cell", "check"]("", "given x\nclaim 2x = x + x\nclaim x = 2x")
    assert [claim.verdict for claim in report.claims] == ["proved", "refuted"]  # type: ignore[attr-defined]
    shown = report._repr_html_()  # type: ignore[attr-defined]
    assert "<math" in shown
    assert "refuted" in shown


def test_a_seed_that_is_none_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="whole number"):
        check_cell("many", "claim 1 = 1")


def test_a_watched_file_is_checked_when_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "sheet.derive"
    sheet.write_text("claim 1 + 1 = 3", encoding="utf-8")
    looks = iter(["nothing new", "claim 1 + 1 = 2", "stop"])

    def saved(seconds: float) -> None:
        text = next(looks)
        if text == "stop":
            raise KeyboardInterrupt
        if text.startswith("claim"):
            sheet.write_text(text, encoding="utf-8")
            import os

            os.utime(sheet, (1, 1))

    monkeypatch.setattr(check_command.time, "sleep", saved)
    assert check_command.watch_files([str(sheet)]) == 0
    shown = capsys.readouterr().out
    assert (shown.count("0 of 1 hold"), shown.count("1 of 1 hold")) == (1, 1)


def test_standard_input_cannot_be_watched() -> None:
    with pytest.raises(Mistake):
        check_command.watch_files(["-"])
