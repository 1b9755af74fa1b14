"""Codings whose tokens are byte strings: `byte`, `char` and `bpe:N`.

The text of a token sequence is the concatenation of its tokens' bytes, so one class decodes and counts for all three.
Encoding is done with array operations for `byte` and `char`, and by a table of pieces that the `tokenizers` library has
merged for `bpe`; the tests check that the library object, which is what is saved, gives the same ids.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from lmlab.text.chunks import chunks


def byte_alphabet() -> list[str]:
    """The printable character that stands for each byte inside a byte-level tokenizer.json.

    Printable Latin-1 bytes stand for themselves; the others take the next code points from 256 on, in order.
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    spare = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(spare)) for byte in range(256)]


# Bounded runs: a text without spaces (a genome, a Markov chain) must not become one word of a million letters, on
# which merging would take quadratic time. A space goes with the word after it; marks stay with their letters.
BPE_PATTERN = (
    r"'(?:[sdmt]|ll|ve|re)(?![\p{L}\p{M}])"
    r"| ?[\p{L}\p{M}]{1,48}| ?\p{N}{1,16}| ?[^\s\p{L}\p{M}\p{N}]{1,48}"
    r"|\s{1,48}(?!\S)|\s{1,48}"
)


# The same pattern for text that is ASCII only, where Python and the library mean the same by letters and whitespace,
# except for four control characters that only Python takes for whitespace.
_ASCII_PIECES = re.compile(
    r"'(?:[sdmt]|ll|ve|re)(?![A-Za-z])| ?[A-Za-z]{1,48}| ?[0-9]{1,16}| ?[^\sA-Za-z0-9]{1,48}|\s{1,48}(?!\S)|\s{1,48}"
)
_SEPARATORS = re.compile(r"[\x1c-\x1f]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_WORD_END = re.compile(r"\s*\S*")
_ASCII_AS_BYTES = dict(enumerate(byte_alphabet()[:128]))
MOST_CACHED = 1 << 18  # pieces whose merges are remembered


class Encoded(NamedTuple):
    """The tokens of a text: their ids, and the spellings of the unknown words among them, in order."""

    ids: np.ndarray
    spellings: list[str]


class Coding(ABC):
    """How a text becomes ids and back: what differs between the kinds of tokenizer."""

    vocab_size: int
    unknown_id: int | None = None
    fallback_ids = range(0)  # single bytes that stand for parts of characters, where a coding also has whole ones
    always_lossless = True  # whether every text comes back from its tokens, by how the coding is made

    @property
    def dtype(self) -> type[np.unsignedinteger]:
        """The smallest of uint16 and uint32 that holds every id."""
        return np.uint16 if self.vocab_size <= 1 << 16 else np.uint32

    @abstractmethod
    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Encode the chunks of one document, in order, lazily."""

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Many short texts, each by itself: all their tokens end to end, and how many each has."""
        encoded = [list(self.encode(chunks([text]))) for text in texts]
        parts = [part for of_text in encoded for part in of_text]
        ids = np.concatenate([np.zeros(0, self.dtype), *(part.ids for part in parts)])
        lengths = np.array([sum(len(part.ids) for part in of_text) for of_text in encoded], dtype=np.int64)
        return Encoded(ids, [spelling for part in parts for spelling in part.spellings]), lengths

    def encode_documents(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Many short documents: all their tokens end to end, as `encode` gives them, and how many each has."""
        return self.encode_each(texts)

    @abstractmethod
    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """The text of one document's ids."""

    @abstractmethod
    def token_bytes(self, ids: np.ndarray, spellings: Sequence[str]) -> np.ndarray:
        """UTF-8 bytes of text that each token of one document stands for (int64)."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """One token as a reader may see it."""

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        """Return the bytes of one token, at the beginning of a text or inside."""
        return self.piece(id).encode()


class ByteStringCoding(Coding):
    """A coding in which each id is a byte string."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        self.vocab_size = len(strings)
        self._strings = np.array(strings, dtype=object)
        self._lengths = np.array([len(s) for s in strings], dtype=np.int64)
        self._is_wide = self._lengths != 1
        self._first_bytes = np.frombuffer(b"".join(s[:1] or b"\0" for s in strings), dtype=np.uint8)

    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """Join the bytes. What a model may generate but no encoder would (half a character) shows as U+FFFD."""
        return b"".join(self._joined(ids)).decode("utf-8", errors="replace")

    def _joined(self, ids: np.ndarray) -> Iterable[bytes]:
        """The bytes of these tokens in order; runs of tokens of one byte each are looked up at once."""
        wide = np.flatnonzero(self._is_wide[ids])
        if 4 * len(wide) > len(ids):
            return self._strings[ids]
        narrow = self._first_bytes[ids].tobytes()
        bounds = [-1, *wide.tolist(), len(ids)]
        runs = [narrow[before + 1 : after] for before, after in pairwise(bounds)]
        return chain(chain.from_iterable(zip(runs, self._strings[ids[wide]], strict=False)), runs[-1:])

    def token_bytes(self, ids: np.ndarray, spellings: Sequence[str]) -> np.ndarray:
        """Length of each token."""
        return self._lengths[ids]

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        """Return the token's bytes, which are the same everywhere."""
        string: bytes = self._strings[id]
        return string

    def piece(self, id: int) -> str:
        """The token's characters; bytes that are not characters on their own read <0xE2><0x82>."""
        try:
            return self._strings[id].decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in self._strings[id])


class ByteCoding(ByteStringCoding):
    """256 ids, each the value of a byte."""

    def __init__(self) -> None:
        super().__init__([bytes([b]) for b in range(256)])

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Read the UTF-8 bytes as numbers."""
        for chunk in chunks:
            yield Encoded(np.frombuffer(chunk.encode(), dtype=np.uint8).astype(self.dtype), [])

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """All texts at once."""
        together = "".join(texts)
        ids = np.frombuffer(together.encode(), dtype=np.uint8).astype(self.dtype)
        lengths = map(len, texts) if together.isascii() else (len(text.encode()) for text in texts)
        return Encoded(ids, []), np.fromiter(lengths, dtype=np.int64, count=len(texts))

    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """Write the numbers as bytes."""
        return ids.astype(np.uint8).tobytes().decode("utf-8", errors="replace")


class CharCoding(ByteStringCoding):
    """One id for each known character, then 256 ids for the bytes of all other characters."""

    def __init__(self, characters: Sequence[str]) -> None:
        super().__init__([c.encode() for c in characters] + [bytes([b]) for b in range(256)])
        self._first_byte_id = len(characters)
        self.fallback_ids = range(self._first_byte_id, self.vocab_size)
        self._id_of_codepoint = np.full(0x110000, -1, dtype=np.int32)
        self._id_of_codepoint[[ord(c) for c in characters]] = np.arange(len(characters))

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Look each code point up in a table."""
        for chunk in chunks:
            codepoints = np.frombuffer(chunk.encode("utf-32-le"), dtype=np.uint32)
            ids = self._id_of_codepoint[codepoints]
            unseen = np.flatnonzero(ids < 0)
            if len(unseen):
                ids = self._spell_bytes(ids, unseen, [chr(c).encode() for c in codepoints[unseen]])
            yield Encoded(ids.astype(self.dtype), [])

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """All texts at once, unless they hold characters that are not known."""
        together = "".join(texts)
        codepoints = np.frombuffer(together.encode("utf-32-le"), dtype=np.uint32)
        ids = self._id_of_codepoint[codepoints]
        if (ids < 0).any():
            return super().encode_each(texts)
        return Encoded(ids.astype(self.dtype), []), np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))

    def _spell_bytes(self, ids: np.ndarray, unseen: np.ndarray, spelled: Sequence[bytes]) -> np.ndarray:
        """Replace each unseen character by the ids of its bytes."""
        widths = np.ones(len(ids), dtype=np.int64)
        widths[unseen] = [len(s) for s in spelled]
        wide = np.repeat(ids, widths)
        wide[wide < 0] = self._first_byte_id + np.frombuffer(b"".join(spelled), dtype=np.uint8).astype(np.int32)
        return wide


class BpeCoding(ByteStringCoding):
    """Byte-level byte-pair encoding: ids below 256 are byte values, then one id for each merge, in order.

    Merges never cross the pieces of BPE_PATTERN, and most pieces of a text occur again and again. So the library merges
    each different piece once, and the rest is looking up.
    """

    fallback_ids = range(128, 256)  # bytes below 128 are characters

    def __init__(self, backend: Backend) -> None:
        byte_of = {character: byte for byte, character in enumerate(byte_alphabet())}
        strings = [b""] * backend.get_vocab_size()
        for token, id in backend.get_vocab().items():
            strings[id] = bytes(byte_of[c] for c in token)
        super().__init__(strings)
        self._backend = backend
        self._ids_of: dict[str, tuple[int, ...]] = {}

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Divide into pieces; merge those not met before; look up."""
        for chunk in chunks:
            pieces = _bpe_pieces(chunk)
            for piece in {piece for piece in pieces if piece not in self._ids_of}:
                self._ids_of[piece] = self._merge(piece)
            ids = chain.from_iterable(map(self._ids_of.__getitem__, pieces))
            yield Encoded(np.fromiter(ids, dtype=self.dtype), [])
            if len(self._ids_of) > MOST_CACHED:
                self._ids_of = {}

    def _merge(self, piece: str) -> tuple[int, ...]:
        """The ids of a piece; what is not ASCII may still be several pieces, which the library cuts."""
        if piece.isascii() and not _SEPARATORS.search(piece):
            return tuple(token.id for token in self._backend.model.tokenize(piece.translate(_ASCII_AS_BYTES)))
        return tuple(self._backend.encode(piece, add_special_tokens=False).ids)


def _bpe_pieces(chunk: str) -> list[str]:
    """The pieces that BPE_PATTERN cuts a chunk into; what is not ASCII is left, word by word, to the library to cut."""
    if _SEPARATORS.search(chunk):
        return [chunk]
    if chunk.isascii():
        return _ASCII_PIECES.findall(chunk)
    pieces: list[str] = []
    done = 0
    for match in _BEYOND_ASCII.finditer(chunk):
        if match.start() < done:
            continue
        start = done + _last_word_end(chunk[done : match.start()], match[0])
        end = _WORD_END.match(chunk, match.start()).end()  # type: ignore[union-attr]  # it matches everywhere
        pieces += _ASCII_PIECES.findall(chunk, done, start)
        pieces.append(chunk[start:end])
        done = end
    return pieces + _ASCII_PIECES.findall(chunk, done)


def _last_word_end(before: str, character: str) -> int:
    """Where the last word ends before the whitespace and word that `character` belongs to."""
    if character.isspace() or before[-1:].isspace():
        return len(before.rstrip())
    head_and_word = before.rsplit(None, 1)
    return len(head_and_word[0]) if len(head_and_word) == 2 else 0


def byte_level_backend(merges: Sequence[tuple[str, str]], pattern: str | None) -> Backend:
    """A byte-level library tokenizer: ids 0..255 are the byte values, then the merges."""
    vocab = {character: byte for byte, character in enumerate(byte_alphabet())}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    backend = Backend(models.BPE(vocab=vocab, merges=list(merges)))
    backend.pre_tokenizer = into_bytes(pattern)
    backend.decoder = decoders.ByteLevel()
    return backend


def into_bytes(pattern: str | None) -> pre_tokenizers.PreTokenizer:
    """What cuts a text into the pieces of a pattern (None: into none), each as its bytes."""
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if pattern is None:
        return to_bytes
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), to_bytes])


def char_backend(characters: Sequence[str]) -> Backend:
    """A library tokenizer of single characters, with bytes as the fallback (BPE without merges)."""
    tokens = [*characters, *(f"<0x{byte:02X}>" for byte in range(256))]
    vocab = {token: id for id, token in enumerate(tokens)}
    backend = Backend(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return backend
