"""The averaging classifier: against torch.nn, blind to order, trained, resumed and kept like every model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import lmlab
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.layers import fast
from lmlab.learn.run import Run
from lmlab.models.dan import DAN, SPREAD, Bags, DANConfig
from lmlab.tasks.classification import learner
from lmlab.tasks.classification.data import Encoded, words_of
from lmlab.tasks.classification.learner import Labelling
from lmlab.text.labelled import read_labelled
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake

CONFIG = DANConfig(labels=3, width=5, hidden=7, layers=2, word_dropout=0.5, dropout=0.0)


def model(seed: int = 0) -> DAN:
    torch.manual_seed(seed)
    return DAN(CONFIG, 11).eval()


def test_it_is_what_torch_nn_computes_from_the_mean_of_embeddings() -> None:
    dan = model()
    bag = nn.EmbeddingBag.from_pretrained(dan.embedding_VX.detach(), mode="mean")
    layers = nn.Sequential(*[part for layer in dan.layers for part in (layer, nn.ReLU())], dan.output)
    ids_N, starts_B = torch.tensor([1, 2, 3, 3, 10, 0]), torch.tensor([0, 4, 5])
    torch.testing.assert_close(dan.logits(ids_N, starts_B), layers(bag(ids_N, starts_B)))


def test_order_cannot_matter() -> None:
    dan, ids = model(), torch.tensor([4, 8, 1, 1, 6])
    one, other = (dan.probabilities(i, torch.tensor([0])) for i in (ids, ids.flip(0)))
    torch.testing.assert_close(one, other)


def test_words_are_left_out_in_training_alone_and_the_rest_averaged() -> None:
    dan = model().train()
    ids_N, starts_B = torch.arange(10), torch.tensor([0])
    torch.manual_seed(3)
    kept = torch.rand(10) >= 0.5
    torch.manual_seed(3)
    found = dan.logits(ids_N, starts_B)
    torch.testing.assert_close(found, dan.eval().logits(ids_N[kept], starts_B))
    torch.manual_seed(3)
    with fast.plain():
        torch.testing.assert_close(dan.train().logits(ids_N, starts_B), found)


def test_learning_moves_the_vectors_of_words_that_were_read_and_no_others() -> None:
    dan = DAN(DANConfig(labels=3, width=5, hidden=7, word_dropout=0.0, dropout=0.0), 11).train()
    ids_N, starts_B = torch.tensor([1, 2, 3, 3, 10]), torch.tensor([0, 2, 2])  # the second text has no words
    loss = dan.loss(Bags(ids_N, starts_B, torch.tensor([0, 1, 2]))).total
    torch.testing.assert_close(loss, dan.eval().loss(Bags(ids_N, starts_B, torch.tensor([0, 1, 2]))).total)
    loss.backward()
    assert dan.embedding_VX.grad is not None
    assert dan.embedding_VX.grad._indices()[0].tolist() == [1, 2, 3, 10]
    with torch.no_grad():
        assert torch.isfinite(dan.train().logits(ids_N[:0], torch.tensor([0]))).all()


def test_texts_are_divided_together_as_each_by_itself(table: Path) -> None:
    texts = [*read_labelled(table).parts["train"].texts, "", " ", "It's — a ‘film’,\u00a0isn’t it?", "?!"]
    plain = [words_of(text) for text in texts]
    words = train_tokenizer("words", plain)
    together = Encoded.of(words, texts)
    for i, text in enumerate(plain):
        assert together.words(i).tolist() == words.encode(text).ids.tolist()
    texts = [words_of(text) for text in read_labelled(table).parts["train"].texts]
    joined = learner._tokenizer(DAN, None, texts, 1)
    assert (
        joined.hash == train_tokenizer("words", [words_of(t) for t in read_labelled(table).parts["train"].texts]).hash
    )


def test_the_loss_is_the_sum_of_the_labels_nats() -> None:
    dan = model()
    bags = Bags(torch.tensor([1, 2, 3]), torch.tensor([0, 1]), torch.tensor([2, 0]))
    loss = dan.loss(bags)
    expected = nn.functional.cross_entropy(dan.logits(bags.ids_N, bags.starts_B), bags.labels_B, reduction="sum")
    assert loss.count == bags.count == 2
    torch.testing.assert_close(loss.total, expected)


def test_a_word_is_the_same_word_at_the_end_of_a_sentence() -> None:
    assert words_of("It's GREAT. Don’t miss it!") == "it's great . don’t miss it !"


def test_an_epoch_shows_every_example_once_in_an_order_of_its_own() -> None:
    data = Encoded(np.arange(7, dtype=np.int32), np.arange(8), np.arange(7) % 2)
    task = Labelling(train=data, valid=None, labels=2, rows=3)
    epochs = [[task.batch(0, 3 * epoch + i).ids_N.tolist() for i in range(3)] for epoch in range(2)]
    for epoch in epochs:
        assert sorted(id for ids in epoch for id in ids) == list(range(7))
    assert epochs[0] != epochs[1]
    assert task.batch(0, 4).ids_N.tolist() == epochs[1][1]


def test_a_run_is_saved_and_opened_with_the_same_numbers(classifier: Run) -> None:
    texts = ["a great film", "the plot was dull and boring"]
    before = lmlab.classify(classifier, texts)
    after = lmlab.classify(str(classifier.folder), texts)
    assert [label.label for label in after] == ["pos", "neg"]
    assert before == after
    assert sum(after[0].p.values()) == pytest.approx(1)


def test_killed_and_resumed_it_ends_with_the_same_bits(table: Path, tmp_path: Path) -> None:
    survives_a_kill("train", "dan", table, folder=tmp_path, at_step=23, budget="40steps")


@pytest.mark.parametrize("frozen", [False, True])
def test_vectors_of_a_file_are_begun_with_and_stay_where_they_are_frozen(
    table: Path, tmp_path: Path, frozen: bool
) -> None:
    (tmp_path / "vectors.txt").write_text("great 1 2 3\ndull 4 5 6\nboring 4 7 3\n")
    run = lmlab.train(
        "dan", table, out=tmp_path / "run", budget="3steps", device="cpu",
        settings={"vectors": str(tmp_path / "vectors.txt"), "frozen": frozen},
    )  # fmt: skip
    dan = run.saved
    assert isinstance(dan, DAN)
    pieces = [piece.strip() for piece in run.tokenizer.vocabulary.pieces]
    found = dan.embedding_VX[[pieces.index(word) for word in ("great", "dull", "boring")]].detach()
    given = torch.tensor([[1.0, 2, 3], [4, 5, 6], [4, 7, 3]])
    centred = given - given.mean(0)
    begun_with = centred * SPREAD / centred.square().mean().sqrt()
    assert torch.allclose(found, begun_with, atol=1e-7) == frozen
    # other numbers than those of evidence and three steps stand where they stood
    torch.testing.assert_close(found[:, 2], begun_with[:, 2], atol=0.01, rtol=0)


def test_vectors_are_frozen_only_where_a_file_gives_them() -> None:
    with mistake("dan-frozen-without-vectors", "vectors"):
        DANConfig(frozen=True)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few epochs are enough, of however few rows."""
    monkeypatch.setattr("lmlab.tasks.classification.learner.LEAST_STEPS", 1)


def test_a_table_of_few_rows_is_learned_for_more_than_a_few_epochs(table: Path, tmp_path: Path) -> None:
    run = lmlab.train("dan", table, out=tmp_path / "run", budget="10m", device="cpu")
    assert run.record.training.budget == f"{learner.LEAST_STEPS}steps"


def test_more_time_than_a_few_epochs_is_not_used_and_that_is_said(table: Path, tmp_path: Path, few_steps: None) -> None:
    from lmlab.learn.onlookers import Silent

    class Told(Silent):
        def __init__(self) -> None:
            self.lines: list[str] = []

        def say(self, line: str) -> None:
            self.lines.append(line)

    told = Told()
    run = lmlab.train("dan", table, out=tmp_path / "run", budget="10m", device="cpu", watch=told)
    assert run.record.training.budget == "20steps"  # 240 examples, 64 at a time, five times over
    assert any("epochs" in line for line in told.lines)
    assert not any("undertrained" in line for line in told.lines)  # it was told to learn no more
    assert run.record.result.undertrained is None


def test_in_few_steps_the_learning_rate_is_the_one_that_validates_best(
    table: Path, tmp_path: Path, few_steps: None
) -> None:
    run = lmlab.train("dan", table, out=tmp_path / "run", budget="10m", device="cpu")
    best = {}
    for times in learner.RATES:
        rate = times * DAN.default_learning_rate
        tried = lmlab.train(
            "dan", table, out=tmp_path / str(times), budget="20steps", device="cpu", learning={"learning_rate": rate}
        )
        best[rate] = min(line["valid_bits_per_label"] for line in tried.metrics)
    assert len(set(best.values())) == len(learner.RATES)
    assert run.record.training.learning == {"learning_rate": min(best, key=best.__getitem__)}
    asked = lmlab.train(
        "dan", table, out=tmp_path / "asked", budget="10m", device="cpu", learning={"learning_rate": 0.004}
    )
    assert asked.record.training.learning == {"learning_rate": 0.004}  # whoever names one gets it
    unseen = lmlab.train("dan", table, out=tmp_path / "unseen", budget="10m", device="cpu", split=(90, 0, 10))
    assert unseen.record.training.learning == {}  # where nothing can be validated, none validates best


def test_an_epoch_of_a_budget_is_as_many_examples_as_there_are(table: Path, tmp_path: Path) -> None:
    run = lmlab.train("dan", table, out=tmp_path / "run", budget="2epochs", device="cpu")
    assert 480 - 64 < run.record.result.tokens <= 480  # the last step must fit in


def test_what_is_no_table_or_no_classifier_is_refused(table: Path, classifier: Run, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="one table"):
        lmlab.train("dan", [table, table], out=tmp_path / "a")
    with pytest.raises(Mistake, match="of its own"):
        lmlab.train("dan", table, out=tmp_path / "a", tokenizer=classifier.tokenizer)
    with pytest.raises(Mistake, match="does not read"):
        lmlab.train("ngram", table, out=tmp_path / "a", columns=["text", "label"])
    with pytest.raises(Mistake, match="no language model"):
        lmlab.generate(classifier)
    with pytest.raises(Mistake, match="empty"):
        lmlab.classify(classifier, "  ")
    (tmp_path / "v.txt").write_text("film 1 2 3\n")
    with mistake("dan-vectors-width", "width 3, not 5"):
        lmlab.train("dan", table, out=tmp_path / "a", settings={"vectors": str(tmp_path / "v.txt"), "width": 5})
    assert not (tmp_path / "a").exists()
    (tmp_path / "other.tsv").write_text("pos\ta film\nsplendid\tanother\n")
    with mistake("label-unknown", "'splendid'"):
        lmlab.evaluate(classifier, tmp_path / "other.tsv")
    ngram = lmlab.train("ngram", table, out=tmp_path / "ngram")
    with pytest.raises(Mistake, match="gives no labels"):
        lmlab.classify(ngram, "a film")
