from __future__ import annotations

import json
import math
import os
from pathlib import Path

import measure_models as planted
import pytest

from lmlab.measure import evaluate
from lmlab.measure.spread_sample import everything
from lmlab.models.bag import Bag, BagConfig
from lmlab.models.ngram import NGram, NGramConfig
from lmlab.models.uniform import Uniform, UniformConfig
from lmlab.text.corpus import Corpus, read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

DATA = os.environ.get("LMLAB_BENCH_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="LMLAB_BENCH_DATA names no folder with the benchmark texts")


def uniform(spec: str) -> tuple[Uniform, Tokenizer]:
    tokenizer = planted.tokenizer_for(spec)
    return Uniform(UniformConfig(), tokenizer.vocab_size), tokenizer


def test_the_document_holds_everything_a_reader_needs(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("words")
    part = planted.part_of(tmp_path, planted.some_text(600, rare=True), planted.some_text(50))
    result = evaluate(planted.Chain.random(tokenizer), tokenizer, part, name="some text", seed=1)
    shown = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert shown["bits_per_byte"] == shown["nats"] / math.log(2) / shown["bytes"]
    assert shown["interval"][0] < shown["bits_per_byte"] < shown["interval"][1]
    assert shown["bytes"] == part.bytes
    assert shown["perplexity"]["token"] == pytest.approx(math.exp(shown["nats"] / shown["tokens"]))
    assert shown["perplexity"]["word"] == pytest.approx(math.exp(shown["nats"] / part.words))
    assert shown["perplexity"]["character"] == pytest.approx(math.exp(shown["nats"] / part.chars))
    assert 0 < shown["perplexity"]["unknown_share"] < 0.1
    assert shown["unknown_tokens"] == 36
    assert shown["certified"] is result.certified is False
    assert shown["verdict"] == (
        "not certified: whether the model's code could look up what it was asked and whether the text was held out is not known"
    )
    assert {name for name, passed in shown["certificate"].items() if not passed} == {"kept_apart", "held_out"}
    assert set(shown["certificate"]) == set(shown["certificate_details"])
    assert set(shown["perplexity_units"]) == {"token", "word", "character", "closed_vocabulary", "known_words"}
    assert shown["context"]["history"] == 1
    assert shown["model"]["name"] == "measure_models:Chain"
    assert len(shown["model"]["hash"]) == 64
    assert shown["data"] == {
        "name": "some text",
        "part": "test",
        "bytes": part.bytes,
        "sha256": part.sha256,
        "documents": 2,
        "measured": everything(part).to_json(),
    }
    assert shown["seconds"] > 0
    assert shown["notes"] == []


def test_who_looks_on_is_told_of_every_part_of_the_work(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("words")
    heard: list[tuple[str, int, int]] = []
    part = planted.part_of(tmp_path, planted.some_text(3000))
    looked_at = evaluate(
        planted.Chain.random(tokenizer), tokenizer, part, seed=1, progress=lambda *said: heard.append(said)
    )
    assert list(dict.fromkeys(what for what, _, _ in heard)) == ["tokenise", "walk", "score"]
    for work in ("tokenise", "walk", "score"):
        done, totals = [n for what, n, _ in heard if what == work], {n for what, _, n in heard if what == work}
        assert done == sorted(done)
        assert {done[-1]} == totals
    assert (
        looked_at.scored.total_nats
        == evaluate(planted.Chain.random(tokenizer), tokenizer, part, seed=1).scored.total_nats
    )


def test_there_is_no_closed_vocabulary_where_the_tokenizer_knows_everything(tmp_path: Path) -> None:
    result = evaluate(*uniform("char"), planted.part_of(tmp_path, "the cat"))
    assert set(result.to_json()["perplexity"]) == {"token", "word", "character"}


@pytest.mark.parametrize(("spec", "fallen"), [("byte", 0), ("char", 6), ("bpe:300", 6), ("words", 0)])
def test_characters_without_a_token_are_counted_by_their_bytes(spec: str, fallen: int, tmp_path: Path) -> None:
    shown = evaluate(*uniform(spec), planted.part_of(tmp_path, "the cat 🦜", "é the cat")).to_json()
    assert shown["fallback_tokens"] == fallen
    assert (shown["unknown_tokens"] > 0) == (spec == "words")


def test_an_infinite_result_is_valid_json_and_says_why(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("char")
    train = tokenize(planted.part_of(tmp_path, "the cat", name="train"), tokenizer, tmp_path)
    model = Bag.fit(BagConfig(smoothing="ml"), tokenizer.vocabulary, train)
    result = evaluate(model, tokenizer, planted.part_of(tmp_path, planted.some_text(200)))
    shown = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert result.bits_per_byte == math.inf
    assert shown["bits_per_byte"] is shown["nats"] is shown["interval"] is None
    assert shown["perplexity"] == {"token": None, "word": None, "character": None}
    assert shown["certificate"]["held_out"] is None
    assert f"{shown['impossible_tokens']} of {shown['tokens']} tokens have probability zero" in shown["notes"][-1]


def test_a_perplexity_too_large_for_a_number_is_null(tmp_path: Path) -> None:
    shown = evaluate(*uniform("byte"), planted.part_of(tmp_path, "x" * 5000)).to_json()
    assert shown["perplexity"]["word"] is None  # one word of 5000 letters: e to the 27,000
    assert shown["bits_per_byte"] == pytest.approx(8.0)


def test_a_short_text_has_a_number_and_no_interval(tmp_path: Path) -> None:
    shown = evaluate(*uniform("byte"), planted.part_of(tmp_path, " ")).to_json()
    assert shown["bits_per_byte"] == pytest.approx(8.0)
    assert shown["interval"] is None
    assert shown["perplexity"]["word"] is None  # there is no word
    assert shown["notes"] == ["the text is too short for a confidence interval (1 byte)"]


def fitted(corpus: Corpus, spec: str, order: int, folder: Path) -> tuple[NGram, Tokenizer]:
    tokenizer = train_tokenizer(spec, corpus.train.pieces())
    return NGram.fit(
        NGramConfig(order=order), tokenizer.vocabulary, tokenize(corpus.train, tokenizer, folder)
    ), tokenizer


@needs_data
def test_the_penn_treebank_has_its_published_perplexity(tmp_path: Path) -> None:
    assert DATA is not None
    files = {part: Path(DATA) / "ptb" / f"ptb.{part}.txt" for part in ("train", "valid", "test")}
    corpus = read(files["train"], valid=files["valid"], test=files["test"])
    result = evaluate(*fitted(corpus, "words", 5, tmp_path), corpus.test, name="ptb")
    assert f"{result.perplexity['closed_vocabulary']:.1f}" == "141.2"  # published: Kneser-Ney 5-gram, line end counted
    assert result.scored.closed_tokens == 82_430  # words and line ends of the test part
    assert result.certificate.failures == []


@needs_data
def test_tinyshakespeare_costs_what_an_independent_count_says(tmp_path: Path) -> None:
    assert DATA is not None
    corpus = read(Path(DATA) / "tinyshakespeare" / "input.txt", split=(90, 10, 0), split_by="tail")
    result = evaluate(*fitted(corpus, "char", 7, tmp_path), corpus.valid, name="tinyshakespeare")
    assert result.scored.total_nats / result.scored.chars == pytest.approx(1.5165, abs=0.003)
    assert result.certificate.failures == []


def test_a_level_near_one_is_not_rounded_to_certainty(tmp_path: Path) -> None:
    model, tokenizer = uniform("byte")
    result = evaluate(model, tokenizer, planted.part_of(tmp_path, planted.some_text(600)), level=0.999)
    assert "99.9% interval" in repr(result)
    assert "(99.9%)" in result._repr_html_()
