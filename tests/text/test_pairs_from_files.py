"""Pairs out of .mo files and SQLite Bibles, as other programs read these."""

from __future__ import annotations

import gettext
import io
import sqlite3
import struct

from lmlab.text import pairs_from_files

MESSAGES = {
    "": "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n > 1;\n",
    "Open": "Öffnen",
    "menu\x04Close": "Schließen",
    "one\ttab\nand line": "ein Tab  und Zeile",
    "%d file\0%d files": "%d Datei\0%d Dateien",
    "Untranslated": "",
}


def mo_file(messages: dict[str, str], order: str = "<") -> bytes:
    """As msgfmt writes it."""
    keys = sorted(messages, key=str.encode)
    texts = [[key.encode() for key in keys], [messages[key].encode() for key in keys]]
    tables, strings, at = b"", b"", 28 + 16 * len(keys)
    for side in texts:
        for text in side:
            tables += struct.pack(f"{order}2I", len(text), at + len(strings))
            strings += text + b"\0"
    head = struct.pack(f"{order}7I", 0x950412DE, 0, len(keys), 28, 28 + 8 * len(keys), 0, 0)
    return head + tables + strings


def test_messages_are_those_that_gettext_reads() -> None:
    theirs = gettext.GNUTranslations(io.BytesIO(mo_file(MESSAGES)))
    found = dict(pairs_from_files.messages(mo_file(MESSAGES)))
    assert found["Open"] == theirs.gettext("Open") == "Öffnen"
    assert found["Close"] == theirs.pgettext("menu", "Close")
    assert found["%d file"] == theirs.ngettext("%d file", "%d files", 1)
    assert found["one tab and line"] == "ein Tab und Zeile"
    assert set(found) == {"Open", "Close", "%d file", "one tab and line", "Content-Type:"} - {"Content-Type:"}
    assert dict(pairs_from_files.messages(mo_file(MESSAGES, ">"))) == found


def test_the_first_translation_of_a_message_is_taken() -> None:
    files = {"b.mo": mo_file({"Open": "Aufmachen"}), "a.mo": mo_file({"Open": "Öffnen", "No": "Nein"})}
    ((name, lines),) = pairs_from_files.interface_messages("de")(files)
    assert name == "en-de.tsv"
    assert b"".join(lines).decode() == "en\tde\nNo\tNein\nOpen\tÖffnen\n"


def bible(verses: list[tuple[int, int, int, str]]) -> bytes:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE verses (book_id, chapter_number, verse_number, text)")
    database.executemany("INSERT INTO verses VALUES (?, ?, ?, ?)", verses)
    database.commit()
    content = database.serialize()
    database.close()
    return content


def test_verses_are_joined_where_both_have_them() -> None:
    kjv = bible([(1, 1, 2, "second"), (1, 1, 1, "first\n line"), (2, 1, 1, "only here")])
    asv = bible([(1, 1, 1, "erst"), (1, 1, 2, "zweit"), (1, 2, 1, "only there")])
    ((name, lines),) = pairs_from_files.two_bibles({"bible_kjv.sqlite": kjv, "bible_asv.sqlite": asv})
    assert name == "kjv-asv.tsv"
    assert b"".join(lines).decode() == "kjv\tasv\nfirst line\terst\nsecond\tzweit\n"
