"""Texts with labels, from tables: TSV, CSV or JSONL, plain or gzip; one row an example.

A header names the columns; without one a table has two, and the label is the one with fewer different values. What is wrong
with a table is said with the number of the line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lmlab.config import Mistake, checked_seed, nearest
from lmlab.disk.files import bare_name, read_text
from lmlab.text import tables
from lmlab.text.near_rows import Copied, find_copies
from lmlab.text.parts import PARTS
from lmlab.text.splitting import split_rows

TEXT_COLUMNS = ("text", "sentence", "review", "content", "body", "comment", "message", "document")
LABEL_COLUMNS = ("label", "class", "category", "sentiment", "target", "topic", "stars")
FORMATS = (".tsv", ".csv", ".jsonl")  # each also with .gz


@dataclass(frozen=True)
class Examples:
    """Texts and the numbers of their labels, side by side."""

    texts: tuple[str, ...]
    labels_B: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def bytes(self) -> int:
        """Of all texts, in UTF-8."""
        return sum(len(text.encode()) for text in self.texts)

    @property
    def sha256(self) -> str:
        """Of all texts and labels, in order."""
        digest = hashlib.sha256()
        for text, label in zip(self.texts, self.labels_B.tolist(), strict=True):
            digest.update(f"{label}\t{len(text)}\t{text}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A table divided into parts; the classes are those of the training part, in the order of their names."""

    name: str
    classes: tuple[str, ...]
    parts: Mapping[str, Examples]
    origin: Mapping[str, Any]  # what `read_labelled` was asked, to read it again

    def copied(self, examples: Examples) -> tuple[np.ndarray, Copied]:
        """Which of the examples are copies or near copies of training examples, whatever their labels, and how many."""
        return find_copies(self.parts["train"].texts, examples.texts)

    def spec(self) -> dict[str, Any]:
        """For the record of a run: where it came from, and the hash of every part."""
        parts = {
            name: {"bytes": part.bytes, "examples": len(part), "sha256": part.sha256}
            for name, part in self.parts.items()
        }
        return {"name": self.name, **self.origin, "classes": list(self.classes), "parts": parts}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Labelled:
        """Read a table again; Mistake if it is not what it was."""
        asked = {key: spec[key] for key in ("valid", "test", "split", "seed", "columns")}
        again = read_labelled(spec["text"], **asked)
        for name, part in again.parts.items():
            if part.sha256 != spec["parts"][name]["sha256"]:
                raise Mistake(
                    f"{spec['text']} has changed since it was read; put the old file back, or train again",
                    code="table-changed",
                )
        return again


def read_labelled(
    data: str | Path,
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: Sequence[float] = (80, 10, 10),
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> Labelled:
    """Read a table of texts with labels and divide it.

    data: a named table (`text/tables.py`), a file, or a folder with a file train.tsv (or .csv, .jsonl) and perhaps valid and
    test beside it. A part that is not given is taken from the training examples by its share in `split`, drawn by `seed`.
    """
    seed = checked_seed(seed)
    is_named = str(data) in tables.NAMES and not Path(data).exists()
    origin: dict[str, Any] = {"text": str(data) if is_named else _resolved(data), "split": list(split), "seed": seed}
    origin |= {"valid": _resolved(valid), "test": _resolved(test)}
    if columns is not None and len(set(columns)) != 2:
        raise Mistake(
            f"{{columns}} are two, the text's and the label's, such as review,stars; got {','.join(columns)}",
            code="columns-not-two",
            columns=None,
        )
    origin["columns"] = None if columns is None else list(columns)
    place = tables.named_table(str(data)) if is_named else Path(data).expanduser()
    train_file, valid_file, test_file = _files(place, valid, test)
    label_first = _label_first(train_file)
    files = {"train": train_file, "valid": valid_file, "test": test_file}
    rows = {name: list(_rows(file, columns, label_first)) for name, file in files.items() if file is not None}
    classes = tuple(sorted({label for _, _, label in rows["train"]}, key=_naturally))
    if not classes:
        raise Mistake(
            f"{train_file} has no examples below its first line, which names the columns", code="table-without-examples"
        )
    if len(classes) < 2:
        raise Mistake(
            f"{train_file} has one label only, {classes[0]!r}; a classifier needs examples of two or more",
            code="table-with-one-label",
        )
    number = {label: i for i, label in enumerate(classes)}
    parts = {}
    for name, found in rows.items():
        for line, _, label in found:
            if label not in number:
                raise Mistake(
                    f"{files[name]}, line {line}: the label {label!r} does not occur in the training examples, which have"
                    f" {', '.join(classes[:8])}",
                    code="table-label-unknown",
                )
        labels_B = np.array([number[label] for _, _, label in found], dtype=np.int64)
        parts[name] = Examples(tuple(text for _, text, _ in found), labels_B)
    name = str(data) if is_named else train_file.parent.name if place.is_dir() else bare_name(train_file)
    return Labelled(name=name, classes=classes, parts=_divided(parts, split, seed), origin=origin)


def _resolved(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().resolve())


def _files(data: Path, valid: str | Path | None, test: str | Path | None) -> tuple[Path, Path | None, Path | None]:
    given = [None if path is None else Path(path).expanduser() for path in (valid, test)]
    if not data.is_dir():
        return data, given[0], given[1]
    found: dict[str, Path] = {}
    for path in sorted(data.iterdir()):
        name = bare_name(path)
        if path.name.removesuffix(".gz").endswith(FORMATS) and name in (*PARTS, "val", "dev"):
            found["valid" if name in ("val", "dev") else name] = path
    if "train" not in found:
        raise Mistake(
            f"{data} has no train.tsv, train.csv or train.jsonl (each perhaps with .gz); name a file instead",
            code="table-folder-without-training",
        )
    return found["train"], given[0] or found.get("valid"), given[1] or found.get("test")


def _divided(parts: dict[str, Examples], split: Sequence[float], seed: int) -> dict[str, Examples]:
    """Parts that are missing are drawn from the training examples."""
    train = parts["train"]
    rows = split_rows(len(train), [name for name in PARTS if name not in parts], split, seed)
    parts |= {name: _chosen(train, which) for name, which in rows.items()}
    if (alone := np.unique(parts["train"].labels_B)).size < 2:
        raise Mistake(
            f"the training part has one label only (number {alone[0]}); it needs more examples",
            code="training-part-with-one-label",
        )
    return {name: parts[name] for name in PARTS}


def _chosen(examples: Examples, which: np.ndarray) -> Examples:
    return Examples(tuple(examples.texts[i] for i in which.tolist()), examples.labels_B[which])


def _label_first(path: Path) -> bool:
    """Of a table of two columns that says nothing: whether the label, which has fewer different values, is the first."""
    different = [len({cells[i] for _, cells in table_rows(path) if len(cells) > i}) for i in range(2)]
    return different[0] <= different[1]


def _rows(path: Path, columns: Sequence[str] | None, label_first: bool) -> Iterator[tuple[int, str, str]]:
    """(line, text, label) of every row."""
    rows = table_rows(path)
    text_at, label_at, has_header = _columns(path, rows, columns, label_first)
    for line, cells in rows[1:] if has_header else rows:
        if len(cells) <= max(text_at, label_at):
            raise Mistake(
                f"{path}, line {line}: {len(cells)} column{'s' * (len(cells) != 1)}, where a text and a label are wanted",
                code="table-line-columns",
            )
        text, label = cells[text_at].strip(), cells[label_at].strip()
        if not text or not label:
            raise Mistake(f"{path}, line {line}: the {'label' if text else 'text'} is empty", code="table-line-empty")
        yield line, text, label


def table_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a table that are not empty: (line, cells)."""
    records = _json_records(path) if path.name.removesuffix(".gz").endswith(".jsonl") else _records(path)
    rows = list(records)
    if not rows:
        raise Mistake(f"{path} is empty; a table has a text and a label on each line", code="table-empty")
    return rows


def _lines(path: Path) -> list[str]:
    what = "a table of texts with labels is .tsv, .csv or .jsonl, perhaps with .gz"
    return list(
        io.StringIO(read_text(path, what), newline="")
    )  # by \n or \r alone: a text may hold other ends of lines


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(1 << 30)
    if path.name.removesuffix(".gz").endswith(".csv"):
        reader = csv.reader(_lines(path))
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except csv.Error as error:
            raise Mistake(f"{path}, line {reader.line_num}: {error}", code="table-line-not-csv") from None
        return
    for line, row in enumerate(_lines(path), start=1):
        if row.strip():
            yield line, row.rstrip("\r\n").split("\t")


def _json_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """As a table whose header is the names of the first object."""
    names: list[str] = []
    for line, row in enumerate(_lines(path), start=1):
        if not row.strip():
            continue
        try:
            record = json.loads(row)
        except (json.JSONDecodeError, RecursionError) as error:
            what = error.msg if isinstance(error, json.JSONDecodeError) else "too deep"
            raise Mistake(f"{path}, line {line}: not JSON ({what})", code="table-line-not-json") from None
        if not isinstance(record, dict):
            raise Mistake(
                f'{path}, line {line}: each line is an object, such as {{{{"text": "…", "label": "…"}}}}',
                code="table-line-not-an-object",
            )
        if not names:
            names = list(record)
            yield 0, names
        missing = [name for name in names if name not in record]
        if missing:
            raise Mistake(
                f"{path}, line {line}: no {missing[0]!r}, which the first line has", code="table-line-lacks-key"
            )
        yield line, [_cell(record[name]) for name in names]


def _cell(value: Any) -> str:
    """A value of JSON as a cell of a table: what is no text, number, true or false is empty, and refused where it is needed."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and math.isfinite(value) else ""


def _columns(
    path: Path, rows: list[tuple[int, list[str]]], columns: Sequence[str] | None, label_first: bool
) -> tuple[int, int, bool]:
    """Where the text and the label stand, and whether the first row says so."""
    header = [cell.strip().lower() for cell in rows[0][1]]
    found = []
    for asked, usual in zip(columns or (None, None), (TEXT_COLUMNS, LABEL_COLUMNS), strict=True):
        if asked is not None and asked.lower() not in header:
            raise Mistake(f"{path} has no column {asked!r}; {nearest(asked, header)}", code="column-unknown")
        wanted = [asked.lower()] if asked is not None else list(usual)
        found.append(next((header.index(name) for name in wanted if name in header), None))
    text_at, label_at = found
    if text_at is not None and label_at is not None:
        return text_at, label_at, True
    if len(header) == 2 and (text_at is not None or label_at is not None):
        return (text_at, 1 - text_at, True) if text_at is not None else (1 - (label_at or 0), label_at or 0, True)
    if len(header) == 2:
        return (1, 0, False) if label_first else (0, 1, False)
    raise Mistake(
        f"{path}: which columns? Its first row is {', '.join(header[:6])}; name them: {{columns}}",
        code="columns-not-known",
        columns="TEXT,LABEL",
    )


def _naturally(label: str) -> tuple[Any, ...]:
    """Numbers by size, before words by name."""
    return (0, float(label), label) if re.fullmatch(r"-?\d+(\.\d+)?", label) else (1, 0.0, label)
