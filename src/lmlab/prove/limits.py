"""What the checker refuses, and how long it thinks: every bound of the derivation language in one place. No torch here."""

from __future__ import annotations

import time

MAX_TEXT = 200_000  # characters in a sheet
MAX_STATEMENTS = 1_000
MAX_TOKENS = 2_000  # in one statement
MAX_DEPTH = 60  # nested parentheses, calls and signs
MAX_RANK = 8  # axes of an array
MAX_LITERAL_SIZE = 64  # a size written as a number
MAX_ELEMENTS = 20_000  # entries of one array at the sizes that are drawn
MAX_EXPONENT = 64  # a power written as a number
MAX_NUMBER = 10**15  # a number written in the sheet
MAX_OUTCOMES = 20_000  # of a finite distribution, all names together
CLAIM_SECONDS = 4.0  # wall time for one claim, hint included; a claim that needs more is answered with what is known
HINT_SECONDS = 0.6
PROOF_SECONDS = 0.4


class Refusal(ValueError):
    """Something in the sheet that is not understood or not allowed: one line that says what, and what would be right."""


class OutOfTime(Exception):
    """A claim ran past its wall time."""


class Deadline:
    """A moment on the monotonic clock after which work on a claim stops."""

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def check(self) -> None:
        """Raise `OutOfTime` when the moment has passed."""
        if time.monotonic() > self.at:
            raise OutOfTime

    def within(self, seconds: float) -> Deadline:
        """A deadline this many seconds from now, but never after this one."""
        inner = Deadline(seconds)
        inner.at = min(inner.at, self.at)
        return inner
