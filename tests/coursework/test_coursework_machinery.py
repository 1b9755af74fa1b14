"""Claims, their outcomes, choosing and running them, and what the command prints."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmlab.cli.commands.prove import run_prove
from lmlab.coursework import Book, Outcome, claims, run, to_json
from lmlab.coursework.claim import answered, conditional, exact, ill_posed, judged, measured, readable, together
from lmlab.coursework.sheet import put

WORDS = {"where": "here", "quote": "two and two", "says": "two and two are $total", "latex": "2+2", "how": "by adding"}


def book_of(judge: object, **tested: object) -> Book:
    book = Book(source="test", title="A test", about="", records={"1": WORDS})
    book.claim("1", **{"total": 4, **tested})(judge)  # type: ignore[arg-type]
    return book


def test_a_claim_judges_what_is_under_test_and_an_altered_one_judges_the_alteration() -> None:
    (claim,) = book_of(lambda t: judged(exact(t.total == 2 + 2), "2 + 2 = 4")).claims
    assert claim.check().verdict == "proved"
    assert claim.altered(total=5).check().verdict == "refuted"
    assert claim.check().verdict == "proved"


def test_an_altered_claim_states_the_alteration() -> None:
    (claim,) = book_of(lambda t: judged("proved")).claims
    assert claim.statement == "two and two are 4"
    assert claim.altered(total=5).statement == "two and two are 5"


def test_altering_what_is_not_under_test_names_what_is() -> None:
    (claim,) = book_of(lambda t: judged("proved")).claims
    with pytest.raises(ValueError, match=r"tests \['total'\].*'sum'"):
        claim.altered(sum=5)


def test_a_broken_check_is_a_verdict_of_its_own_and_no_exception() -> None:
    (claim,) = book_of(lambda t: judged(exact(1 / t.zero > 0)), zero=0).claims
    outcome = claim.check()
    assert outcome.verdict == "failed"
    assert "ZeroDivisionError" in outcome.evidence


@pytest.mark.parametrize(
    ("inside", "outside", "verdict"),
    [
        ("proved", "refuted", "conditional"),
        ("supported", "refuted", "conditional"),
        ("supported", "proved", "supported"),
        ("proved", "proved", "proved"),
        ("refuted", "refuted", "refuted"),
        ("refuted", "supported", "refuted"),
    ],
)
def test_conditional_needs_success_with_the_condition_and_failure_without(
    inside: str, outside: str, verdict: str
) -> None:
    assert conditional(inside, outside, precisely="if").verdict == verdict  # type: ignore[arg-type]


def test_a_correction_a_repair_or_an_answer_that_does_not_hold_breaks_the_check() -> None:
    for judge in (
        lambda t: judged("refuted", corrected="so", holds=False),
        lambda t: ill_posed(True, repaired="so", holds=False),
        lambda t: answered(False, answer="so"),
    ):
        assert book_of(judge).claims[0].check().verdict == "failed"


def test_a_check_that_shows_nothing_has_failed_and_proves_nothing() -> None:
    for judge in (
        lambda t: judged("undecided"),
        lambda t: judged(measured(False, fails=False)),
        lambda t: conditional("undecided", "refuted", precisely="if"),
        lambda t: ill_posed(False, repaired="so", holds=True),
        lambda t: judged(together("proved", "undecided")),
    ):
        outcome = book_of(judge).claims[0].check()
        assert outcome.verdict == "failed"
        assert "neither" in outcome.evidence


@pytest.mark.parametrize("outside", ["supported", "undecided"])
def test_a_condition_without_a_counterexample_outside_it_has_failed(outside: str) -> None:
    outcome = book_of(lambda t: conditional("proved", outside, precisely="if")).claims[0].check()  # type: ignore[arg-type]
    assert outcome.verdict == "failed"
    assert "no case outside the condition" in outcome.evidence


def test_a_flaw_that_is_not_there_leaves_what_was_found_otherwise() -> None:
    assert ill_posed(False, repaired="so", holds=True, otherwise="proved").verdict == "proved"
    assert ill_posed(False, repaired="so", holds=True, otherwise="refuted").verdict == "refuted"


def test_why_a_statement_is_false_is_not_told_of_one_that_holds() -> None:
    said = {"because": "it is wrong", "note": "by the way"}
    assert judged("refuted", "measured", **said).steps == ("measured", "it is wrong", "by the way")  # type: ignore[arg-type]
    assert "it is wrong" not in judged("proved", "measured", **said).steps  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("computed", "written"),
    [
        ("off by 5.2e-24", "off by 5.2·10⁻²⁴"),
        ("1e-09, 0.0e+00, 3.0e+00, 6.9e+06", "10⁻⁹, 0, 3.0, 6.9·10⁶"),
        ("8*M*k**2 + sqrt(d)*m**10", "8·M·k² + √d·m¹⁰"),
        ("V**(n-1)*(V-1), V**n", "V^(n-1)·(V-1), V^n"),
        ("`a**2 * 1e-3` stays, a**2 does not", "`a**2 * 1e-3` stays, a² does not"),
        ("2 * 3, x1e-5y, version 1.2e", "2 * 3, x1e-5y, version 1.2e"),
    ],
)
def test_evidence_shows_numbers_and_formulas_as_one_writes_them(computed: str, written: str) -> None:
    assert readable(computed) == written
    (claim,) = book_of(lambda t: judged("proved", computed)).claims
    assert claim.check().evidence == written


def test_a_derivation_tells_each_reason_once() -> None:
    sheet = put("given a, b: n\nclaim a + b == b + a\nclaim a * b == b * a\nclaim a + b == a")
    first, second, third = sheet.summary.split("; `")
    assert first.startswith("`a + b == b + a` is proved for all sizes n")
    assert "random points" not in first  # a proof needs none
    assert second == "a * b == b * a` is proved likewise"
    assert third.startswith("a + b == a` is refuted (")
    assert not sheet.holds


def test_a_product_that_does_not_fit_is_told_as_such() -> None:
    sheet = put("given X: d, n\ngiven W: d, d\nclaim shape(X @ W) == [n, d]")
    assert not sheet.holds
    assert "inner sizes differ" in str(sheet)


def test_claims_are_chosen_by_id_by_beginning_and_by_source() -> None:
    assert [c.id for c in claims(["lab11.6b"])] == ["lab11.6b"]
    assert [c.id for c in claims(["quiz1.Q3"])] == [f"quiz1.Q3.{x}" for x in ("0a", "0b", "0c", "0d", "1", "2", "3")]
    assert [c.id for c in claims(["bishop12.1"])] == ["bishop12.1"]
    assert {c.source for c in claims(source="week2")} == {"week2"}
    assert [c.id for c in claims(["lab11.7.4c", "lab11.1a"])] == ["lab11.1a", "lab11.7.4c"]


@pytest.mark.parametrize(
    ("ids", "source", "message"),
    [(["lab11.6x"], None, "did you mean 'lab11.6"), (["lab11.6b"], "week2", "in week2"), ([], "weak2", "'week2'")],
)
def test_a_name_that_is_not_there_is_one_line_that_names_a_near_one(
    ids: list[str], source: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        claims(ids, source)


def test_json_has_what_is_promised() -> None:
    entries = run(claims(["lab11.6b", "quiz1.Q3.3", "week2.I2b"]))
    document = json.loads(json.dumps(to_json(entries)))
    assert [entry["id"] for entry in document["claims"]] == ["week2.I2b", "quiz1.Q3.3", "lab11.6b"]
    for entry in document["claims"]:
        assert {"id", "verdict", "statement", "method", "evidence", "corrected", "quote"} <= set(entry)
        assert " ".join(entry["steps"]) == entry["evidence"] != ""
    assert document["verdicts"] == {"refuted": 2, "answered": 1}
    assert document["sources"] == {"week2": {"refuted": 1}, "quiz1": {"answered": 1}, "lab11": {"refuted": 1}}


def test_running_tells_of_every_claim_as_it_is_done() -> None:
    told: list[str] = []
    run(claims(["week2.I2b", "week2.I1b"]), lambda entry: told.append(entry.claim.id))
    assert told == ["week2.I1b", "week2.I2b"]


def test_the_command_prints_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_prove(["week2.I2b"], json=True) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["verdict"] == "refuted"
    assert "54.1" in claim["corrected"]


def test_the_command_shows_few_claims_in_full_and_many_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_prove(["week2.I2b"]) == 0
    few = capsys.readouterr().out
    assert "evidence" in few
    assert "54.10" in few
    assert run_prove(["bishop12.13", "bishop12.15"]) == 0
    many = capsys.readouterr().out
    assert "evidence" not in many
    assert "11 claims: " in many


def test_a_check_that_breaks_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lmlab.coursework import choosing

    def broken(t: SimpleNamespace) -> Outcome:
        raise AssertionError("our fault")

    monkeypatch.setattr(choosing, "claims", lambda ids, source: book_of(broken).claims)
    assert run_prove([]) == 1
    assert "our fault" in capsys.readouterr().out


def test_html_into_a_file_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("mine")
    with pytest.raises(ValueError, match="a folder"):
        run_prove(["week2.I2b"], html=target)
    assert target.read_text() == "mine"
