"""The settings of decoding. A setting that makes no sense, or none with the chosen method, is an error in one line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lmlab.config import nearest

Method = Literal["sample", "greedy", "beam", "exhaustive"]


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
            raise ValueError(f"there is no decoding method {self.method!r}; {nearest(self.method, get_args(Method))}")
        for name in ("max_tokens", "beam_width", "n_best", "samples", "top_k"):
            value = getattr(self, name)
            if value is not None and not (_whole(value) and value >= 1):
                raise ValueError(f"{name} is a whole number from 1 up; got {value!r}")
        if not (_whole(self.seed) and self.seed >= 0):
            raise ValueError(f"seed is a whole number from 0 up; got {self.seed!r}")
        if not (_number(self.temperature) and self.temperature >= 0):
            raise ValueError(
                f"temperature is a number from 0 (greedy) up, 1 being the model's own; got {self.temperature!r}"
            )
        if self.top_p is not None and not (_number(self.top_p) and 0 < self.top_p <= 1):
            raise ValueError(f"top_p is a share above 0 and up to 1; got {self.top_p!r}")
        if self.min_p is not None and not (_number(self.min_p) and 0 <= self.min_p <= 1):
            raise ValueError(f"min_p is a share from 0 to 1; got {self.min_p!r}")
        if not _number(self.length_penalty):
            raise ValueError(f"length_penalty is a number such as 0 or 1; got {self.length_penalty!r}")
        for string in self.stop:
            if not isinstance(string, str) or not string:
                raise ValueError(f"a stop string has at least one character; got {string!r}")
        self._check_method()

    def _check_method(self) -> None:
        """Settings that the method would leave unused are refused, not ignored."""
        searches = self.method in ("beam", "exhaustive")
        if self.beam_width != Options.beam_width and self.method != "beam":
            raise ValueError(f"beam_width is for method=beam; leave it out with {self.method}")
        if self.length_penalty != Options.length_penalty and not searches:
            raise ValueError(f"length_penalty is for method=beam; leave it out with {self.method}")
        if self.method == "sample":
            if self.n_best > 1:
                raise ValueError(f"n_best is for method=beam; to draw {self.n_best} texts set samples={self.n_best}")
            if self.samples > 1 and self.temperature == 0:
                raise ValueError(f"temperature 0 always finds the same text; for {self.samples} texts set it above 0")
            return
        if self.samples > 1:
            advice = f"set n_best={self.samples}" if self.method == "beam" else "set method=sample"
            raise ValueError(f"method={self.method} always finds the same text; for {self.samples} texts {advice}")
        if self.temperature not in (0, 1):
            raise ValueError(f"temperature={self.temperature} is for method=sample; leave it out with {self.method}")
        for name in ("top_k", "top_p", "min_p"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is for method=sample; leave it out with {self.method}")
        if self.method == "greedy" and self.n_best > 1:
            raise ValueError(f"method=greedy finds one text; for {self.n_best} set method=beam")
        if self.method == "beam" and self.n_best > self.beam_width:
            raise ValueError(
                f"a beam of {self.beam_width} has no {self.n_best} best; set beam_width={self.n_best} or more"
            )

    @property
    def draws(self) -> bool:
        """Whether chance has a part in it."""
        return self.method == "sample" and self.temperature > 0


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
