"""The neural bigram model: parameters, given word vectors, and the two ways to its nats."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lmlab.config import Budget, TextFacts
from lmlab.interface import Windows
from lmlab.models import bigram
from lmlab.models.bigram import Bigram, BigramConfig
from lmlab.text.pieces import Vocabulary

WORDS = ["the", "Cat", "sat", "\n", "<unknown word>"]
FACTS = TextFacts(train_tokens=1000, train_bytes=5000, vocab_size=len(WORDS))


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text("the 0.1 0.2 0.3\ncat -1 2 -3\nsat 4 5 6\nthe-rest 7 8 9\n")
    return path


def build(config: BigramConfig) -> Bigram:
    torch.manual_seed(0)
    resolved = Bigram.resolve(config, FACTS, Budget(steps=10))
    model = Bigram(resolved, len(WORDS))
    model.take_vocabulary(Vocabulary(WORDS, words=True))
    return model


def vectors(model: Bigram) -> torch.Tensor:
    return model.table(torch.arange(len(WORDS) + 1)[None])[0].detach()


def test_parameters_are_those_of_the_equations_and_one_vector_for_the_begin() -> None:
    v, d_x, d_h = 5, 7, 11
    model = Bigram(BigramConfig(embedding_width=d_x, width=d_h, dropout=0.0), len(WORDS))
    assert model.parameters_count == v * d_x + d_x * d_h + d_h + d_h * v + v + d_x


def test_pieces_take_the_vectors_of_the_file_as_written_or_in_lower_case(glove: Path) -> None:
    model = build(BigramConfig(vectors=str(glove)))
    assert model.config.embedding_width == 3
    expected = torch.tensor([[0.1, 0.2, 0.3], [-1.0, 2.0, -3.0], [4.0, 5.0, 6.0]])
    torch.testing.assert_close(vectors(model)[:3], expected)
    assert model.parameters_count == 6 * 3 + 3 * model.config.width + model.config.width + 5 * model.config.width + 5
    assert any("3 of 5 pieces" in note for note in model.notes)


@pytest.mark.parametrize("freeze", [True, False])
def test_frozen_vectors_stay_and_all_others_learn(glove: Path, freeze: bool) -> None:
    model = build(BigramConfig(vectors=str(glove), freeze_vectors=freeze))
    before = vectors(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    tokens_BT = torch.tensor([[0, 1, 2, 3, 4, 0, 3, 1]])
    for _ in range(3):
        optimizer.zero_grad()
        model.loss(Windows(tokens_BT)).total.backward()
        optimizer.step()
    moved_W = (vectors(model) != before).any(1)
    assert moved_W.tolist() == [not freeze] * 3 + [True] * 3


@pytest.mark.parametrize("freeze", [True, False])
def test_a_saved_model_needs_the_vector_file_no_more(glove: Path, freeze: bool) -> None:
    model = build(BigramConfig(vectors=str(glove), freeze_vectors=freeze)).eval()
    with torch.no_grad():
        model.output_VH.normal_()
    saved = {name: tensor.clone() for name, tensor in model.tensors().items()}
    glove.unlink()
    loaded = Bigram.from_tensors(model.config, len(WORDS), saved)
    tokens_BT = torch.tensor([[0, 1, 2, 3, 4, 4]])
    assert torch.equal(loaded.score(tokens_BT), model.score(tokens_BT))
    assert loaded.config == model.config
    assert loaded.parameters_count == model.parameters_count
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in model.parameters()]
    assert {name: tuple(t.shape) for name, t in loaded.tensors().items()} == {
        n: tuple(t.shape) for n, t in saved.items()
    }


def test_many_words_take_the_path_without_a_table_and_cost_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(BigramConfig()).eval()
    with torch.no_grad():
        model.output_VH.normal_()
    tokens_BT = torch.tensor([[0, 1, 2, 3, 4, 0, 3, 1], [2, 2, 1, 4, 3, 3, 0, 0]])
    by_table = model.loss(Windows(tokens_BT)).total
    scores_BT = model.score(tokens_BT)
    monkeypatch.setattr(bigram, "TABLE_ELEMENTS", 0)
    torch.testing.assert_close(model.loss(Windows(tokens_BT)).total, by_table)
    torch.testing.assert_close(model.score(tokens_BT), scores_BT)


def test_mistakes_with_vectors_are_named_in_one_line(glove: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="freeze_vectors needs vectors"):
        BigramConfig(freeze_vectors=True)
    with pytest.raises(ValueError, match="width 3; embedding_width is 8"):
        build(BigramConfig(vectors=str(glove), embedding_width=8))
    with pytest.raises(ValueError, match="there is no file"):
        build(BigramConfig(vectors=str(tmp_path / "missing.txt")))
    strange = tmp_path / "strange.txt"
    strange.write_text("zebra 1 2 3\n")
    with pytest.raises(ValueError, match="none of the 5 pieces"):
        build(BigramConfig(vectors=str(strange)))
