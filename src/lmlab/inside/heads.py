"""Heads switched off one at a time: what a text costs without each of them (lab11 problem 7.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.config import Mistake
from lmlab.inside.attention import Attention, Head, attention_of, tokens_of
from lmlab.inside.openings import Headed
from lmlab.inside.passage import Passage
from lmlab.measure.score import nats_of_tokens
from lmlab.records import fields_to_json, to_json

if TYPE_CHECKING:
    from lmlab.learn.run import Run

SUMMARISED = 4_000  # characters from which the summaries of the heads are made
STRETCH = 64  # tokens whose differences are taken for independent of the next ones'
NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class HeadCost:
    """One head. cost: bits per byte that the text costs more without it; error: half of its 95% interval."""

    head: Head
    cost: float
    error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadCosts:
    """All heads of a model, each switched off once."""

    run: str
    model: str
    bytes: int
    bits_per_byte: float  # with all heads
    heads: tuple[HeadCost, ...]
    attention: Attention

    def to_json(self) -> dict[str, Any]:
        """Costs beside the summaries."""
        heads = [{**fields_to_json(one.head), "cost": one.cost, "error": to_json(one.error)} for one in self.heads]
        found = {"run": self.run, "model": self.model, "bytes": self.bytes, "bits_per_byte": self.bits_per_byte}
        return {**found, "heads": heads}


def heads_of(run: Run, passage: Passage, *, device: str = "auto") -> HeadCosts:
    """Score a text with every head, and then again without each of them."""
    model = run.load(device)
    if not isinstance(model, Headed):
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no heads to switch off; gpt has"
        )
    looks = attention_of(run, Passage(passage.name, passage.text[:SUMMARISED]), device=device)
    ids = np.array([id for id, _ in tokens_of(run, passage)])
    starts = np.array([0, len(ids)])
    whole = nats_of_tokens(model, ids, starts).astype(np.float64)
    to_bits = 1.0 / (math.log(2) * passage.bytes)
    found = []
    for head in looks.heads:
        with model.without_head(head.layer - 1, head.head - 1):
            more = nats_of_tokens(model, ids, starts).astype(np.float64) - whole
        stretches = np.add.reduceat(more, np.arange(0, len(more), STRETCH))
        spread = float(stretches.std(ddof=1)) * math.sqrt(len(stretches)) if len(stretches) > 1 else math.nan
        found.append(HeadCost(head=head, cost=float(more.sum()) * to_bits, error=NORMAL_95 * spread * to_bits))
    return HeadCosts(
        run=str(run.folder),
        model=run.record.model.name,
        bytes=passage.bytes,
        bits_per_byte=float(whole.sum()) * to_bits,
        heads=tuple(found),
        attention=looks,
    )
