"""Settings of decoding that make no sense are refused in one line that says what would be right."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lmlab.decode import Options


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperature": -0.1}, "temperature is a number from 0"),
        ({"temperature": math.nan}, "temperature is a number from 0"),
        ({"temperature": math.inf}, "temperature is a number from 0"),
        ({"temperature": "hot"}, "temperature is a number from 0"),
        ({"top_k": 0}, "top_k is a whole number from 1 up"),
        ({"top_k": 2.5}, "top_k is a whole number from 1 up"),
        ({"top_p": 0.0}, "top_p is a share above 0 and up to 1"),
        ({"top_p": 1.2}, "top_p is a share above 0 and up to 1"),
        ({"min_p": -0.1}, "min_p is a share from 0 to 1"),
        ({"min_p": 2}, "min_p is a share from 0 to 1"),
        ({"max_tokens": 0}, "max_tokens is a whole number from 1 up"),
        ({"max_tokens": True}, "max_tokens is a whole number from 1 up"),
        ({"samples": 0}, "samples is a whole number from 1 up"),
        ({"beam_width": 0, "method": "beam"}, "beam_width is a whole number from 1 up"),
        ({"beam_width": 100_000, "method": "beam"}, "beam_width is at most 4096; got 100000"),
        ({"length_penalty": 1e300, "method": "beam"}, "a number such as 0 or 1, 10 at most"),
        ({"length_penalty": -1e300, "method": "beam"}, "a number such as 0 or 1, 10 at most"),
        ({"samples": 1_000_000_000}, "samples is at most 100000; got 1000000000"),
        ({"seed": -1}, "seed is a whole number from 0 to 4294967295"),
        ({"length_penalty": math.nan}, "length_penalty is a number"),
        ({"stop": [""]}, "a stop string has at least one character"),
        ({"stop": [3]}, "a stop string has at least one character"),
        ({"method": "beem"}, "did you mean 'beam'"),
        ({"method": "beam", "beam_width": 2, "n_best": 3}, "set beam_width=3 or more"),
        ({"method": "beam", "samples": 2}, "set n_best=2"),
        ({"method": "beam", "temperature": 0.5}, "temperature=0.5 is for method='sample'"),
        ({"method": "greedy", "samples": 2}, "set method='sample'"),
        ({"method": "greedy", "top_p": 0.9}, "top_p is for method='sample'"),
        ({"method": "greedy", "n_best": 2}, "set method='beam'"),
        ({"n_best": 2}, "set samples=2"),
        ({"beam_width": 8}, "beam_width is for method='beam'"),
        ({"method": "exhaustive", "beam_width": 8}, "beam_width is for method='beam'"),
        ({"method": "greedy", "length_penalty": 0.5}, "length_penalty is for method='beam'"),
        ({"temperature": 0, "samples": 2}, "temperature=0 always finds the same text"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")) as error:
        Options(**settings)
    assert "\n" not in str(error.value)


def test_one_stop_string_need_not_be_a_list() -> None:
    assert Options(stop="\n\n").stop == ("\n\n",)  # type: ignore[arg-type]
    assert Options(stop=["a", "b"]).stop == ("a", "b")  # type: ignore[arg-type]


def test_temperature_zero_leaves_nothing_to_chance() -> None:
    assert not Options(temperature=0).draws
    assert not Options(method="greedy", temperature=0).draws
    assert Options(temperature=0.01).draws
