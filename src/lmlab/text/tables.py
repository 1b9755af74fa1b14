"""Named tables of labelled texts, made from named corpora: something to learn labels from at once.

authors   paragraphs of the books of `gutenberg`, labelled with who wrote them
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from lmlab.disk.files import cache_folder, write_atomically
from lmlab.text import sources

NAMES = ("authors",)
SHORTEST, MOST, FEWEST = 80, 1000, 200  # characters of a paragraph; paragraphs of an author


def named_table(name: str) -> Path:
    """The file of a named table, written into the cache if it is not there."""
    assert name in NAMES, name
    path = cache_folder() / "tables" / f"{name}-1.tsv"
    if not path.exists():
        write_atomically(path, _authors(sources.get("gutenberg")).encode())
    return path


def _authors(books: list[Path]) -> str:
    """One row a paragraph. Of an author with many, as many as of the others, evenly spread over the books."""
    by_author: dict[str, list[str]] = {}
    for book in sorted(books):
        author = book.stem.partition("-")[0]
        text = book.read_text(encoding="utf-8", errors="replace")
        lines = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))
        by_author.setdefault(author, []).extend(line for line in lines if len(line) >= SHORTEST)
    table = io.StringIO()
    table.write("text\tlabel\n")
    for author, paragraphs in sorted(by_author.items()):
        if len(paragraphs) < FEWEST:
            continue
        step = max(1.0, len(paragraphs) / MOST)
        for i in range(min(MOST, len(paragraphs))):
            table.write(f"{paragraphs[int(i * step)]}\t{author}\n")
    return table.getvalue()
