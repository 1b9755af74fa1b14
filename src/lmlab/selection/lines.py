"""The table of a search as text, and its result in a sentence: for the terminal, the page and a log."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lmlab.selection.records import Found, FoundCandidate


def titles(shares: Sequence[float]) -> list[str]:
    """Return the column titles of the table: one column of validation for each rung."""
    return ["model", "tokenizer", *(f"{share:.0%}" for share in shares), "seconds", "parameters", "what became of it"]


def cells(row: FoundCandidate, shares: Sequence[float]) -> list[str]:
    """Return the cells of one candidate: its bits per byte of the validation part at each rung that it reached."""
    found = [row.name, row.tokenizer]
    for share in shares:
        at = next((rung for rung in row.rungs if abs(rung.share - share) < 1e-9), None)
        found.append("" if at is None else f"{at.bits_per_byte:.4f}")
    parameters = "" if row.parameters is None else f"{row.parameters:,}"
    return [*found, f"{row.seconds:.1f}", parameters, became(row)]


def became(row: FoundCandidate) -> str:
    """Return what became of a candidate, in words."""
    if row.ended == "failed":
        return f"failed: {row.error}"
    if row.weight is not None:
        return f"in the best model: {row.weight:.0%}"
    if row.ended == "stopped":
        return f"stopped at {row.rungs[-1].share:.0%}" if row.rungs else "not begun"
    return row.ended


def sentence(found: Found) -> str:
    """Return the best model and its number in a sentence."""
    parts, result = found.choice.parts, found.result
    named = " and ".join(f"{part.name} ({part.weight:.0%})" for part in sorted(parts, key=lambda p: -p.weight))
    what = f"a mix of {named}" if len(parts) > 1 else parts[0].name
    bits = "no finite number of" if result.bits_per_byte is None else f"{result.bits_per_byte:.4f}"
    interval = result.interval
    spread = "" if interval is None else f" (95% interval {interval[0]:.4f} to {interval[1]:.4f})"
    certified = "certified" if result.certified else "NOT certified"
    return f"The best model is {what}: {bits} bits per byte{spread} of the test part, {certified}."


def meaning(found: Found) -> str:
    """Return what the numbers of the table are, and what they are not."""
    return (
        f"Bits per byte of the validation part after a share of {found.train_s:.0f} s of training, for which every size and"
        " schedule was chosen. A candidate that was stopped is not ranked: its learning rate was still high. The test part"
        " was read once, by the best model."
    )


class Lines:
    """A display that prints each step of a search as a line on stderr."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, found: Sequence[FoundCandidate], shares: Sequence[float], left_s: float, doing: str) -> None:
        """Print the step if it is another one than before."""
        step = doing.partition(":")[0]
        if step != self._last:
            self._last = step
            self.say(f"{step} ({max(0.0, left_s):.0f} s left)")

    def say(self, line: str) -> None:
        """Print a line on stderr."""
        print(line, file=sys.stderr, flush=True)
