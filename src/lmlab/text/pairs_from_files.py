"""Pairs of sentences out of files that were made for something else: interface translations (.mo) and Bibles (SQLite).

What comes out is a TSV file with a header of languages, one pair a line; nothing is executed.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

Made = Iterable[tuple[str, Iterable[bytes]]]  # name and content of each file

LITTLE, BIG = b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"  # how a .mo file begins

VERSES = "SELECT book_id, chapter_number, verse_number, text FROM verses ORDER BY 1, 2, 3"


def interface_messages(language: str) -> Callable[[Mapping[str, bytes]], Made]:
    """What makes a table of English messages and their translations from the .mo files of a wheel."""

    def made(members: Mapping[str, bytes]) -> Made:
        pairs: dict[str, str] = {}
        for name in sorted(members):
            for english, translated in messages(members[name]):
                pairs.setdefault(english, translated)
        yield f"en-{language}.tsv", table(["en", language], pairs.items())

    return made


def messages(content: bytes) -> Iterator[tuple[str, str]]:
    """Messages of a .mo file with their translations, each on one line; of a plural its first form, contexts left out."""
    order = {LITTLE: "<", BIG: ">"}[content[:4]]
    count, originals, translations = struct.unpack(f"{order}3I", content[8:20])
    for i in range(count):
        texts = []
        for where in (originals, translations):
            size, start = struct.unpack_from(f"{order}2I", content, where + 8 * i)
            text = content[start : start + size].decode().split("\0")[0]
            texts.append(" ".join(text.rpartition("\x04")[2].split()))
        if all(texts):
            yield texts[0], texts[1]


def two_bibles(members: Mapping[str, bytes]) -> Made:
    """King James to American Standard English, verse by verse, where both have the verse."""
    verses = {Path(name).stem.removeprefix("bible_"): _verses(content) for name, content in members.items()}
    both = [(text, verses["asv"][place]) for place, text in verses["kjv"].items() if place in verses["asv"]]
    yield "kjv-asv.tsv", table(["kjv", "asv"], both)


def _verses(content: bytes) -> dict[tuple[int, int, int], str]:
    with sqlite3.connect(":memory:") as database:
        database.deserialize(content)
        found = {tuple(place): " ".join(text.split()) for *place, text in database.execute(VERSES)}
    database.close()
    return {place: text for place, text in found.items() if text}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """As TSV."""
    for row in [header, *rows]:
        yield ("\t".join(row) + "\n").encode()
