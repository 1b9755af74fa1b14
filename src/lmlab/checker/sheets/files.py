"""Sheets and answers as files: read whatever editor wrote them, and named so that no two are alike."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from lmlab.config import Mistake

MAX_BYTES = 1_000_000


def read_sheet(path: str | Path, *, lenient: bool = False) -> str:
    """The text of a file, or of standard input for "-". lenient: bytes that are no UTF-8 spoil their own line alone."""
    path = Path(path)
    if str(path) == "-":
        return sys.stdin.read(MAX_BYTES)
    if not path.is_file():
        raise Mistake(f"there is no file {path}")
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise Mistake(f"{path} has {len(data)} bytes; at most {MAX_BYTES} are read")
    coding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(coding, errors="replace" if lenient else "strict")
    except UnicodeDecodeError:
        raise Mistake(f"{path} is not UTF-8 text") from None


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
