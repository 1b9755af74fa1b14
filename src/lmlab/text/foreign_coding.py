"""The coding of a tokenizer.json that others made, such as those of GPT-2, Llama, Qwen, BERT and T5.

The `tokenizers` library encodes and decodes, by all that the file says: normalizer, pre-tokenizer, model, added tokens and
decoder. Three things of a file are not used, since the same text must always give the same tokens, and all of them:
truncation, padding, and a merge dropout. Special tokens that a text spells, such as <|endoftext|>, are text.

Nothing makes such a coding lossless. Whoever needs the text back compares it: `Tokenizer.require_lossless`, and the check
`lossless` of a certificate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend

from lmlab.text.codings import ByteStringCoding, Encoded, byte_alphabet

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")  # that a decoder with byte fallback turns into one byte


class ForeignCoding(ByteStringCoding):
    """A coding that hands every document as a whole to the library, since any cut could change the tokens around it."""

    always_lossless = False

    def __init__(self, backend: Backend, vocab_size: int = 0) -> None:
        """Take a copy of a library object.

        Args:
            backend: the library object.
            vocab_size: number of ids, where a model predicts others than the file has tokens for. Ids without a token stand
                for no bytes.
        """
        self._backend = Backend.from_str(backend.to_str())
        self._backend.no_truncation()
        self._backend.no_padding()
        if getattr(self._backend.model, "dropout", None):
            self._backend.model.dropout = None
        self._backend.encode_special_tokens = True
        first, inside = _strings(self._backend)
        size = vocab_size or len(inside)
        super().__init__(_sized(inside, size))
        self._first = _sized(first, size)

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Encode the document at once. No special token is added, and one that the text spells is text."""
        if text := "".join(chunks):
            (encoded,) = self._backend.encode_batch_fast([text], add_special_tokens=False)
            yield Encoded(np.array(encoded.ids, dtype=self.dtype), [])

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Encode many short texts, each by itself: all their tokens end to end, and how many each has."""
        found = [encoded.ids for encoded in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]
        ids = np.array([id for of_text in found for id in of_text], dtype=self.dtype)
        return Encoded(ids, []), np.array([len(of_text) for of_text in found], dtype=np.int64)

    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """Decode as the file says, special tokens included."""
        return self._backend.decode(ids.tolist(), skip_special_tokens=False)

    def token_bytes(self, ids: np.ndarray, spellings: Sequence[str]) -> np.ndarray:
        """Length of each token; the first of a document may lack the space that it has elsewhere."""
        lengths = super().token_bytes(ids, spellings)
        if len(ids):
            lengths[0] = len(self._first[int(ids[0])])
        return lengths

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        """Return the bytes of one token, at the beginning of a text or inside."""
        return self._first[id] if first else super().bytes_of(id)


def _strings(backend: Backend) -> tuple[list[bytes], list[bytes]]:
    """Return the bytes of every token, where a text begins with it and inside a text; none for an id without a token.

    A byte-level decoder writes a token's bytes wherever it stands. Of others the text before is taken off what is decoded.
    """
    vocab = backend.get_vocab(with_added_tokens=True)
    ids = range(1 + max(vocab.values(), default=-1))
    tokens = [backend.id_to_token(id) for id in ids]
    kinds = set(_decoders(json.loads(backend.to_str())["decoder"]))
    if "ByteLevel" in kinds:
        byte_of = {character: byte for byte, character in enumerate(byte_alphabet())}
        strings = [_byte_level(token or "", byte_of) for token in tokens]
        return strings, strings
    first = backend.decode_batch([[id] for id in ids], skip_special_tokens=False)
    before = next((id for id, text in zip(ids, first, strict=True) if text.isascii() and text.isalpha()), None)
    if before is None:
        inside = first
    else:
        lead = first[before]
        both = backend.decode_batch([[before, id] for id in ids], skip_special_tokens=False)
        inside = [text.removeprefix(lead) for text in both]
    single = {id: bytes([byte]) for id, byte in _byte_tokens(tokens)} if "ByteFallback" in kinds else {}

    def strings_of(texts: Sequence[str]) -> list[bytes]:
        return [b"" if tokens[id] is None else single.get(id, texts[id].encode()) for id in ids]

    return strings_of(first), strings_of(inside)


def _sized(strings: list[bytes], size: int) -> list[bytes]:
    return strings[:size] + [b""] * (size - len(strings))


def _decoders(decoder: Any) -> Iterator[str]:
    """The kinds of a decoder and of those inside it."""
    if decoder is not None:
        yield decoder["type"]
        for inner in decoder.get("decoders", ()):
            yield from _decoders(inner)


def _byte_level(token: str, byte_of: dict[str, int]) -> bytes:
    """The bytes of a byte-level token; an added token with other characters stands for itself."""
    if all(character in byte_of for character in token):
        return bytes(byte_of[character] for character in token)
    return token.encode()


def _byte_tokens(tokens: Iterable[str | None]) -> Iterator[tuple[int, int]]:
    """The ids of tokens such as <0x0A>, and their bytes."""
    for id, token in enumerate(tokens):
        if token is not None and (match := BYTE_TOKEN.fullmatch(token)):
            yield id, int(match[1], 16)
