"""What a comparison does next, as a function of the records that there are.

Nothing is remembered between two steps but records, so a comparison that was killed goes on where its records end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

What = Literal["train", "measure", "plan the time", "choose the text", "run the baselines", "mix", "look closely"]


@dataclass(frozen=True, kw_only=True)
class EntryState:
    """How far one entry is."""

    name: str
    counts: bool  # it is counted, not learned
    trained: bool = False
    measured: bool = False  # on the text that is measured now
    looked: bool = False
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """What there is of a comparison.

    timed: its budget is one of time. Then the seconds of training are planned once counting is over, entries are trained one
    after the other, and the text is chosen by the time that is left. Else the text is known from the beginning, and entries
    are trained and measured in any order.
    hurry: somebody stopped the training; what is trained is measured, and nothing else begins.
    """

    entries: tuple[EntryState, ...]
    timed: bool
    hurry: bool = False
    time_planned: bool = False
    text_chosen: bool = False
    has_baselines: bool = False
    to_mix: tuple[str, ...] = ()  # tokenizers whose models are not mixed yet


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. names: of the entries, or of one tokenizer, that it is about. measuring: all training is over."""

    what: What
    names: tuple[str, ...] = ()
    measuring: bool = False


def next_step(state: State) -> Step | None:
    """What to do next; None: all is done."""
    if all(entry.failed for entry in state.entries):
        return None
    if (step := _training(state)) is not None:
        return step
    found = _measuring(state)
    return None if found is None else replace(found, measuring=True)


def _training(state: State) -> Step | None:
    """What is to be done until every entry is trained."""
    if state.hurry:
        return None
    untrained = [entry for entry in state.entries if not entry.trained and not entry.failed]
    if counted := [entry for entry in untrained if entry.counts]:
        return _step("train", counted)
    if state.timed and untrained:
        if not state.time_planned:  # measuring what is counted says what measuring the others will take
            early = [e for e in state.entries if e.counts and e.trained and not e.measured and not e.failed]
            return _step("measure", early) if early else Step(what="plan the time")
        return _step("train", untrained[:1])
    return _step("train", untrained) if untrained else None


def _measuring(state: State) -> Step | None:
    """What is to be done with the entries that are trained."""
    ready = [entry for entry in state.entries if entry.trained and not entry.failed]
    if not ready:
        return None
    if not state.text_chosen and not state.hurry:
        return Step(what="choose the text")
    if not state.has_baselines:
        return Step(what="run the baselines")
    if unmeasured := [entry for entry in ready if not entry.measured]:
        return _step("measure", unmeasured)
    if state.to_mix and not state.hurry:
        return Step(what="mix", names=state.to_mix[:1])
    unseen = [entry for entry in ready if not entry.looked]
    return _step("look closely", unseen) if unseen else None


def _step(what: What, entries: Sequence[EntryState]) -> Step:
    return Step(what=what, names=tuple(entry.name for entry in entries))
