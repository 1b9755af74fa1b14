"""The small models that checks are built on, held against something that was not written here."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import pytest
import torch

from lmlab.ledger.assignment2.deepaverage import DeepAverage, made_up_reviews
from lmlab.ledger.assignment2.perplexity import restored, split_and_lowered
from lmlab.ledger.bishop12 import bert
from lmlab.ledger.kit import estimate, generator, parameters
from lmlab.ledger.lab11.costs import operations
from lmlab.ledger.tablemodel import TwoTokens
from lmlab.ledger.textlab import Counts, Words, documentation


def slow_witten_bell(text: list[int], order: int, symbols: int, context: tuple[int, ...], symbol: int) -> float:
    """The recursion, one dictionary at a time."""
    if order == 0:
        return 1 / symbols
    shorter = slow_witten_bell(text, order - 1, symbols, context[1:] if len(context) == order - 1 else context, symbol)
    padded = [symbols] * (order - 1) + text
    followers = Counter(
        padded[i] for i in range(order - 1, len(padded)) if tuple(padded[i - order + 1 : i]) == context[-(order - 1) :]
    ) if order > 1 else Counter(text)  # fmt: skip
    if not followers:
        return shorter
    return (followers[symbol] + len(followers) * shorter) / (followers.total() + len(followers))


def test_count_models_follow_the_recursion_of_witten_and_bell() -> None:
    text = [0, 1, 2, 0, 1, 0, 2, 2, 1, 0, 1]
    model = Counts([text], 3, symbols=4)
    for a, b, c in product(range(4), repeat=3):
        expected = slow_witten_bell(text, 3, 4, (a, b), c)
        assert math.exp(-model.nats([[a, b, c]])[2]) == pytest.approx(expected), (a, b, c)


def test_count_models_sum_to_one_in_every_context() -> None:
    model = Counts([list(b"abracadabra")], 3, symbols=256)
    for context in (b"", b"a", b"br", b"zz"):
        total = sum(math.exp(-model.nats([[*context, x]])[-1]) for x in range(256))
        assert total == pytest.approx(1.0)


def test_words_pay_for_spelling_and_a_uniform_model_costs_eight_bits_a_byte() -> None:
    text = "the cat sat on the mat and the dog sat on the cat"
    known, strange = Words(text, vocabulary=3).score("the cat"), Words(text, vocabulary=3).score("the xyz")
    assert known.unknown == 0
    assert strange.unknown == 1
    assert strange.spelling_nats > 0
    uniform = Counts([list(range(256))], 1, symbols=256)
    assert list(uniform.nats([list(b"abc")])) == pytest.approx([math.log(256)] * 3)


def test_the_preparation_of_words_can_be_undone() -> None:
    text = documentation()[1].replace("·", "").replace("^", "")
    assert restored(split_and_lowered(text)) == text
    assert split_and_lowered("Hello, (World)!") == "^ hello ·, ( ·^ world ·) ·!"


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


def test_the_table_model_is_a_distribution_and_scores_what_it_predicts() -> None:
    model = TwoTokens({"AA": 0.4, "AB": 0.09, "BA": 0.3, "BB": 0.21})
    ids = model.tokenizer.encode("AB").ids
    first, state = model.begin(1)
    second, _ = model.advance(torch.tensor([[int(ids[0])]]), state)
    assert first.exp().sum() == pytest.approx(1.0)
    assert second.exp().nan_to_num().sum() == pytest.approx(1.0)
    nats = model.score(torch.tensor([[int(i) for i in ids]]))
    assert nats[0, 0] == pytest.approx(-float(first[0, ids[0]]))
    assert float(nats.sum()) == pytest.approx(-math.log(0.09), rel=1e-5)


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
    from lmlab.ledger.assignment2.averaging import opinions

    for words, label in made_up_reviews(200, seed=9):
        assert (opinions(words, turning=True) > 0) == bool(label)


def test_intervals_contain_the_mean_they_estimate() -> None:
    misses = sum(not estimate(generator(seed).standard_normal(500)).contains(0.0) for seed in range(300))
    assert misses == 0
    assert not estimate(generator(1).standard_normal(50_000) + 0.05).contains(0.0)
