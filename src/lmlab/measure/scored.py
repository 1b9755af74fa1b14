"""The cost of a part of a corpus under a model, as records: of all that was read, and of what of it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.tally import Tally

if TYPE_CHECKING:
    from lmlab.measure.spread_sample import Spread
    from lmlab.text.parts import Part
    from lmlab.text.stream import TokenStream


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored(Tally):
    """The cost of one part of a corpus under one model.

    A token of an unknown word costs what the model says of the unknown symbol and what the spelling costs.
    """

    part: Part
    tokenizer_hash: str
    stream: TokenStream
    nats_per_token: np.ndarray  # float32, spelling included; a memory map when long
    spans: np.ndarray  # int64, n×2: the tokens whose nats each call of the model set, in order of the calls
    seams: int  # cuts inside documents
    seam_difference: float  # largest change of a token's nats by such a cut
    counted: Counted | None = None  # where only some of what was read counts: the sums are then of that

    @property
    def tokens(self) -> int:
        """Number of tokens that count."""
        return self.stream.tokens if self.counted is None else self.counted.tokens

    @property
    def bytes(self) -> int:
        """UTF-8 bytes that count: of the text, from the file, not from the tokens, where all of it does."""
        return self.part.bytes if self.counted is None else self.counted.bytes

    @property
    def chars(self) -> int:
        """Unicode characters that count."""
        return self.stream.chars if self.counted is None else self.counted.chars

    @property
    def words(self) -> int:
        """Words that count: runs without whitespace."""
        return self.stream.words if self.counted is None else self.counted.words

    @property
    def bits_per_byte(self) -> float:
        """The number: total nats / (ln 2 × bytes)."""
        return float(self.total_nats / (np.log(2.0) * self.bytes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """How much of what was read counts."""

    chosen: Spread
    read: Scored  # all of it, which is what the certificate looked at
    tokens: int
    bytes: int
    chars: int
    words: int
