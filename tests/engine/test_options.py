"""Settings of decoding that make no sense are refused in one line that says what would be right."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lmlab.engine import Options
from mistakes import mistake


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperature": -0.1}, "temperature-below-zero"),
        ({"temperature": math.nan}, "temperature-below-zero"),
        ({"temperature": math.inf}, "temperature-below-zero"),
        ({"temperature": "hot"}, "temperature-below-zero"),
        ({"top_k": 0}, "option-below-one"),
        ({"top_k": 2.5}, "option-below-one"),
        ({"top_p": 0.0}, "top-p-no-share"),
        ({"top_p": 1.2}, "top-p-no-share"),
        ({"min_p": -0.1}, "min_p is a share from 0 to 1"),
        ({"min_p": 2}, "min_p is a share from 0 to 1"),
        ({"max_tokens": 0}, "option-below-one"),
        ({"max_tokens": True}, "option-below-one"),
        ({"samples": 0}, "option-below-one"),
        ({"beam_width": 0, "method": "beam"}, "option-below-one"),
        ({"beam_width": 100_000, "method": "beam"}, "beam_width is at most 4096"),
        ({"length_penalty": 1e300, "method": "beam"}, "length-penalty-out-of-range"),
        ({"length_penalty": -1e300, "method": "beam"}, "length-penalty-out-of-range"),
        ({"samples": 1_000_000_000}, "samples is at most 100000"),
        ({"seed": -1}, "seed-out-of-range"),
        ({"length_penalty": math.nan}, "length_penalty is a number"),
        ({"stop": [""]}, "stop-empty"),
        ({"stop": [3]}, "stop-empty"),
        ({"method": "beem"}, "did you mean 'beam'"),
        ({"method": "beam", "beam_width": 2, "n_best": 3}, "set beam_width=3 or more"),
        ({"method": "beam", "samples": 2}, "set n_best=2"),
        ({"method": "beam", "temperature": 0.5}, "option-of-another-method"),
        ({"method": "greedy", "samples": 2}, "set method='sample'"),
        ({"method": "greedy", "top_p": 0.9}, "top_p is for method='sample'"),
        ({"method": "greedy", "n_best": 2}, "set method='beam'"),
        ({"n_best": 2}, "set samples=2"),
        ({"beam_width": 8}, "option-of-another-method"),
        ({"method": "exhaustive", "beam_width": 8}, "option-of-another-method"),
        ({"method": "greedy", "length_penalty": 0.5}, "option-of-another-method"),
        ({"temperature": 0, "samples": 2}, "samples-all-alike"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(settings: dict[str, Any], says: str) -> None:
    with mistake(says):
        Options(**settings)


def test_one_stop_string_need_not_be_a_list() -> None:
    assert Options(stop="\n\n").stop == ("\n\n",)  # type: ignore[arg-type]
    assert Options(stop=["a", "b"]).stop == ("a", "b")  # type: ignore[arg-type]


def test_temperature_zero_leaves_nothing_to_chance() -> None:
    assert not Options(temperature=0).draws
    assert not Options(method="greedy", temperature=0).draws
    assert Options(temperature=0.01).draws
