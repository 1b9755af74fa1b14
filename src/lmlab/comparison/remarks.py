"""Warnings and notes about a comparison, for the terminal and the report."""

from __future__ import annotations

from lmlab.comparison.findings import Findings
from lmlab.measure.near_copies import how_much
from lmlab.measure.result import BITS_OF_A_BYTE
from lmlab.models.registry import Way, kind_of
from lmlab.text.shared_substrings import WINDOW

FIRST_SEEDS = "Of a model with several seeds the first run is mixed, and compared with the mix."
EQUAL = 0.8  # share of the longest training time below which a model is named
WORTH_TELLING = 0.01  # share of the test part that also occurs in the training part, in long pieces
DRIFTED = 1.2  # ratio of test to validation bits per byte from which the test part counts as a different kind of text
DECIDING = 3  # best models by validation, most of which must show it
OVER = 1.05  # seconds taken, as a multiple of the budget, from which on it is told
MOST_REMARKS = 5  # shown at first; --verbose and the report have the others


def remarks(found: Findings) -> list[str]:
    """Return all warnings and notes that apply, the most important first."""
    said = (
        unlike_the_rest(found),
        copied(found),
        unknown(found),
        unequal(found),
        beaten(found),
        worse_than_nothing(found),
        over_budget(found),
        *found.not_mixed,
        undertrained(found),
        repeated(found),
        diverged(found),
        found.measured.sentence,
        calibrated(found),
        untold(found),
    )
    return [sentence for sentence in said if sentence]


def copied(found: Findings) -> str:
    """Return a warning that names the models scored on their own training text, with the share; empty: none."""
    scores = {entry.name: entry.result for entry in found.measured_entries if entry.result}
    seen = {name: score.copied for name, score in scores.items() if score.held_out == "not held out"}
    if not seen:
        return ""
    names = "all models" if len(seen) == len(found.measured_entries) else ", ".join(seen)
    shares = [share for share in seen.values() if share is not None]
    much = how_much(min(shares, default=None), "the text that they were measured on")
    return (
        f"Not held out: {names} were trained on {much}. Such numbers show what was remembered; they are not ranked. Where it"
        " is one text that repeats itself, take the repetitions out before it is divided into parts."
    )


def unknown(found: Findings) -> str:
    """Return a warning that names the models for which it is unknown whether the text was held out; empty: none."""
    scores = {entry.name: entry.result for entry in found.measured_entries if entry.result}
    unknown = {name: score for name, score in scores.items() if score.held_out == "unknown"}
    if not unknown:
        return ""
    names = "every model" if len(unknown) == len(scores) else ", ".join(unknown)
    why = next(iter(unknown.values())).document.get("held_out", {}).get("detail", "")
    return (
        f"Not certified and not ranked: of {names} it is not known whether the text was held out{why and f' ({why})'}."
    )


def repeated(found: Findings) -> str:
    """Return a warning with the share of the test part that also occurs verbatim in the training part.

    The result is empty if the share is small or `copied` already warns.
    """
    share = found.corpus.shared.get("test", 0.0)
    if share < WORTH_TELLING or copied(found):
        return ""
    return (
        f"{share:.0%} of the test part also occurs in the training part, in pieces of {WINDOW} bytes or more: the text repeats"
        " itself, or it was copied together."
    )


def unequal(found: Findings) -> str:
    """Return a warning that names the models with less training time than others, relative to their shares; empty: none."""
    allowed = {
        entry.name: entry.training.allowed_s / found.shares.get(entry.model, 1.0)
        for entry in found.trusted_entries
        if entry.training is not None and entry.training.allowed_s
    }
    longest = max(allowed.values(), default=0.0)
    short = ", ".join(f"{name} ({seconds:.1f} s)" for name, seconds in allowed.items() if seconds < EQUAL * longest)
    return (
        f"Trained for a shorter time than the others ({longest:.1f} s), because time was lost before their turn: {short}. They"
        " may rank lower for that alone; a longer budget gives all the same time."
        if short
        else ""
    )


def reused(found: Findings) -> str:
    """Return a note that names the models that an earlier call trained, wholly or in part; empty: none.

    The note is not part of the report, because earlier training changes no result.
    """
    names = [entry.name for entry in found.entries if entry.reused]
    return f"Trained before, in the same folder, wholly or in part: {', '.join(names)}." if names else ""


def diverged(found: Findings) -> str:
    """Return a note that names the models whose training diverged, scored with their best weights before that; empty: none."""
    names = []
    for entry in found.entries:
        if entry.training is not None and (number := entry.training.diverged):
            names.append(entry.name + (f" ({number} of {len(entry.seeds)} runs)" if len(entry.seeds) > 1 else ""))
    each = ", ".join(names)
    return f"Diverged before their time was up, and measured with the best weights before that: {each}." if each else ""


def undertrained(found: Findings) -> str:
    """Return a note that names the models whose loss was still falling steeply at the end, with what a doubling brought."""
    falls = {
        e.name: e.training.still_falling
        for e in found.trusted_entries
        if e.training is not None and e.training.still_falling
    }
    each = ", ".join(f"{name} {fall:.2g}" for name, fall in sorted(falls.items(), key=lambda fall: -fall[1]))
    return (
        f"Undertrained: the second half of its time, a doubling, still lowered the loss by so many bits per byte: {each}. A"
        " longer budget may change their ranks."
        if falls
        else ""
    )


def untold(found: Findings) -> str:
    """Return a note that names the models first validated too late to judge from the curve whether they are undertrained."""
    names = [entry.name for entry in found.entries if entry.training is not None and entry.training.untold]
    return (
        "Too slow for this budget to tell whether it was enough, being first validated in the second half of their time:"
        f" {', '.join(names)}."
        if names
        else ""
    )


def calibrated(found: Findings) -> str:
    """Return a note that names the models whose logits were rescaled on validation text after overfitting; empty: none."""
    factors = {e.name: e.training.calibrated for e in found.entries if e.training is not None and e.training.calibrated}
    each = ", ".join(f"{name} ({factor:.2f})" for name, factor in factors.items())
    whose = " (each run by its own; here that of the first seed)" if found.several_seeds else ""
    return (
        "Overconfident after reading the text several times, so that their logits were multiplied by a number fitted on the"
        f" validation part{whose}: {each}."
        if factors
        else ""
    )


def beaten(found: Findings) -> str:
    """Return a note if a compressor needs fewer bits per byte than every model; empty: none does."""
    models = [bits for entry in found.trusted_entries if (bits := entry.bits_per_byte) is not None]
    best = min(found.yardsticks, key=lambda stick: stick.bits_per_byte, default=None)
    if best is None or not models or best.bits_per_byte >= min(models):
        return ""
    needs = f"needs {best.bits_per_byte:.3f} bits per byte"
    return f"{best.name}, a compressor ({best.detail}), {needs}: less than every model here."


def unlike_the_rest(found: Findings) -> str:
    """Return a warning if the best models do much worse on the test part than in validation; empty: they do not.

    A model that learned little is as bad on both, so the best few by validation decide.
    """
    both = sorted(
        (min(point.bits_per_byte for point in entry.curve), entry.bits_per_byte, entry.name)
        for entry in found.trusted_entries
        if entry.curve and entry.bits_per_byte is not None
    )[:DECIDING]
    worse = [test >= DRIFTED * valid for valid, test, _ in both]
    if 2 * sum(worse) <= len(worse):
        return ""
    valid, test, name = both[worse.index(True)]
    return (
        f"The test part is unlike the rest: {name} needs {valid:.2f} bits per byte in validation and {test:.2f} there. These"
        " numbers are of the test part alone; --split-by blocks measures on all of the text."
    )


def over_budget(found: Findings) -> str:
    """Return a note if the comparison took clearly longer than its budget; empty: it did not."""
    if found.budget_s is None or found.seconds <= OVER * found.budget_s:
        return ""
    return (
        f"Took {found.seconds:.0f} s of a budget of {found.budget_s:.0f} s: this machine was busy, or the budget is short for"
        " so many models. Name fewer models, or allow more time."
    )


def worse_than_nothing(found: Findings) -> str:
    """Return a note that names the models that need more than 8 bits per byte; empty: none does.

    The uniform model is left out: it needs more bits because its vocabulary is larger than a byte.
    """
    names = [
        entry.name
        for entry in found.trusted_entries
        if (entry.bits_per_byte or 0.0) > BITS_OF_A_BYTE and kind_of(entry.model).way is Way.LEARNS
    ]
    return f"Learned too little in this time, with more than 8 bits per byte: {', '.join(names)}." if names else ""
