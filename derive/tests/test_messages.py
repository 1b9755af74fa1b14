"""What a user reads who made a mistake: the sentences met most, word for word. Other tests ask for the code alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmlab_derive import check

SENTENCES = {  # by command: what is printed
    "check nowhere": "there is no file nowhere; name one with a claim on a line, such as: claim 2*x == x + x",
    "check latin": "latin is not UTF-8 text; save it as UTF-8",
    "check key --seed -1": "--seed is a whole number from 0 to 4294967295; got -1",
    "check key --html page.txt": "--html is a page, and ends in .html or .htm; got 'page.txt'",
    "check - --watch": "--watch is for files; name them",
    "check key --watch --json": "--watch prints for people; leave --json out",
    "grade key key --hints all": "--hints is none, where or what; got 'all'",
    "grade key nowhere": "there is no file nowhere; name one with a claim on a line, such as: claim 2*x == x + x",
    "grade key . --out .": "--out is the folder of the submissions, .; choose another one",
    "grade key key --out latin": "--out names a folder to write pages into; latin is a file",
    "grade wrong key": "the key does not hold, line 3: refuted, the sides differ",
}
REASONS = {  # by sheet: why its last line is not understood
    "claim y == 1": "column 7: y is not defined; there are: none",
    "given A: n, m\nclaim trace(A) == 1": "trace needs a square matrix, and A is (n, m)",
    "given x: n\nclaim sum(x, axis=2) == 1": "sum(x, axis=2): axis 2 is out of range for shape (n)",
    "given x\nclaim x ==": "column 11: a name, a number or a bracket is expected here",
    "given x\nclaims x == x": (
        "a statement starts with given, let, assume, claim, derive; 'claims' does not; did you mean claim claims...?"
    ),
    "given x: n\ngiven y: m\nclaim x + y == y + x": "(n) + (m): sizes differ (n and m)",
    "given A: n, m symmetric\nclaim A == A": "line 1, A: a symmetric given is a square matrix, not (n, m)",
    "given x\nclaim sine(x) == 1": "column 7: there is no function sine; did you mean 'sin'?",
    "given x\nclaim E[x] == x": "nothing inside E[...] is random; give a name a distribution, such as normal(0, 1)",
    "given x: n\nclaim x[0,0] == 1": "x[0, 0]: 2 positions for shape (n)",
    "x == 1": "a statement starts with given, let, assume, claim, derive; 'x' does not; did you mean claim x...?",
}


@pytest.mark.parametrize("command", SENTENCES)
def test_a_mistake_is_said_in_this_sentence(derive: Callable[..., tuple[int, str, str]], command: str) -> None:
    Path("key").write_text("given x\nclaim x == x\n")
    Path("wrong").write_text("given x\n\nclaim x == 2*x\n")
    Path("latin").write_bytes(b"claim caf\xe9 == 1")
    assert derive(*command.split(" ")) == (2, "", f"derive: {SENTENCES[command]}\n")


@pytest.mark.parametrize("sheet", REASONS)
def test_a_line_that_is_not_understood_is_answered_with_this_sentence(sheet: str) -> None:
    assert check(sheet).claims[-1].reason == REASONS[sheet]
