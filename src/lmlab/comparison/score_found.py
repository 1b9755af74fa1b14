"""The score of one model, as a comparison records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmlab.measure.certificate import Certificate, Check


@dataclass(frozen=True)
class Score:
    """The result of one model: the JSON document of `lmlab.measure.Result`, with properties to read it."""

    document: Mapping[str, Any]

    def to_json(self) -> Mapping[str, Any]:
        """Return the document unchanged."""
        return self.document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Score:
        """Wrap a document unchanged."""
        return cls(document)

    @property
    def bits_per_byte(self) -> float | None:
        """Bits per byte; None if infinite."""
        found: float | None = self.document["bits_per_byte"]
        return found

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the bits per byte; None if there is none."""
        ends = self.document["interval"]
        return None if ends is None else (ends[0], ends[1])

    @property
    def parameters(self) -> int:
        """Number of parameters of the model."""
        return int(self.document["model"]["parameters"])

    @property
    def certified(self) -> bool:
        """Whether every check passed."""
        return bool(self.document["certified"])

    @property
    def held_out(self) -> str:
        """Whether the text was held out from training: "held out", "not held out" or "unknown"."""
        return str(self.document.get("held_out", {}).get("verdict", "unknown"))

    @property
    def copied(self) -> float | None:
        """A lower bound on the share of the text that occurs in the training text, exactly or nearly; None: unknown."""
        found: float | None = self.document.get("held_out", {}).get("copied")
        return found

    @property
    def checks(self) -> list[Check]:
        """Every check of the certificate."""
        details = self.document["certificate_details"]
        return [Check(name, passed, details.get(name, "")) for name, passed in self.document["certificate"].items()]

    @property
    def verdict(self) -> str:
        """The outcome of all checks in words."""
        return Certificate(tuple(self.checks), {}).verdict

    @property
    def notes(self) -> list[str]:
        """Notes to show beside the score."""
        return list(self.document["notes"])
