"""The context policy: how much history a prediction sees. It is part of a result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel


@dataclass(frozen=True)
class ContextPolicy:
    """How much history a prediction sees.

    window: tokens predicted from one reading, the first of them with no history; None: a document is one window.
    stride: tokens by which the next window moves on. A model that always sees its last N tokens has windows of N + 1
        tokens and stride 1.
    """

    window: int | None
    stride: int | None

    @classmethod
    def of(cls, model: LanguageModel) -> ContextPolicy:
        """The policy of a model: of its settings `context` and `stride`, or of its fixed history."""
        if model.context is None:
            return cls(None, None)
        stride = asdict(model.config).get("stride")
        return cls(model.context + 1, 1) if stride is None else cls(model.context, stride)

    def resume(self, position: int) -> int:
        """The first token a row must hold so that those from `position` on see what they see in the whole document."""
        if self.window is None or self.stride is None or position < self.window:
            return 0
        kept = self.window - self.stride
        return (position - kept) // self.stride * self.stride

    def to_json(self) -> dict[str, Any]:
        """The policy in numbers and in words."""
        if self.window is None:
            rule = "every token sees all tokens of its document before it"
        elif self.stride == 1:
            rule = f"every token sees at most the last {self.window - 1} tokens of its document"
        else:
            assert self.stride is not None
            least, most = self.window - self.stride, self.window - 1
            rule = f"every token sees the {least} to {most} tokens of its document before it, or as many as there are"
        history = None if self.window is None else self.window - 1
        return {"history": history, "stride": self.stride, "documents": "each begins afresh", "rule": rule}
