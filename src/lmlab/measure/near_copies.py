"""Whether a text that is measured was held out: is it a copy of what the model was trained on, exact or near?

Seen is a copy with lines in another order, other case or digits, one letter in twelve changed or one word in eight left out.
Not seen is one in which hardly 24 bytes in a row stayed as they were (one letter in six or one word in four changed, neighbours
swapped, another alphabet), and a copy of less than about a tenth of the text; from a thirtieth on the detail tells of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.parts import Part

Verdict = Literal["held out", "not held out", "unknown"]

WORST_FIRST: tuple[Verdict, ...] = ("not held out", "unknown", "held out")

FEWEST_SHINGLES = 8  # of a text, below which nothing can be told
MOST_USUAL = 0.9  # shared by parts of the training text itself, above which nothing can be told
LEAST_MORE = 0.08  # shared beyond what is usual: held-out texts of eight kinds lie within 0.02
WORTH_TELLING = 0.03  # shared beyond what is usual, from which on a part of the text may be copied
ERRORS = 4.0  # standard errors by which chance may add to that
SPREADS = 3.0  # standard deviations of the tenths of the training text by which one more may share more than they do,
MOST_BEYOND = 0.5  # but no more than this share of what is not usual: a copy shares nearly all of it
REPEATING = (
    0.2  # shared, from which on a number is in good part of what was remembered, usual though that be in this text
)
ALL_OF_IT = 0.95  # a share that is as good as all
NOT_KNOWN = "there is no fingerprint of all that the model was trained on"
TOO_FEW_PIECES = "the training text has too few different pieces to know a copy of it by"


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What a look at the training text showed. copied: the share of the text, at least, that is a copy; None: unknown.

    is_worth_telling: of a text that counts as held out, whether a part of it may be copied, or much of it stands in the
    training text because that repeats itself.
    """

    verdict: Verdict
    copied: float | None
    detail: str
    is_worth_telling: bool = False

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return {"verdict": self.verdict, "copied": self.copied, "detail": self.detail}


def how_much(copied: float | None, text: str = "this text") -> str:
    """The share of a text that was copied, in words that fit after "trained on"."""
    return text if copied is None or copied >= ALL_OF_IT else f"at least {copied:.0%} of {text}, exactly or nearly"


def held_out(texts: Sequence[Fingerprint], part: Part) -> HeldOut:
    """Look for a text in all texts that a model was trained on; what is worst counts."""
    found = [_look(text, part) for text in texts] or [_unknown(NOT_KNOWN)]
    return min(found, key=lambda one: (WORST_FIRST.index(one.verdict), -(one.copied or 0.0)))


def _unknown(why: str) -> HeldOut:
    return HeldOut(verdict="unknown", copied=None, detail=why)


def _look(text: Fingerprint, part: Part) -> HeldOut:
    if not len(text.shingles):
        return _unknown(TOO_FEW_PIECES if text.is_known else NOT_KNOWN)
    shingles, shared = text.look_for(part)
    if shingles < FEWEST_SHINGLES:
        return _unknown("the text is too short to be looked for in the training text")
    if text.usual > MOST_USUAL:
        return _unknown(
            f"{text.usual:.0%} of the training text occurs in it more than once, so that no copy can be told from it"
        )
    share, usual = shared / shingles, text.usual
    by_chance = ERRORS * math.sqrt(max(usual * (1.0 - usual), 1.0 / shingles) / shingles)
    numbers = (
        f"{share:.1%} of its pieces occur in the training text, where {usual:.1%} would be usual for held-out text"
    )
    of_its_kind = min(SPREADS * text.spread, MOST_BEYOND * (1.0 - usual))
    if share - usual < max(LEAST_MORE, by_chance, of_its_kind):
        is_partly_copied = share - usual > max(WORTH_TELLING, by_chance)
        if is_partly_copied:
            numbers += f": about {(share - usual) / (1.0 - usual):.0%} of it may be copied from there"
        telling = is_partly_copied or share >= REPEATING
        return HeldOut(verdict="held out", copied=max(0.0, share - usual), detail=numbers, is_worth_telling=telling)
    copied = (share - usual) / (1.0 - usual)
    detail = f"{numbers}: at least {copied:.0%} of it is a copy, exact or near, of what the model was trained on"
    return HeldOut(verdict="not held out", copied=copied, detail=detail)
