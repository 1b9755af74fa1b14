"""Grade a class and print the table: `derive grade` and `lmlab check --grade`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmlab_derive.command.json_output import print_json


def grade_files(
    sheets: Sequence[str], *, key: str, json: bool = False, out: Path | None = None, hints: str = "where", seed: int = 0
) -> int:
    """Grade sheets (files, or folders of them) against a key and print the table; 0."""
    from lmlab_derive.command.show_grades import print_grades
    from lmlab_derive.verbs import grade

    book = grade(sheets, key=key, out=out, hints=hints, seed=seed)  # type: ignore[arg-type]  # `grade` refuses others
    if json:
        print_json(book.to_dict())
    else:
        print_grades(book, out)
    return 0
