"""Planted errors: a formula or constant of a claim is replaced by a wrong one (or a wrong one by the right one).

Every verdict is reached by running its check, so it must change. The changes are in `coursework_mutations`.
"""

from __future__ import annotations

from typing import Any

import pytest
from coursework_mutations import CASES, HOLDS, Case, Edit

from lmlab.coursework import Claim, claims

FAST = {  # a claim of every kind and file, all decided within a second or so
    "week2": "E1d E2a E2b E2d I1b I2b I2d",
    "quiz1": "Q1 Q2.2 Q3.0b Q3.0c Q4.1 Q4.2 Q4.3",
    "assignment2": "1a.2 1a.4 2a.1 3a 5.1d 5.2b.2 5.3b.3 5.4a.1 5.4b.1",
    "lab11": "1d 1g 2a 3c.note 4.0 5a.1 6b 6c 7.1b 7.2a 7.3a.2 7.4a 7.4c",
    "bishop12": "1 3.b 6.a 7.b 9.b 10.b 13.d 15.a 15.e 16.b 16.d 16.e",
}
QUICK = {f"{source}.{name}" for source, names in FAST.items() for name in names.split()}
ALTERED = {claim.id: claim for claim in claims()}


def altered(identifier: str, changes: dict[str, Any]) -> Claim:
    claim = ALTERED[identifier]
    new = {key: change(claim.tested[key]) if isinstance(change, Edit) else change for key, change in changes.items()}
    return claim.altered(**new)


def names(cases: list[Case]) -> list[str]:
    return [f"{identifier}-{'-'.join(changes)}-{verdict}" for identifier, changes, verdict in cases]


def planted(identifier: str, changes: dict[str, Any], expected: str) -> None:
    outcome = altered(identifier, changes).check()
    found = HOLDS if outcome.verdict in ("proved", "supported") else outcome.verdict
    assert found == expected, outcome.evidence
    if expected == "failed":  # our own answer broke, not the check's code
        assert outcome.evidence.startswith("BrokenCheck"), outcome.evidence


SOON = [case for case in CASES if case[0] in QUICK]
LATER = [case for case in CASES if case[0] not in QUICK]


@pytest.mark.parametrize(("identifier", "changes", "expected"), SOON, ids=names(SOON))
def test_a_planted_change_of_the_statement_changes_the_verdict(
    identifier: str, changes: dict[str, Any], expected: str
) -> None:
    planted(identifier, changes, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("identifier", "changes", "expected"), LATER, ids=names(LATER))
def test_a_planted_change_changes_the_verdict_of_every_claim(
    identifier: str, changes: dict[str, Any], expected: str
) -> None:
    planted(identifier, changes, expected)


def test_every_claim_has_a_planted_change() -> None:
    assert set(ALTERED) == {identifier for identifier, _, _ in CASES}
    assert set(ALTERED) >= QUICK


def test_every_refuted_claim_has_a_true_statement_that_must_hold() -> None:
    from test_coursework_verdicts import expected

    held = {identifier for identifier, _, verdict in CASES if verdict == HOLDS}
    refuted = {identifier for identifier, verdict in expected().items() if verdict == "refuted"}
    assert refuted <= held


def test_every_planted_change_asks_for_another_verdict() -> None:
    from test_coursework_verdicts import expected

    before = expected()
    idle = [(identifier, changes) for identifier, changes, verdict in CASES if before[identifier] == verdict]
    allowed = {
        "assignment2.5.2b.2",
        "lab11.6b",
        "bishop12.16.d",
    }  # a true statement must hold, a half-true one must not
    assert {identifier for identifier, _ in idle} <= allowed
