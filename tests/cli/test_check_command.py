"""`lmlab check` does what `derive check` and `derive grade` do, and refuses what it cannot do in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lmlab, done, refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.derive").write_text("given x: n\nquestion one\nclaim d(x @ x)/dx == 2*x\n")
    (tmp_path / "ada.derive").write_text("claim d(x @ x)/dx == 2*x\n")
    (tmp_path / "bad.derive").write_text("given x: n\nclaim norm(x) == x @ x\n")
    return tmp_path


def test_a_sheet_is_checked_with_its_exit_code_and_a_page(lmlab: Lmlab, folder: Path) -> None:
    code, out, _ = lmlab("check", "bad.derive", "--html", "bad.html")
    assert code == 1
    assert "refuted" in out
    assert "refuted" in (folder / "bad.html").read_text(encoding="utf-8")
    assert json.loads(lmlab("check", "bad.derive", "--json")[1])["ok"] is False


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_a_class_is_graded_into_a_folder(lmlab: Lmlab, folder: Path, option: str) -> None:
    assert "1/1" in done(lmlab("check", "--grade", "ada.derive", "--key", "key.derive", option, "graded"))
    assert (folder / "graded" / "grades.csv").is_file()


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ([], [], "Missing argument"),
        (["nowhere.derive"], [], "no file nowhere.derive"),
        (["x"], ["--key", "k"], "--key is for grading"),
        (["x"], ["--grade"], "grading needs a key"),
        (["x"], ["--out", "y"], "option-only-grades"),
        (["x"], ["--grade", "--key", "k", "--hints", "all"], "hints-unknown"),
        (["x"], ["--grade", "--key", "k"], "there is no file x"),
        (["-"], ["--watch"], "watch-only-checks"),
        (["."], ["--grade", "--key", "k", "--out", "."], "pages-among-submissions"),
    ],
)
def test_a_wrong_call_ends_with_one_line_and_code_2(
    lmlab: Lmlab, files: list[str], options: list[str], message: str
) -> None:
    refused(lmlab("check", *files, *options), message)
