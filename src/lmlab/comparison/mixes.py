"""The record of a mix of compared entries, and its description in words."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.comparison.score_found import Score

NAMED = 0.005  # minimum weight of a part that is named


@dataclass(frozen=True, kw_only=True)
class MixedPart:
    """An entry that is part of a mix, and its mean weight."""

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True)
class EntryMix:
    """A mix of entries under one tokenizer. It has no rank, since it used the training time of all its parts."""

    tokenizer: str
    parts: tuple[MixedPart, ...]
    weighting: str
    result: Score
    seconds: float  # of training all parts and fitting the weights
    best: str  # name of the best part
    saved_bits_per_byte: float | None  # compared with `best`; None: not finite
    saved_interval: tuple[float, float] | None  # at 95%
    untried: tuple[str, ...] = ()  # certified entries left out, mostly for lack of time

    @property
    def made_of(self) -> str:
        """The parts with their weights, largest first; parts with negligible weight are only counted."""
        named = [f"{part.name} {part.weight:.0%}" for part in self._named]
        others = len(self.parts) - len(named)
        return ", ".join(named) + (f" and {others} with less than {NAMED:.1%} each" if others else "")

    @property
    def _named(self) -> list[MixedPart]:
        return sorted((part for part in self.parts if part.weight >= NAMED), key=lambda part: -part.weight)

    @property
    def sentence(self) -> str:
        """The bits per byte of the mix and the training time of its parts, in words."""
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
        """A sentence that names the certified entries that are not in the mix; empty: none."""
        return f" Not tried in it: {', '.join(self.untried)}." if self.untried else ""

    @property
    def against_best(self) -> str:
        """The difference between the mix and its best part in words; empty if it is not finite."""
        if self.saved_bits_per_byte is None:
            return ""
        if len(self._named) == 1:
            return f"adds nothing to {self._named[0].name}"
        costs_more, ends = self.saved_bits_per_byte < 0, self.saved_interval
        if costs_more:
            ends = None if ends is None else (-ends[1], -ends[0])
        number = f"{abs(self.saved_bits_per_byte):.4f}" + ("" if ends is None else f" [{ends[0]:.4f}, {ends[1]:.4f}]")
        return (
            f"costs {number} more than {self.best} alone" if costs_more else f"saves {number} against {self.best} alone"
        )


@dataclass(frozen=True, kw_only=True)
class MixRecord:
    """The record of mixing the entries of one tokenizer: a mix, or the reason why there is none.

    The entries are mixed again if `of` or `text` changes.

    Attributes:
        of: the hash of the weights of each entry that could be part of the mix, by name.
        text: the hash of the text that was read to score the mix.
    """

    of: dict[str, str]
    text: str
    mix: EntryMix | None = None
    why_not: str = ""
