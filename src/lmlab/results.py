"""What measuring a model of any other task than the next token finds: numbers with their intervals, and what they are of."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.records import JsonRecord


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number and its interval."""

    value: float
    low: float
    high: float

    def shown(self, digits: int = 3, sign: str = "") -> str:
        """With so many digits behind the point. sign: "+" where it is a difference."""
        value, low, high = (f"{number:{sign}.{digits}f}" for number in (self.value, self.low, self.high))
        return f"{value} [{low}, {high}]"

    def __str__(self) -> str:
        return self.shown()


@dataclass(frozen=True, kw_only=True)
class OtherResult(JsonRecord):
    """What `lmlab eval` says of a model that is not measured in bits per byte; each task adds its own figures."""

    model: str
    data: str
    part: str
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """The checks that the numbers fail, such as "held_out"."""
        return ()

    @property
    def where(self) -> str:
        """Which text it was measured on."""
        return self.data if self.part == "whole" else f"the {self.part} part of {self.data}"
