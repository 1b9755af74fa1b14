"""The settings of decoding. A setting that makes no sense, or none with the chosen method, is an error in one line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lmlab.config import Mistake, checked_seed, nearest

MOST = {"beam_width": 4096, "samples": 100_000}  # held in memory together: no search gains by more, and seeds draw more
MOST_PENALTY = 10  # either way: a power of the length that a float holds

Method = Literal["sample", "greedy", "beam", "exhaustive"]

# What decoding calls a setting, and what the verbs call it.
IN_VERBS = {"max_tokens": "tokens", "beam_width": "beam", "n_best": "best"}


@contextmanager
def as_verbs_call_them() -> Iterator[None]:
    """A Mistake speaks of settings by the names that whoever called a verb gave them."""
    try:
        yield
    except Mistake as mistake:
        raise mistake.called(IN_VERBS) from None


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to continue a prompt.

    max_tokens: the most tokens to add.
    method: "sample" draws each token; "greedy" takes the likeliest; "beam" looks for the likeliest continuation, keeping
        `beam_width` of them side by side; "exhaustive" finds it by trying all (for tiny vocabularies).
    temperature, top_k, top_p, min_p: the distribution that is sampled from (see `sampling.kept`), in this order:
        p^(1/temperature); the top_k likeliest tokens; the fewest likeliest tokens that hold top_p of what is left; the
        tokens at least min_p times as likely as the likeliest. Temperature 0 is greedy.
    n_best: how many continuations beam and exhaustive search return, best first.
    length_penalty: they rank by log p / tokens^length_penalty: 0 ranks by probability, which favours what stops early; 1
        by the mean of the tokens' log-probabilities.
    stop: strings that end a continuation when they appear in its text.
    seed, samples: `samples` texts are drawn; the i-th depends on (seed, i) alone, not on how many are drawn.
    """

    max_tokens: int = 200
    method: Method = "sample"
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    beam_width: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0
    samples: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.stop, str):
            object.__setattr__(self, "stop", (self.stop,))
        object.__setattr__(self, "stop", tuple(self.stop))
        if self.method not in get_args(Method):
            raise Mistake(
                f"there is no decoding method {self.method!r}; {nearest(self.method, get_args(Method))}",
                code="method-unknown",
            )
        for name in ("max_tokens", "beam_width", "n_best", "samples", "top_k"):
            value = getattr(self, name)
            if value is not None and not (_whole(value) and value >= 1):
                raise Mistake(
                    f"{{{name}}} is a whole number from 1 up; got {value!r}", code="option-below-one", **{name: None}
                )
        for name, most in MOST.items():
            if getattr(self, name) > most:
                raise Mistake(
                    f"{{{name}}} is at most {most}; got {getattr(self, name)}", code="option-too-large", **{name: None}
                )
        checked_seed(self.seed)
        if not (_number(self.temperature) and self.temperature >= 0):
            raise Mistake(
                f"{{temperature}} is a number from 0 (greedy) up, 1 being the model's own; got {self.temperature!r}",
                code="temperature-below-zero",
                temperature=None,
            )
        if self.top_p is not None and not (_number(self.top_p) and 0 < self.top_p <= 1):
            raise Mistake(
                f"{{top_p}} is a share above 0 and up to 1; got {self.top_p!r}", code="top-p-no-share", top_p=None
            )
        if self.min_p is not None and not (_number(self.min_p) and 0 <= self.min_p <= 1):
            raise Mistake(f"{{min_p}} is a share from 0 to 1; got {self.min_p!r}", code="min-p-no-share", min_p=None)
        if not (_number(self.length_penalty) and abs(self.length_penalty) <= MOST_PENALTY):
            raise Mistake(
                f"{{length_penalty}} is a number such as 0 or 1, {MOST_PENALTY} at most; got {self.length_penalty!r}",
                code="length-penalty-out-of-range",
                length_penalty=None,
            )
        for string in self.stop:
            if not isinstance(string, str) or not string:
                raise Mistake(f"a stop string has at least one character; got {string!r}", code="stop-empty")
        self._check_method()

    def _check_method(self) -> None:
        """Settings that the method would leave unused are refused, not ignored."""
        searches = self.method in ("beam", "exhaustive")
        if self.beam_width != Options.beam_width and self.method != "beam":
            raise self._misplaced("beam_width", "beam")
        if self.length_penalty != Options.length_penalty and not searches:
            raise self._misplaced("length_penalty", "beam")
        if self.method == "sample":
            if self.n_best > 1:
                message = f"{{n_best}} is for {{method}}; to draw {self.n_best} texts set {{samples}}"
                raise Mistake(message, code="best-needs-beam", n_best=None, method="beam", samples=self.n_best)
            if self.samples > 1 and self.temperature == 0:
                message = f"{{temperature}} always finds the same text; for {self.samples} texts set it above 0"
                raise Mistake(message, code="samples-all-alike", temperature=0)
            return
        if self.samples > 1:
            message = f"{self.method} always finds the same text; for {self.samples} texts set "
            if self.method == "beam":
                raise Mistake(message + "{n_best}", code="samples-of-beam", n_best=self.samples)
            raise Mistake(message + "{method}", code="samples-of-a-search", method="sample")
        if self.temperature not in (0, 1):
            raise self._misplaced("temperature", "sample", self.temperature)
        for name in ("top_k", "top_p", "min_p"):
            if getattr(self, name) is not None:
                raise self._misplaced(name, "sample")
        if self.method == "greedy" and self.n_best > 1:
            raise Mistake(
                f"greedy decoding finds one text; for {self.n_best} set {{method}}",
                code="best-of-greedy",
                method="beam",
            )
        if self.method == "beam" and self.n_best > self.beam_width:
            message = f"a beam of {self.beam_width} has no {self.n_best} best; set {{beam_width}} or more"
            raise Mistake(message, code="beam-narrower-than-best", beam_width=self.n_best)

    def _misplaced(self, name: str, method: str, value: object = None) -> Mistake:
        message = f"{{{name}}} is for {{method}}; leave it out with {self.method}"
        return Mistake(message, code="option-of-another-method", **{name: value, "method": method})

    @property
    def draws(self) -> bool:
        """Whether chance has a part in it."""
        return self.method == "sample" and self.temperature > 0


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
