"""Heads switched off one at a time: what a text costs without each of them (Michel 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake
from lmlab.inside.attention import Attention
from lmlab.inside.head_cost_units import of_encoder, of_language_model, of_translator
from lmlab.inside.head_descriptions import Head
from lmlab.inside.openings import AttentiveAcross, AttentiveAround, Headed
from lmlab.models.registry import model_class, trainable
from lmlab.records import NOT_IN_JSON, JsonRecord, brief, in_json, json_key

if TYPE_CHECKING:
    from lmlab.learn.run import Run

NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class HeadCost:
    """One head. cost: bits, per what the unit says, that the text costs more without it; error: half of its 95% interval."""

    head: Head = field(metadata=json_key(flat=True))
    cost: float
    error: float

    @property
    @in_json
    def within_chance(self) -> bool:
        """Whether the text might as well cost nothing more without it."""
        return self.cost < self.error


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadCosts(JsonRecord):
    """All heads of a model, each switched off once. bits: per `unit`, with all heads.

    over: what was measured. told: what the summaries of the heads were made from.
    """

    __repr__ = brief  # not a page of numbers

    run: str
    model: str
    unit: str
    over: str
    told: str = field(metadata=NOT_IN_JSON)
    bits: float
    heads: tuple[HeadCost, ...]
    attention: Attention = field(metadata=NOT_IN_JSON)


def heads_of(run: Run, text: str | Path | None, *, device: str = "auto") -> HeadCosts:
    """Score a text (pairs, for a translator) with every head, and then again without each of them."""
    model = run.saved
    if not isinstance(model, Headed):
        others = [name for name in trainable() if issubclass(model_class(name), Headed)]
        raise Mistake(
            f"{run.folder} holds a model of the kind {run.record.model.name}, which has no heads to switch off;"
            f" these have: {', '.join(others)}",
            code="run-without-heads",
        )
    if isinstance(model, AttentiveAcross):
        measure = of_translator(run, text, device)
    elif isinstance(model, AttentiveAround):
        measure = of_encoder(run, text, device)
    else:
        measure = of_language_model(run, text, device)
    whole = measure.nats()
    to_bits = 1.0 / (math.log(2) * measure.count)
    found = []
    for head in measure.attention.heads:
        with model.without_head(head.layer - 1, head.head - 1):
            more = measure.nats() - whole
        spread = float(more.std(ddof=1)) * math.sqrt(len(more)) if len(more) > 1 else math.nan
        found.append(HeadCost(head=head, cost=float(more.sum()) * to_bits, error=NORMAL_95 * spread * to_bits))
    return HeadCosts(
        run=str(run.folder),
        model=run.record.model.name,
        unit=measure.unit,
        over=measure.over,
        told=measure.told,
        bits=float(whole.sum()) * to_bits,
        heads=tuple(found),
        attention=measure.attention,
    )
