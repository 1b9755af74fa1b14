"""What decoding returns: a continuation of a prompt, with what it costs and why it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import shorten
from typing import Literal

from lmlab.records import JsonRecord, json_key

# As many tokens as were allowed; a stop string appeared; the model ended the text; the caller ended it.
Finish = Literal["length", "stop", "end", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Generated(JsonRecord):
    """One continuation of a prompt.

    text: the continuation alone; a stop string, and what came after it in the same token, is left out.
    ids, spellings: its tokens, to the last one that was chosen, and the spellings of the unknown words among them.
    nats: -log p of those tokens and spellings given the prompt, under the model itself, whatever the temperature and the
        filters made of its distribution. Another division of the same text into tokens is not counted.
    spelling_nats: the part of `nats` that the spellings cost.
    finish: why it ended: "length" (as many tokens as allowed), "stop" (a stop string) or "end" (the model ended the text).
    score: what beam search ranks by, -nats / tokens^length_penalty; None for other methods.
    """

    text: str
    ids: tuple[int, ...] = field(metadata=json_key("tokens"))
    spellings: tuple[str, ...]
    nats: float
    spelling_nats: float
    finish: Finish
    score: float | None = None

    def __repr__(self) -> str:
        return f"Generated({shorten(self.text, 60)!r}, {len(self.ids)} tokens, {self.nats:.2f} nats, {self.finish})"
