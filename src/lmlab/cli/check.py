"""`lmlab check`: your own derivations, checked; a class of them, graded. Nothing heavy is imported until it runs."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from lmlab.checker.sheets.grade import GradeBook
    from lmlab.checker.sheets.report import ClaimReport, Report

COLOURS = {"proved": "green", "supported": "green", "refuted": "red", "invalid": "yellow"}
MARKS = {"proved": "✓", "supported": "✓", "refuted": "✗", "invalid": "!"}
MAX_BYTES = 1_000_000


def run_check(
    files: Sequence[str],
    *,
    json: bool = False,
    html: str | None = None,
    grade: bool = False,
    key: str | None = None,
    seed: int = 0,
) -> int:
    """Check sheets (`-` is standard input), or grade answers against a key. Returns the exit code.

    0: every claim holds (when grading: the class was graded). 1: some claim does not. 2: the call itself was wrong,
    with one line on standard error that says what would be right. With `json`, standard output is one JSON document.
    """
    from lmlab.checker.limits import Refusal

    try:
        if not files:
            raise Refusal("name a file with claims, or - for standard input")
        if key is not None and not grade:
            raise Refusal("--key is for grading; write lmlab check --grade ANSWERS... --key KEY")
        if grade:
            return _grade(files, json, html, key, seed)
        texts = {name: read_text(name) for name in files}
        return _check(texts, json, html, seed)
    except Refusal as refusal:
        print(f"lmlab: {refusal}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"lmlab: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 2


def read_text(name: str, lenient: bool = False) -> str:
    """The text of a file, or of standard input for `-`. `lenient`: bytes that are no UTF-8 spoil their own line alone."""
    from lmlab.checker.limits import Refusal

    if name == "-":
        return sys.stdin.read(MAX_BYTES)
    path = Path(name)
    if not path.is_file():
        raise Refusal(f"there is no file {name}")
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise Refusal(f"{name} has {len(data)} bytes; at most {MAX_BYTES} are read")
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16", errors="replace" if lenient else "strict")
        return data.decode("utf-8-sig", errors="replace" if lenient else "strict")
    except UnicodeDecodeError:
        raise Refusal(f"{name} is not UTF-8 text") from None


def _check(texts: dict[str, str], json: bool, html: str | None, seed: int) -> int:
    from lmlab.checker.sheets.check import check_text

    reports = {name: check_text(text, seed) for name, text in texts.items()}
    if html is not None:
        _write_sheets(texts, reports, Path(html))
    if json:
        print(_as_json(reports))
    else:
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        for name, report in reports.items():
            _print_report(console, name if len(reports) > 1 else "", report)
    return 0 if all(report.ok for report in reports.values()) else 1


def _as_json(reports: dict[str, Report]) -> str:
    """One document. With several files each claim also says which file it is from."""
    if len(reports) == 1:
        return next(iter(reports.values())).to_json()
    claims = [{"file": name} | claim.to_dict() for name, report in reports.items() for claim in report.claims]
    ok = all(report.ok for report in reports.values())
    return json_module.dumps({"claims": claims, "ok": ok}, ensure_ascii=False, indent=2)


def _write_sheets(texts: dict[str, str], reports: dict[str, Report], target: Path) -> None:
    """One page for one sheet; a folder of pages for several."""
    from lmlab.checker.sheets.pages import sheet_page
    from lmlab.text.files import write_atomically

    pages = {name: sheet_page(_title(name), texts[name], report) for name, report in reports.items()}
    if len(pages) == 1:
        write_atomically(target, next(iter(pages.values())).encode())
        return
    for name, page in zip(unique_names(pages), pages.values(), strict=True):
        write_atomically(target / f"{name}.html", page.encode())


def _title(name: str) -> str:
    return "standard input" if name == "-" else Path(name).name


def unique_names(files: Sequence[str] | dict[str, str]) -> list[str]:
    """File names without their endings, made different where two are the same."""
    names: list[str] = []
    for file in files:
        stem = Path(file).stem if file != "-" else "stdin"
        name, count = stem, 2
        while name in names:
            name, count = f"{stem}-{count}", count + 1
        names.append(name)
    return names


def _print_report(console: Console, name: str, report: Report) -> None:
    from rich.markup import escape

    if name:
        console.print(f"[bold]{escape(name)}[/bold]")
    for claim in report.claims:
        _print_claim(console, claim)
    held = sum(claim.holds for claim in report.claims)
    if report.claims:
        colour = "green" if report.ok else "red"
        console.print(f"[{colour}]{held} of {len(report.claims)} hold[/{colour}]")
    else:
        console.print(
            "[yellow]there is no claim to check; write one like: claim sigmoid(-x) == 1 - sigmoid(x)[/yellow]"
        )


def _print_claim(console: Console, claim: ClaimReport) -> None:
    from rich.markup import escape

    colour = COLOURS[claim.verdict]
    console.print(
        f"[{colour}]{MARKS[claim.verdict]} {claim.verdict:<9}[/{colour}] "
        f"[dim]line {claim.line}[/dim]  {escape(claim.claim)}"
    )
    console.print(f"             [dim]{escape(claim.reason)}[/dim]")
    if claim.counterexample is not None:
        console.print(f"             counterexample: {escape(str(claim.counterexample))}")
    if claim.hint and not claim.holds:
        console.print(f"             [cyan]hint: {escape(claim.hint)}[/cyan]")


def _grade(files: Sequence[str], json: bool, html: str | None, key: str | None, seed: int) -> int:
    from lmlab.checker.limits import Refusal
    from lmlab.checker.sheets.grade import class_page, grade, student_page
    from lmlab.text.files import write_atomically

    if key is None:
        raise Refusal("grading needs a key; write lmlab check --grade ANSWERS... --key KEY")
    names = unique_names(list(files))
    answers = {name: read_text(file, lenient=True) for name, file in zip(names, files, strict=True)}
    book = grade(read_text(key), answers, seed)
    folder = Path(html or "grades")
    links = {paper.student: f"{paper.student}.html" for paper in book.papers}
    for paper in book.papers:
        write_atomically(folder / links[paper.student], student_page(paper, len(book.questions)).encode())
    write_atomically(folder / "index.html", class_page(book, links).encode())
    write_atomically(folder / "grades.csv", book.to_csv().encode())
    if json:
        print(json_module.dumps(book.to_dict(), ensure_ascii=False, indent=2))
    else:
        _print_grades(book, folder)
    return 0


def _print_grades(book: GradeBook, folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from lmlab.checker.sheets.grade import MARKS as GRADE_MARKS

    table = Table()
    table.add_column("student")
    for question in book.questions:
        table.add_column(question.label, justify="center")
    table.add_column("points", justify="right")
    for paper in book.papers:
        marks = [GRADE_MARKS[answer.mark] for answer in paper.answers]
        table.add_row(paper.student, *marks, f"{paper.points}/{len(book.questions)}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"pages and grades.csv are in {folder}")


def command(
    files: Annotated[list[str], typer.Argument(help="Files with claims and derivations; - is standard input.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else.")] = False,
    html: Annotated[str | None, typer.Option(help="Write a graded page here (a folder, for several files).")] = None,
    grade: Annotated[bool, typer.Option("--grade", help="Grade the files as answers against --key.")] = False,
    key: Annotated[str | None, typer.Option(help="The key: the setting and the right answers.")] = None,
    seed: Annotated[int, typer.Option(help="Draws other random points.")] = 0,
) -> None:
    """Check your own derivations: which line is wrong, a counterexample, and the likely slip."""
    raise typer.Exit(run_check(files, json=json, html=html, grade=grade, key=key, seed=seed))
