"""Decides the next step of a comparison from its records.

Only records persist between two steps, so a comparison that was killed continues where its records end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

What = Literal["train", "measure", "plan the time", "choose the text", "run the baselines", "mix", "look closely"]


@dataclass(frozen=True, kw_only=True)
class EntryState:
    """The progress of one run."""

    name: str
    counts: bool  # fitted by counting
    trained: bool = False
    measured: bool = False  # scored on the current text
    looked: bool = False
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """The progress of a comparison, from which `next_step` is derived.

    Attributes:
        timed: the budget is in seconds. The training seconds are planned after counting, runs are trained one after the other,
            and the time left decides which text is scored. Otherwise the text is known from the start, and runs are trained and
            scored in any order.
        hurry: the user stopped training; what is trained is scored, and nothing else begins.
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
    """One step of a comparison.

    Attributes:
        names: the runs, or the tokenizer, to work on.
        measuring: whether all training is over.
    """

    what: What
    names: tuple[str, ...] = ()
    measuring: bool = False


def next_step(state: State) -> Step | None:
    """Return the next step; None: the comparison is complete."""
    if all(entry.failed for entry in state.entries):
        return None
    if (step := _training(state)) is not None:
        return step
    found = _measuring(state)
    return None if found is None else replace(found, measuring=True)


def _training(state: State) -> Step | None:
    """Return the next step before every run is trained; None: all are trained or training was stopped."""
    if state.hurry:
        return None
    untrained = [entry for entry in state.entries if not entry.trained and not entry.failed]
    if counted := [entry for entry in untrained if entry.counts]:
        return _step("train", counted)
    if state.timed and untrained:
        if not state.time_planned:  # the time to score count models predicts that of the others
            early = [e for e in state.entries if e.counts and e.trained and not e.measured and not e.failed]
            return _step("measure", early) if early else Step(what="plan the time")
        return _step("train", untrained[:1])
    return _step("train", untrained) if untrained else None


def _measuring(state: State) -> Step | None:
    """Return the next step after training: choose the test text, run the baselines, score, mix, or examine models in detail.

    The result is None if all steps are done.
    """
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
