"""What the checker refuses, and how long it thinks: every bound of the language in one place."""

from __future__ import annotations

import time

from lmlab_derive.shared.mistakes import Mistake

MAX_TEXT = 200_000  # characters in a sheet
MAX_STATEMENTS = 1_000
MAX_TOKENS = 2_000  # in one statement
MAX_DEPTH = 60  # nested parentheses, calls and signs
MAX_TREE_DEPTH = 120  # operators inside operators, a + b + c + ... counting one each
MAX_RANK = 8  # axes of an array
MAX_LITERAL_SIZE = 64  # a size written as a number
MAX_ELEMENTS = 20_000  # entries of one array at the sizes that are drawn
MAX_EXPONENT = 64  # a power written as a number
MAX_NUMBER = 10**15  # a number written in the sheet
MAX_RANGE = 2_000  # terms of a sum over an index
MAX_TERMS = 4_000_000  # of one whose terms are computed at once,
AT_ONCE = 100_000  # so many of them in one array
MAX_SLOPES = 1_000_000  # entries of one array times the numbers that it is differentiated by
MAX_OUTCOMES = 20_000  # of a finite distribution, all names together
# Of processor time for one claim, hint included; one that needs more is answered with what is known. Slow processors need twice
# what fast ones do: a derivative of a probability takes five.
CLAIM_SECONDS = 8.0
STEPS_PER_CLAIM = 3.0  # a derivation has the time of one claim for so many steps,
MOST_CLAIMS = 5.0  # and at most that of so many claims
HINT_SECONDS = 0.25  # of processor time too
PROOF_SECONDS = 0.25


class Refusal(Mistake):
    """Something in the sheet that is not understood or not allowed: one line, with what would be right."""


class OutOfTime(Exception):
    """A claim ran past its time."""


class NoExactValue(Exception):
    """The arithmetic at hand cannot compute an expression."""


class Deadline:
    """When work on a claim stops: after an amount of processor time, so that a busy machine does not change what is found."""

    def __init__(self, cpu_s: float) -> None:
        self.cpu_at = time.thread_time() + cpu_s
        self.look_at = 0.0  # processor time, which is slow to read, cannot have run out before this on the wall clock

    def check(self) -> None:
        """Raise `OutOfTime` when it has run out."""
        now = time.monotonic()
        if now > self.look_at:
            left = self.cpu_at - time.thread_time()
            if left < 0:
                raise OutOfTime
            self.look_at = now + left

    def within(self, cpu_s: float) -> Deadline:
        """A deadline after this much processor time, but never after this one."""
        inner = Deadline(cpu_s)
        inner.cpu_at = min(inner.cpu_at, self.cpu_at)
        return inner

    def part(self, of: int) -> Deadline:
        """A deadline after one of so many equal parts of the time that is left."""
        return Deadline(max(0.0, self.cpu_at - time.thread_time()) / of)
