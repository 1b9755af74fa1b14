"""How much history a prediction may use, as a value of the model: part of every result."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmlab.records import NOT_IN_JSON, JsonRecord, in_json


@dataclass(frozen=True)
class ContextPolicy(JsonRecord):
    """How much history each prediction may use. It is part of a result.

    window: tokens predicted from one reading, the first of them with no history; None: a document is one window.
    stride: tokens by which the next window moves on. A model that always sees its last N tokens has windows of N + 1
        tokens and stride 1.
    """

    window: int | None = field(metadata=NOT_IN_JSON)
    stride: int | None

    @classmethod
    def nothing(cls) -> ContextPolicy:
        """No prediction depends on another token."""
        return cls(1, 1)

    @classmethod
    def last(cls, tokens: int) -> ContextPolicy:
        """Every prediction sees the last so many tokens."""
        return cls(tokens + 1, 1)

    @classmethod
    def windows(cls, size: int, stride: int) -> ContextPolicy:
        """A window of `size` predictions is filled; the next begins `stride` tokens later and predicts what is new in it."""
        return cls(size, stride)

    @classmethod
    def everything(cls) -> ContextPolicy:
        """Every prediction sees all tokens of its document before it."""
        return cls(None, None)

    @property
    @in_json("history")
    def most(self) -> int | None:
        """The most tokens of history that a prediction sees; None: there is no bound."""
        return None if self.window is None else self.window - 1

    @property
    @in_json
    def documents(self) -> str:
        """What happens to the history where a document begins."""
        return "each begins afresh"

    @property
    @in_json
    def rule(self) -> str:
        """The policy in words."""
        return str(self)

    def resume(self, position: int) -> int:
        """The first token a row must hold so that those from `position` on see what they see in the whole document."""
        if self.window is None or self.stride is None or position < self.window:
            return 0
        kept = self.window - self.stride
        return (position - kept) // self.stride * self.stride

    def __str__(self) -> str:
        if self.window is None or self.stride is None:
            return "every token sees all tokens of its document before it"
        if self.window == 1:
            return "no token sees another"
        if self.stride == 1:
            return f"every token sees at most the last {self.window - 1} tokens of its document"
        least, most = self.window - self.stride, self.window - 1
        return f"every token sees the {least} to {most} tokens of its document before it, or as many as there are"
