"""The suite of derivations: every right form is accepted, every wrong one is not, and the hint names the repair."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from lmlab_derive.sheets.check import check_text
from lmlab_derive.sheets.report import ClaimReport

FOLDER = Path(__file__).parents[1] / "derivations"


@dataclass(frozen=True)
class Block:
    """One derivation of the suite: its title, its text, and what is noted after each claim, by line."""

    title: str
    text: str
    notes: dict[int, str]


def blocks() -> list[Block]:
    found = []
    for path in sorted(FOLDER.glob("*.derive")):
        parts = re.split(r"^# == (.*) ==$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for title, text in zip(parts[1::2], parts[2::2], strict=True):
            lines = enumerate(text.splitlines(), start=1)
            notes = {n: line.split("#", 1)[1].strip() for n, line in lines if "#" in line and not line.startswith("#")}
            found.append(Block(title, text, notes))
    return found


SUITE = blocks()


def failures(block: Block, seed: int, hints: bool) -> tuple[list[str], list[ClaimReport]]:
    """What went against the notes of a block, and its claims that are meant to be wrong."""
    report = check_text(block.text, seed, hints=hints)
    problems, wrong = [], []
    assert [claim.line for claim in report.claims] == sorted(block.notes)
    for claim in report.claims:
        note = block.notes[claim.line]
        if note in ("right", "same"):
            if not claim.holds:
                problems.append(
                    f"{block.title}: {claim.claim}: {claim.verdict}, {claim.reason}, {claim.counterexample}"
                )
        else:
            assert note.startswith("wrong")
            wrong.append(claim)
            if claim.holds or (claim.verdict == "refuted" and claim.counterexample is None):
                problems.append(f"{block.title}: wrong, but {claim.verdict}: {claim.claim}")
    return problems, wrong


def test_the_suite_has_the_promised_size_and_form() -> None:
    assert len(SUITE) >= 60
    assert len({block.title for block in SUITE}) == len(SUITE)
    for block in SUITE:
        kinds = [note.split(":")[0].split(" ")[0] for note in block.notes.values()]
        assert kinds == ["right", "same", "wrong", "wrong"], block.title


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_right_forms_are_accepted_wrong_ones_are_not_and_hints_name_the_repair(every: int) -> None:
    """Of all blocks, or, to be quick, of a few."""
    problems: list[str] = []
    named = total = 0
    for block in SUITE[::every]:
        found, wrong = failures(block, seed=0, hints=True)
        problems += found
        for claim in wrong:
            note = block.notes[claim.line]
            if ":" in note:  # an inequality has no formula to repair
                total += 1
                named += bool(claim.hint and re.search(note.split(":", 1)[1].strip(), claim.hint))
    assert not problems
    assert named / total >= 2 / 3, f"{named} of {total} hints name the repair"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 51))
def test_no_seed_changes_a_verdict(seed: int) -> None:
    problems = [problem for block in SUITE for problem in failures(block, seed, hints=False)[0]]
    assert not problems
