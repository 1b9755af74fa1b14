"""`lmlab check`: your own derivations, checked; a class of them, graded. Nothing heavy is imported until it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.config import Mistake, checked_seed

LOOK_S = 0.3  # between two looks at the files that are watched


def command(
    files: Annotated[
        list[str],
        typer.Argument(help="Files with claims and derivations; - is standard input. To grade: folders, too."),
    ],
    json: options.Json = False,
    html: Annotated[
        str | None, typer.Option(help="Write a graded page here (a folder, for several files or a class).")
    ] = None,
    grade: Annotated[bool, typer.Option("--grade", help="Grade the files as answers against --key.")] = False,
    key: Annotated[str | None, typer.Option(help="The key: the setting, the questions and right answers.")] = None,
    out: Annotated[Path | None, typer.Option(help="Grading: a folder for pages and grades.csv.")] = None,
    hints: Annotated[str, typer.Option(help="Grading: what students' pages tell: none, where or what.")] = "where",
    seed: Annotated[int, typer.Option(callback=checked_seed, help="Draws other random points.")] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Check again whenever a file is saved, until ctrl-C.")] = False,
) -> None:
    """Check your own derivations: which line is wrong, a counterexample, and the likely slip."""
    if watch:
        raise typer.Exit(run_watch(files, html=html, seed=seed, refused=json or grade or key is not None))
    raise typer.Exit(run_check(files, json=json, html=html, grade=grade, key=key, out=out, hints=hints, seed=seed))


def run_check(
    files: Sequence[str],
    *,
    json: bool = False,
    html: str | None = None,
    grade: bool = False,
    key: str | None = None,
    out: Path | None = None,
    hints: str = "where",
    seed: int = 0,
) -> int:
    """Check sheets, or grade answers against a key; 0 if every claim holds (or the class was graded), else 1."""
    if not files:
        raise Mistake("name a file with claims, or - for standard input")
    if grade != (key is not None):
        asked = "{key} is for grading" if key is not None else "grading needs a key"
        raise Mistake(f"{asked}; write lmlab check --grade ANSWERS... --key KEY", key=None)
    if key is not None:
        return _grade(files, json, out or (Path(html) if html else None), key, hints, seed)
    if out is not None or hints != "where":
        raise Mistake(
            "{out} and {hints} are for grading; a page of a sheet is written by {html}",
            out=None,
            hints=None,
            html="PAGE",
        )
    return _check(files, json, html, seed)


def run_watch(files: Sequence[str], *, html: str | None, seed: int, refused: bool) -> int:
    """Check now and whenever a file is saved, until interrupted; 0 if all held the last time."""
    if refused or not files or "-" in files:
        raise Mistake(
            "{watch} is for files that are checked, without {json} and {grade}", watch=None, json=None, grade=None
        )
    seen: list[float] = []
    code = 0
    try:
        while True:
            saved = [Path(file).stat().st_mtime if Path(file).is_file() else 0.0 for file in files]
            if saved != seen:
                code, seen = _check(files, False, html, seed), saved
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        return code


def _check(files: Sequence[str], json: bool, html: str | None, seed: int) -> int:
    from lmlab import face
    from lmlab.checker.sheets.files import read_sheet, unique_names
    from lmlab.cli.show.claims import print_report

    for file in files:
        if file != "-":
            read_sheet(file)  # a file that is not there is refused before any other is checked
    pages: list[Path | None] = [None] * len(files)
    if html is not None:
        several = len(files) > 1
        pages = [Path(html) / f"{name}.html" if several else Path(html) for name in unique_names(files)]
    reports = [face.check(Path(file), html=page, seed=seed) for file, page in zip(files, pages, strict=True)]
    named = list(zip(files, reports, strict=True))
    ok = all(report.ok for report in reports)
    if json and len(files) == 1:
        options.print_json(reports[0].to_dict())
    elif json:  # each claim also says which file it is from
        claims = [{"file": file} | claim.to_dict() for file, report in named for claim in report.claims]
        options.print_json({"claims": claims, "ok": ok})
    else:
        for file, report in named:
            print_report(file if len(files) > 1 else "", report)
    return 0 if ok else 1


def _grade(files: Sequence[str], json: bool, folder: Path | None, key: str, hints: str, seed: int) -> int:
    from lmlab import face
    from lmlab.cli.show.grades import print_grades

    book = face.grade(files, key=key, out=folder, hints=hints, seed=seed)  # type: ignore[arg-type]  # the face looks
    if json:
        options.print_json(book.to_dict())
    else:
        print_grades(book, folder)
    return 0
