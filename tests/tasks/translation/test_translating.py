"""A trained translator: kept and resumed like every run, used in several languages at once, measured and certified."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pairs import TINY, write_table

import lmlab
from killed_runs import survives_a_kill
from lmlab.config import Mistake, Note
from lmlab.layers import attention, blocks
from lmlab.learn.run import Run
from lmlab.models.translator import Translator
from lmlab.results import Figure
from lmlab.tasks.translation import learner, scores
from lmlab.tasks.translation import measure as measuring
from lmlab.tasks.translation.decoding import translations
from lmlab.text.sentence_pairs import Pairs
from mistakes import mistake


def test_a_text_is_read_once_and_written_in_each_language(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = trained.saved, []
    assert isinstance(model, Translator)
    encode = Translator.encode
    monkeypatch.setattr(Translator, "encode", lambda self, *given: read.append(1) or encode(self, *given))
    found = lmlab.translate(trained, ["half past seven", "forty-two"], ["fr", "de"], beam=2, device="cpu")
    assert len(read) == 1
    assert [(one.text, one.language) for one in found] == [
        ("half past seven", "fr"), ("half past seven", "de"), ("forty-two", "fr"), ("forty-two", "de"),
    ]  # fmt: skip
    again = lmlab.translate(str(trained.folder), "forty-two", device="cpu", beam=2)
    assert [one.language for one in again] == ["de", "fr"]
    assert again[0].translation == found[3].translation
    assert again[0].nats == pytest.approx(found[3].nats, abs=1e-3)


def test_searching_many_at_once_finds_what_searching_each_finds(trained: Run) -> None:
    model, texts = trained.saved.eval(), ["nine", "the third of May nineteen eighty-four", "seventy-one thousand"]  # type: ignore[attr-defined]
    for options in ({"beam": 1}, {"beam": 3, "best": 2, "length_penalty": 0.5}):
        together = translations(model, trained.tokenizer, texts, [1], **options)[0]  # type: ignore[arg-type]
        for text, found in zip(texts, together, strict=True):
            alone = translations(model, trained.tokenizer, [text], [1], **options)[0][0]  # type: ignore[arg-type]
            assert [one.ids for one in alone] == [one.ids for one in found]


def test_the_nats_of_a_translation_are_what_scoring_it_says(trained: Run) -> None:
    model = trained.saved.eval()  # type: ignore[attr-defined]
    text = "seven o'clock in the morning"
    for beam in (1, 4):
        (found,) = translations(model, trained.tokenizer, [text], [0], beam=beam)[0][0]
        ids = trained.tokenizer.encode(text).ids.astype(np.int64).tolist()
        source = model.encode(torch.tensor([[*ids, model.end_id]]), torch.ones(1, len(ids) + 1, dtype=torch.bool))
        nats = float(model.given(source, 0).score(torch.tensor([found.ids])).sum())
        assert found.nats == pytest.approx(nats, abs=1e-3)


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(table: Path, tmp_path: Path) -> None:
    settings = {**TINY, "dropout": 0.2}
    survives_a_kill("train", "translator", table, folder=tmp_path, at_step=13, budget="20steps", settings=settings)


@pytest.fixture(autouse=True)
def _greedily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "BEAM", 1)  # what a beam finds has tests of its own, and it takes its time


def measure(run: Run, **more: Any) -> scores.TranslationResult:
    found = lmlab.evaluate(run, device="cpu", **more)
    assert isinstance(found, scores.TranslationResult)
    return found


def test_eval_gives_bleu_chrf_and_certified_bits_of_every_language(trained: Run) -> None:
    result = measure(trained)
    assert result.certificate.passed, result.certificate.failures
    assert [one.language for one in result.into] == ["de", "fr"]
    assert result.signatures["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    for one in result.into:
        assert one.bleu is not None
        assert one.bits_per_byte.low < one.bits_per_byte.value < one.bits_per_byte.high
    task_says = min(line["valid_bits_per_byte"] for line in trained.metrics)
    valid = measure(trained, part="valid")
    weights = [one.bytes for one in valid.into]
    in_all = np.average([one.bits_per_byte.value for one in valid.into], weights=weights)
    assert float(in_all) == pytest.approx(task_says, rel=2e-2)  # training validates in its own precision
    assert result.to_json()["certified"] is True


def test_scores_are_sacrebleus_and_equal_translations_are_not_told_apart() -> None:
    from sacrebleu.metrics import BLEU, CHRF

    ours, right = ["the cat sat on a mat", "it is ten past two"], ["the cat sat on the mat", "it is ten past three"]
    found = scores.bleu_and_chrf(ours, right, ours)
    assert found["bleu"].figure.value == BLEU().corpus_score(ours, [right]).score
    assert found["chrf"].figure.value == CHRF().corpus_score(ours, [right]).score
    for score in found.values():
        assert score.more == Figure(value=0.0, low=0.0, high=0.0)
        assert score.p > 0.5


def test_the_training_part_is_not_held_out(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "has_sacrebleu", lambda: False)
    assert measure(trained, part="train").certificate.failures == ["held_out"]


def test_copied_sources_cost_the_certificate_and_the_figures_stand_without_them_too(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "has_sacrebleu", lambda: False)
    pairs = Pairs.from_spec(trained.record.inputs.corpus)
    rows = [*pairs.parts["test"].texts[:6], *pairs.parts["train"].texts[:2]]
    (tmp_path / "some.tsv").write_text("\n".join("\t".join(row) for row in [pairs.languages, *rows]) + "\n")
    found = measure(trained, text=tmp_path / "some.tsv")
    assert found.certificate.failures == ["held_out"]
    assert found.copied.exact == 2
    for one in found.into:
        assert one.without_copies is not None
        assert one.without_copies.sentences == 6
        assert one.without_copies.bits_per_byte.value != one.bits_per_byte.value
    assert measure(trained).into[0].without_copies is None


@pytest.mark.parametrize("bug", ["padding", "future", "end"])
def test_a_planted_bug_costs_the_certificate(trained: Run, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    sound = blocks.cross_attention
    if bug == "padding":
        monkeypatch.setattr(blocks, "cross_attention", lambda q, kv, there: sound(q, kv, torch.ones_like(there)))
    elif bug == "future":
        monkeypatch.setattr(attention, "causal_self_attention", lambda qkv, _: attention.self_attention(qkv, None))
    else:
        scored = measuring.scored
        monkeypatch.setattr(measuring, "scored", lambda *given: scored(*given) * 0.9)
    monkeypatch.setattr(measuring, "has_sacrebleu", lambda: False)
    failed = set(measure(trained).certificate.failures)
    expected = {"padding": {"batching"}, "future": {"causal"}, "end": {"score_is_probability"}}
    assert expected[bug] <= failed


def test_two_runs_are_compared_sentence_by_sentence(trained: Run, table: Path, tmp_path: Path) -> None:
    fresh = lmlab.train("translator", table, out=tmp_path / "fresh", budget="1steps", settings=TINY, device="cpu")
    result = measure(trained, against=fresh)
    for one in result.into:
        assert one.against is not None
        assert one.against.bits_per_byte.high < 0  # it has learned something
        assert 0 < one.against.bleu_p <= 1
    other = write_table(tmp_path / "other.tsv").read_text().replace("en\tde\tfr", "en\tfr\tde", 1)
    (tmp_path / "other.tsv").write_text(other)
    swapped = lmlab.train(
        "translator", tmp_path / "other.tsv", out=tmp_path / "swapped", budget="1steps", settings=TINY, device="cpu"
    )
    with mistake("translators-of-other-languages"):
        measure(trained, against=swapped)
    (tmp_path / "text.txt").write_text("a b c d e f g h " * 20)
    no_translator = lmlab.train("bag", tmp_path / "text.txt", out=tmp_path / "bag")
    with mistake("translators-of-other-languages"):
        measure(trained, against=no_translator)


def test_without_sacrebleu_bits_are_measured_and_the_rest_is_said(
    trained: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (scores, measuring):
        monkeypatch.setattr(module, "has_sacrebleu", lambda: False)
    result = measure(trained)
    assert result.into[0].bleu is None
    assert result.notes == (scores.MISSING,)
    with pytest.raises(Mistake, match="pip install"):
        measure(trained, against=trained)


def test_bits_per_byte_intervals_cover_as_often_as_they_say() -> None:
    random, covered = np.random.default_rng(0), 0
    for _ in range(200):
        bytes_B = random.integers(20, 80, 60).astype(float)
        found = scores.bits_per_byte(bytes_B * random.gamma(4, 0.25, 60) * np.log(2), bytes_B)
        covered += found.low <= 1.0 <= found.high
    assert 178 <= covered <= 198


@pytest.mark.slow
def test_more_time_than_some_epochs_is_not_used(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "EPOCHS", 1)
    run = lmlab.train(
        "translator", table, out=tmp_path / "run", budget="10m", device="cpu", settings={**TINY, "width": 8}
    )
    assert run.record.training.budget.endswith("steps")
    assert run.record.training.plan is not None
    assert run.record.training.plan.rows is not None


def test_bad_input_is_one_clear_line(trained: Run, table: Path, tmp_path: Path) -> None:
    with mistake("language-unknown", "de, fr"):
        lmlab.translate(trained, "one", "it")
    with pytest.raises(Mistake, match="empty"):
        lmlab.translate(trained, ["one", " "])
    with mistake("translated-text-too-long", "text 1"):
        lmlab.translate(trained, "one two three " * 100)
    with pytest.raises(Mistake, match="one table of pairs"):
        lmlab.train("translator", [table], out=tmp_path / "a")
    with pytest.raises(Mistake, match="writes any word"):
        lmlab.train("translator", table, out=tmp_path / "a", tokenizer="words")
    with pytest.raises(Mistake, match="longer one"):
        lmlab.train("translator", table, out=tmp_path / "a", settings={"context": 1})
    ngram = lmlab.train("ngram", table, out=tmp_path / "ngram")
    with pytest.raises(Mistake, match="which does not translate"):
        lmlab.translate(ngram, "one")
    with pytest.raises(Mistake, match="against is for translators"):
        lmlab.evaluate(ngram, against=trained)
    with pytest.raises(Mistake, match="no language model"):
        lmlab.generate(trained)
    long = tmp_path / "long.tsv"
    long.write_text("en\tde\tfr\none\teins\tun\n" + "one two " * 200 + "\teins\tun\n")
    with mistake("pairs-line-too-long", "line 3"):
        lmlab.evaluate(trained, long)


def test_a_source_unlike_all_that_was_learned_from_is_said_to_be(trained: Run) -> None:
    with pytest.warns(Note, match="unlike every source"):
        lmlab.translate(trained, "今天早上老师在学校里看书", "fr", beam=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lmlab.translate(trained, "half past seven", "fr", beam=1)
