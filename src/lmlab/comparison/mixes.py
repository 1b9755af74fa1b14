"""The mix of the entries of a comparison: its record, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.comparison.score_found import Score

NAMED = 0.005  # the least weight of a part that is named


@dataclass(frozen=True, kw_only=True)
class MixedPart:
    """An entry that is part of a mix, and its weight on average."""

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class EntryMix:
    """The mix of entries under one tokenizer, which has no rank: it had the time of all its parts."""

    tokenizer: str
    parts: tuple[MixedPart, ...]
    weighting: str
    result: Score
    seconds: float  # of training, of all its parts, and of fitting the weights
    best: str  # the best of its parts by itself
    saved_bits_per_byte: float | None  # against that one; None where that is no finite number
    saved_interval: tuple[float, float] | None  # at 95%
    untried: tuple[str, ...] = ()  # certified entries that are not part of it, mostly for want of time

    @property
    def made_of(self) -> str:
        """Its parts with their weights, the heaviest first; those that round to nothing are counted."""
        named = [f"{part.name} {part.weight:.0%}" for part in self._named]
        others = len(self.parts) - len(named)
        return ", ".join(named) + (f" and {others} with less than {NAMED:.1%} each" if others else "")

    @property
    def _named(self) -> list[MixedPart]:
        return sorted((part for part in self.parts if part.weight >= NAMED), key=lambda part: -part.weight)

    @property
    def sentence(self) -> str:
        """What the mix needs, and what its parts cost."""
        bits = "no finite number of" if self.result.bits_per_byte is None else f"{self.result.bits_per_byte:.4f}"
        certified = "" if self.result.certified else " (NOT certified)"
        if len(self._named) == 1:
            others = "what was mixed with it adds" if self.untried else "the others add"
            return (
                f"Together they need {bits} bits per byte{certified}: {others} nothing to {self._named[0].name},"
                f" which has all of the weight.{self.not_tried}"
            )
        against = f", which {self.against_best}" if self.against_best else ""
        return (
            f"Together ({self.made_of}) they need {bits} bits per byte{certified}{against}; to train all of them"
            f" took {self.seconds:.0f} s. A mix has no rank: it had the time of all its parts.{self.not_tried}"
        )

    @property
    def not_tried(self) -> str:
        """Which certified entries were not mixed with the others, to be read after what was found; empty: none."""
        return f" Not tried in it: {', '.join(self.untried)}." if self.untried else ""

    @property
    def against_best(self) -> str:
        """What it saves against its best part alone, or how much more it costs; empty: neither is a finite number."""
        if self.saved_bits_per_byte is None:
            return ""
        costs_more, ends = self.saved_bits_per_byte < 0, self.saved_interval
        if costs_more:
            ends = None if ends is None else (-ends[1], -ends[0])
        number = f"{abs(self.saved_bits_per_byte):.4f}" + ("" if ends is None else f" [{ends[0]:.4f}, {ends[1]:.4f}]")
        return (
            f"costs {number} more than {self.best} alone" if costs_more else f"saves {number} against {self.best} alone"
        )


@dataclass(frozen=True, kw_only=True)
class MixRecord:
    """What mixing the entries of one tokenizer came to: a mix, or why there is none.

    of: the name and the hash of the weights of each entry that could be part of it, and `text`, the hash of what was read to
    measure it. Where any of them changes, the entries are mixed again.
    """

    of: dict[str, str]
    text: str
    mix: EntryMix | None = None
    why_not: str = ""
