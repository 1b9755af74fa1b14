"""Texts that consist of many documents: where each begins and ends, and which part each belongs to.

    lines        a document is a line; its separator is the line break
    blank        documents are separated by blank lines; the separator is the two line breaks
    jsonl:FIELD  a document is the string FIELD of one line of JSON; a line break is counted as its separator
    files        a document is a file; the line break at its end is its separator
    none         a file is a document, and its end is not predicted

A document ends with its separator, so that the documents of a file of lines are the very bytes of the file. Where the last
document lacks a separator, it is completed in a copy. Line breaks are \\r\\n where all line breaks of the text are.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.config import Mistake, nearest
from lmlab.text.parts import Document, DocumentList, read_documents

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ("auto", "none", "lines", "blank", "jsonl:FIELD", "files")
JSON_SEPARATOR = b"\n"
HASH_RANGE = 1 << 63
SCANNED_BYTES = 1 << 26


@dataclass(frozen=True)
class DocumentRule:
    """How a text is divided into documents.

    Attributes:
        mode: one of MODES, with the name of a field for jsonl.
        separator: the bytes after each document; None: as the text has them.
    """

    mode: str
    separator: bytes | None = None


NONE = DocumentRule("none")


def parse_rule(given: str | DocumentRule) -> DocumentRule:
    """Return the rule of that name.

    Raises:
        Mistake: there is none.
    """
    if isinstance(given, DocumentRule):
        return given
    mode, _, field = str(given).partition(":")
    if given == "jsonl":
        raise Mistake(
            "jsonl needs the name of the field that holds the text, such as {documents}",
            code="documents-without-field",
            documents="jsonl:text",
        )
    if given in MODES[:-2] or given == "files" or (mode == "jsonl" and field):
        return DocumentRule(str(given))
    raise Mistake(
        f"{{documents}} is one of {', '.join(MODES)}; got {given!r}: {nearest(str(given), MODES)}",
        code="documents-unknown",
        documents=None,
    )


def divide(
    documents: Sequence[Document], rule: DocumentRule, name: str, keep: Callable[[io.BytesIO], Path]
) -> tuple[DocumentList, bytes]:
    """Divide files into documents.

    Args:
        documents: the files.
        rule: any but "auto" and "none".
        name: of the text, for messages.
        keep: writes what is no part of a file to the cache, and returns where.

    Returns:
        The documents in order, and their separator.
    """
    mode, _, field = rule.mode.partition(":")
    if mode == "jsonl":
        return _of_json(documents, field, name, keep), JSON_SEPARATOR
    if mode == "files" and len(documents) < 2:
        raise Mistake(
            f"{name} is one file, so {{documents}} files makes one document of it; name a folder, or say lines or blank",
            code="documents-of-one-file",
            documents=None,
        )
    line_break = _line_break(documents)
    natural = line_break * 2 if mode == "blank" else line_break
    separator = natural if rule.separator is None else rule.separator
    paths: list[Path] = []
    found: list[tuple[int, np.ndarray, np.ndarray]] = []  # (file, starts, ends)
    for document in documents:
        if mode == "files":
            ends = np.array([document.stop] * (_tail(document, len(separator)) == separator), dtype=np.int64)
        else:
            ends = _ends(document, separator)
        bounds = np.concatenate([[document.start], ends]).astype(np.int64)
        found.append((len(paths), bounds[:-1], ends))
        paths.append(document.path)
        if bounds[-1] < document.stop:
            copy, size = _completed(document, int(bounds[-1]), separator, keep)
            found.append((len(paths), np.array([0]), np.array([size])))
            paths.append(copy)
    file_D = np.repeat([file for file, _, _ in found], [len(ends) for _, _, ends in found]).astype(np.int32)
    start_D, stop_D = (np.concatenate([each[i] for each in found]).astype(np.int64) for i in (1, 2))
    if separator != natural and all(not len(ends) for _, _, ends in found[::2]):
        raise Mistake(
            f"{name} is not divided by {separator.decode()!r}, which ends the documents that this model learned from;"
            " give it a text of such documents",
            code="documents-otherwise-divided",
        )
    return DocumentList(paths, file_D, start_D, stop_D, len(separator)), separator


def split_text(text: str, rule: DocumentRule) -> list[str] | None:
    """Cut a text into documents as `divide` does, each with its separator; the last may lack it. None: it is one document."""
    if rule.mode not in ("lines", "blank") or rule.separator is None:
        return None
    separator = rule.separator.decode()
    line_break = separator[len(separator) // 2 :] if rule.mode == "blank" else separator
    cut = f"(?<={separator})" + (f"(?!{line_break})" if rule.mode == "blank" else "")
    return [piece for piece in re.split(cut, text) if piece]


def deal(documents: DocumentList, shares: Sequence[Fraction], seed: int) -> list[DocumentList]:
    """Deal documents to training, validation and test by the hash of their content and the seed.

    Equal documents lie in one part, and a document's part does not depend on the others. The documents of a part stand in the
    order of their hashes: a model of documents has no use for the order of a sorted list, and nothing else should have.
    """
    if not any(shares[1:]):
        return [documents, documents.take(np.zeros(0, dtype=np.int64)), documents.take(np.zeros(0, dtype=np.int64))]
    bounds = np.array([int(sum(shares[: i + 1]) * HASH_RANGE) for i in range(2)], dtype=np.uint64)
    digests = _digests(documents, (seed % HASH_RANGE).to_bytes(8, "little"))
    hash_D = np.fromiter(digests, dtype=np.uint64, count=len(documents))
    part_D = np.searchsorted(bounds, hash_D, side="right")
    order = np.argsort(hash_D, kind="stable")
    return [documents.take(order[part_D[order] == part]) for part in range(3)]


def _digests(documents: DocumentList, salt: bytes) -> Iterator[int]:
    """The hash of each document without its separator."""
    digest, at = hashlib.blake2b(digest_size=8, salt=salt), 0
    left = 0
    size_D = (documents.size_D - documents.separator_bytes).tolist()
    for index, block in read_documents(documents):
        if index != at:
            yield int.from_bytes(digest.digest(), "little") % HASH_RANGE
            digest, at, left = hashlib.blake2b(digest_size=8, salt=salt), index, 0
        digest.update(block[: max(size_D[index] - left, 0)])
        left += len(block)
    if len(documents):
        yield int.from_bytes(digest.digest(), "little") % HASH_RANGE


def _line_break(documents: Sequence[Document]) -> bytes:
    """Return \\r\\n if every line break of the files is one, else \\n."""
    breaks = with_return = 0
    for document in documents:
        before = b""
        for block in document.blocks():
            breaks += block.count(b"\n")
            with_return += (before + block).count(b"\r\n")
            before = block[-1:] if block.endswith(b"\r") else b""
    return b"\r\n" if breaks and breaks == with_return else b"\n"


def _ends(document: Document, separator: bytes) -> np.ndarray:
    """The places in the file after each separator. Of a longer run of line breaks, the last ones are the separator."""
    places = [np.zeros(0, dtype=np.int64)]
    with open(document.path, "rb") as file:
        file.seek(document.start)
        at = document.start
        while at < document.stop:
            block = np.frombuffer(file.read(min(SCANNED_BYTES, document.stop - at)), dtype=np.uint8)
            places.append(np.flatnonzero(block == ord("\n")) + at)
            at += len(block)
            if not len(block):
                break
    breaks = np.concatenate(places)
    width = 2 if separator.startswith(b"\r") else 1  # of a line break
    if width == 2 and len(breaks):
        breaks = breaks[_are_after_returns(document, breaks)]
    if len(separator) > width:
        follows = np.diff(breaks, prepend=-9) == width  # an empty line ends here
        is_last = ~np.append(follows[1:], False) if len(follows) else follows
        breaks = breaks[follows & is_last]
    ends: np.ndarray = breaks + 1
    return ends


def _are_after_returns(document: Document, breaks: np.ndarray) -> np.ndarray:
    content = np.memmap(document.path, dtype=np.uint8, mode="r")
    after: np.ndarray = (breaks > document.start) & (content[np.maximum(breaks - 1, 0)] == ord("\r"))
    return after


def _tail(document: Document, size: int) -> bytes:
    with open(document.path, "rb") as file:
        file.seek(max(document.start, document.stop - size))
        return file.read(document.stop - file.tell())


def _completed(
    document: Document, start: int, separator: bytes, keep: Callable[[io.BytesIO], Path]
) -> tuple[Path, int]:
    """Copy what stands after the last separator to the cache, and complete its separator."""
    with open(document.path, "rb") as file:
        file.seek(start)
        rest = file.read(document.stop - start)
    there = next(n for n in range(len(separator) - 1, -1, -1) if rest.endswith(separator[:n]))
    return keep(io.BytesIO(rest + separator[there:])), len(rest) + len(separator) - there


def _of_json(documents: Sequence[Document], field: str, name: str, keep: Callable[[io.BytesIO], Path]) -> DocumentList:
    """The strings of one field, copied to the cache with a line break after each."""
    content, sizes = io.BytesIO(), []
    for document in documents:
        for number, line in enumerate(json_lines(document), start=1):
            if not line.strip():
                continue
            text = _field_of(line, field, f"line {number} of {document.path.name if len(documents) > 1 else name}")
            sizes.append(content.write(text + JSON_SEPARATOR))
    content.seek(0)
    stop_D = np.cumsum(sizes, dtype=np.int64)
    return DocumentList(
        [keep(content)], np.zeros(len(sizes), np.int32), stop_D - np.array(sizes, np.int64), stop_D, len(JSON_SEPARATOR)
    )


def json_lines(document: Document) -> Iterator[bytes]:
    """The lines of a file, without their line breaks."""
    with open(document.path, "rb") as file:
        file.seek(document.start)
        left = document.stop - document.start
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            yield line.rstrip(b"\r\n")


def _field_of(line: bytes, field: str, where: str) -> bytes:
    """The string of a field as UTF-8. A dot in the name of a field leads into an object inside."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise Mistake(
            f"{where} is no JSON; {{documents}} reads one object on every line",
            code="documents-not-json",
            documents=f"jsonl:{field}",
        ) from None
    found = value.get(field) if isinstance(value, dict) else None
    if found is None:
        found = value
        for step in field.split("."):
            found = found.get(step) if isinstance(found, dict) else None
    if not isinstance(found, str):
        keys = ", ".join(key for key, each in value.items() if isinstance(each, str)) if isinstance(value, dict) else ""
        has = f"; its strings are {keys}" if keys else ""
        raise Mistake(
            f"{where} has no string {field!r}{has}; name another field: {{documents}}",
            code="documents-field-missing",
            documents="jsonl:FIELD",
        )
    try:
        return found.encode()
    except UnicodeEncodeError:
        raise Mistake(
            f"{where}: {field} holds half of a surrogate pair, which UTF-8 cannot hold; mend that line",
            code="documents-not-unicode",
        ) from None
