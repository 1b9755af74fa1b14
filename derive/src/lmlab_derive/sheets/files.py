"""Sheets and answers as files: read whatever editor wrote them, and named so that no two are alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from lmlab_derive.shared.mistakes import Mistake

MAX_BYTES = 1_000_000


def read_sheet(path: str | Path, *, lenient: bool = False) -> str:
    """The text of a file, or of standard input for "-".

    lenient: bytes that are no UTF-8 spoil their own line alone, and a file that is too long is read as far as it may be.
    """
    path = Path(path)
    if str(path) == "-":
        name, data = "standard input", sys.stdin.buffer.read(MAX_BYTES + 1)
    elif path.is_file():
        with path.open("rb") as file:
            name, data = str(path), file.read(MAX_BYTES + 1)
    else:
        raise Mistake(
            f"there is no file {path}; name one with a claim on a line, such as: claim 2*x == x + x",
            code="sheet-not-found",
        )
    if len(data) > MAX_BYTES and not lenient:
        raise Mistake(
            f"{name} has more than {MAX_BYTES} bytes, and no more are read; divide it", code="sheet-too-large"
        )
    coding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(coding, errors="replace" if lenient else "strict")
    except UnicodeDecodeError:
        raise Mistake(f"{name} is not UTF-8 text; save it as UTF-8", code="sheet-not-utf8") from None


def unique_names(files: Iterable[str | Path]) -> list[str]:
    """File names without their endings, made different where two are the same."""
    names: list[str] = []
    for file in files:
        stem = Path(file).stem if str(file) != "-" else "stdin"
        name, count = stem, 2
        while name in names:
            name, count = f"{stem}-{count}", count + 1
        names.append(name)
    return names


def submissions(paths: Iterable[str | Path], without: Iterable[str | Path] = ()) -> dict[str, str]:
    """The sheets of a class by student: of files, and of folders with a file or a folder for each student.

    A student is called after the file, or the folder; several files in it are read one after the other. without: files and
    folders that are no submissions, such as the key.
    """
    left_out = {Path(path).resolve() for path in without}

    def inside(folder: Path) -> list[Path]:
        found = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
        return [path for path in found if path.resolve() not in left_out]

    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir() and not (items := inside(path)):
            raise Mistake(f"there are no submissions in {path}", code="no-submissions")
        found += items if path.is_dir() else [path]
    texts = []
    for path in found:
        files = (
            [f for f in sorted(path.rglob("*")) if f.is_file() and not f.name.startswith(".")]
            if path.is_dir()
            else [path]
        )
        texts.append("\n".join(read_sheet(file, lenient=True) for file in files))
    return dict(zip(unique_names(found), texts, strict=True))
