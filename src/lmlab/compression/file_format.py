"""The compressed file: what must match, what was promised, the coded streams, and a checksum over all of it.

    bytes   what
    3       magic; the first byte begins no UTF-8 text
    1       version of this format; 1 had no maker
    4       fingerprint of the model (see `fingerprint`)
    4       SHA-256 of the text, its first bytes
    varint  bytes of what follows
            the maker: which lmlab, torch and processor wrote it; nothing where any can open it
    varint  bytes of the text
    varint  tokens
    varint  streams, then the length in bytes of each but the last
            the streams, end to end
    4       CRC-32 of everything before it

A varint is seven bits a byte, low ones first, the high bit set on all but the last. Everything of more than one byte is
big-endian.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.identity import model_hash

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

MAGIC = b"\xa7lm"
VERSION = 2
_FIXED = len(MAGIC) + 1 + 4 + 4
_CRC_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a compressed file says about itself."""

    fingerprint: bytes
    text_check: bytes
    text_bytes: int
    tokens: int
    maker: str = ""
    version: int = VERSION


def fingerprint(model: LanguageModel, tokenizer: Tokenizer) -> bytes:
    """Four bytes that differ between models: of kind, settings, tokenizer and every learned number."""
    return bytes.fromhex(model_hash(model, tokenizer))[:4]


def text_check(text: bytes) -> bytes:
    """Four bytes that tell whether a text is the one that was compressed."""
    return hashlib.sha256(text).digest()[:4]


def stream_bounds(tokens: int, streams: int) -> list[int]:
    """Where each stream begins among the tokens, and the end: as even as can be."""
    return [i * tokens // streams for i in range(streams + 1)]


def pack(header: Header, streams: Sequence[bytes]) -> bytes:
    """The file of these coded streams, of which there is at least one."""
    numbers = [header.text_bytes, header.tokens, len(streams), *map(len, streams[:-1])]
    maker = header.maker.encode()
    body = MAGIC + bytes([VERSION]) + header.fingerprint + header.text_check + _varint(len(maker)) + maker
    body += b"".join(map(_varint, numbers)) + b"".join(streams)
    return body + zlib.crc32(body).to_bytes(_CRC_BYTES, "big")


def unpack(data: bytes) -> tuple[Header, list[bytes]]:
    """The header and the coded streams; Mistake, in one line, when this is no such file or not a whole one."""
    if data[: len(MAGIC)] != MAGIC:
        raise Mistake("this was not made by lmlab compress, or its beginning is damaged", code="not-compressed")
    version = data[len(MAGIC)] if len(data) > len(MAGIC) else VERSION
    if not 1 <= version <= VERSION:
        raise Mistake(
            f"this is compressed in format {version}, or damaged; this lmlab reads formats up to {VERSION}",
            code="compressed-format-unknown",
        )
    body, crc = data[:-_CRC_BYTES], data[-_CRC_BYTES:]
    damaged = Mistake(
        "the compressed data are damaged: cut short, added to or changed; make them again", code="compressed-damaged"
    )
    if len(body) < _FIXED or zlib.crc32(body) != int.from_bytes(crc, "big"):
        raise damaged
    try:
        numbers = _Varints(body, _FIXED)
        maker = numbers.text() if version > 1 else "an older lmlab"
        text_bytes, tokens, streams = numbers.next(), numbers.next(), numbers.next()
        # No token stands for less than nothing, and at most every second one for nothing at all ("no space here").
        if not 1 <= streams <= max(tokens, 1) or tokens > 2 * text_bytes + 1:
            raise damaged
        lengths = [numbers.next() for _ in range(streams - 1)]
    except (IndexError, UnicodeDecodeError):
        raise damaged from None
    starts = [numbers.at]
    for length in lengths:
        starts.append(starts[-1] + length)
    if starts[-1] > len(body):
        raise damaged
    header = Header(
        fingerprint=body[4:8],
        text_check=body[8:12],
        text_bytes=text_bytes,
        tokens=tokens,
        maker=maker,
        version=version,
    )
    return header, [body[a:b] for a, b in pairwise([*starts, len(body)])]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


class _Varints:
    """Reads varints one after the other; IndexError at the end of the data."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def text(self) -> str:
        """The text whose length is the next number."""
        length = self.next()
        self.at += length
        if self.at > len(self.data):
            raise IndexError(self.at)
        return self.data[self.at - length : self.at].decode()

    def next(self) -> int:
        """The next number."""
        number = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
