"""Pieces of a part: how much of a test text is measured, and how much of a training text compressors are shown."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.interface import ContextPolicy
from lmlab.measure.spread_sample import Spread, enough_history, spread
from lmlab.text.parts import Part

USUAL_CONTEXT = 256  # tokens: the longest window that a model chooses by itself


def measured_text(
    part: Part, limit: int, tokenizers: Sequence[str], contexts: Sequence[int] = (), *, seed: int = 0
) -> Spread:
    """About `limit` bytes spread over a part, read with history enough for all models.

    contexts: the windows, in tokens, that were asked for. seed: another one draws other places.
    """
    if limit >= part.bytes:
        return spread(part, limit)
    window = ContextPolicy.last(max([USUAL_CONTEXT, *contexts]))
    history = enough_history((window, token_bytes(part, spec)) for spec in tokenizers)
    return spread(part, limit, history_bytes=history, seed=seed)


def token_bytes(part: Part, tokenizer: str) -> float:
    """About the bytes of a token, before there is a tokenizer; pieces of words are taken for words."""
    if tokenizer == "byte":
        return 1.0
    return part.bytes / max(1, part.chars if tokenizer == "char" else part.words)


def last_bytes(part: Part, limit: int = 8 << 20) -> bytes:
    """The last bytes of a part, about `limit` of them."""
    blocks: list[bytes] = []
    for document in reversed(part.documents):
        blocks.append(b"".join(document.blocks())[-limit:])
        limit -= len(blocks[-1])
        if limit <= 0:
            break
    return b"".join(reversed(blocks))
