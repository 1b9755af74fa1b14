"""What decoding returns: a continuation of a prompt, with what it costs and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Literal

Finish = Literal["length", "stop", "end"]  # as many tokens as were allowed; a stop string appeared; the text ended


@dataclass(frozen=True, kw_only=True)
class Generated:
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
    ids: tuple[int, ...]
    spellings: tuple[str, ...]
    nats: float
    spelling_nats: float
    finish: Finish
    score: float | None = None

    def __repr__(self) -> str:
        return f"Generated({shorten(self.text, 60)!r}, {len(self.ids)} tokens, {self.nats:.2f} nats, {self.finish})"

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {
            "text": self.text,
            "tokens": list(self.ids),
            "spellings": list(self.spellings),
            "nats": self.nats,
            "spelling_nats": self.spelling_nats,
            "finish": self.finish,
            "score": self.score,
        }
