from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import measure_models as planted
import numpy as np
import pytest
import torch

from lmlab.config import Budget, TextFacts
from lmlab.identity import model_hash
from lmlab.interface import CountModel, LanguageModel, NeuralLanguageModel
from lmlab.measure import agreement, certify, score_part
from lmlab.measure import score as scoring
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.models.ngram import NGram, NGramConfig
from lmlab.models.registry import ladder, model_class
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer

SPECS = ["byte", "char", "words", "words:8", "bpe:300"]
CHECKS = [
    "bytes_counted",
    "lossless",
    "unknown_words_paid",
    "each_token_once",
    "normalised",
    "score_is_probability",
    "causal",
    "batching",
    "chunking",
    "hashes",
    "kept_apart",
    "held_out",
]


CHARS = planted.tokenizer_for("char")


def failures(model: LanguageModel, tokenizer: Tokenizer, folder: Path, *texts: str) -> list[str]:
    part = planted.part_of(folder, *(texts or (planted.some_text(300, rare=True), planted.some_text(40, seed=5))))
    return certify(model, tokenizer, score_part(model, tokenizer, part)).failures


def tiny_gpt(vocab_size: int, context: int = 24, stride: int = 10) -> GPT:
    torch.manual_seed(0)
    config = GPTConfig(layers=2, width=16, heads=2, context=context, stride=stride, tie=False, dropout=0.3)
    model = GPT(config, vocab_size)
    with torch.no_grad():  # fresh weights predict almost uniformly, which would hide mistakes
        model.output.normal_(0, 1)
    return model


@pytest.mark.parametrize("spec", SPECS)
def test_an_honest_model_passes_every_check_under_every_tokenizer(spec: str, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for(spec)
    part = planted.part_of(tmp_path, planted.some_text(300, rare=True), "né 🙂\n\n  x", "a")
    certificate = certify(
        planted.Chain.random(tokenizer), tokenizer, score_part(planted.Chain.random(tokenizer), tokenizer, part)
    )
    assert [check.name for check in certificate.checks] == CHECKS
    assert certificate.failures == []
    assert certificate.not_known == ["kept_apart", "held_out"]
    assert not certificate.passed


@pytest.mark.parametrize("name", ladder())
def test_every_model_of_the_lab_passes(name: str, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    part = planted.part_of(tmp_path, planted.some_text(1000, seed=1), name="train")
    stream, cls = tokenize(part, tokenizer, tmp_path), model_class(name)
    if issubclass(cls, CountModel):
        model: LanguageModel = cls.fit(cls.Config(), tokenizer.vocabulary, stream)
    else:
        assert issubclass(cls, NeuralLanguageModel)
        facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
        torch.manual_seed(0)
        model = cls(cls.resolve(cls.Config(), facts, Budget(steps=10)), tokenizer.vocab_size)
        with torch.no_grad():  # fresh weights predict almost uniformly, which would hide mistakes
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
    assert failures(model, tokenizer, tmp_path) == []


@pytest.mark.parametrize(("context", "stride"), [(24, 10), (16, 16), (9, 1)])
def test_windows_of_every_kind_pass(context: int, stride: int, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    assert failures(tiny_gpt(tokenizer.vocab_size, context, stride), tokenizer, tmp_path) == []


@pytest.mark.parametrize("smoothing", ["add-k", "kneser-ney"])
def test_counts_of_every_kind_pass(smoothing: str, tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("words")
    train = tokenize(planted.part_of(tmp_path, planted.some_text(3000, seed=1), name="train"), tokenizer, tmp_path)
    model = NGram.fit(NGramConfig(order=3, smoothing=smoothing), tokenizer.vocabulary, train)  # type: ignore[arg-type]
    assert failures(model, tokenizer, tmp_path) == []


def test_a_model_in_training_is_measured_without_dropout_and_goes_on_training(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    model = tiny_gpt(tokenizer.vocab_size).train()
    part = planted.part_of(tmp_path, planted.some_text(60))
    first, again = score_part(model, tokenizer, part), score_part(model, tokenizer, part)
    assert first.total_nats == again.total_nats
    assert certify(model, tokenizer, first).failures == []
    assert model.training


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (planted.Leaks, {"causal", "score_is_probability"}),
        (planted.KnowsTheLength, {"causal", "score_is_probability"}),
        (planted.Unnormalised, {"normalised"}),
        (planted.CountsWindowsTwice, {"score_is_probability"}),
        (planted.SlipsAtTheEdge, {"score_is_probability"}),
        (planted.CacheOffByOne, {"chunking", "score_is_probability"}),
        (planted.DependsOnTheBatch, {"batching", "score_is_probability"}),
    ],
)
def test_a_dishonest_model_fails_the_check_for_its_mistake(
    model: type[planted.Chain], expected: set[str], tmp_path: Path
) -> None:
    assert set(failures(model.random(CHARS), CHARS, tmp_path)) == expected


def test_a_model_that_amplifies_rounding_is_checked_as_far_as_that_is_possible(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    part = planted.part_of(tmp_path, *(planted.some_text(words, seed=words) for words in (300, 200, 100)))
    chaotic, calm = planted.Chaotic(tokenizer), planted.Chaotic(tokenizer, gain=0.5)
    before = {name: value.clone() for name, value in chaotic.tensors().items()}
    details = {}
    for model in (chaotic, calm):
        certificate = certify(model, model.tokenizer, score_part(model, model.tokenizer, part))
        assert certificate.failures == []
        details[model] = {check.name: check.detail for check in certificate.checks}["score_is_probability"]
    assert "this model amplifies rounding" in details[chaotic]
    assert "this model amplifies rounding" not in details[calm]
    assert all(torch.equal(before[name], value) for name, value in chaotic.tensors().items())
    assert set(failures(planted.Chaotic(tokenizer, leak=0.01), tokenizer, tmp_path)) == {
        "causal",
        "score_is_probability",
    }


def test_scores_that_are_not_numbers_are_never_certified(tmp_path: Path) -> None:
    found = failures(planted.Broken.random(CHARS), CHARS, tmp_path)
    assert {"each_token_once", "score_is_probability"} <= set(found)


def test_a_tokenizer_that_loses_unknown_words_is_not_lossless(tmp_path: Path) -> None:
    def decode(coding, ids, spellings):  # type: ignore[no-untyped-def]
        return super(type(coding), coding).decode(ids, ())

    tokenizer = planted.with_coding(planted.tokenizer_for("words"), decode=decode)
    assert failures(planted.Chain.random(tokenizer), tokenizer, tmp_path) == ["lossless"]


def test_a_tokenizer_that_lowers_capitals_is_not_lossless(tmp_path: Path) -> None:
    def encode(coding, chunks):  # type: ignore[no-untyped-def]
        return super(type(coding), coding).encode(chunk.lower() for chunk in chunks)

    tokenizer = planted.with_coding(planted.tokenizer_for("char"), encode=encode)
    assert failures(planted.Chain.random(tokenizer), tokenizer, tmp_path, "It was A Dog\n" * 20) == ["lossless"]


def test_a_wrong_count_of_bytes_is_seen(tmp_path: Path) -> None:
    def token_bytes(coding, ids, spellings):  # type: ignore[no-untyped-def]
        return super(type(coding), coding).token_bytes(ids, spellings) + (ids == ids[0])

    tokenizer = planted.with_coding(planted.tokenizer_for("words"), token_bytes=token_bytes)
    assert failures(planted.Chain.random(tokenizer), tokenizer, tmp_path) == ["bytes_counted"]


def test_bytes_moved_between_documents_are_seen(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    model = planted.Chain.random(tokenizer)
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, "the cat\n", "the dog\n"))
    moved = scored.byte_ends.copy()
    moved[7] += 1
    assert certify(model, model.tokenizer, replace(scored, byte_ends=moved)).failures == ["bytes_counted"]


def test_unknown_words_that_nobody_pays_for_are_seen(tmp_path: Path) -> None:
    whole = planted.tokenizer_for("words")
    free = Tokenizer(whole.spec, whole.backend, whole._coding, spelling=None)
    assert failures(planted.Chain.random(free), free, tmp_path) == ["unknown_words_paid"]


def test_unknown_words_at_half_price_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = planted.tokenizer_for("words")
    assert tokenizer.spelling is not None
    full = tokenizer.spelling.nats
    monkeypatch.setattr(tokenizer.spelling, "nats", lambda words: 0.5 * full(words))
    assert failures(planted.Chain.random(tokenizer), tokenizer, tmp_path) == ["unknown_words_paid"]


def test_a_spelling_model_that_cheats_after_the_first_words_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = planted.tokenizer_for("words")
    assert tokenizer.spelling is not None
    model = planted.Chain.random(tokenizer)
    part = planted.part_of(tmp_path, planted.some_text(2000, rare=True))
    first, full = score_part(model, tokenizer, part).stream.spellings[:20], tokenizer.spelling.nats
    monkeypatch.setattr(
        tokenizer.spelling, "nats", lambda words: full(words) * [1.0 if word in first else 0.5 for word in words]
    )
    assert certify(model, tokenizer, score_part(model, tokenizer, part)).failures == ["unknown_words_paid"]


@pytest.mark.parametrize("seed", range(3))
def test_a_spelling_model_that_cheats_at_one_word_in_twenty_is_seen(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = planted.tokenizer_for("words")
    assert tokenizer.spelling is not None
    full = tokenizer.spelling.nats
    monkeypatch.setattr(
        tokenizer.spelling,
        "nats",
        lambda words: full(words) * [0.5 if sum(word.encode()) % 20 == 0 else 1.0 for word in words],
    )
    assert failures(
        planted.Chain.random(tokenizer), tokenizer, tmp_path, planted.some_text(3000, seed=seed, rare=True)
    ) == ["unknown_words_paid"]


def test_spelling_left_out_of_the_total_is_seen(tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for("words"))
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, planted.some_text(200, rare=True)))
    without = replace(scored, total_nats=scored.model_nats, spelling_nats=0.0)
    assert set(certify(model, model.tokenizer, without).failures) == {"unknown_words_paid", "each_token_once"}


def test_a_document_scored_twice_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = scoring.batches

    def twice(lengths: np.ndarray, most_tokens: int):  # type: ignore[no-untyped-def]
        yield from once(lengths, most_tokens)
        yield np.array([0])

    monkeypatch.setattr(scoring, "batches", twice)
    assert failures(planted.Chain.random(CHARS), CHARS, tmp_path) == ["each_token_once"]


def test_a_token_counted_twice_in_the_total_is_seen(tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for("char"))
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, planted.some_text(100)))
    more = replace(scored, total_nats=scored.total_nats + float(scored.nats_per_token[5]))
    assert certify(model, model.tokenizer, more).failures == ["each_token_once"]


def test_scores_put_down_at_the_wrong_place_are_seen(tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for("char"))
    scored = score_part(model, model.tokenizer, planted.part_of(tmp_path, planted.some_text(100)))
    shifted = np.roll(scored.nats_per_token, 1)
    assert certify(model, model.tokenizer, replace(scored, nats_per_token=shifted)).failures == ["score_is_probability"]


def test_a_cut_that_a_model_feels_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PIECE_TOKENS", 50)
    monkeypatch.setattr(scoring, "SEAM", 1)
    model = planted.SaysItForgets.random(planted.tokenizer_for("char"))
    assert "chunking" in failures(model, model.tokenizer, tmp_path)


def test_a_text_that_changed_after_scoring_is_seen(tmp_path: Path) -> None:
    model = planted.Chain.random(planted.tokenizer_for("char"))
    part = planted.part_of(tmp_path, "the cat sat\n")
    scored = score_part(model, model.tokenizer, part)
    part.documents[0].path.write_bytes(b"the cat sits"[: part.bytes])
    assert set(certify(model, model.tokenizer, scored).failures) == {"lossless", "hashes"}


def test_a_text_of_one_token_has_a_certificate(tmp_path: Path) -> None:
    assert failures(planted.Chain.random(CHARS), CHARS, tmp_path, "a") == []


def test_the_hash_of_a_model_changes_with_a_single_weight() -> None:
    model = planted.Chain.random(planted.tokenizer_for("char"))
    before = model_hash(model, CHARS)
    assert model_hash(planted.Chain.random(CHARS), CHARS) == before
    model.logp_NV[3, 3] += 1e-6
    assert model_hash(model, CHARS) != before


def test_what_agreement_finds_is_a_plain_number_that_a_record_can_hold() -> None:
    """A slight lean beyond chance is rare, so that a number of another type would be met by users first."""
    nats = np.linspace(1.0, 2.0, 100, dtype=np.float32)
    leaning, by_itself = nats.astype(np.float64) - 1e-6, np.arange(100) < 50
    found = (agreement.lean(nats, leaning), agreement.disagreement(nats, leaning, by_itself))
    assert found[0] > 0
    assert [type(one) for one in found] == [float, float]
