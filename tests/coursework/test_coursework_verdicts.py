"""The verdicts, one for each claim of the five documents, as they were worked out by hand before the checks were written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lmlab.coursework import SOURCES, books, claims, run

EXPECTED: dict[str, dict[str, str]] = {
    "holds": {
        "week2": "E1a E1b E1c E1d E1e E1f E2c E2d E3 E4a E4b E4c I1b I1c I2c I2d",
        "quiz1": "Q1 Q1.b Q3.0a Q3.0d Q4.0b",
        "assignment2": "1a.1 1a.3 1a.4 1a.5 1a.6 1b.1 1b.2 1b.3 1b.4 2a.3 3a 5.1a 5.1c 5.2a.1 5.2b.1 5.3b.6",
        "lab11": "1b 1e 1f 2a 2b 2c 3a 3b 3c 3d 4a.1 5a.4 5b 6a 6b.mid 6d.1 6d.2 6d.4 7.2d 7.3a.1 7.3a.2 7.3b.1 7.3b.2 "
        "7.3c 7.4a 7.4c",
        "bishop12": "1 2 3.c 4 5 6.a 6.d 7 7.c 9 10.a 10.b 11 12 13.a 13.c 13.e 15.d 15.e 15.f 16.a",
    },
    "refuted": {
        "week2": "E2a I1e I2b",
        "quiz1": "Q3.0b",
        "assignment2": "1a.2 3b.4 4e.1 5.1d 5.2a.2 5.2b.2 5.3b.3 5.4a.1",
        "lab11": "1d 3c.note 4.0 5a.2 5a.3 6b 6c 6d.3 7.1a 7.1b",
        "bishop12": "3 6.b 6.c 7.b 13.b 15.a 15.b 15.c 16.b 16.d 16.e",
    },
    "conditional": {
        "week2": "I1a I2a",
        "quiz1": "Q4.1",
        "assignment2": "2a.1 2a.2 2a.5 4e.2 5.1.pre 5.1b 5.3a 5.3b.2 5.3b.4 5.3b.5 5.4a.3 5.4b.1 5.4b.2 5.4b.3",
        "lab11": "1a 1g 1h 4a 4a.2 4a.3 4b 7.2a 7.4b",
        "bishop12": "3.b 8 9.b 13.d 16.c",
    },
    "ill-posed": {
        "week2": "E2b",
        "quiz1": "Q3.0c Q4.0a Q4.2",
        "assignment2": "1d.2 2b 3b.2 3b.3 5.3b.1",
        "lab11": "5a.1 6c.q",
    },
    "answered": {
        "quiz1": "Q2.1 Q2.2 Q2.3 Q2.4 Q3.1 Q3.2 Q3.3 Q4.3",
        "assignment2": "1c 3c 3d 4e.0 5.4b.4",
    },
}

TRAINED = {  # checks that train a network: seconds rather than tenths
    "week2.I1a",
    "week2.I1e",
    "assignment2.2a.3",
    "assignment2.2b",
    "assignment2.4e.0",
    "assignment2.4e.1",
    "assignment2.4e.2",
    "lab11.7.2d",
}


COSTLY = {  # the checks that take longest; each document keeps most of its own in the fast tests
    "week2": "E1a I2d",
    "quiz1": "Q1.b Q4.2",
    "assignment2": "1c 1d.2 3d 5.1.pre 5.1c 5.2a.1 5.2a.2 5.4b.3 5.4b.4",
    "lab11": "2c 3c 4a 4b 6d.1 6d.3 7.2a",
    "bishop12": "11 13.a 13.b 2 3 8",
}
SLOW = TRAINED | {f"{source}.{name}" for source, names in COSTLY.items() for name in names.split()}


def expected() -> dict[str, str]:
    return {
        f"{source}.{name}": verdict
        for verdict, by_source in EXPECTED.items()
        for source, names in by_source.items()
        for name in names.split()
    }


def found(identifiers: set[str]) -> dict[str, str]:
    entries = run([claim for claim in claims() if claim.id in identifiers])
    verdicts = {entry.claim.id: entry.outcome.verdict for entry in entries}
    return {name: "holds" if verdict in ("proved", "supported") else verdict for name, verdict in verdicts.items()}


def test_every_claim_of_the_ledger_is_expected_once() -> None:
    assert [claim.id for claim in claims()] == list(dict.fromkeys(claim.id for claim in claims()))
    assert {claim.id for claim in claims()} == set(expected())


@pytest.mark.parametrize("source", SOURCES)
def test_the_checks_reach_the_expected_verdicts(source: str) -> None:
    wanted = {name: verdict for name, verdict in expected().items() if name.startswith(source) and name not in SLOW}
    assert found(set(wanted)) == wanted


@pytest.mark.slow
def test_the_checks_that_take_long_reach_the_expected_verdicts() -> None:
    assert found(SLOW) == {name: verdict for name, verdict in expected().items() if name in SLOW}


def claims_file() -> Path | None:
    """The list of claims the documents were searched for: LMLAB_CLAIMS, or claims.json beside the bench corpora."""
    if named := os.environ.get("LMLAB_CLAIMS"):
        return Path(named)
    if data := os.environ.get("LMLAB_BENCH_DATA"):
        beside = Path(data).parent / "claims.json"
        return beside if beside.exists() else None
    return None


def test_the_ledger_holds_the_listed_claims_in_their_order() -> None:
    path = claims_file()
    if path is None:
        pytest.skip("the list of claims is not at hand: set LMLAB_CLAIMS to its file")
    listed = json.loads(path.read_text(encoding="utf-8"))
    assert [claim["id"] for claim in listed] == [claim.id for book in books() for claim in book.claims]


def test_every_claim_says_where_it_is_from_and_how_it_is_checked() -> None:
    for claim in claims():
        assert all((claim.statement, claim.latex, claim.where, len(claim.method) > 10)), claim.id
        assert claim.quote, f"{claim.id} does not say it in the document's words"
        assert len(claim.quote) < 250, f"{claim.id} quotes more than the clause it judges"
        assert claim.tested, f"{claim.id} has nothing under test that could be wrong"


def test_quotations_are_the_documents_own_words() -> None:
    path = claims_file()
    seeds = path.parent / "seeds" if path is not None else None
    if path is None or seeds is None or not seeds.is_dir():
        pytest.skip("the documents are not at hand: they lie in seeds/ beside the list of claims")
    listed = {claim["id"]: claim["document"] for claim in json.loads(path.read_text(encoding="utf-8"))}
    texts = {name: " ".join((seeds / name).read_text(encoding="utf-8").split()) for name in set(listed.values())}
    wrong = [claim.id for claim in claims() if any(part not in texts[listed[claim.id]] for part in parts(claim.quote))]
    assert not wrong


def parts(quote: str) -> list[str]:
    """The pieces of a quotation between its omissions."""
    return [part.strip() for part in quote.split(" … ")]
