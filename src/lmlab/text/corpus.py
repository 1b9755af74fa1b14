"""A corpus: a text with its training, validation and test parts, from files, folders, standard input or by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

from lmlab.config import Mistake, Note, checked_seed
from lmlab.disk.files import bare_name, file_sha256
from lmlab.text import files_and_folders
from lmlab.text.document_guess import guess
from lmlab.text.documents import NONE, DocumentRule, deal, divide, parse_rule
from lmlab.text.files_and_folders import Text
from lmlab.text.markov import markov_entropy
from lmlab.text.parts import PARTS, Document, DocumentList, Part
from lmlab.text.shared_substrings import Overlap, find_overlap
from lmlab.text.splitting import Divided, Division, SplitBy, empty_part, shares_of, split_documents

DIVISIONS: dict[Divided, str] = {
    "documents": "Whole documents were held out.",
    "tail": "The end of the text was held out.",
    "given": "The held-out parts are texts of their own.",
}


@final
class Corpus:
    """Training, validation and test parts that do not overlap, and where they came from."""

    def __init__(self, name: str, parts: Mapping[str, Part], origin: Mapping[str, Any]) -> None:
        self.name = name
        self.train, self.valid, self.test = (parts[part] for part in PARTS)
        self._origin = dict(origin)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part.name}={part.bytes}" for part in self.parts.values())
        return f"Corpus({self.name!r}, bytes: {sizes})"

    @property
    def parts(self) -> dict[str, Part]:
        """The three parts by name."""
        return {"train": self.train, "valid": self.valid, "test": self.test}

    @property
    def divided_by(self) -> Divided:
        """How the parts were divided: whole documents, blocks spread over the text, its tail, or parts that were given."""
        return self._origin["divided_by"]

    @property
    def division(self) -> str:
        """How the parts were divided, in one sentence."""
        if self.divided_by == "blocks":
            part = self.test if self.test.bytes else self.valid
            return (
                f"The {part.name} part is {len(part.documents)} blocks spread over the whole text;"
                f" {self._origin['left_out']:,} bytes next to held-out blocks belong to no part."
            )
        if self.rule == NONE:
            return DIVISIONS[self.divided_by]
        dealt = "Whole documents were held out, in the order of the hash of their content; equal ones lie in one part."
        how = dealt if self.divided_by == "documents" else DIVISIONS[self.divided_by]
        return f"{how} The end of each document is predicted and counted."

    @property
    def rule(self) -> DocumentRule:
        """How the text was divided into documents whose end is predicted; `NONE` where a file is a document."""
        separator = self._origin.get("separator")
        return NONE if separator is None else DocumentRule(self._origin["documents"], separator.encode())

    @property
    def documents(self) -> int:
        """Number of documents; one that was cut into several parts counts once."""
        if self.rule != NONE:
            return sum(len(part.documents) for part in self.parts.values())
        return len({document.path for part in self.parts.values() for document in part.documents})

    def called(self, part: str) -> str:
        """Its name; with that of the file where a part was given by itself, so that nobody takes it for a piece of the text."""
        if not self._origin.get(part) or not self.parts[part].documents:
            return self.name
        first, *others = dict.fromkeys(document.path.name for document in self.parts[part].documents)
        return f"{self.name} ({first}{f' and {len(others)} more' if others else ''})"

    @cached_property
    def entropy_bits_per_symbol(self) -> float | None:
        """The exact entropy rate of a `markov` corpus, in bits per symbol and so per byte; None for other texts."""
        text = self._origin["text"]
        return markov_entropy(text) if isinstance(text, str) and text.partition(":")[0] == "markov" else None

    def overlap(self) -> dict[str, Overlap]:
        """For each held-out part that is not empty: the long substrings it shares with the training part."""
        return {
            name: find_overlap(self.train, part) for name, part in self.parts.items() if name != "train" and part.bytes
        }

    def spec(self) -> dict[str, Any]:
        """Where the text came from and its hashes, as JSON can hold it; `from_spec` reads the corpus again from it."""
        paths = {document.path for part in self.parts.values() for document in part.documents}
        return {
            "name": self.name,
            **self._origin,
            "files": {str(path): file_sha256(path) for path in sorted(paths)},
            "parts": {name: {"bytes": part.bytes, "sha256": part.sha256} for name, part in self.parts.items()},
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Corpus:
        """Read a corpus again; Mistake if any of its files is not what it was."""
        for name, sha256 in spec["files"].items():
            path = Path(name)
            if not path.exists() and path == Path(str(spec["text"])):
                raise Mistake(
                    f"{path}, from which this corpus was read, is gone; put it back, or name another text",
                    code="corpus-file-gone",
                )
            if path.exists() and file_sha256(path) != sha256:
                raise Mistake(
                    f"{path} has changed since this corpus was read; put the old file back, or train again",
                    code="corpus-file-changed",
                )
        changed, ways = PARTS[0], _ways(spec)
        for split_by in ways:
            try:
                corpus = cls._read_again(spec, split_by)
            except Mistake:
                if split_by == ways[-1]:
                    raise
                continue
            differing = [name for name, part in corpus.parts.items() if part.sha256 != spec["parts"][name]["sha256"]]
            if not differing:
                corpus.name = spec["name"]
                return corpus
            changed = differing[0]
        raise Mistake(
            f"the {changed} part of {spec['name']} is not what it was; files were added or removed",
            code="corpus-files-changed",
        )

    @classmethod
    def _read_again(cls, spec: Mapping[str, Any], split_by: SplitBy) -> Corpus:
        given = {key: spec[key] for key in ("valid", "test", "seed")}
        if "documents" in spec:
            given["documents"] = DocumentRule(spec["documents"], spec["separator"].encode())
        with warnings.catch_warnings():  # of files that are passed over, said when it was read first
            warnings.simplefilter("ignore", Note)
            return read(spec["text"], split=tuple(spec["split"]), split_by=split_by, **given)


def _ways(spec: Mapping[str, Any]) -> tuple[SplitBy, ...]:
    """How a text may have been divided. A record that does not say is of whole documents, or else of the text's tail."""
    if spec["valid"] is not None or spec["test"] is not None:
        return ("auto",)
    if "divided_by" not in spec:
        return ("documents", "tail") if len(spec["files"]) > 1 else ("tail",)
    return (spec["divided_by"],)


def stem(text: str | Path | Sequence[str | Path] | Corpus) -> str:
    """A short name of a text, for the folders that are named after it."""
    if isinstance(text, Corpus):
        return text.name
    if not isinstance(text, str | Path):
        first = text[0] if isinstance(text, Sequence) and text else None  # what is no text is refused when it is read
        return stem(first) if isinstance(first, str | Path) else "text"
    name = str(text)
    if name == "-" or files_and_folders.is_content(text):
        return "stdin" if name == "-" else "text"
    while any(sign in name for sign in "*?[") and not Path(name).exists():  # a pattern is called after its folder
        name = str(Path(name).parent)
    return bare_name(Path(name).resolve()).split(":")[0].strip() or "text"


def read(
    text: Text,
    *,
    valid: Text | None = None,
    test: Text | None = None,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    seed: int = 0,
    documents: str | DocumentRule = "none",
) -> Corpus:
    """Read a text and divide it into parts.

    Args:
        text: A named corpus, a file, several files, a folder or `-` for standard input; plain or gzip, in UTF-8. Of a folder
            the .txt, .text, .md and .rst files are read, however deep, each as a document; a pattern such as "src/**/*.py"
            names others. A file that is called like a named corpus is written ./name.
        valid: Text of the validation part. With `valid` or `test`, all of `text` is for training.
        test: Text of the test part. A part that is not given is empty.
        split: Shares of the three parts, of their sum: 80, 10, 10 or 8, 1, 1.
        split_by: "documents" puts each document whole into one part (`seed` shuffles them), "blocks" holds out blocks spread
            over the whole text, "tail" its end. "auto" takes documents where the test part gets twelve or more, else blocks.
        seed: Shuffles documents.
        documents: How the text is divided into documents whose end is predicted: "lines", "blank", "jsonl:FIELD" or "files".
            They are dealt to the parts by the hash of their content. "none": a file is a document, and its end is given.
            "auto": as the text plainly consists of documents, which a note says; else "none".
    """
    seed = checked_seed(seed)
    rule = parse_rule(documents)
    name, files, kept = files_and_folders.gather(text)
    origin: dict[str, Any] = {"text": kept, "valid": None, "test": None, "split": list(split), "seed": seed}
    if rule.mode == "auto":
        guessed, reason = guess(files) if split_by in ("auto", "documents") else (NONE, "")
        rule = DocumentRule(guessed.mode, rule.separator)
        if guessed != NONE:
            message = (
                f"{name}: {reason}, whose end is predicted (documents={rule.mode}); for plain text: documents=none"
            )
            warnings.warn(message, Note, stacklevel=2)
    if split_by != "auto" and (valid is not None or test is not None):
        named = "{valid}" if test is None else "{test}"
        raise Mistake(
            f"{{split_by}} divides the text, which {named} leaves whole for training; leave one of them out",
            code="split-by-divides-nothing", split_by=None, valid=None, test=None,
        )  # fmt: skip
    if rule.mode != "none" and split_by not in ("auto", "documents"):
        raise Mistake(
            f"{{split_by}} {split_by} cuts a text, and {{documents}} {rule.mode} deals whole documents; leave one of them out",
            code="split-by-beside-documents", split_by=None, documents=None,
        )  # fmt: skip
    if rule.mode == "none":
        texts: Sequence[Document] = files
    else:
        texts, separator = divide(files, rule, name, files_and_folders.spooled)
        rule = DocumentRule(rule.mode, separator)
        origin |= {"documents": rule.mode, "separator": separator.decode()}
    if valid is None and test is None:
        division = _dealt(name, texts, split, seed) if isinstance(texts, DocumentList) else None
        division = division or split_documents(name, texts, split, seed, split_by)
    else:
        parts: list[Sequence[Document]] = [texts]
        for part, given in (("valid", valid), ("test", test)):
            held_out: Sequence[Document] = []
            if given is not None:
                called, held_out, origin[part] = files_and_folders.gather(given)
                if rule.mode != "none":
                    held_out, _ = divide(
                        held_out, DocumentRule(rule.mode, separator), called, files_and_folders.spooled
                    )
            parts.append(held_out)
        division = Division(parts=parts, by="given")
    origin |= {"divided_by": division.by, "left_out": division.left_out}
    return Corpus(name, _parts(division), origin)


def _dealt(name: str, documents: DocumentList, split: Sequence[float], seed: int) -> Division:
    """Deal many documents to the parts by the hash of their content."""
    shares = shares_of(split)
    parts = deal(documents, shares, seed)
    for share, part in zip(shares, parts, strict=True):
        if share and not len(part):
            raise empty_part(name, len(documents), "document", split)
    return Division(parts=parts, by="documents")


def _parts(division: Division) -> dict[str, Part]:
    """The parts by name. Held-out blocks know how much of the text they are."""
    whole = division.left_out + sum(document.size for part in division.parts for document in part)
    found = {}
    for name, documents in zip(PARTS, division.parts, strict=True):
        dealt = division.by == "blocks" and name != "train"
        found[name] = Part(name, documents, sum(d.size for d in documents) / whole if dealt and whole else None)
    return found
