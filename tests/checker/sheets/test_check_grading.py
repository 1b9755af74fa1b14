"""Grading a class, and the command line of the checker."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab.checker.limits import Refusal
from lmlab.checker.sheets.grade import grade
from lmlab.cli.check import run_check

KEY = """
given x: 1, D
given W: D, K
given y: 1, K onehot
let p = softmax(x @ W)
let J = -sum(y * log(p))
claim dJ/dW == x.T @ (p - y)
claim dJ/dx == (p - y) @ W.T
claim sum(p) == 1
"""


def marks(answer: str) -> list[str]:
    return [a.mark for a in grade(KEY, {"student": answer}).papers[0].answers]


def test_equivalent_forms_are_right() -> None:
    assert marks("claim dJ/dW == outer(x, p - y)\nclaim dJ/dx == (W @ (p - y).T).T\nclaim sum(p) == 1") == ["right"] * 3


def test_wrong_and_missing_answers_are_told_apart() -> None:
    assert marks("claim dJ/dW == x.T @ (y - p)") == ["wrong", "missing", "missing"]


def test_helpers_and_derivations_are_accepted() -> None:
    answer = "let d = p - y\nderive dJ/dW\n  = x.T @ d\nderive dJ/dx\n  = d @ W.T\n  = p @ W.T - y @ W.T"
    assert marks(answer) == ["right", "right", "missing"]


def test_the_setting_of_the_key_stays_whatever_the_student_defines() -> None:
    book = grade(
        KEY, {"s": "given x: 1, D\nlet J = sum(x)\nclaim dJ/dx == ones(1, D)\nlet p = y\nclaim dJ/dW == x.T @ (p - y)"}
    )
    paper = book.papers[0]
    assert [a.mark for a in paper.answers] == ["right", "wrong", "missing"]
    assert any("defines J anew" in note for note in paper.notes)


@pytest.mark.parametrize(
    "answer", ["claim dJ/dW == dJ/dW", "let g = dJ/dW\nclaim dJ/dW == g", "claim dJ/dW == 1 * dJ/dW"]
)
def test_the_question_said_again_is_no_answer(answer: str) -> None:
    assert marks(answer)[0] == "wrong"


def test_a_key_that_does_not_hold_is_refused() -> None:
    with pytest.raises(Refusal, match=r"the key does not hold, line 3: refuted"):
        grade("given x\n\nclaim x == 2*x", {"s": ""})


def test_a_students_mistake_is_shown_and_the_rest_still_counts() -> None:
    paper = grade(KEY, {"s": "clam 3\nclaim sum(p) == 1"}).papers[0]
    assert [m.line for m in paper.mistakes] == [1]
    assert paper.points == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.derive").write_text(KEY, encoding="utf-8")
    (tmp_path / "ada.derive").write_text("claim dJ/dW == x.T @ (p - y)\nclaim sum(p) == 1\n", encoding="utf-8")
    (tmp_path / "bo.derive").write_text("claim dJ/dW == (p - y) @ x.T\n", encoding="utf-8")
    (tmp_path / "good.derive").write_text("given x: n\nclaim norm(x)**2 == x @ x\n", encoding="utf-8")
    (tmp_path / "bad.derive").write_text("given x: n\nclaim norm(x) == x @ x\n", encoding="utf-8")
    return tmp_path


def test_grading_writes_a_table_a_csv_and_a_page_for_each_student(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(folder / "ada.derive"), str(folder / "bo.derive")]
    assert run_check(files, grade=True, key=str(folder / "key.derive"), html=str(folder / "out")) == 0
    assert "ada" in capsys.readouterr().out
    rows = list(csv.reader(io.StringIO((folder / "out" / "grades.csv").read_text(encoding="utf-8"))))
    assert rows[0] == ["student", "dJ/dW", "dJ/dx", "sum(p)", "points", "out of"]
    assert rows[1] == ["ada", "right", "missing", "right", "2", "3"]
    page = (folder / "out" / "bo.html").read_text(encoding="utf-8")
    assert "0 of 3 points" in page
    assert "Hint:" in page
    assert 'href="bo.html"' in (folder / "out" / "index.html").read_text(encoding="utf-8")


def test_grading_writes_no_files_unasked(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = set(folder.rglob("*"))
    assert run_check(["ada.derive"], grade=True, key="key.derive") == 0
    assert set(folder.rglob("*")) == before
    assert "--html FOLDER" in capsys.readouterr().out


@pytest.mark.parametrize("width", [20, 60, 100])
def test_the_table_of_a_class_fits_any_width(
    folder: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    files = [str(folder / "ada.derive"), str(folder / "bo.derive")]
    run_check(files, grade=True, key=str(folder / "key.derive"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:4])) <= width
    assert lines[2].split() == (["ada", "✓–✓", "2/3"] if width == 20 else ["ada", "✓", "–", "✓", "2/3"])


def test_the_exit_code_is_zero_only_when_all_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_check([str(folder / "good.derive")]) == 0
    assert run_check([str(folder / "bad.derive")]) == 1
    assert run_check([str(folder / "good.derive"), str(folder / "bad.derive")]) == 1
    out = capsys.readouterr().out
    assert "counterexample" in out


def test_json_is_one_document_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_check([str(folder / "bad.derive")], json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["claims"][0]["line"] == 2


def test_several_files_say_which_claim_is_whose(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / "good.derive"), str(folder / "bad.derive")]
    run_check(files, json=True)
    document = json.loads(capsys.readouterr().out)
    assert [claim["file"] for claim in document["claims"]] == files


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ([], [], "Missing argument"),
        (["nowhere.derive"], [], "there is no file nowhere.derive"),
        (["x"], ["--key", "k"], "--key is for grading"),
        (["x"], ["--grade"], "grading needs a key"),
    ],
)
def test_a_wrong_call_ends_with_one_line_and_code_2(
    lmlab: Callable[..., tuple[int, str, str]], files: list[str], options: list[str], message: str
) -> None:
    code, _, error = lmlab("check", *files, *options)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_the_sheet_page_shows_formula_verdict_and_hint_and_escapes_the_text(folder: Path) -> None:
    source = folder / "sheet.derive"
    source.write_text("given x: n  # <script>alert(1)</script>\nclaim sum(x**2) == 2 * x @ x\n", encoding="utf-8")
    assert run_check([str(source)], html=str(folder / "sheet.html")) == 1
    page = (folder / "sheet.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "refuted" in page
    assert "factor" in page
    assert "<script>" not in page


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("given x\nclaim x + x == 2*x"))
    assert run_check(["-"]) == 0
    assert "1 of 1 hold" in capsys.readouterr().out


def test_an_answer_under_a_condition_of_its_own_does_not_count() -> None:
    book = grade("given x: n\nlet J = sum(abs(x))\nclaim dJ/dx == sign(x)", {"a": "claim dJ/dx == ones(n) where x > 0"})
    (answer,) = book.papers[0].answers
    assert answer.mark == "wrong"
    assert answer.report is not None
    assert "the question has no such condition" in answer.report.reason


def test_a_stray_byte_in_one_answer_spoils_its_own_line_alone(folder: Path) -> None:
    (folder / "key.derive").write_text(KEY, encoding="utf-8")
    (folder / "latin.derive").write_bytes(b"# r\xe9ponse\nclaim sum(p) == 1\n")
    (folder / "junk.derive").write_bytes(b"\xff\xfe\x00junk")
    files = [str(folder / "latin.derive"), str(folder / "junk.derive")]
    assert run_check(files, grade=True, key=str(folder / "key.derive"), html=str(folder / "out")) == 0
    rows = list(csv.reader(io.StringIO((folder / "out" / "grades.csv").read_text(encoding="utf-8"))))
    assert [row[-2] for row in rows[1:]] == ["1", "0"]
