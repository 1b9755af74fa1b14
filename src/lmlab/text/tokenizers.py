"""Tokenizers: `byte`, `char`, `words`, `words:N` and `bpe:N`, all lossless, and those of others, used as they are.

All are saved as tokenizer.json, which the `tokenizers` library reads. A file of the lab says so: its model has the key
`lmlab`. A file without that key is of the lab where the lab would write it, character for character; else it is of others.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

from lmlab.config import Mistake, nearest
from lmlab.disk.files import write_atomically
from lmlab.text import word_coding
from lmlab.text.chunks import by_document, chunks
from lmlab.text.codings import (
    BPE_PATTERN,
    BpeCoding,
    ByteCoding,
    CharCoding,
    Coding,
    Encoded,
    byte_alphabet,
    byte_level_backend,
    char_backend,
    into_bytes,
)
from lmlab.text.document_coding import DocumentCoding, with_end_token, without_end_token
from lmlab.text.foreign_coding import ForeignCoding
from lmlab.text.pieces import Vocabulary
from lmlab.text.spelling import Spelling
from lmlab.text.vocabulary import known_words, most_frequent, spelling_examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmlab.text.corpus import Corpus

__all__ = ["Encoded", "Tokenizer", "tokenizer_for", "train_tokenizer"]

BYTES = 256
FOREIGN = "foreign"  # the spec of a tokenizer that others made
MARK = "lmlab"  # the key in the model of a tokenizer.json that the lab wrote, with the spec
SEPARATOR_MARK = "lmlab_separator"  # beside it: what the end of a document stands for, where its end is predicted
KINDS = ("byte", "char", "words", "bpe")
FILE, SPELLING_FILE = "tokenizer.json", "spelling.json"
SPECS = "byte, char, words, words:N (the N most frequent words) or bpe:N (N ids in all, 256 of them bytes)"

# Byte-pair merges are learned from every chunk of this many characters, then from every second chunk of as many, every
# fourth of twice as many, and so on: more text would change little and take long.
BPE_SAMPLE_CHARS = 1 << 26


@final
class Tokenizer:
    """Text to ids and back, without loss: `decode(*encode(text)) == text` for every text, unless others made it.

    spec: what it was made from, such as "char" or "bpe:4096"; "foreign" for a tokenizer that others made.
    unknown_id: the id of words outside the vocabulary (`words` only), whose spellings stand beside the ids.
    spelling: the model of what an unknown word's spelling costs (`words` only).
    end_id: the id of the end of a document; None where ends are given.
    """

    def __init__(self, spec: str, backend: Backend, coding: Coding, spelling: Spelling | None = None) -> None:
        self.spec = spec
        self.backend = backend  # the `tokenizers` library object: what tokenizer.json holds
        self.spelling = spelling
        self._coding = coding

    def __repr__(self) -> str:
        return f"Tokenizer({self.spec!r}, vocab_size={self.vocab_size})"

    @property
    def vocab_size(self) -> int:
        """Number of ids, the unknown symbol included where there is one."""
        return self._coding.vocab_size

    @property
    def unknown_id(self) -> int | None:
        """The id of unknown words; None where every text can be written without one."""
        return self._coding.unknown_id

    @property
    def fallback_ids(self) -> range:
        """The ids of single bytes as which characters are written that have no token; none where all ids are bytes."""
        return self._coding.fallback_ids

    @property
    def spare_bytes(self) -> int:
        """How many ids stand for single bytes of characters that were never seen, and are else not needed."""
        return BYTES if isinstance(self._text_coding, CharCoding) else 0

    @property
    def end_id(self) -> int | None:
        """The id of the end of a document; None where ends are given."""
        return self._coding.end_id if isinstance(self._coding, DocumentCoding) else None

    @property
    def separator(self) -> str | None:
        """The text after a document, which its end stands for; None where ends are given."""
        return self._coding.separator if isinstance(self._coding, DocumentCoding) else None

    @property
    def _text_coding(self) -> Coding:
        return self._coding.inner if isinstance(self._coding, DocumentCoding) else self._coding

    def with_end(self, separator: str) -> Tokenizer:
        """Return this tokenizer with one more id: the end of a document, which stands for `separator`."""
        if self.separator == separator:
            return self
        if self.separator is not None:
            raise Mistake(
                f"the documents end with {separator!r}, and those that this tokenizer was made for with {self.separator!r};"
                " divide them alike",
                code="tokenizer-of-other-documents",
            )
        backend = with_end_token(self.backend)
        return Tokenizer(self.spec, backend, DocumentCoding(self._coding, separator), self.spelling)

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """Type of the ids on disk: uint16 where it suffices, else uint32."""
        return self._coding.dtype

    def encode(self, text: str) -> Encoded:
        """The ids of one document, and the spellings of its unknown words."""
        encoded = list(self.encode_pieces([text]))
        ids = np.concatenate([e.ids for e in encoded]) if encoded else np.zeros(0, self.dtype)
        return Encoded(ids, [s for e in encoded for s in e.spellings])

    def encode_pieces(self, pieces: Iterable[str]) -> Iterator[Encoded]:
        """Encode one document that arrives in pieces; the tokens are those of the whole document."""
        return self._coding.encode(chunks(pieces))

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Many short texts, each by itself: all their tokens end to end, and how many each has (int64).

        Where `words` were learned from lines that begin with a space, a text is taken for the inside of such a line.
        """
        return self._coding.encode_each(texts)

    def encode_documents(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Many short documents without their separators: all their tokens end to end, and how many each has (int64).

        Each has its end as the last token, where ends are predicted.
        """
        return self._coding.encode_documents(texts)

    def decode(self, ids: Sequence[int] | np.ndarray, spellings: Sequence[str] = ()) -> str:
        """The text of one document's ids; an unknown word without a spelling reads "<unknown word>"."""
        return self._coding.decode(np.asarray(ids, dtype=np.int64), spellings)

    def token_bytes(self, ids: Sequence[int] | np.ndarray, spellings: Sequence[str] = ()) -> np.ndarray:
        """UTF-8 bytes each token of one document stands for (int64); they sum to the bytes of the document.

        A space that is implied between two words counts with the second one.
        """
        return self._coding.token_bytes(np.asarray(ids, dtype=np.int64), spellings)

    def piece(self, id: int) -> str:
        """One token's text; bytes that are no character by themselves read like <0xE2>."""
        return self._coding.piece(int(id))

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        """Return the bytes of one token inside a text, or of the first one; not for `words`, where neighbours decide."""
        return self._coding.bytes_of(int(id), first=first)

    def require_lossless(self, texts: Sequence[str], encoded: Encoded, lengths: Sequence[int] | np.ndarray) -> None:
        """Raise a Mistake where a text does not come back from its tokens, which a tokenizer of others may do.

        Args:
            texts: that were encoded.
            encoded: all their tokens, end to end.
            lengths: how many tokens each text has.
        """
        if self._coding.always_lossless or not len(texts):
            return
        for text, ids in zip(texts, np.split(encoded.ids, np.cumsum(lengths)[:-1]), strict=True):
            if self.decode(ids) != text:
                raise Mistake(
                    f"this tokenizer does not give {text[:40]!r} back from its tokens; only text that comes back has a"
                    " probability: choose a model with a lossless tokenizer",
                    code="tokenizer-not-lossless",
                )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """How every token reads."""
        pieces = [self.piece(id) for id in range(self.vocab_size)]
        return Vocabulary(pieces, words=self.spec.partition(":")[0] == "words", unknown_id=self.unknown_id)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything that decides ids and texts: the files without the mark of who wrote them."""
        digest = hashlib.sha256()
        for name, text in self._files().items():
            digest.update(f"{name}\n{len(text)}\n{text}".encode())
        if self.separator is not None:
            digest.update(f"separator\n{self.separator}".encode())
        return digest.hexdigest()

    def save(self, folder: Path | str) -> None:
        """Write tokenizer.json, and spelling.json for `words`, each whole or not at all."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        files = self._files()
        marks = {MARK: None if self.spec == FOREIGN else self.spec, SEPARATOR_MARK: self.separator}
        said = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in marks.items() if value is not None]
        if said:
            mark = '\n  "model": {' + "".join(f"\n    {line}" for line in said)
            files[FILE] = files[FILE].replace('\n  "model": {', mark, 1)
        for name, text in files.items():
            write_atomically(Path(folder) / name, text.encode())

    def written(self) -> str:
        """Everything that decides ids and texts."""
        return "\n".join([*self._files().values(), *([] if self.separator is None else [self.separator])])

    def _files(self) -> dict[str, str]:
        files = {FILE: self.backend.to_str(pretty=True)}
        if self.spelling is not None:
            spelling = {"tokenizer": self.spec, **self.spelling.to_json()}
            files[SPELLING_FILE] = json.dumps(spelling, ensure_ascii=False, indent=1)
        return files

    @classmethod
    def load(cls, folder: Path | str) -> Tokenizer:
        """Load the tokenizer of a folder: one that `save` wrote, or a tokenizer.json of others, which is used as it is."""
        path = Path(folder) / FILE
        try:
            text = path.read_text(encoding="utf-8")
            description = json.loads(text)
            made_by, separator = (description["model"].get(key) for key in (MARK, SEPARATOR_MARK))
            backend = Backend.from_str(text) if separator is None else without_end_token(description)
            found = _own(backend, Path(folder))
            if found is None and made_by is None:
                found = cls(FOREIGN, backend, ForeignCoding(backend))
        except Mistake:
            raise
        except FileNotFoundError as error:
            raise Mistake(
                f"{error.filename} is missing, and with it what the tokens are; train again", code="tokenizer-missing"
            ) from None
        except Exception as error:  # the library raises bare Exception for a damaged file
            raise Mistake(
                f"{path} (or spelling.json beside it) is damaged: {error}", code="tokenizer-damaged"
            ) from None
        if found is None:
            raise Mistake(
                f"{path} is damaged: it is marked as the {made_by} tokenizer of lmlab, but is another; train again",
                code="tokenizer-not-as-marked",
            )
        return found if separator is None else found.with_end(separator)


def tokenizer_for(corpus: Corpus, spec: str, *, at_most: bool = False) -> Tokenizer:
    """Make a tokenizer for the training part of a corpus, with an end where the ends of its documents are predicted."""
    separator = corpus.rule.separator
    if separator is None:
        return train_tokenizer(spec, corpus.train.pieces(), at_most=at_most)
    return train_tokenizer(spec, corpus.train.document_texts(), at_most=at_most).with_end(separator.decode())


def train_tokenizer(
    spec: str,
    texts: Iterable[str] | Iterable[tuple[int, str]],
    least: int | None = None,
    *,
    at_most: bool = False,
) -> Tokenizer:
    """Make a tokenizer for these training texts.

    texts: whole documents, or the (document, piece) pairs of `Part.pieces()`. They are read once.
    least: of `words` without a number: how often a word must occur to be known.
    at_most: of bpe: its size is the most, and a text that allows fewer ids has fewer; for sizes that nobody asked for.
    """
    kind, size = parse_spec(spec)
    spec = plain_spec(spec)
    if kind == "byte":
        return _byte()
    if kind == "char":
        return _train_char(texts)
    if kind == "words":
        return _train_words(spec, texts, size, least)
    assert size is not None, "parse_spec asks for the size of bpe"
    return _train_bpe(size, texts, at_most)


def words_tokenizer(words: Sequence[str], *, spaced: bool) -> Tokenizer:
    """Make a `words` tokenizer of a given vocabulary, whose words alone teach how unknown words are spelled.

    words: in the order of their ids; the unknown symbol comes after them.
    spaced: whether a line break stands between two spaces, as in the Penn Treebank.
    """
    return _words(words, spaced, Spelling({}, words), f"words:{len(words)}")


def parse_spec(spec: str) -> tuple[str, int | None]:
    """The kind of a tokenizer and its size in ids or words (None: as the text has it), without looking at a text."""
    kind, _, number = spec.partition(":")
    if spec in ("byte", "char", "words"):
        return spec, None
    if kind in ("words", "bpe") and (match := re.fullmatch(r"([1-9]\d{0,6})(k?)", number)):
        size = int(match[1]) * (1000 if match[2] else 1)
        if kind == "bpe" and size <= BYTES:
            raise Mistake(
                f"bpe:{size} leaves no room for merges: the {BYTES} bytes come first; write bpe:512 or more, or byte",
                code="bpe-too-small",
            )
        return kind, size
    if spec == FOREIGN:
        raise Mistake(
            "a foreign tokenizer is in a file of its own; give the object: tokenizer=Tokenizer.load(FOLDER)",
            code="tokenizer-is-foreign",
        )
    hint = nearest(kind, KINDS)
    meant = f": {hint}" if kind not in KINDS and hint.endswith("?") else "."
    raise Mistake(f"there is no tokenizer {spec!r}{meant} A tokenizer is {SPECS}", code="tokenizer-unknown")


def plain_spec(spec: str) -> str:
    """The same tokenizer with its size written out: bpe:1000 for bpe:1k."""
    kind, size = parse_spec(spec)
    return kind if size is None else f"{kind}:{size}"


def _byte() -> Tokenizer:
    return Tokenizer("byte", byte_level_backend([], None), ByteCoding())


def _char(characters: Sequence[str]) -> Tokenizer:
    return Tokenizer("char", char_backend(characters), CharCoding(characters))


def _words(words: Sequence[str], spaced: bool, spelling: Spelling, spec: str) -> Tokenizer:
    backend = word_coding.word_backend(words, spaced=spaced)
    return Tokenizer(spec, backend, word_coding.WordCoding(words, spaced=spaced), spelling)


def _own(backend: Backend, folder: Path) -> Tokenizer | None:
    """Return the lab's tokenizer whose library object this is, in all it says; None where others made it."""
    description = json.loads(backend.to_str())
    frame = _frame(description)
    tokens = _in_id_order(backend)
    for spaced in (False, True):
        if frame == _frame_of(word_coding.word_backend([], spaced=spaced)):
            words = tokens[:-1]
            if not _alike(backend, word_coding.word_backend(words, spaced=spaced)):
                return None
            spelling = json.loads((folder / SPELLING_FILE).read_text(encoding="utf-8"))
            return _words(words, spaced, Spelling.from_json(spelling, words), spelling["tokenizer"])
    if frame == _frame_of(char_backend([])):
        characters = tokens[:-BYTES]
        return _char(characters) if _alike(backend, char_backend(characters)) else None
    if frame == _frame_of(byte_level_backend([], None)):
        return _byte() if _alike(backend, byte_level_backend([], None)) else None
    if frame == _frame_of(byte_level_backend([], BPE_PATTERN)):
        merges = [tuple(merge) for merge in description["model"]["merges"]]
        if _alike(backend, byte_level_backend(merges, BPE_PATTERN)):
            return Tokenizer(f"bpe:{backend.get_vocab_size()}", backend, BpeCoding(backend))
    return None


def _frame(description: dict[str, Any]) -> dict[str, Any]:
    """What a tokenizer.json says beside its vocabulary and its merges."""
    model = {key: value for key, value in description["model"].items() if key not in ("vocab", "merges")}
    return {**description, "model": model}


def _frame_of(backend: Backend) -> dict[str, Any]:
    return _frame(json.loads(backend.to_str()))


def _alike(backend: Backend, ours: Backend) -> bool:
    same: bool = backend.to_str() == ours.to_str()
    return same


def _in_id_order(backend: Backend) -> list[str]:
    vocab = backend.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


def _train_char(texts: Iterable[str] | Iterable[tuple[int, str]]) -> Tokenizer:
    """All characters of the texts, by code point.

    The 256 byte ids after them cost a model what it wrongly gives them: nothing for counts without smoothing, and for a
    trained softmax what is left of ids that never occur.
    """
    seen: set[str] = set()
    for document in by_document(texts):
        for piece in document:
            seen.update(piece)
    return _char(sorted(seen))


def _train_bpe(size: int, texts: Iterable[str] | Iterable[tuple[int, str]], at_most: bool) -> Tokenizer:
    """Learn merges that occur at least twice, most frequent first, until there are `size` ids."""
    learner = Backend(models.BPE())
    learner.pre_tokenizer = into_bytes(BPE_PATTERN)
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=byte_alphabet(), show_progress=False, special_tokens=[]
    )
    all_chunks = (chunk for document in by_document(texts) for chunk in chunks(document))
    learner.train_from_iterator(_thinned(all_chunks), trainer)
    merges = [tuple(merge) for merge in json.loads(learner.to_str())["model"]["merges"]]
    backend = byte_level_backend(merges, BPE_PATTERN)
    if backend.get_vocab_size() < size:
        possible = backend.get_vocab_size()
        if at_most:
            return _byte() if possible <= BYTES else Tokenizer(f"bpe:{possible}", backend, BpeCoding(backend))
        advice = f"write bpe:{possible} or less" if possible > 256 else "use byte or char"
        raise Mistake(
            f"bpe:{size} is larger than the text allows: it has pairs for {possible} ids; {advice}",
            code="bpe-larger-than-text",
        )
    return Tokenizer(f"bpe:{size}", backend, BpeCoding(backend))


def _train_words(
    spec: str, texts: Iterable[str] | Iterable[tuple[int, str]], size: int | None, least: int | None
) -> Tokenizer:
    """The `size` most frequent words, or the words that `known_words` chooses; the rest teach the spelling model."""
    counts, spaced = word_coding.count(chunks(document) for document in by_document(texts))
    words = known_words(counts, least) if size is None else most_frequent(counts, size)
    return _words(words, spaced, Spelling(spelling_examples(counts, words), words), spec)


def _thinned(chunks_of_text: Iterable[str]) -> Iterator[str]:
    """Fewer and fewer of the chunks the longer the text is (see BPE_SAMPLE_CHARS)."""
    read, every = 0, 1
    for index, chunk in enumerate(chunks_of_text):
        read += len(chunk)
        if read > BPE_SAMPLE_CHARS * every:
            every *= 2
        if index % every == 0:
            yield chunk
