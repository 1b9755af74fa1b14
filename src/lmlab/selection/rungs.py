"""Decides the next step of a search from its records alone, by successive halving.

Every candidate that learns has the same final budget, for which its size and its learning rate are chosen. At each rung, a
share of that budget, all candidates of the field are compared at equal shares by validation. The better half goes on. A search
that was killed continues where its records end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

What = Literal["count", "plan", "train", "choose", "measure"]


LATE = 0.85  # a candidate goes on if this share of the time that it needs is left


@dataclass(frozen=True, kw_only=True)
class CandidateState:
    """The progress of one candidate.

    Attributes:
        valid: by rung, the share of the budget and the bits per byte of the validation part.
        to_finish_s: seconds of training until the end of its budget.
    """

    name: str
    counts: bool
    reached: float = 0.0  # share of the budget that is used; 1: finished
    valid: tuple[tuple[float, float], ...] = ()
    to_finish_s: float = 0.0
    failed: bool = False

    def bits_at(self, share: float) -> float:
        """Return the bits per byte at a share of the budget; those of the end if the candidate stopped early."""
        reached = [bits for at, bits in self.valid if at <= share + 1e-9] or [bits for _, bits in self.valid[-1:]]
        return reached[-1] if reached else float("inf")


@dataclass(frozen=True, kw_only=True)
class State:
    """The progress of a search.

    Attributes:
        left_s: seconds left for training.
        counting_s: seconds left for counting; with none, the models that are not counted yet are left out.
    """

    candidates: tuple[CandidateState, ...]
    counting_s: float = float("inf")
    rungs: tuple[float, ...] = ()  # shares of the final budget, the last of which is 1; empty: not planned yet
    left_s: float = 0.0
    chosen: bool = False
    measured: bool = False


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a search. until: the share of its budget to which the candidate `name` is trained."""

    what: What
    name: str = ""
    until: float = 1.0


def next_step(state: State) -> Step | None:
    """Return the next step; None: the search is complete."""
    alive = [candidate for candidate in state.candidates if not candidate.failed]
    if not state.rungs:
        uncounted = [c for c in alive if c.counts and c.reached < 1]
        if uncounted and (state.counting_s > 0 or len(uncounted) == len(alive)):
            return Step(what="count", name=uncounted[0].name)
        return Step(what="plan")
    if state.chosen:
        return None if state.measured else Step(what="measure")
    field = [candidate for candidate in alive if not candidate.counts]
    for rung in state.rungs:
        for candidate in field:
            if candidate.reached < rung:
                if _too_late(candidate, rung, state):
                    return Step(what="choose")
                return Step(what="train", name=candidate.name, until=rung)
        field = survivors(field, rung)
    # Time that is left, because a run stopped early, finishes the best of those that were stopped.
    stopped = [c for c in alive if not c.counts and c.reached < 1 and c.to_finish_s <= state.left_s]
    if stopped:
        nearest = min(stopped, key=lambda c: (-c.reached, c.bits_at(c.reached)))
        return Step(what="train", name=nearest.name)
    return Step(what="choose")


def _too_late(candidate: CandidateState, rung: float, state: State) -> bool:
    """Whether training would exceed the budget by far, as on a machine with other work, while something else is finished."""
    finished = any(c.reached >= 1 and not c.failed for c in state.candidates)
    needed_s = candidate.to_finish_s * (rung - candidate.reached) / (1 - candidate.reached)
    return finished and needed_s * LATE > state.left_s


def survivors(field: Sequence[CandidateState], rung: float) -> list[CandidateState]:
    """Return the better half of a field, at least one, by validation at equal shares of the budget; all at the last rung."""
    if rung >= 1:
        return list(field)
    ranked = sorted(field, key=lambda candidate: candidate.bits_at(rung))
    kept = ranked[: max(1, len(field) // 2)]
    return [candidate for candidate in field if candidate in kept]


def budgets_in_all(rungs: Sequence[float], candidates: int) -> float:
    """Return the training time of all candidates in units of the final budget of one."""
    total, before = 0.0, 0.0
    for rung in rungs:
        total += candidates * (rung - before)
        before, candidates = rung, max(1, candidates // 2)
    return total


def starts_in_all(rungs: Sequence[float], candidates: int) -> int:
    """Return how often a run is started or resumed."""
    total = 0
    for _ in rungs:
        total, candidates = total + candidates, max(1, candidates // 2)
    return total
