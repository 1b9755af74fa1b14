"""The small models that checks are built on, held against something that was not written here."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from lmlab.coursework.assignment2.deepaverage import DeepAverage, made_up_reviews
from lmlab.coursework.assignment2.perplexity import restored, split_and_lowered
from lmlab.coursework.bishop12 import bert
from lmlab.coursework.lab import (
    documentation,
    feedforward,
    ngram,
    of_documentation,
    stream,
    taught,
    tokenizer_of,
    two_token_searches,
)
from lmlab.coursework.lab11.costs import operations
from lmlab.coursework.shared_tools import estimate, generator, parameters


def test_words_pay_for_spelling_and_the_tokens_are_counted_once() -> None:
    model = ngram("words:3", 2, ["the cat sat on the mat and the dog sat on the cat"])
    known, strange = model.cost("the cat"), model.cost("the xyz")
    assert known.unknown == known.spelling_nats == 0
    assert strange.unknown == 1
    assert strange.spelling_nats > 0
    assert strange.tokens == 2
    assert strange.nats == pytest.approx(float(model.nats("the xyz").sum()))
    assert list(model.known("the xyz")) == [True, False]


def test_bits_a_byte_are_those_of_the_lab_s_own_measure(tmp_path: Path) -> None:
    from lmlab.measure import score_part
    from lmlab.text.corpus import read
    from lmlab.text.parts import Part

    (tmp_path / "text.txt").write_text(text := documentation()[1][:5000], encoding="utf-8")
    part = Part("whole", read(tmp_path / "text.txt", split=(100, 0, 0)).train.documents)
    model = of_documentation("words:300")
    assert model.cost(text).bits_per_byte == pytest.approx(score_part(model.model, model.tokenizer, part).bits_per_byte)


def test_a_bigram_counted_on_a_table_is_that_table() -> None:
    texts = ["AA"] * 40 + ["AB"] * 9 + ["BA"] * 30 + ["BB"] * 21
    model = ngram("char", 2, texts, smoothing="ml")
    assert float(model.nats("AB").sum()) == pytest.approx(-math.log(0.09), rel=1e-5)
    table = {pair: Fraction(texts.count(pair), 100) for pair in sorted(set(texts))}
    assert two_token_searches(table) == ("BA", "AA")


def test_a_taught_model_of_the_lab_learns() -> None:
    tokenizer = tokenizer_of("char", "abab")
    curve = taught(feedforward(tokenizer, 4, 3, 8), stream(tokenizer, ["ab" * 50]), 60, 1e-2, rows=4, length=8)
    assert curve[-1] < curve[0] / 2


def test_the_preparation_of_words_can_be_undone() -> None:
    text = documentation()[1].replace("·", "").replace("^", "")
    assert restored(split_and_lowered(text)) == text
    assert split_and_lowered("Hello, World!") == "^ hello ·, ^ world ·!"


def test_the_bert_that_is_counted_is_the_library_s() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=bert.TRUE_VOCABULARY,
        hidden_size=bert.WIDTH,
        num_hidden_layers=bert.LAYERS,
        num_attention_heads=bert.HEADS,
        intermediate_size=bert.HIDDEN,
    )
    with torch.device("meta"):
        library = transformers.BertModel(config)
    assert parameters(bert.bert_large(bert.TRUE_VOCABULARY)) == parameters(library)
    assert config.hidden_act == bert.PUBLISHED["activation"]
    assert getattr(config, "tie_word_embeddings", True) == (bert.PUBLISHED["prediction"] == "tied")
    learned = "position_embeddings.weight" in dict(library.embeddings.named_parameters())
    assert learned == (bert.PUBLISHED["positions"] == "learned")


def test_counted_operations_are_those_of_five_matrix_products() -> None:
    n, m, k = 5, 7, 3
    products = [(n, k, k), (m, k, k), (m, k, k), (n, k, m), (n, m, k), (n, k, k)]
    assert operations(n, m, k) == sum(2 * a * b * c for a, b, c in products)


def test_an_average_gives_every_word_the_same_weight() -> None:
    model = DeepAverage(["good", "bad", "film"]).double()
    words = ["good", "film", "bad", "film"]
    expected = sum(model.embed.weight[model.ids[w]] for w in words) / 4
    assert torch.allclose(model.pooled(words), torch.as_tensor(expected))


def test_made_up_reviews_are_labelled_by_opinions_with_negation_heeded() -> None:
    from lmlab.coursework.assignment2.averaging import opinions

    for words, label in made_up_reviews(200, seed=9):
        assert (opinions(words, turning=True) > 0) == bool(label)


def test_intervals_contain_the_mean_they_estimate() -> None:
    misses = sum(not estimate(generator(seed).standard_normal(500)).contains(0.0) for seed in range(300))
    assert misses == 0
    assert not estimate(generator(1).standard_normal(50_000) + 0.05).contains(0.0)
