"""`check` and `grade` as Python functions, which `lmlab.check` and `lmlab.grade` are: a sheet checked, a class graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab_derive.shared.mistakes import Mistake

if TYPE_CHECKING:
    from lmlab_derive.grading.book import GradeBook
    from lmlab_derive.grading.pages import Hints
    from lmlab_derive.sheets.report import Report


def check(text: str | Path, *, html: str | Path | None = None, seed: int = 0) -> Report:
    """Check every claim and derivation of a text, or (a Path) of a file. html: where to write a graded page."""
    from lmlab_derive.sheets.check import check_text
    from lmlab_derive.sheets.files import read_sheet

    if html is not None:
        from lmlab_derive.shared.html import refuse_names

        refuse_names(html=html)
    title, sheet = ("Derivations", text) if isinstance(text, str) else (text.name, read_sheet(text))
    if title == "-":
        title = "standard input"
    report = check_text(sheet, seed)
    if html is not None:
        from lmlab_derive.shared.html import write
        from lmlab_derive.sheets.pages import sheet_page

        write(Path(html), sheet_page(title, sheet, report))
    return report


def grade(
    answers: Sequence[str | Path] | Mapping[str, str],
    *,
    key: str | Path,
    out: str | Path | None = None,
    hints: Hints = "where",
    seed: int = 0,
) -> GradeBook:
    """Grade a class against a key. answers: files, or folders of them, or the students' texts by name; key: a file.

    out: a folder for a page a student, the table of the class and grades.csv. hints: what the students' pages tell of a
    wrong answer: "none", "where" (the wrong step and a counterexample) or "what" (the likely slip, too).
    """
    from lmlab_derive.grading import book, pages
    from lmlab_derive.sheets.files import read_sheet, submissions

    if hints not in pages.HINTS:
        raise Mistake(f"{{hints}} is none, where or what; got {hints!r}", code="hints-unknown", hints=None)
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise Mistake(
            f"{{out}} names a folder to write pages into; {out} is a file", code="pages-not-a-folder", out=None
        )
    if not isinstance(answers, Mapping):
        if out is not None and any(Path(out).resolve() == Path(path).resolve() for path in answers):
            raise Mistake(
                f"{{out}} is the folder of the submissions, {out}; choose another one",
                code="pages-among-submissions",
                out=None,
            )
        answers = submissions(answers, without=[key, *([] if out is None else [out])])
    graded = book.grade(read_sheet(key), answers, seed)
    if out is not None:
        pages.write_class(graded, Path(out), hints)
    return graded
