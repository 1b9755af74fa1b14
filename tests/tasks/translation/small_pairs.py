"""A small table of pairs, and the size of a translator that learns it in a moment."""

from __future__ import annotations

from pathlib import Path

from lmlab.text import written_out

TINY = {"layers": 1, "width": 16, "heads": 2}


def write_table(path: Path, rows: int = 60, seed: int = 0) -> Path:
    sentences = [written_out.LANGUAGES, *written_out.sentences(rows, seed)]
    path.write_text("".join("\t".join(row) + "\n" for row in sentences), encoding="utf-8")
    return path
