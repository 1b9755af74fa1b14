"""The comparison: fair shares, honest ranks, and nothing that one model does can spoil the rest."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lmlab as lab
from lmlab.comparison import Comparison, Findings, compare
from lmlab.comparison.baselines import run_baselines
from lmlab.comparison.choose_text import Texts
from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.findings import CurvePoint, Differences, Passage, SeedScore, Training
from lmlab.comparison.mix_entries import FITTING_S, READINGS, worth_mixing
from lmlab.comparison.ranking_lines import lines
from lmlab.comparison.remarks import remarks
from lmlab.comparison.report import render
from lmlab.comparison.time_shares import (
    LEAST_S,
    MEASURING,
    Turn,
    checked_shares,
    equal_seconds,
    in_order,
    least_budget_s,
    measuring_s,
    overhead_s,
    seconds_now,
    training_s,
)
from lmlab.config import Budget, Mistake
from lmlab.learn.loop import Trainer
from lmlab.models.bag import Bag
from lmlab.page.numbers import short
from lmlab.records import from_json
from lmlab.text.corpus import read
from some_text import some_lines

COUNTED = ["uniform", "bag", "ngram"]
TINY = {"gpt": {"layers": 1, "width": 32, "context": 32}}


def run(text: str | Path, out: Path, **changes: Any) -> Comparison:
    return compare(text, out=out, **({"budget": "4s", "models": COUNTED} | changes))


@pytest.fixture(scope="module")
def counted(shared_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A comparison as usual, for tests that only look at what it found."""
    return run(shared_text, tmp_path_factory.mktemp("counted") / "out")


def test_every_model_is_measured_on_the_same_bytes_and_ranked_by_bits_per_byte(
    small_text: Path, tmp_path: Path
) -> None:
    found = run(small_text, tmp_path / "out", budget=None, each="60steps", models=[*COUNTED, "gpt"], settings=TINY)
    entries = found.entries
    assert [e.status for e in entries] == ["ranked"] * 4
    assert len({e.result.data["sha256"] for e in entries}) == 1
    bits = [e.result.bits_per_byte for e in entries]
    assert bits == sorted(bits)
    assert [e.rank for e in entries] == sorted(e.rank for e in entries)
    assert entries[0].rank == 1
    assert entries[-1].model == "uniform"


def test_the_document_is_valid_json_and_holds_what_the_page_needs(counted: Comparison, shared_text: Path) -> None:
    document = json.loads((counted.report.parent / "comparison.json").read_text())
    assert document == json.loads(json.dumps(counted.to_json()))
    assert from_json(Findings, document) == counted.findings
    best = document["entries"][0]
    assert {"rank", "result", "sample", "excerpt", "proof", "peak_memory_bytes", "tokens_per_second"} <= set(best)
    assert best["proof"]["holds"]
    shown = "".join(token["t"] for token in best["excerpt"])
    assert shown in shared_text.read_text()
    assert all(len(token["f"]) == 5 for token in best["excerpt"])


def test_what_models_are_worth_together_stands_apart_from_the_ranks(small_text: Path, tmp_path: Path) -> None:
    small_text.write_text(some_lines(900))  # long enough for an interval
    found = run(small_text, tmp_path / "out", settings={"ngram": {"order": 2}})
    (mix,) = found.findings.together
    best = found.entries[0]
    assert mix.best == best.name
    assert mix.result.certified
    assert mix.saved_bits_per_byte == pytest.approx(best.result.bits_per_byte - mix.result.bits_per_byte)
    assert mix.saved_interval[0] <= mix.saved_bits_per_byte <= mix.saved_interval[1]
    assert sum(part.weight for part in mix.parts) == pytest.approx(1.0)
    assert {part.name for part in mix.parts} <= set(COUNTED)
    assert "mix" not in {entry.name for entry in found.entries}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What they are worth together" in page
    assert mix.made_of in page
    assert mix.against_best in page  # as the sentence of the terminal has it
    kept = lab.load(tmp_path / "out" / "models" / "mix-char")
    assert {part.sha256 for part in kept.record.inputs.parts} == {e.run.record.model.sha256 for e in found.entries}


def test_the_page_says_what_is_drawn_what_seconds_count_and_where_passages_are_cut(counted: Comparison) -> None:
    page = render(counted.findings)
    assert "compressors, and the table says what each of them was shown of the training text" in page  # bzip2 nothing
    assert "all that a model took here: getting ready, training, being measured and looked at closely" in page
    passage = Passage(text="quick brown", start=4, bits=(1.0, 2.0), cut=(True, True))
    differ = Differences(
        best="ngram", second="bag", for_best=(passage, replace(passage, cut=(False, False))), for_second=()
    )
    entries = tuple(replace(entry, excerpt_cut=(False, True)) for entry in counted.findings.entries)
    cut = render(replace(counted.findings, differences=differ, entries=entries))
    assert '<p class="passage">…quick brown…</p>' in cut
    assert '<p class="passage">quick brown</p>' in cut
    assert cut.count("</b>…</p>") == len(entries)


def test_the_page_of_several_seeds_says_what_is_a_sum_and_what_is_of_the_first(counted: Comparison) -> None:
    training = Training(tokens=300, seconds=3.0, steps=3)
    first, *rest = counted.findings.entries
    seeds = tuple(SeedScore(seed=seed, bits_per_byte=2.0) for seed in range(3))
    point = CurvePoint(seconds=1.0, bits_per_byte=2.0)
    learned = replace(first, seeds=seeds, training=training, curve=(point,))
    several, one = (
        render(replace(counted.findings, entries=(entry, *rest)))
        for entry in (learned, replace(learned, seeds=seeds[:1]))
    )
    for words in (
        "tokens and FLOPs are those of all of them together",
        "while training, each model with its first seed",
    ):
        assert words in several
        assert words not in one


def test_the_bits_of_the_paragraph_are_by_its_bytes_where_tokens_are_parts_of_characters(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("今天早上老师在学校里看了一本旧书。\n" * 200)
    found = run(tmp_path / "text.txt", tmp_path / "out", models=["uniform"], tokenizers=["byte"])
    (entry,) = found.findings.entries
    assert "8.00 bits per byte here" in render(found.findings)
    impossible = replace(entry, excerpt=(replace(entry.excerpt[0], b=None), *entry.excerpt[1:]))
    assert "infinite bits per byte here" in render(replace(found.findings, entries=(impossible,)))


def test_the_page_says_how_many_documents_were_trained_on(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(150):
        (tmp_path / "texts" / f"{number:03}.txt").write_text(f"{number} green bottles hanging on the wall\n" * 8)
    found = run(tmp_path / "texts", tmp_path / "out", models=["uniform"])
    documents = len(found.corpus.train.documents)
    assert documents < found.corpus.documents == 150
    assert f"bytes, {documents} documents" in render(found.findings)


def time_to_mix_s(mixed: list[ComparedEntry]) -> float:
    """What mixing these is expected to take."""
    return FITTING_S * mixed[0].scored.tokens + READINGS * sum(entry.seed_results[0].seconds for entry in mixed)


def taking(entry: ComparedEntry, seconds: float) -> None:
    """As if it had taken so many seconds to measure it."""
    entry.__dict__["seed_results"] = [replace(entry.seed_results[0], seconds=seconds)]


def test_a_folder_of_copies_is_not_said_to_be_held_out(small_text: Path, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / "copies").mkdir(exist_ok=True)
        (tmp_path / "copies" / f"{number}.txt").write_text(small_text.read_text()[:3000])
    found = run(tmp_path / "copies", tmp_path / "out", models=["bag", "ngram"]).findings
    said = remarks(found)
    assert any(line.startswith("Not held out: all models were trained on the text") for line in said)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "held-out bytes" not in page
    assert all(line in page for line in said if not line.startswith("100%"))
    assert page.count("of the test part also stands in the training part") == 1, "with the longest piece"
    assert "certified: all" not in page


def test_as_many_are_mixed_as_there_is_time_for_and_always_the_best_two(counted: Comparison) -> None:
    entries = counted.entries
    for place, entry in enumerate(entries):
        taking(entry, 1.0 + 0.1 * place)
    best = [entry for entry in entries if entry.name != "uniform"]
    assert worth_mixing(entries, None) == entries
    assert worth_mixing(entries, time_to_mix_s(entries)) == entries
    assert worth_mixing(entries, time_to_mix_s(entries) * 0.999) == best
    assert worth_mixing(entries, 0.0) == best


def test_the_validation_part_says_which_models_are_mixed_and_not_the_test_part(
    small_text: Path, tmp_path: Path
) -> None:
    """Planted: the letters of the test part are shuffled, so that counting single letters is best there, and only there."""
    text, valid, test = small_text.read_text(), tmp_path / "valid.txt", tmp_path / "test.txt"
    valid.write_text(text)
    test.write_text("".join(np.random.default_rng(0).permutation(list(text))))
    models = ["bag", "bigram", "ngram", "uniform"]
    found = run(small_text, tmp_path / "out", valid=valid, test=test, models=models)
    entries = found.entries
    for entry in entries:
        taking(entry, 1.0)
    assert entries[0].name == "bag"
    chosen = worth_mixing(entries, time_to_mix_s(entries[:2]) * 1.001)
    assert {entry.name for entry in chosen} == {"bigram", "ngram"}


@pytest.mark.slow
def test_models_that_there_was_no_time_to_mix_are_named(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = lambda entries, *_: [e for e in entries if e.name != "bag"]  # noqa: E731
    monkeypatch.setattr("lmlab.comparison.run_comparison.worth_mixing", few)
    found = run(small_text, tmp_path / "out")
    (mix,) = found.findings.together
    assert mix.untried == ("bag",)
    assert "Not tried in it: bag." in render(found.findings)


def test_why_nothing_was_mixed_stands_on_the_page(small_text: Path, tmp_path: Path) -> None:
    why = "The char models were not mixed to see what they are worth together: the validation part"
    found = run(small_text, tmp_path / "out", split=(90, 0, 10))
    assert found.findings.together == ()
    assert found.findings.not_mixed[0].startswith(why)
    assert why in render(found.findings)
    assert any(remark.startswith(why) for remark in remarks(found.findings))  # which the terminal says too


def test_two_models_that_finished_are_mixed_though_no_time_is_left(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.comparison.run_comparison.MIXING", 0.0)
    found = run(small_text, tmp_path / "out", models=["uniform", "bag", "gpt"], settings=TINY).findings
    (mix,) = found.together
    assert len(mix.untried) == 1
    assert found.not_mixed == ()


def test_a_mix_that_fails_spoils_nothing(small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no mix today")

    monkeypatch.setattr("lmlab.comparison.mix_entries.mix", broken)
    found = run(small_text, tmp_path / "out")
    assert [e.status for e in found.entries] == ["ranked"] * 3
    assert found.findings.together == ()
    assert found.findings.not_mixed == ("The mix of the char models failed: RuntimeError: no mix today.",)


def test_an_interruption_before_anything_was_measured_still_leaves_a_page(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lmlab.text.corpus.Corpus.overlap", ctrl_c)
    found = run(small_text, tmp_path / "out")
    assert found.stopped
    assert {e.status for e in found.entries} == {"waiting"}
    assert "No model finished" in found.report.read_text()


def test_the_bits_of_the_excerpt_are_those_of_the_favourites_distribution(counted: Comparison) -> None:
    """Where the token that came is among the five favourites, its bits must be -log2 of the probability shown for it."""
    entry = next(entry for entry in counted.to_json()["entries"] if entry["model"] == "ngram")
    checked = 0
    for token in entry["excerpt"]:
        for piece, probability in token["f"]:
            if piece == token["t"] and probability > 0.01:
                assert 2 ** -token["b"] == pytest.approx(probability, rel=0.02, abs=2e-4)
                checked += 1
    assert checked > 20


def test_a_model_that_crashes_is_shown_as_failed_and_the_rest_is_ranked(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Bag, "fit", crash)
    found = run(small_text, tmp_path / "out")
    states = {e.model: e.status for e in found.entries}
    assert states == {"uniform": "ranked", "bag": "failed", "ngram": "ranked"}
    assert "planted" in render(found.findings)


def test_a_model_that_diverged_is_not_ranked_with_the_weights_it_began_with(small_text: Path, tmp_path: Path) -> None:
    found = lab.compare(
        small_text,
        models=["gru", "bag"],
        budget="6s",
        learning={"gru": {"learning_rate": 1e9}},
        out=tmp_path / "out",
    )
    gru = next(entry for entry in found.entries if entry.model == "gru")
    assert (gru.status, gru.rank) == ("failed", None)
    assert "diverged" in render(found.findings)


@pytest.mark.slow
def test_a_model_that_diverged_after_it_had_learned_is_ranked_and_said_to_have(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def goes_wrong(self: Trainer) -> None:
        if self.progress.best_nats is not None:
            raise self._diverged(math.inf)

    monkeypatch.setattr(Trainer, "_check_loss", goes_wrong)
    found = run(small_text, tmp_path / "out", models=["gpt"], settings=TINY)
    (entry,) = found.entries
    assert (entry.status, entry.run.status) == ("ranked", "diverged")
    assert "Diverged before their time was up" in render(found.findings)


def test_a_model_whose_certificate_fails_is_shown_but_not_ranked(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Bag.score
    monkeypatch.setattr(Bag, "score", lambda self, tokens: honest(self, tokens) * 0.5)
    found = run(small_text, tmp_path / "out")
    bag = next(e for e in found.entries if e.model == "bag")
    assert (bag.status, bag.rank) == ("unranked", None)
    page = render(found.findings)
    assert "not ranked" in page
    assert "NOT certified: score_is_probability" in page
    assert found.failed_checks == ["bag"]
    last = lines(found.findings)[-1]  # below all models and compressors, though its number is the lowest
    assert (last.name, last.kind) == ("bag", "uncertified")
    assert "its check score is probability failed (" in last.detail
    assert not re.search(r"<title>[^<]*\bbag\b", page)  # in no picture
    assert not any("bag" in remark for remark in remarks(found.findings))
    assert all("bag" not in {part.name for part in mix.parts} for mix in found.findings.together)


def test_count_models_stand_among_the_curves_at_their_validation_loss(small_text: Path, tmp_path: Path) -> None:
    """Planted: a test part unlike the validation part, so that either number tells where it came from."""
    valid, test = tmp_path / "valid.txt", tmp_path / "test.txt"
    valid.write_text(some_lines(300))
    test.write_text("".join(np.random.default_rng(0).permutation(list(small_text.read_text()))))
    found = run(small_text, tmp_path / "out", valid=valid, test=test, models=["bag", "ngram"]).findings
    ngram = next(entry for entry in found.entries if entry.model == "ngram")

    trained = lab.load(tmp_path / "out" / "models" / "ngram-char")
    exact = lab.evaluate(trained, part="valid").bits_per_byte

    assert ngram.valid_bits_per_byte == pytest.approx(exact, rel=0.05)
    assert ngram.bits_per_byte > 1.5 * ngram.valid_bits_per_byte


def test_a_model_that_does_not_hold_what_it_claims_is_not_ranked(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmlab.compression.Proof.allowed_bits", -1.0)  # as if no number had the length it should
    found = run(small_text, tmp_path / "out", models=["uniform", "bag"])
    assert [entry.status for entry in found.entries] == ["unranked"] * 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "compressed with 0 of 2 models" in page
    assert "That is a sample, as large as there was time for" in page
    assert "2 did not hold what they claim, and are not ranked" in page


@pytest.mark.slow  # its twin, by the other door, is fast enough
def test_finished_models_are_not_trained_again(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(small_text, tmp_path / "out")

    def forbidden(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(Bag, "fit", forbidden)
    second = run(small_text, tmp_path / "out")
    assert all(e.reused for e in second.entries)
    assert [e.result.bits_per_byte for e in second.entries] == [e.result.bits_per_byte for e in first.entries]


def test_an_interruption_ranks_what_finished_and_the_next_run_goes_on(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bag, "fit", ctrl_c)
        found = run(small_text, tmp_path / "out", models=["ngram", "bag", "uniform"])
    assert [e.status for e in found.entries].count("ranked") < 3
    again = run(small_text, tmp_path / "out", models=["ngram", "bag", "uniform"])
    assert [e.status for e in again.entries] == ["ranked"] * 3


def test_another_text_does_not_mix_into_a_folder(small_text: Path, tmp_path: Path) -> None:
    run(small_text, tmp_path / "out", models=["uniform"])
    other = tmp_path / "other.txt"
    other.write_text(small_text.read_text().upper())
    with pytest.raises(ValueError, match="another text"):
        run(other, tmp_path / "out", models=["uniform"])


def test_tokenizers_are_crossed_and_compared_in_the_same_unit(small_text: Path, tmp_path: Path) -> None:
    found = run(
        small_text, tmp_path / "out", models=["ngram", "bag"], tokenizers=["char", "words", "byte"], budget="6s"
    )
    assert len(found.entries) == 6
    assert {e.name for e in found.entries} >= {"ngram · char", "bag · words"}
    assert all(e.status == "ranked" for e in found.entries)
    chars = {e.tokenizer: e.result.bits_per_byte for e in found.entries if e.model == "ngram"}
    assert chars["char"] == pytest.approx(chars["byte"], rel=0.1)


def test_on_a_known_source_context_beats_bag_and_nobody_beats_the_entropy(tmp_path: Path) -> None:
    found = run(
        "markov:order=2,alphabet=4,length=120000,seed=3", tmp_path / "out", models=["bag", "ngram"],
        settings={"ngram": {"order": 3}},
    )  # fmt: skip
    entropy = found.corpus.entropy_bits_per_symbol
    by_name = {e.model: e for e in found.entries}
    assert by_name["ngram"].rank < by_name["bag"].rank
    for entry in found.entries:
        assert entry.result.interval.high >= entropy
    assert by_name["ngram"].result.bits_per_byte < entropy + 0.03
    assert "exact entropy" in render(found.findings)


def test_a_model_made_worse_on_purpose_never_outranks_its_original(counted: Comparison) -> None:
    """Temperature on the logits makes every probability worse; measured on the same bytes it must not rank higher."""
    from lmlab.measure import evaluate, rank

    entry = next(entry for entry in counted.entries if entry.model == "ngram")
    good, model = entry.result.scored, entry.run.model
    honest = type(model).score
    for hurt in (1.02, 1.2, 2.0):
        worse = type("Worse", (type(model),), {"score": lambda self, t, hurt=hurt: honest(self, t) * hurt})
        model.__class__ = worse
        ranks = rank([good, evaluate(model, entry.run.tokenizer, counted.measured).scored])
        model.__class__ = worse.__mro__[1]
        assert ranks[0] <= ranks[1]


def turn(share: float = 1.0, runs: int = 1) -> Turn:
    return Turn(share=share, runs=runs)


def test_count_models_come_first_and_the_rest_in_the_order_of_the_ladder() -> None:
    assert in_order(["gpt", "ngram", "rnn", "lstm", "uniform"]) == ["uniform", "ngram", "rnn", "lstm", "gpt"]


def test_the_time_is_divided_so_that_all_turns_fit_exactly() -> None:
    for turns in ([turn()], [turn(), turn(runs=3)], [turn(share=3.0), turn()]):
        assert training_s(turns, equal_seconds(turns, 100.0)) == pytest.approx(100.0)


def test_what_runs_take_beside_training_is_kept_for_them() -> None:
    assert equal_seconds([turn(), turn(runs=3)], 100.0, around_s=2.7) == pytest.approx((100.0 - 4 * 2.7) / 4 / 1.04)


def test_who_comes_late_has_half_of_what_was_planned_at_least() -> None:
    """Less would be a rank for having come late; a little less than the others is not worth a difference."""
    assert seconds_now(10.0, 25.0) == seconds_now(10.0, 9.5) == 10.0
    assert seconds_now(10.0, 8.0) == 8.0
    assert seconds_now(10.0, 0.5) == 5.0


def test_a_share_is_so_many_times_what_the_others_get() -> None:
    turns = [turn(share=3.0), turn()]
    assert 94.0 < 4 * equal_seconds(turns, 100.0) < 98.0
    assert equal_seconds([turn(runs=3), turn()], 100.0) == pytest.approx(equal_seconds([turn()] * 4, 100.0))


def test_what_runs_take_beside_training_is_expected_as_it_was_observed_or_as_busy_as_the_machine_is() -> None:
    assert overhead_s(0.7, 1.0, []) == 0.7
    assert overhead_s(0.7, 4.0, []) == pytest.approx(2.8)  # another process has three quarters of this core
    assert overhead_s(0.7, 0.9, []) == 0.7
    assert overhead_s(0.7, 4.0, [1.0, 2.0]) == pytest.approx(1.5)


def test_measuring_gets_its_share_but_no_more_than_a_short_text_can_use() -> None:
    assert measuring_s(100.0, 9, 10**6) == pytest.approx(MEASURING * 100.0)
    assert measuring_s(3600.0, 2, 1000) < 0.01 * 3600.0


def test_where_measuring_one_model_took_long_more_time_is_kept_for_all() -> None:
    assert measuring_s(60.0, 10, 10**6, took_s=0.1) == measuring_s(60.0, 10, 10**6)
    assert measuring_s(60.0, 10, 10**6, took_s=1.0) == pytest.approx(25.0)
    assert measuring_s(60.0, 10, 10**6, took_s=20.0) < 40.0


def test_the_least_budget_leaves_every_run_the_least_time_to_learn() -> None:
    turns = [turn()] * 9
    least_s = least_budget_s(turns, 10**6)
    assert least_s > 9 * LEAST_S
    assert least_budget_s(turns, 10**7) > least_s
    assert least_budget_s([turn(runs=3)] * 9, 10**6) > 2 * least_s
    assert least_budget_s([], 10**9) == 0.0  # what counts takes what it needs


@pytest.mark.parametrize(
    ("shares", "said"),
    [({"gpt": 0.0}, "above 0"), ({"lstm": 2.0}, "not among"), ({"ngram": 2.0}, "counted"), ({"gpt": float("nan")}, "above 0")],
)  # fmt: skip
def test_a_share_that_cannot_be_is_a_mistake(shares: dict[str, float], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        checked_shares(shares, ["ngram", "gpt"])


@pytest.mark.slow
def test_learned_models_had_equal_time_and_the_page_says_who_had_what(small_text: Path, tmp_path: Path) -> None:
    tiny = {"gpt": TINY["gpt"], "gru": {"width": 8}, "feedforward": {"width": 8, "context": 2, "embedding_width": 4}}
    models = ["bag", *tiny]
    found = run(small_text, tmp_path / "even", budget=None, each="1s", models=models, settings=tiny)
    assert {e.run.record.training.budget for e in found.entries if e.learned} == {"1s"}
    page = found.report.read_text()
    assert "Who had what" in page
    assert "train equally long;" in page
    assert "tokens planned" in page
    assert all(f"{e.training.tokens:,}" in page for e in found.findings.entries)
    runs = {entry.name: entry.run.record for entry in found.entries}
    for entry in found.findings.entries:
        assert entry.training_flops == runs[entry.name].result.training_flops
        assert entry.result.parameters == runs[entry.name].model.parameters
        assert short(entry.training_flops) in page
        assert f"{entry.result.parameters:,}" in page
    assert {entry.training_flops is None for entry in found.findings.entries} == {True, False}, (
        "bag counts, others learn"
    )


@pytest.mark.slow
def test_each_says_how_long_every_model_trains_and_shares_who_gets_more(small_text: Path, tmp_path: Path) -> None:
    tiny = {"gpt": TINY["gpt"], "gru": {"width": 8}}
    found = run(
        small_text, tmp_path / "out", budget=None, each="1s", shares={"gpt": 2}, models=["bag", *tiny], settings=tiny
    )
    budgets = {e.model: Budget.parse(e.run.record.training.budget).seconds for e in found.entries if e.learned}
    assert budgets == {"gru": 1.0, "gpt": 2.0}
    assert found.findings.budget_s > 3.0
    assert "gpt 2 times as long as the others" in found.report.read_text()


def test_a_budget_for_everything_and_one_for_each_contradict_each_other(small_text: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="leave one"):
        run(small_text, tmp_path / "out", each="1s")
    with pytest.raises(Mistake, match="budget of time for everything"):
        run(small_text, tmp_path / "out", budget="10steps")


def test_compressors_gain_from_the_training_text_only_if_they_can() -> None:
    torch.manual_seed(0)
    words = [bytes(torch.randint(97, 123, (6,)).tolist()) for _ in range(400)]
    test = b" ".join(words[i] for i in torch.randint(400, (800,)).tolist())
    train = b" ".join(words[i] for i in torch.randint(400, (40_000,)).tolist())
    found = {y.name: y.bits_per_byte for y in run_baselines(train, test)}
    alone = {y.name: y.bits_per_byte for y in run_baselines(b"", test)}
    assert found["xz"] < 0.75 * alone["xz"]
    if importlib.util.find_spec("zstandard") is not None:
        assert found["zstd"] < 0.75 * alone["zstd"]
    assert found["bzip2"] == alone["bzip2"]


def test_no_compressor_needs_less_than_nothing() -> None:
    """Some pack a repetition and more of it into fewer bytes than the repetition alone."""
    for repeats in (158, 201, 300):
        found = run_baselines(b" \n" * 8 * repeats, b" \n" * repeats)
        assert all(stick.bits_per_byte >= 0 for stick in found)


def test_a_compressor_that_was_shown_the_whole_training_text_says_all() -> None:
    def said(**more: int) -> str:
        return next(y.detail for y in run_baselines(b"a cat. " * 100, b"a dog. ", **more) if y.name == "xz")

    assert said() == said(of_bytes=700) == "shown all 700 training bytes; remembers them"
    assert said(of_bytes=701) == "shown the last 700 training bytes; remembers them"


def long_text(folder: Path) -> Path:
    """A folder of 40 documents of some 8 kB, so that a short budget measures only some of the test part."""
    texts = folder / "texts"
    texts.mkdir()
    words = ["cat", "dog", "mat", "log", "wind", "grass", "tree", "moon", "river", "stone"]
    for document in range(40):
        picks = torch.randint(10, (1600,), generator=torch.Generator().manual_seed(document)).tolist()
        (texts / f"{document:02}.txt").write_text(" ".join(words[i] for i in picks))
    return texts


def test_what_is_measured_is_spread_over_the_documents_and_everything_says_so(tmp_path: Path) -> None:
    found = run(long_text(tmp_path), tmp_path / "out", split=(40, 10, 50), tokenizers=["char", "words"])
    documents = found.corpus.test.documents
    measured = found.measured
    assert not measured.everything
    assert measured.documents > len(documents) / 2
    assert all(e.status == "ranked" for e in found.entries)
    assert {e.result.scored.bytes for e in found.entries} == {measured.bytes}
    assert len({e.result.data["sha256"] for e in found.entries}) == 1
    record = found.to_json()["measured"]
    assert record["sentence"] == measured.sentence
    assert (record["bytes"], record["of"]) == (measured.bytes, found.corpus.test.bytes)
    assert record["read_bytes"] > record["bytes"]
    assert measured.sentence in render(found.findings)
    assert found.findings.ranking.about == "kind"


def test_history_is_long_enough_for_the_windows_that_are_asked_for(tmp_path: Path) -> None:
    corpus = read(long_text(tmp_path), split=(40, 10, 50))
    usual = Texts(corpus=corpus, tokenizers=["char"]).spread(20_000)
    assert usual.part.bytes < Texts(corpus=corpus, tokenizers=["char"], contexts=[1500]).spread(20_000).part.bytes
    assert usual.part.bytes < Texts(corpus=corpus, tokenizers=["char", "words"]).spread(20_000).part.bytes


@pytest.mark.slow
def test_models_that_cannot_be_told_apart_share_a_letter_on_the_page(small_text: Path, tmp_path: Path) -> None:
    found = run(small_text, tmp_path / "out", models=["bag", "uniform"], tokenizers=["byte", "char"])
    ranking = found.findings.ranking
    twins = ranking.models["uniform · byte"], ranking.models["uniform · char"]
    letters = {name: set(standing.letters) for name, standing in ranking.models.items()}
    for pair in ranking.pairs:
        assert pair.apart == (not letters[pair.a] & letters[pair.b])
    page = render(found.findings)
    assert all(twin.shown in page for twin in twins)
    assert "share a letter exactly" in page
    assert "cannot be told apart" in page
