"""The cost of a trained model by formula: its parameters and the FLOPs of a training step."""

from __future__ import annotations

from typing import Any, ClassVar

from lmlab.formulas import HEAD, ONE_TOKEN, Part, Shape, Size, weights, work
from lmlab.interface.saved import Saved


class CostFormula(Saved):
    """A model whose parameters and FLOPs can be computed from its config, before it is constructed."""

    vocab_size: int
    letters: ClassVar[dict[str, str]] = {}  # symbol of a setting in formulas, such as "d" or "N - 1"; default: its name
    reads: ClassVar[str] = "a sequence of {} tokens"  # the input whose FLOPs are counted; without braces: of any length

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Return the components of a model: their weights, and the products they compute for a batch of this shape.

        Args:
            config: the settings of the model.
            vocab_size: a number or a symbol. Sizes of `config` and `shape` may be symbols too; see `lmlab.formulas`.
            shape: the shape of the batch.

        Returns:
            An empty list if the model has no formula. Its parameters are then counted from its tensors.
        """
        return []

    @property
    def parameters_count(self) -> int:
        """The number of trained parameters, by formula if the model has one, else counted from its tensors."""
        parts = self.parts(self.config, self.vocab_size)
        return int(weights(parts)) if parts else super().parameters_count

    def training_flops(
        self, rows: int, tokens: int = 1, source: int = 0, *, past: int | None = None, filled: float = 1.0
    ) -> int | None:
        """Return the forward and backward FLOPs of a training step by formula, without the optimizer.

        Args:
            rows: sequences in the batch.
            tokens: tokens per sequence.
            source: tokens of a second input sequence, such as the source of a translation.
            past: context tokens available before the sequence. None: as many as the model uses (`usual_past`).
            filled: share of the positions that hold a token. The output layer skips empty positions; all other layers compute
                them too.

        Returns:
            None if the model has no formula.
        """
        seen = self.usual_past if past is None else min(past, self.usual_past)
        parts = self.parts(self.config, self.vocab_size, Shape(rows, tokens, seen, source))
        unread = (1 - filled) * work(part for part in parts if part.name == HEAD).both
        return int(work(parts).both - unread) if parts else None

    @property
    def usual_length(self) -> int:
        """The sequence length in tokens for which FLOPs are reported by default."""
        return 1

    @property
    def usual_past(self) -> int:
        """The number of context tokens before a training sequence that the FLOP formula assumes (0: none)."""
        return 0

    @property
    def training_flops_per_token(self) -> float | None:
        """The forward and backward FLOPs of training per token, by formula, without the optimizer. None: unknown."""
        return None

    def blank(self, rows: int, tokens: int) -> Any:
        """Return a batch of zeros that `loss` accepts, for counting FLOPs; None if the model does not support it."""
        return None
