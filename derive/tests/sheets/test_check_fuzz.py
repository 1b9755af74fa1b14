"""No text makes the checker crash, hang, read a file or speak to the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from lmlab_derive import check
from lmlab_derive.read.sheet import parse
from lmlab_derive.sheets.check import FAILED
from sheet_strategies import fitting_sheets, sheets, the_same_every_time

EXAMPLES = 8 if "LMLAB_THOROUGH" in os.environ else 3

VERDICTS = {"proved", "supported", "refuted", "invalid", "undecided"}
TOUCHED: list[str] = []
WATCHING = False


WATCHED = ("open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system")


def _imports(event: str, arguments: tuple[object, ...]) -> bool:
    """Python opens the files of modules that a library imports late."""
    return event == "open" and str(arguments[0]).endswith((".py", ".pyc", ".so"))


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook cannot be taken away again, so it listens only while the checker runs."""
    if WATCHING and event in WATCHED and not _imports(event, arguments):
        TOUCHED.append(f"{event} {arguments[:1]}")


@pytest.fixture(scope="module", autouse=True)
def watching() -> None:
    """Listens from now on, once what is imported late has been imported."""
    check("given x: n normal(0, 1)\nlet J = sum(x**2)\nclaim dJ/dx == 2*x\nclaim E[J] == n\nclaim sum(x) == 1")
    sys.addaudithook(_watch)


@pytest.mark.slow
@the_same_every_time(EXAMPLES)
@given(st.one_of(sheets(), fitting_sheets()))
def test_every_text_gets_verdicts_and_touches_nothing(text: str) -> None:
    global WATCHING
    TOUCHED.clear()
    WATCHING = True
    try:
        report = check(text)
    finally:
        WATCHING = False
    assert not TOUCHED
    for claim in report.claims:
        assert claim.verdict in VERDICTS
        assert "\n" not in claim.reason
        assert claim.reason
        assert not claim.reason.startswith(FAILED), claim.reason
    report.to_json()


@the_same_every_time(200)
@given(sheets())
def test_parsing_answers_every_text(text: str) -> None:
    for entry in parse(text).entries:
        assert entry is not None


def test_long_and_deep_texts_are_refused_at_once() -> None:
    assert "characters" in check("claim x == " + "x" * 300_000).claims[0].reason
    assert "statements" in check("given x\n" * 2_000).claims[0].reason
    assert "too long" in check("given x\nclaim x == " + "x + " * 3_000 + "x").claims[0].reason
