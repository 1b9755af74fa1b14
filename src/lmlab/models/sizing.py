"""How models choose their own size from the text and the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from lmlab.config import Budget, TextFacts
from lmlab.formulas import EMBEDDING, HEAD, Part
from lmlab.models.dropout import dropout_after

C = TypeVar("C")
S = TypeVar("S")
MOST_HEADS = 1024  # that are looked for: wider models than these have fit no memory


def tokens_in_budget(budget: Budget, facts: TextFacts, config: Any, batch_tokens: int) -> float:
    """How many tokens the budget trains a model of this config on; for seconds, at the speed that was timed here."""
    if budget.tokens is not None:
        return budget.tokens
    if budget.steps is not None:
        return budget.steps * batch_tokens
    assert budget.seconds is not None
    return budget.seconds * facts.tokens_per_second(config)


@dataclass(frozen=True)
class Appetite:
    """What a kind of model wants before it grows. Found on grids over character, BPE and word texts."""

    batch_tokens: int  # per step
    tokens_per_weight: float  # that the budget must show each weight
    weights_per_token: float  # of its body that the text can fill
    head: bool = True  # whether the output layer must be fed too
    most_dropout: float = 1.0  # however often the text is read

    def size(
        self,
        sizes: Sequence[S],
        at: Callable[[S], Any],
        parts: Callable[[Any, int], Sequence[Part]],
        facts: TextFacts,
        budget: Budget,
    ) -> S:
        """The last of `sizes` (small to large) that the budget can feed and the text can fill; the first if none can.

        at: the config of a size. parts: what a model of a config and a vocabulary is made of.
        """
        best = sizes[0]
        for size in sizes:
            made = parts(at(size), facts.vocab_size)
            body = multiplied(part for part in made if part.name not in (EMBEDDING, HEAD))
            head = multiplied(part for part in made if part.name == HEAD) if self.head else 0
            if body > self.weights_per_token * facts.train_tokens:
                continue
            tokens = tokens_in_budget(budget, facts, at(size), self.batch_tokens)
            if tokens >= self.tokens_per_weight * (body + head):
                best = size
        return best

    def with_dropout(self, config: C, wanted: float | None, facts: TextFacts, budget: Budget) -> C:
        """`config` with the dropout that is wanted; by itself by how often the budget reads the text at this size."""
        if wanted is None:
            passes = tokens_in_budget(budget, facts, config, self.batch_tokens) / max(1, facts.train_tokens)
            wanted = min(dropout_after(passes), self.most_dropout)
        return replace(config, dropout=wanted)  # type: ignore[type-var]


def multiplied(parts: Iterable[Part]) -> int:
    """Weights that every token is multiplied with."""
    return sum(part.times * part.multiplied for part in parts)


def heads_of(width: int, head_width: int, *, even: bool = False) -> int:
    """The most heads at least so wide that share a width; even: each of an even width, where that can be."""
    most = min(max(1, width // head_width), MOST_HEADS)
    return next((n for n in range(most, 0, -1) if width % n == 0 and not (even and width // n % 2)), 1)


def with_settings(chosen: C, settings: C) -> C:
    """`chosen` with every setting of `settings` that is not left open (None) in its place."""
    given = {f.name: getattr(settings, f.name) for f in fields(settings)}  # type: ignore[arg-type]
    return replace(chosen, **{name: value for name, value in given.items() if value is not None})  # type: ignore[type-var]
