"""Settings that cannot be are refused with their name and what would be right."""

from __future__ import annotations

import pytest

from lmlab.config import Mistake, a_share, at_least_one


def test_settings_out_of_range_are_named() -> None:
    at_least_one("rnn", width=1, layers=None)
    a_share("rnn", dropout=0.0)
    a_share("rnn", dropout=None)
    with pytest.raises(Mistake, match="rnn: layers must be 1 or more; got 0"):
        at_least_one("rnn", width=1, layers=0)
    for wrong in (1.0, -0.5, float("nan")):
        with pytest.raises(Mistake, match="rnn: dropout is a share"):
            a_share("rnn", dropout=wrong)
