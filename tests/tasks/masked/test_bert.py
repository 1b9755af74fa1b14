"""`bert` against the transformers library, and what it promises by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertForMaskedLM, BertModel

import lmlab
from huggingface import config_of, copy, copy_encoder, shaken
from killed_runs import survives_a_kill
from lmlab.config import Budget, Mistake, TextFacts
from lmlab.costs.asked_count import count
from lmlab.models.bert import BERT, BERTConfig, Masked

SMALL = BERTConfig(
    layers=2, width=12, heads=3, hidden=20, context=10, symbols=False, pooler=True, transform=True, dropout=0.0
)
WORDS = 17  # of the vocabulary, the symbols among them
INPUTS_BT = torch.tensor([[14, 3, 5, 16, 2, 15, 0], [14, 1, 16, 15, 0, 0, 0]])
TEXT_BT = torch.tensor([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0, 0]]).bool()
SEGMENTS_BT = torch.tensor([[0, 0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0, 0]])


def small(config: BERTConfig = SMALL, words: int = WORDS) -> BERT:
    torch.manual_seed(0)
    model = BERT(config, words).eval()
    shaken(model)
    return model


@torch.no_grad()
def test_the_encoder_and_its_pooler_are_those_of_transformers() -> None:
    ours = small().encoder
    theirs = BertModel(config_of(SMALL, WORDS)).eval()
    copy_encoder(ours, theirs)
    expected = theirs(INPUTS_BT, attention_mask=TEXT_BT.long(), token_type_ids=SEGMENTS_BT)
    found_BTD = ours(INPUTS_BT, TEXT_BT, SEGMENTS_BT)
    torch.testing.assert_close(found_BTD[TEXT_BT], expected.last_hidden_state[TEXT_BT], atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.pooled(found_BTD), expected.pooler_output, atol=1e-4, rtol=0)


def test_the_loss_of_masked_places_is_that_of_transformers() -> None:
    ours, theirs = small(), BertForMaskedLM(config_of(SMALL, WORDS)).eval()
    copy_encoder(small(SMALL).encoder, _with_pooler(theirs))
    predictions = theirs.cls.predictions
    copy(ours.transform, predictions.transform.dense)
    copy(ours.norm, predictions.transform.LayerNorm)
    with torch.no_grad():
        predictions.bias.copy_(ours.bias)
        predictions.decoder.bias.copy_(ours.bias)
    labels_BT = torch.full_like(INPUTS_BT, -100)
    labels_BT[0, 3], labels_BT[1, 1], labels_BT[1, 2] = 7, 1, 9
    expected = theirs(INPUTS_BT, attention_mask=TEXT_BT.long(), labels=labels_BT).loss
    batch = Masked(INPUTS_BT, torch.tensor([3, 8, 9]), torch.tensor([7, 1, 9]), TEXT_BT)
    loss = ours.loss(batch)
    assert loss.count == 3
    torch.testing.assert_close(loss.mean, expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.nats(batch).sum(), loss.total)
    chosen = ours.guesses(INPUTS_BT, batch.places_N, TEXT_BT)[torch.arange(3), batch.targets_N]
    torch.testing.assert_close(-chosen, ours.nats(batch))


def _with_pooler(theirs: BertForMaskedLM) -> BertModel:
    """A masked model of transformers has no pooler; ours is copied into a spare one."""
    theirs.bert.pooler = BertModel(theirs.config).pooler
    return theirs.bert


def test_places_that_only_fill_a_batch_up_cost_nothing() -> None:
    model = small()
    batch = Masked(INPUTS_BT, torch.tensor([3, 8]), torch.tensor([7, 1]), TEXT_BT)
    more = Masked(
        INPUTS_BT, torch.tensor([3, 8, 0]), torch.tensor([7, 1, 0]), TEXT_BT, torch.tensor([True, True, False])
    )
    assert more.count == 2
    torch.testing.assert_close(model.loss(batch).total, model.loss(more).total)


@torch.no_grad()
def test_padding_is_not_attended_to_and_a_planted_bug_that_attends_to_it_is_seen() -> None:
    encoder = small().encoder
    other_BT = INPUTS_BT.masked_fill(~TEXT_BT, 11)
    text = TEXT_BT
    torch.testing.assert_close(encoder(INPUTS_BT, text)[text], encoder(other_BT, text)[text])
    alone = encoder(INPUTS_BT[1:, :4])
    torch.testing.assert_close(encoder(INPUTS_BT, text)[1:, :4], alone)
    attended = encoder(INPUTS_BT, None)[1:, :4]  # the bug: nobody says where the text ends
    assert (attended - alone).abs().max() > 1e-2


@torch.no_grad()
def test_every_place_sees_what_is_before_and_after_it() -> None:
    encoder = small().encoder
    before = encoder(INPUTS_BT[:1])
    for changed in (1, 5):
        other_BT = INPUTS_BT[:1].clone()
        other_BT[0, changed] = 9
        assert ((encoder(other_BT) - before).abs().amax(-1) > 1e-4).all()


@pytest.mark.slow
def test_bert_large_has_the_known_number_of_parameters_without_memory_for_them() -> None:
    found = count("bert", settings={"preset": "bert-large"}, vocab=30_522)
    assert found.instance == found.parameters == 335_141_888
    assert found.agrees
    assert count("bert", settings={"preset": "bert-base"}, vocab=30_522).parameters == 109_482_240


def test_sizes_grow_with_the_budget_and_what_is_set_stays() -> None:
    facts = TextFacts(train_tokens=10**6, train_bytes=4 * 10**6, vocab_size=4096)
    small_one, large = (BERT.resolve(BERTConfig(), facts, Budget(tokens=n)) for n in (10**4, 10**7))
    assert small_one.width < large.width  # type: ignore[operator]
    assert BERT.resolve(BERTConfig(width=24, heads=2), facts, Budget(tokens=10**4)).width == 24
    assert small_one.symbols
    assert small_one.transform
    assert not small_one.pooler


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"context": 2}, "begin and its end"),
        ({"width": 10, "heads": 3}, "multiple of heads"),
        ({"preset": "bert-huge"}, "bert-base, bert-large"),
        ({"dropout": 1.5}, "share"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(Mistake, match=words):
        BERTConfig(**settings)  # type: ignore[arg-type]


TINY = {"layers": 1, "width": 8, "heads": 1, "context": 18, "dropout": 0.1}


def test_killed_and_resumed_it_ends_with_the_same_bits(text: Path, tmp_path: Path) -> None:
    options = {"budget": "8steps", "tokenizer": "words", "settings": TINY}
    survives_a_kill("train", "bert", text, folder=tmp_path, at_step=5, **options)


def test_a_preset_whose_symbols_are_in_the_vocabulary_is_not_trained_on_a_text(text: Path, tmp_path: Path) -> None:
    tiny = {"preset": "bert-base", "layers": 1, "width": 8, "heads": 1, "hidden": 8, "context": 18}
    with pytest.raises(Mistake, match="symbols=true"):
        lmlab.train("bert", text, out=tmp_path / "run", budget="1steps", tokenizer="words", settings=tiny)
    assert not (tmp_path / "run").exists()
    whole = {**tiny, "symbols": True}
    lmlab.train("bert", text, out=tmp_path / "run", budget="1steps", device="cpu", tokenizer="words", settings=whole)
