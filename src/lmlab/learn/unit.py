"""The conversion of training losses to bits per byte, which is comparable across tokenizers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer

SPELLED = 50_000  # maximum number of words scored, evenly spread: enough for a progress display


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A conversion from nats per token to bits per byte for one part of a text, including the spelling of unknown words.

    The cost of spelling is constant during training. Without it, the curve of a `words` model would be far below the result of
    `lmlab eval` for the same weights. It would also be below the curves of better models with other tokenizers.
    """

    bits_per_nat: float  # bits per byte of one nat per token
    spelling_bits: float  # bits per byte of spelling unknown words

    @classmethod
    def of(cls, stream: TokenStream, tokenizer: Tokenizer) -> Unit:
        """Return the conversion for one part under one tokenizer."""
        size = max(1, stream.bytes) * math.log(2)
        return cls(bits_per_nat=stream.tokens / size, spelling_bits=_spelling_nats(stream, tokenizer) / size)

    def bits_per_byte(self, nats_per_token: float) -> float:
        """Convert a mean loss in nats per token to bits per byte of the text."""
        return nats_per_token * self.bits_per_nat + self.spelling_bits


def _spelling_nats(stream: TokenStream, tokenizer: Tokenizer) -> float:
    """Return the total nats of spelling the unknown words of a stream. Each distinct word is scored once."""
    if tokenizer.spelling is None or not len(stream.spellings):
        return 0.0
    every = max(1, -(-len(stream.spellings) // SPELLED))
    looked_at = range(0, len(stream.spellings), every)
    words = Counter(stream.spellings[i] for i in looked_at)
    nats = tokenizer.spelling.nats(list(words)) @ list(words.values())
    return float(nats) * len(stream.spellings) / len(looked_at)
