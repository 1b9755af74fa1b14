"""Losses of training in the unit that is fair to all tokenizers: bits per byte, nothing left out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer

SPELLED = 50_000  # spellings that are looked at; of more, as many evenly spread ones: this is a display, not a result


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Nats per token of one part of a text as bits per byte, what spelling its unknown words costs included.

    The spelling does not change with training. Without it the curve of a `words` model would stand far below what
    `lmlab eval` says of the same weights, and below other models that predict the text better.
    """

    bits_per_nat: float  # bits per byte for one nat per token
    spelling_bits: float  # bits per byte for the spelling of unknown words

    @classmethod
    def of(cls, stream: TokenStream, tokenizer: Tokenizer) -> Unit:
        """The unit of one part under one tokenizer."""
        size = max(1, stream.bytes) * math.log(2)
        return cls(bits_per_nat=stream.tokens / size, spelling_bits=_spelling_nats(stream, tokenizer) / size)

    def bits_per_byte(self, nats_per_token: float) -> float:
        """Bits per byte of the text for a model's mean nats per token."""
        return nats_per_token * self.bits_per_nat + self.spelling_bits


def _spelling_nats(stream: TokenStream, tokenizer: Tokenizer) -> float:
    """Nats of all unknown words' spellings, each different one spelled once."""
    if tokenizer.spelling is None or not len(stream.spellings):
        return 0.0
    every = max(1, -(-len(stream.spellings) // SPELLED))
    looked_at = range(0, len(stream.spellings), every)
    words = Counter(stream.spellings[i] for i in looked_at)
    nats = tokenizer.spelling.nats(list(words)) @ list(words.values())
    return float(nats) * len(stream.spellings) / len(looked_at)
