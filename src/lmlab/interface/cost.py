"""What a model that learns costs, by formula: its parameters and the operations of a training step."""

from __future__ import annotations

from typing import Any, ClassVar

from lmlab.formulas import HEAD, ONE_TOKEN, Part, Shape, Size, weights, work
from lmlab.interface.saved import Saved


class CostFormula(Saved):
    """A model that says what it is made of, so that what it costs is known before it is made."""

    vocab_size: int
    letters: ClassVar[dict[str, str]] = {}  # what formulas call a setting, such as "d" or "N - 1"; else its name
    reads: ClassVar[str] = "a sequence of {} tokens"  # what operations are counted of; no braces: of any length

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Return what a model of this config is made of, and what it multiplies in a pass over a batch of this shape.

        Sizes may be symbols: `lmlab.formulas` says how. An empty list means that the model does not say; its parameters are
        then counted by its tensors.
        """
        return []

    @property
    def parameters_count(self) -> int:
        """Numbers the model learns, by its formula where it has one."""
        parts = self.parts(self.config, self.vocab_size)
        return int(weights(parts)) if parts else super().parameters_count

    def training_flops(
        self, rows: int, tokens: int = 1, source: int = 0, *, past: int | None = None, filled: float = 1.0
    ) -> int | None:
        """Return the operations of a training step by formula, without the optimizer's; None: not known.

        Args:
            rows: of the batch.
            tokens: in a row.
            source: tokens of a second sequence, if the model reads one.
            past: tokens before these that there are to look back to; None: enough.
            filled: the share of the places that hold a token. The output layer reads these alone, the rest reads all.
        """
        seen = self.usual_past if past is None else min(past, self.usual_past)
        parts = self.parts(self.config, self.vocab_size, Shape(rows, tokens, seen, source))
        unread = (1 - filled) * work(part for part in parts if part.name == HEAD).both
        return int(work(parts).both - unread) if parts else None

    @property
    def usual_length(self) -> int:
        """Tokens of the sequence whose operations are counted, if nobody says how many."""
        return 1

    @property
    def usual_past(self) -> int:
        """Tokens before those of a training step to which the model usually looks back."""
        return 0

    @property
    def training_flops_per_token(self) -> float | None:
        """Operations of one training step per token, by formula, without the optimizer's; None: not known."""
        return None

    def blank(self, rows: int, tokens: int) -> Any:
        """Return a batch of zeros of this shape, as `loss` takes it, to count operations with; None: there is none."""
        return None
