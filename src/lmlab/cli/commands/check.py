"""`lmlab check`: checks derivations, or grades the answers of a class. Heavy modules are imported only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake, checked_seed
from lmlab_derive.command.check import check_files, watch_files
from lmlab_derive.command.grade import grade_files

SECTION: Section = "Mathematics"


def command(
    files: Annotated[
        list[str],
        typer.Argument(help="Files with claims and derivations; - is standard input. With --grade, folders too."),
    ],
    json: options.Json = False,
    html: Annotated[
        str | None, typer.Option(help="Write a page with the verdicts here (a folder for several files or a class).")
    ] = None,
    grade: Annotated[bool, typer.Option("--grade", help="Grade the files as answers against --key.")] = False,
    key: Annotated[str | None, typer.Option(help="The key: the setting, the questions and right answers.")] = None,
    out: Annotated[Path | None, typer.Option(help="Grading: a folder for pages and grades.csv.")] = None,
    hints: Annotated[str, typer.Option(help="Grading: hints on students' pages: none, where or what.")] = "where",
    seed: Annotated[int, typer.Option(callback=checked_seed, help="Seed of the random test points.")] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Check again whenever a file is saved, until ctrl-C.")] = False,
) -> None:
    """Check your own derivations: which line is wrong, a counterexample, and the likely slip."""
    if watch:
        if json or grade or key is not None or "-" in files:
            raise Mistake(
                "{watch} is for files that are checked, without {json} and {grade}",
                code="watch-only-checks",
                watch=None,
                json=None,
                grade=None,
            )
        raise typer.Exit(watch_files(files, html=html, seed=seed))
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
    """Check files with claims, or grade answers against a key.

    Returns:
        The exit code: 0 if every claim holds or the answers were graded, else 1.
    """
    if not files:
        raise Mistake("name a file with claims, or - for standard input", code="no-claims-file")
    if grade != (key is not None):
        asked = "{key} is for grading" if key is not None else "grading needs a key"
        raise Mistake(f"{asked}; write lmlab check --grade ANSWERS... --key KEY", code="key-missing", key=None)
    if key is not None:
        folder = out or (Path(html) if html else None)
        return grade_files(files, key=key, json=json, out=folder, hints=hints, seed=seed)
    if out is not None or hints != "where":
        raise Mistake(
            "{out} and {hints} are for grading; a page of a sheet is written by {html}",
            code="option-only-grades",
            out=None,
            hints=None,
            html="PAGE",
        )
    return check_files(files, json=json, html=html, seed=seed)
