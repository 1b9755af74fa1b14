"""How surprised a model is by every token of a text, and what it would rather have seen.

The bits are those that `lmlab eval` counts; what the model expected is asked of it token by token, by `begin` and `advance`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmlab.inside.openings import BacksOff
from lmlab.measure.near_copies import held_out
from lmlab.measure.score import device_of, evaluating, score_part
from lmlab.measure.scored import Scored
from lmlab.records import JsonRecord, brief

if TYPE_CHECKING:
    from lmlab.inside.passage import Passage
    from lmlab.interface import LanguageModel
    from lmlab.learn.run import Run
    from lmlab.text.tokenizers import Tokenizer

FAVOURITES = 5


@dataclass(frozen=True, kw_only=True)
class TokenRead:
    """One token as a model met it.

    start, end: its bytes in the text. bits: -log2 p, with the spelling of an unknown word; infinite: held impossible.
    entropy: the bits the model expected to pay here. rank: its place among all tokens, 1 for the favourite.
    favourites: the likeliest tokens, with probabilities. window: the first token the model could see here.
    order: of an n-gram model, how long the longest n-gram is that ends here and was counted.
    """

    text: str
    start: int
    end: int
    bits: float
    entropy: float
    rank: int
    favourites: tuple[tuple[str, float], ...]
    window: int
    order: int | None = None


@dataclass(frozen=True, kw_only=True)
class Reading(JsonRecord):
    """A text as one run's model read it."""

    __repr__ = brief  # not a page of numbers

    run: str  # its folder
    model: str
    tokenizer: str
    bytes: int
    bits: float
    bits_per_byte: float  # as `lmlab eval` gives it, to the last digit
    held_out: str  # "held out", "not held out": the model was trained on this text, or "unknown"
    copied: float | None  # the share of the text, at least, that it was trained on; None: unknown
    policy: str  # how much each prediction could see
    tokens: tuple[TokenRead, ...]

    @property
    def windows(self) -> tuple[int, ...]:
        """The tokens from which a new window was read; where each sees its own last N, the first that does not see all."""
        found = [t for t in range(1, len(self.tokens)) if self.tokens[t].window > self.tokens[t - 1].window]
        return tuple(found if self.moves > 1 else found[:1])

    @property
    def moves(self) -> int:
        """Tokens by which a window is moved on where the text is longer than the context; 0: it is not."""
        starts = sorted({token.window for token in self.tokens})
        return starts[1] - starts[0] if len(starts) > 1 else 0

    @property
    def note(self) -> str:
        """How a text that is longer than the context was cut; nothing where it is not longer."""
        if not self.moves:
            return ""
        where = ", ".join(f"{t:,}" for t in self.windows[:4]) + (", …" if len(self.windows) > 4 else "")
        cut = f"; new windows were read from token {where} on" if self.moves > 1 else ""
        return f"the text is longer than the context: {self.policy}{cut}"


def read_passage(run: Run, passage: Passage, *, device: str = "auto") -> Reading:
    """Let the model of a run read a text."""
    model, tokenizer, part = run.load(device), run.tokenizer, passage.part
    scored = score_part(model, tokenizer, part)
    with evaluating(model):
        tokens = tuple(_tokens(model, tokenizer, scored, (passage.text + passage.separator).encode()))
    return Reading(
        run=str(run.folder),
        model=run.record.model.name,
        tokenizer=tokenizer.spec,
        bytes=scored.bytes,
        bits=scored.total_nats / math.log(2),
        bits_per_byte=scored.bits_per_byte,
        held_out=(known := held_out(run.learned_from, part)).verdict,
        copied=known.copied,
        policy=str(model.policy),
        tokens=tokens,
    )


def _tokens(model: LanguageModel, tokenizer: Tokenizer, scored: Scored, text: bytes) -> Iterator[TokenRead]:
    ids = scored.stream.ids.astype(np.int64)
    ends = [0, *scored.byte_ends.tolist()]
    bits = (scored.nats_per_token.astype(float) / math.log(2)).tolist()
    tokens_T = torch.from_numpy(ids).to(device_of(model))
    orders = model.orders(tokens_T).tolist() if isinstance(model, BacksOff) else [None] * len(ids)
    for place, logp_V in enumerate(expected(model, tokens_T)):
        id, (start, end) = int(ids[place]), ends[place : place + 2]
        top = logp_V.topk(min(FAVOURITES, model.vocab_size))
        yield TokenRead(
            text=_shown(tokenizer, id, text[start:end]),
            start=start,
            end=end,
            bits=bits[place],
            entropy=float(torch.special.entr(logp_V.exp()).sum()) / math.log(2),
            rank=1 + int((logp_V > logp_V[id]).sum()),
            favourites=tuple(
                (tokenizer.piece(i), math.exp(p))
                for p, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)
            ),
            window=model.policy.resume(place),
            order=orders[place],
        )


@torch.inference_mode()
def expected(model: LanguageModel, tokens_T: Tensor) -> Iterator[Tensor]:
    """log p of every token that might come, before each of these tokens: V numbers each time."""
    logp_1V, state = model.begin(1)
    for place in range(len(tokens_T)):
        yield logp_1V[0]
        if place + 1 < len(tokens_T):
            logp_1V, state = model.advance(tokens_T[None, place : place + 1], state)


def _shown(tokenizer: Tokenizer, id: int, raw: bytes) -> str:
    """A token as it stands in the text; a byte inside a character as the tokenizer writes it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return tokenizer.piece(id)
