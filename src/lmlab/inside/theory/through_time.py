"""The whole of one topic: gradients through time, and what they do to training."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from lmlab.inside.theory.clipping import Training
from lmlab.inside.theory.gradients import Through
from lmlab.records import JsonRecord, in_json

MEMORY = 30  # steps over which the network that is trained has to remember


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the runs from one start ended, their gradients clipped or not."""

    start: str
    clip: float | None
    runs: int
    learned: int
    median_bits: float

    @property
    def clipped(self) -> str:
        """What became of the gradients, in words."""
        return "as they are" if self.clip is None else f"clipped at {self.clip:g}"


@dataclass(frozen=True, kw_only=True)
class Gradients(JsonRecord):
    """Norms through time for several weights, and runs of a network that must remember. inputs: their spread."""

    width: int
    length: int
    inputs: float
    seed: int
    flows: tuple[Through, ...]
    trainings: tuple[Training, ...]
    trained_length: int = MEMORY

    @property
    @in_json
    def ended(self) -> list[Ended]:
        """A line for each start, without clipping and with."""
        groups: dict[tuple[str, float | None], list[Training]] = {}
        for run in self.trainings:
            groups.setdefault((run.start, run.clip), []).append(run)
        return [
            Ended(
                start=start,
                clip=clip,
                runs=len(runs),
                learned=sum(run.learned for run in runs),
                median_bits=median(run.end_bits for run in runs),
            )
            for (start, clip), runs in groups.items()
        ]
