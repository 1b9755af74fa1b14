"""The command line of the checker: sheets and classes, files and folders, what is written and what is refused."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab_derive.command.check import check_files
from lmlab_derive.command.grade import grade_files
from refusals import mistake

KEY = """
given x: 1, D
given W: D, K
given y: 1, K onehot
let p = softmax(x @ W)
let J = -sum(y * log(p))
question weights (3 points)
claim dJ/dW == x.T @ (p - y)
question inputs: 2 points
claim dJ/dx == (p - y) @ W.T
question total
claim sum(p) == 1
"""


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
    assert grade_files(files, key=str(folder / "key.derive"), out=folder / "out", hints="what") == 0
    assert "ada" in capsys.readouterr().out
    rows = table(folder)
    assert rows[0] == ["student", "weights", "inputs", "total", "points", "out of", "please look", "several answers"]
    assert rows[1] == ["ada", "3", "0", "1", "4", "6", "", ""]
    page = (folder / "out" / "bo.html").read_text(encoding="utf-8")
    assert "0 of 6 points" in page
    assert "Hint:" in page
    assert 'href="bo.html"' in (folder / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [20, 60, 100])
def test_the_table_of_a_class_fits_any_width(
    folder: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    files = [str(folder / "ada.derive"), str(folder / "bo.derive")]
    grade_files(files, key=str(folder / "key.derive"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:4])) <= width
    (ada,) = (line.split() for line in lines if line.startswith("ada"))
    assert ada == (["ada", "✓–✓", "4/6"] if width == 20 else ["ada", "✓", "3", "–", "0", "✓", "1", "4/6"])


def table(folder: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO((folder / "out" / "grades.csv").read_text(encoding="utf-8"))))


def test_nothing_is_written_that_was_not_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert grade_files(["ada.derive"], key="key.derive") == 0
    assert sorted(folder.iterdir()) == before
    assert "nothing was written; --out FOLDER writes" in capsys.readouterr().out


def test_a_folder_holds_a_file_or_a_folder_for_each_student(folder: Path) -> None:
    class_ = folder / "class"
    (class_ / "Cleo K").mkdir(parents=True)
    (class_ / "Cleo K" / "1.derive").write_text("claim sum(p) == 1\n", encoding="utf-8")
    (class_ / "Cleo K" / "2.derive").write_text("claim dJ/dx == (p - y) @ W.T\n", encoding="utf-8")
    (class_ / "empty").mkdir()
    (class_ / "dan.derive").write_text("claim sum(p) == 1\n", encoding="utf-8")
    (class_ / ".DS_Store").write_bytes(b"\0")
    (class_ / "key.derive").write_text(KEY, encoding="utf-8")
    assert grade_files([str(class_)], key=str(class_ / "key.derive"), out=folder / "out") == 0
    assert [(row[0], row[-4]) for row in table(folder)[1:]] == [("Cleo K", "3"), ("dan", "1"), ("empty", "0")]
    assert (folder / "out" / "Cleo_K.html").exists()


def test_a_student_may_be_called_index_or_a_formula(folder: Path) -> None:
    for name in ("index", "=1+2", "a&b"):
        (folder / f"{name}.derive").write_text("claim sum(p) == 1\n", encoding="utf-8")
    files = [str(folder / f"{name}.derive") for name in ("index", "=1+2", "a&b")]
    assert grade_files(files, key=str(folder / "key.derive"), out=folder / "out") == 0
    assert [row[0] for row in table(folder)[1:]] == ["index", "'=1+2", "a&b"]
    assert "<h1>Grades</h1>" in (folder / "out" / "index.html").read_text(encoding="utf-8")
    assert "<h1>index</h1>" in (folder / "out" / "index-2.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("hints", "told"), [("none", 0), ("where", 1), ("what", 2)])
def test_pages_tell_as_much_as_was_asked_for(folder: Path, hints: str, told: int) -> None:
    (folder / "bo.derive").write_text("claim dJ/dW == x.T @ (y - p)\n", encoding="utf-8")
    grade_files([str(folder / "bo.derive")], key=str(folder / "key.derive"), out=folder / "out", hints=hints)
    page = (folder / "out" / "bo.html").read_text(encoding="utf-8")
    assert ("left side" in page) == (told > 0)
    assert ("the repaired formula" in page) == (told > 1)


def test_the_exit_code_is_zero_only_when_all_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_files([str(folder / "good.derive")]) == 0
    assert check_files([str(folder / "bad.derive")]) == 1
    assert check_files([str(folder / "good.derive"), str(folder / "bad.derive")]) == 1
    out = capsys.readouterr().out
    assert "counterexample" in out


def test_json_is_one_document_and_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_files([str(folder / "bad.derive")], json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["claims"][0]["line"] == 2


def test_several_files_say_which_claim_is_whose(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / "good.derive"), str(folder / "bad.derive")]
    check_files(files, json=True)
    document = json.loads(capsys.readouterr().out)
    assert [claim["file"] for claim in document["claims"]] == files


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "Missing argument"),
        (["check", "nowhere.derive"], "there is no file nowhere.derive"),
        (["check", "x", "--seed", "-1"], "--seed is a whole number"),
        (["check", "x", "--html", "page.txt"], "--html is a page"),
        (["check", "-", "--watch"], "--watch is for files"),
        (["check", "x", "--watch", "--json"], "leave --json out"),
        (["grade", "key.derive"], "Missing argument"),
        (["grade", "k", "x", "--hints", "all"], "--hints is none, where or what"),
        (["grade", "k", "x"], "there is no file"),
        (["grade", "k", ".", "--out", "."], "--out is the folder of"),
        (["chek"], "No such command"),
    ],
)
def test_a_wrong_call_ends_with_one_line_and_code_2(
    derive: Callable[..., tuple[int, str, str]], words: list[str], message: str
) -> None:
    (Path.cwd() / "x").write_text("claim 1 == 1") if "page.txt" in words else None
    code, out, error = derive(*words)
    assert (code, out) == (2, "")
    assert message in error
    assert error.startswith("derive: ")
    assert error.count("\n") == 1


def test_a_fault_of_the_checker_is_said_to_be_one(
    derive: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object, **named: object) -> int:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("lmlab_derive.command.app.check_files", broken)
    code, _, error = derive("check", "x")
    assert code == 1
    assert "this is a bug in derive: ZeroDivisionError: planted" in error


def test_the_command_checks_and_grades(folder: Path, derive: Callable[..., tuple[int, str, str]]) -> None:
    assert derive("check", folder / "good.derive")[0] == 0
    assert derive("check", folder / "bad.derive")[0] == 1
    code, out, _ = derive("grade", folder / "key.derive", folder / "ada.derive", "--json")
    assert code == 0
    assert "ada" in json.dumps(json.loads(out))


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from lmlab_derive.command.app import main; sys.argv = ['derive', 'check', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "sys.exit(bool({'numpy', 'mpmath', 'torch', 'lmlab', 'sympy', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_sheet_page_shows_formula_verdict_and_hint_and_escapes_the_text(folder: Path) -> None:
    source = folder / "sheet.derive"
    source.write_text("given x: n  # <script>alert(1)</script>\nclaim sum(x**2) == 2 * x @ x\n", encoding="utf-8")
    assert check_files([str(source)], html=str(folder / "sheet.html")) == 1
    page = (folder / "sheet.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "refuted" in page
    assert "factor" in page
    assert "<script>" not in page


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pipe(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))

    pipe(b"\xef\xbb\xbfgiven x\nclaim x + x == 2*x")
    assert check_files(["-"]) == 0
    assert "1 of 1 hold" in capsys.readouterr().out
    pipe(b"claim caf\xe9 == 1")
    with mistake("sheet-not-utf8", "standard input"):
        check_files(["-"])
    pipe(b"#" * 1_000_001)
    with mistake("sheet-too-large", "standard input"):
        check_files(["-"])


def test_a_stray_byte_in_one_answer_spoils_its_own_line_alone(folder: Path) -> None:
    (folder / "key.derive").write_text(KEY, encoding="utf-8")
    (folder / "latin.derive").write_bytes(b"# r\xe9ponse\nclaim sum(p) == 1\n")
    (folder / "junk.derive").write_bytes(b"\xff\xfe\x00junk")
    files = [str(folder / "latin.derive"), str(folder / "junk.derive")]
    assert grade_files(files, key=str(folder / "key.derive"), out=folder / "out") == 0
    assert [(row[0], row[-4], row[-2]) for row in table(folder)[1:]] == [
        ("latin", "1", ""),
        ("junk", "0", "weights; inputs; total"),
    ]
