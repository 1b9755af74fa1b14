"""Proved by compression: the claimed bits held against a file that exists and opens again."""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmlab.compression.codec import claimed_bits, compress, decompress
from lmlab.compression.container import unpack

if TYPE_CHECKING:
    from lmlab.compression.codec import Progress
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer

TOLERANCE = 0.01  # of the claim
FRAME_BYTES = 32  # more than the header and the checksum of any file of one stream take


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A text that was compressed and decompressed, and what the model had claimed."""

    original_bytes: int
    tokens: int
    claimed_bits: float
    compressed_bytes: int  # of the whole file
    identical: bool  # the text came back byte for byte
    streams: int
    compress_s: float
    decompress_s: float

    @property
    def excess(self) -> float:
        """How much larger than claimed the file is, as a share of the claim (negative: smaller)."""
        return 8 * self.compressed_bytes / self.claimed_bits - 1.0 if self.claimed_bits else math.inf

    @property
    def holds(self) -> bool:
        """Whether the text came back and the size is within 1% (and a few bytes for every header) of the claim."""
        if not math.isfinite(self.claimed_bits):
            return False
        difference = abs(8 * self.compressed_bytes - self.claimed_bits)
        return self.identical and difference <= TOLERANCE * self.claimed_bits + 8 * FRAME_BYTES * self.streams

    def __add__(self, other: Proof) -> Proof:
        """Two texts, each compressed by itself, as one proof."""
        return Proof(
            original_bytes=self.original_bytes + other.original_bytes,
            tokens=self.tokens + other.tokens,
            claimed_bits=self.claimed_bits + other.claimed_bits,
            compressed_bytes=self.compressed_bytes + other.compressed_bytes,
            identical=self.identical and other.identical,
            streams=self.streams + other.streams,
            compress_s=self.compress_s + other.compress_s,
            decompress_s=self.decompress_s + other.decompress_s,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        fields = {k: None if v in (math.inf, -math.inf) else v for k, v in dataclasses.asdict(self).items()}
        excess = self.excess if math.isfinite(self.excess) else None
        return {**fields, "excess": excess, "holds": self.holds}


def proof(
    model: LanguageModel, tokenizer: Tokenizer, text: str, *, streams: int = 1, progress: Progress | None = None
) -> Proof:
    """Compress a text, open it again, compare. `text` is one document, from its beginning.

    Errors of decompression are not caught: a file that was just made must open.
    """
    claimed = claimed_bits(model, tokenizer, text)
    started = time.perf_counter()
    data = compress(model, tokenizer, text, streams=streams, progress=progress)
    between = time.perf_counter()
    returned = decompress(model, tokenizer, data, progress=progress)
    ended = time.perf_counter()
    header, parts = unpack(data)
    return Proof(
        original_bytes=header.text_bytes,
        tokens=header.tokens,
        claimed_bits=claimed,
        compressed_bytes=len(data),
        identical=returned == text,
        streams=len(parts),
        compress_s=between - started,
        decompress_s=ended - between,
    )
