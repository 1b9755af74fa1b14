"""What a misspelt name is answered with."""

from __future__ import annotations

from lmlab.config import LISTED, nearest


def test_the_nearest_name_or_a_list_that_can_be_read() -> None:
    assert nearest("gtp", ["gpt", "lstm"]) == "did you mean 'gpt'?"
    assert nearest("zzz", ["gpt", "lstm"]) == "there are: gpt, lstm"
    many = [f"claim{i:03d}" for i in range(LISTED + 1)]
    assert nearest("zzz", many) == f"there are {LISTED + 1}, from claim000 to claim{LISTED:03d}"
