"""The table of a sweep: one cell per point of the grid, over all seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmlab.comparison.entry_records import MeasuredEntry
from lmlab.comparison.work import Outcome
from lmlab.measure.seeds import mean_and_margin
from lmlab.records import fields_to_json, to_json
from lmlab.sweeps.grid import Point

UNIT = "bits per byte"  # of all means and differences, since perplexities per token depend on the tokenizer


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The scored sample of a part of the text; see `lmlab.measure.Spread`."""

    part: str
    bytes: int
    sha256: str = ""
    sentence: str = ""

    @classmethod
    def of(cls, entry: MeasuredEntry) -> Measured:
        """Return the sample that an entry was scored on."""
        data = entry.result.document["data"]
        return cls(part=data["part"], bytes=data["bytes"], sha256=data["sha256"], sentence=data["measured"]["sentence"])


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the grid over all seeds; the lists have one item per completed seed."""

    settings: Point
    parameters: int
    seeds: list[int]
    perplexity: list[float]  # per token
    bits_per_byte: list[float]
    measured: Measured | None
    errors: list[str]  # error messages of failed seeds
    valid_bits_per_byte: list[float] = field(default_factory=list)  # empty: there is no validation part
    missing: int = 0  # seeds that are not complete
    diverged: int = 0  # diverged seeds; their best weights before that were scored

    def mean_and_margin(self) -> tuple[float, float]:
        """Return the mean bits per byte and half the width of its 95% interval (Student's t; NaN with one seed)."""
        return mean_and_margin(self.bits_per_byte)

    @property
    def valid_mean(self) -> float | None:
        """Mean bits per byte of the validation part; None if a seed failed, is missing or has no validation score."""
        known = self.valid_bits_per_byte and len(self.valid_bits_per_byte) == len(self.seeds)
        whole = known and not self.errors and not self.missing
        return math.fsum(self.valid_bits_per_byte) / len(self.seeds) if whole else None

    def to_json(self) -> dict[str, Any]:
        """Return the cell as a dict for JSON; null stands for an infinite or undefined number."""
        mean, margin = self.mean_and_margin()
        return fields_to_json(self) | {"mean": to_json(mean), "margin": to_json(margin), "unit": UNIT}


def collect(names: Mapping[str, Point], outcomes: Mapping[str, Outcome]) -> list[Cell]:
    """Group the outcomes into one cell per point.

    Args:
        names: the point of each run, by the run's name.
        outcomes: the outcomes of completed and failed runs, by the run's name.
    """
    points = [dict(point) for point in names.values()]
    return [
        _cell(point, [name for name, of in names.items() if dict(of) == point], outcomes)
        for place, point in enumerate(points)
        if point not in points[:place]
    ]


def _cell(point: Point, names: Sequence[str], outcomes: Mapping[str, Outcome]) -> Cell:
    mine = [outcomes[name] for name in names if name in outcomes]
    good = [(o, o.measured) for o in mine if o.measured is not None and not error_of(o)]
    good.sort(key=lambda one: one[0].task.spec.seed)
    validations = [one.validation for _, one in good]
    return Cell(
        settings=point,
        parameters=good[0][1].result.parameters if good else 0,
        seeds=[outcome.task.spec.seed for outcome, _ in good],
        perplexity=[one.token_perplexity for _, one in good],
        bits_per_byte=[one.bits_per_byte for _, one in good],
        measured=Measured.of(good[0][1]) if good else None,
        errors=[error for outcome in mine if (error := error_of(outcome))],
        valid_bits_per_byte=[bits for bits in validations if bits is not None],
        diverged=sum(outcome.trained is not None and outcome.trained.status == "diverged" for outcome, _ in good),
        missing=sum(name not in outcomes for name in names),
    )


def error_of(outcome: Outcome) -> str:
    """Return why a run has no score: an error, or a failed check of its certificate. Empty: it has one."""
    if outcome.error or outcome.measured is None:
        return outcome.error
    failed = [check.name for check in outcome.measured.result.checks if check.passed is False]
    return f"the certificate of its result fails: {', '.join(failed)}" if failed else ""
