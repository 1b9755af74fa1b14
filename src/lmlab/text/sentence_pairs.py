"""Sentences that mean the same in several languages: a table with a column each, or aligned files, one sentence a line.

    en <TAB> de <TAB> fr        a TSV whose first line names the languages
    train.en train.de train.fr  files of one folder with as many lines each, valid and test likewise

The first language is what is translated; `columns` chooses and orders them. What is wrong is said with the number of the line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lmlab.config import Mistake, checked_seed, nearest
from lmlab.disk.files import bare_name, read_text
from lmlab.text import sources
from lmlab.text.near_rows import Copied, find_copies
from lmlab.text.splitting import split_rows

PARTS = {"train": ("train",), "valid": ("valid", "val", "dev"), "test": ("test",)}  # how their files may begin
WHAT = "pairs are a .tsv with a header of languages, or aligned files such as train.en and train.de"
LANGUAGE = re.compile(r"[A-Za-z][\w-]{0,15}")


@dataclass(frozen=True)
class Rows:
    """Sentences side by side: of each row one in every language, and the line it stood on in its file."""

    texts: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    file: str

    def __len__(self) -> int:
        return len(self.texts)

    def of(self, language: int) -> list[str]:
        """All sentences in the language of this number."""
        return [row[language] for row in self.texts]

    def chosen(self, which: np.ndarray) -> Rows:
        """Some of the rows."""
        at = which.tolist()
        return Rows(tuple(self.texts[i] for i in at), tuple(self.lines[i] for i in at), self.file)

    @property
    def bytes(self) -> int:
        """Of all sentences, in UTF-8."""
        return sum(len(text.encode()) for row in self.texts for text in row)

    @property
    def sha256(self) -> str:
        """Of all sentences, in order."""
        return hashlib.sha256("\n".join("\t".join(row) for row in self.texts).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Rows divided into parts. languages: the one that is translated, and those it is translated into."""

    name: str
    languages: tuple[str, ...]
    parts: Mapping[str, Rows]
    origin: Mapping[str, Any]  # what `read_pairs` was asked, to read it again

    def copied(self, rows: Rows) -> tuple[np.ndarray, Copied]:
        """Which of the rows have a source that is a copy or near copy of a training row's, and how many."""
        return find_copies(self.parts["train"].of(0), rows.of(0))

    def spec(self) -> dict[str, Any]:
        """For the record of a run: where it came from, and the hash of every part."""
        parts = {
            name: {"bytes": part.bytes, "examples": len(part), "sha256": part.sha256}
            for name, part in self.parts.items()
        }
        return {"name": self.name, **self.origin, "languages": list(self.languages), "parts": parts}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Pairs:
        """Read the pairs again; Mistake if they are not what they were."""
        again = read_pairs(spec["text"], **{key: spec[key] for key in ("valid", "test", "split", "seed", "columns")})
        for name, part in again.parts.items():
            if part.sha256 != spec["parts"][name]["sha256"]:
                raise Mistake(
                    f"{spec['text']} has changed since it was read; put the old file back, or train again",
                    code="sentence-pairs-changed",
                )
        return again


def read_pairs(
    data: str | Path,
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: Sequence[float] = (80, 10, 10),
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> Pairs:
    """Read pairs and divide them.

    data: a named corpus of pairs, a TSV, one of several aligned files (train.en: then en is translated), or a folder of them.
    A part that is not given is taken from the training rows by its share in `split`, drawn by `seed`.
    columns: languages, the one that is translated first; by itself as the header has them, and of aligned files en first.
    """
    seed = checked_seed(seed)
    origin: dict[str, Any] = {"text": _kept(data), "split": list(split), "seed": seed}
    origin |= {"valid": _kept(valid), "test": _kept(test), "columns": None if columns is None else list(columns)}
    named = isinstance(data, str) and sources.is_named(data)
    if named and not sources.has_pairs(str(data)):
        raise Mistake(
            f"{data} is a plain text, no pairs; named pairs are {', '.join(['numbers', *sources.PAIRS])}",
            code="corpus-without-pairs",
        )
    path = sources.get(str(data))[0] if named else Path(data).expanduser()
    files = {"train": path} if not path.is_dir() else _of_folder(path)
    files |= {name: Path(given).expanduser() for name, given in (("valid", valid), ("test", test)) if given is not None}
    languages, train = _read(files["train"], columns)
    parts = {"train": train}
    for name in ("valid", "test"):
        if name in files:
            parts[name] = _read(files[name], languages)[1]
    chosen = split_rows(len(train), [name for name in PARTS if name not in parts], split, seed)
    parts |= {name: train.chosen(which) for name, which in chosen.items()}
    name = str(data) if named else path.name if path.is_dir() else bare_name(path)
    return Pairs(name=name, languages=languages, parts={name: parts[name] for name in PARTS}, origin=origin)


def _kept(path: str | Path | None) -> str | None:
    """How a record names it."""
    if path is None or (isinstance(path, str) and sources.is_named(path)):
        return path
    return str(Path(path).expanduser().resolve())


def _of_folder(folder: Path) -> dict[str, Path]:
    """A file of every part: a TSV, or the first of several aligned ones, that of English where there is one."""
    found: dict[str, Path] = {}
    for part, beginnings in PARTS.items():
        files = [path for path in sorted(folder.iterdir()) if path.is_file() and bare_name(path).startswith(beginnings)]
        stems = sorted({bare_name(path) for path in files})
        if len(stems) > 1:
            raise Mistake(
                f"{folder} has several files for the {part} part ({', '.join(stems)}); name one of them: {{{part}}}",
                code="part-of-several-files",
                **{part: str(folder / f"{stems[0]}.en")},
            )
        if files:
            found[part] = next((path for path in files if _language(path) == "en"), files[0])
    if "train" not in found:
        raise Mistake(f"{folder} has no training part; {WHAT}", code="pairs-without-training-part")
    return found


def _language(path: Path) -> str:
    """Of an aligned file: how its name ends."""
    return path.name.removesuffix(".gz").rpartition(".")[2]


def _read(path: Path, columns: Sequence[str] | None) -> tuple[tuple[str, ...], Rows]:
    """The languages of a table or of aligned files, those of `columns` where they are given, and the rows."""
    table = _language(path) == "tsv"
    languages, rows = _of_table(path) if table else _of_aligned(path)
    wanted = tuple(columns or languages)
    if len(set(wanted)) < 2 or len(set(wanted)) < len(wanted):
        raise Mistake(
            f"{path}: pairs have two languages or more, each once; got {', '.join(wanted)}",
            code="columns-not-languages",
        )
    for language in wanted:
        if language not in languages:
            raise Mistake(
                f"{path} has no language {language!r}; {nearest(language, languages)}", code="pairs-language-unknown"
            )
    places = [languages.index(language) for language in wanted]
    texts, lines = [], []
    for line, row in rows:
        chosen = tuple(row[place].strip() for place in places)
        if not all(chosen):
            lacking = wanted[chosen.index("")]
            raise Mistake(
                f"{path}, line {line}: the {lacking} sentence is empty; fill it or leave the line out",
                code="pairs-line-empty",
            )
        texts.append(chosen)
        lines.append(line)
    if not texts:
        raise Mistake(f"{path} has no pairs; {WHAT}", code="pairs-empty")
    return wanted, Rows(tuple(texts), tuple(lines), str(path))


def _lines(path: Path) -> list[str]:
    """Only a line feed ends a line: other separators stand inside sentences."""
    text = read_text(path, WHAT).replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _of_table(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    lines = _lines(path)
    languages = [name.strip() for name in lines[0].split("\t")] if lines else []
    if len(languages) < 2 or not all(LANGUAGE.fullmatch(name) for name in languages):
        raise Mistake(
            f"{path}: its first line names the languages, such as en<TAB>de; {WHAT}", code="pairs-without-header"
        )

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(lines[1:], start=2):
            cells = line.split("\t")
            if len(cells) != len(languages):
                raise Mistake(
                    f"{path}, line {number}: {len(cells)} column{'s' * (len(cells) != 1)}, where the header names"
                    f" {len(languages)} languages",
                    code="pairs-line-columns",
                )
            yield number, cells

    return languages, rows()


def _of_aligned(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    first, stem = _language(path), bare_name(path)
    if not path.exists():
        raise Mistake(f"there is no file {path}; {WHAT}", code="pairs-not-found")
    others = [other for other in sorted(path.parent.iterdir()) if other.is_file() and bare_name(other) == stem]
    others = [other for other in others if other != path and LANGUAGE.fullmatch(_language(other))]
    if not others:
        raise Mistake(f"{path} stands alone, with no {stem}.LANGUAGE beside it; {WHAT}", code="pairs-file-alone")
    read = {file: _lines(file) for file in (path, *others)}
    longest = max(read, key=lambda file: len(read[file]))
    for file, lines in read.items():
        if len(lines) < len(read[longest]):
            raise Mistake(
                f"{longest}, line {len(lines) + 1}: {file.name} ends before it, with {len(lines)} lines; they are not aligned",
                code="pairs-not-aligned",
            )
    rows = (list(row) for row in zip(*read.values(), strict=True))
    return [first, *map(_language, others)], enumerate(rows, start=1)
