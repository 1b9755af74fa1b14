"""Pairs of words: what an average cannot see they can; a step moves their rows alone; what is said of them is true."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import lmlab
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.layers import fast
from lmlab.learn.run import Run
from lmlab.models.dan import DAN, Bags, DANConfig
from lmlab.models.families.word_counts import Entries, count_words, hashed_pairs, label_evidence
from lmlab.tasks.classification.data import Encoded, words_of
from lmlab.tasks.classification.misclassified import Explanation, explain, probabilities
from lmlab.tasks.classification.page import mistakes_page
from lmlab.tasks.classification.scores import log_odds
from lmlab.text.labelled import Examples

CONFIG = DANConfig(labels=3, width=5, hidden=7, word_dropout=0.0, dropout=0.0, pairs=True, buckets=97, counts="log")
TEXT = "not great the not great film was dull not dull the plot"
IDS_N, STARTS_B, LABELS_B = torch.tensor([1, 2, 1, 2, 3, 5, 5]), torch.tensor([0, 5, 5, 6]), torch.tensor([0, 1, 2, 0])


def model() -> DAN:
    torch.manual_seed(0)
    dan = DAN(CONFIG, 11).eval()
    with torch.no_grad():
        dan.pairs_PK.normal_()
    return dan


@pytest.fixture(scope="module")
def negated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose labels follow from which words stand next to each other, and from no word alone."""
    draw, lines = random.Random(0), []
    for i in range(400):
        label = ("pos", "neg")[i % 2]
        said = [("not dull", "really great"), ("not great", "really dull")][i % 2]
        rest = [draw.choice(["the", "film", "was", "a", "plot"]) for _ in range(4)]
        words = [*rest, *said] if i % 4 < 2 else [*said[::-1], *rest]
        lines.append(f"{label}\t{' '.join(words)}\n")
    path = tmp_path_factory.mktemp("negated") / "films.tsv"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def with_pairs(negated: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "pairs"
    return lmlab.train("dan", negated, out=out, budget="60steps", settings={"pairs": True}, device="cpu")


def test_texts_are_counted_as_python_counts_them() -> None:
    counts = count_words(IDS_N, STARTS_B, LABELS_B, log_counts=True, pair_buckets=97)
    assert counts.words_N.tolist() == [1, 2, 3, 5, 5]
    assert counts.starts_B.tolist() == [0, 3, 3, 4, 5]
    torch.testing.assert_close(counts.weights_N, torch.tensor([1 + np.log(2), 1 + np.log(2), 1, 1, 1]).float())
    pairs, _ = hashed_pairs(np.array([1, 2, 1, 2, 3]), np.array([0, 5]), 97)
    assert counts.pairs_M.tolist() == sorted(set(pairs.tolist()))
    assert counts.pair_starts_B.tolist() == [0, 3, 3, 3, 3]  # no pair has words of two texts
    plain = count_words(IDS_N, STARTS_B, LABELS_B, log_counts=False, pair_buckets=0)
    assert plain.weights_N.tolist() == [2, 2, 1, 1, 1]
    assert not len(plain.pairs_M)


def test_some_texts_of_a_batch_are_counted_as_by_themselves() -> None:
    bags = Bags(IDS_N, STARTS_B, LABELS_B)
    which_B = torch.tensor([3, 0, 1])
    for of in (bags.take(which_B), count_words(IDS_N, STARTS_B, LABELS_B, log_counts=True, pair_buckets=97)):
        found = DAN.prepared(CONFIG, of) if isinstance(of, Bags) else of.take(which_B)
        again = count_words(
            torch.tensor([5, 1, 2, 1, 2, 3]), torch.tensor([0, 1, 6]), torch.tensor([0, 0, 1]), log_counts=True,
            pair_buckets=97,
        )  # fmt: skip
        for name, expected in vars(again).items():
            torch.testing.assert_close(getattr(found, name), expected)


def test_a_pair_is_two_words_in_their_order_and_its_number_never_changes() -> None:
    numbers, starts = hashed_pairs(np.array([7, 9, 7, 1]), np.array([0, 3, 4]), 1 << 20)
    assert starts.tolist() == [0, 2, 2]
    assert numbers[0] != numbers[1]
    assert numbers.tolist() == [691222, 226452]  # kept models depend on it
    many, _ = hashed_pairs(np.repeat(np.arange(300), 2)[1:-1], np.array([0, 598]), 1 << 20)
    assert len(set(many.tolist())) > 590


def test_evidence_is_the_ratio_of_shares_and_none_where_a_word_is_never_met() -> None:
    entries = Entries(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 1, 2, 3]))
    evidence = label_evidence(entries, torch.tensor([0, 0, 0, 1]), labels=2, different=3)
    share = np.array([4, 2]) / 6
    odds = np.log((np.array([3, 0]) + 2 * share) / 5 / share)
    np.testing.assert_allclose(evidence[0], odds - odds.mean(), rtol=1e-5)
    torch.testing.assert_close(evidence[2], torch.zeros(2))
    torch.testing.assert_close(evidence.mean(1), torch.zeros(3))


def test_a_step_learns_the_rows_of_pairs_that_were_read_as_the_plain_way_does() -> None:
    dan = model().train()
    bags = Bags(IDS_N, STARTS_B, LABELS_B)
    loss = dan.loss(bags).total
    loss.backward()
    assert dan.pairs_PK.grad is not None
    rows = dan.pairs_PK.grad.coalesce().indices()[0].tolist()
    assert rows == sorted(set(hashed_pairs(IDS_N[:5].numpy(), np.array([0, 5]), 97)[0].tolist()))
    by_row = dan.pairs_PK.grad.to_dense()
    dan.zero_grad()
    with fast.plain():
        plain = dan.loss(bags).total
        plain.backward()
    torch.testing.assert_close(plain, loss)
    torch.testing.assert_close(dan.pairs_PK.grad, by_row)
    torch.testing.assert_close(dan.eval().loss(bags).total, loss)


def test_pairs_see_what_an_average_cannot(negated: Path, with_pairs: Run, tmp_path: Path) -> None:
    average = lmlab.train("dan", negated, out=tmp_path / "run", budget="60steps", device="cpu")
    assert lmlab.evaluate(average).scores.accuracy.value < 0.75  # type: ignore[union-attr]
    assert lmlab.evaluate(with_pairs).scores.accuracy.value > 0.95  # type: ignore[union-attr]


def test_killed_and_resumed_with_pairs_it_ends_with_the_same_bits(table: Path, tmp_path: Path) -> None:
    survives_a_kill("train", "dan", table, folder=tmp_path, at_step=13, budget="25steps", settings={"pairs": True})


def _explained(run: Run, text: str = TEXT) -> tuple[DAN, Explanation, int, int, np.ndarray]:
    dan = run.saved
    assert isinstance(dan, DAN)
    classes = tuple(run.record.inputs.corpus["classes"])
    found = explain(dan.eval(), run.tokenizer, classes, text, 0)
    predicted = classes.index(found.predicted)
    return dan, found, predicted, 0 if predicted else 1, run.tokenizer.encode(words_of(text)).ids


def test_a_text_without_a_word_is_scored_as_the_explanation_says(with_pairs: Run) -> None:
    """The text is written again and classified from the beginning, so the pairs of a word go with it."""
    dan, found, predicted, other, ids = _explained(with_pairs)
    whole = probabilities(dan, [ids])[0]
    for one in found.contributions:
        assert one.times == TEXT.split().count(one.word)
        text = " ".join(word for word in TEXT.split() if word != one.word)
        p = lmlab.classify(with_pairs, text)[0].p
        without = np.array(list(p.values()))
        change = log_odds(whole[predicted], whole[other]) - log_odds(without[predicted], without[other])
        assert one.nats == pytest.approx(change, abs=1e-5)


def test_a_model_without_a_pair_scores_as_the_explanation_says(with_pairs: Run) -> None:
    dan, found, predicted, other, ids = _explained(with_pairs)
    whole = probabilities(dan, [ids])[0]
    assert found.pairs
    assert "not great" in {pair.words for pair in found.pairs}
    for pair in found.pairs:
        first, second = pair.words.split(" or ")[0].split()
        number, _ = hashed_pairs(
            np.concatenate([with_pairs.tokenizer.encode(word).ids for word in (first, second)]),
            np.array([0, 2]),
            int(dan.config.buckets),
        )
        with torch.no_grad():
            kept = dan.pairs_PK[number].clone()
            dan.pairs_PK[number] = 0
            without = probabilities(dan, [ids])[0]
            dan.pairs_PK[number] = kept
        change = log_odds(whole[predicted], whole[other]) - log_odds(without[predicted], without[other])
        assert pair.nats == pytest.approx(change, abs=1e-5)


def test_of_negations_it_says_what_a_model_with_pairs_reads(with_pairs: Run) -> None:
    _, found, *_ = _explained(with_pairs)
    said = " ".join(found.sentences)
    assert "“not”" in said
    assert "right before and after it alone" in said
    assert "cannot see" not in said
    page = mistakes_page("films", [found], ordered=True)
    assert "not great" in page
    assert "has no order" not in page


def test_a_text_of_one_word_has_no_pairs(with_pairs: Run) -> None:
    assert _explained(with_pairs, "great")[1].pairs == ()


def test_texts_of_a_batch_do_not_depend_on_each_other(with_pairs: Run) -> None:
    texts = ["not great", "really great film", "x", "the the the plot"]
    together = lmlab.classify(with_pairs, texts)
    for text, label in zip(texts, together, strict=True):
        assert lmlab.classify(with_pairs, text)[0].p == pytest.approx(label.p, abs=1e-6)


def test_buckets_are_a_number_above_zero() -> None:
    with pytest.raises(Mistake):
        DANConfig(buckets=0)
    with pytest.raises(Mistake):
        DANConfig(counts="squared")  # type: ignore[arg-type]


def test_an_encoded_part_is_the_texts_it_was_made_of(with_pairs: Run) -> None:
    texts = Examples(("not great", "dull film"), np.array([1, 0]))
    part = Encoded.of(with_pairs.tokenizer, texts.texts, texts.labels_B)
    second = next(iter(list(part.batches(1))[1:]))
    assert second.ids_N.tolist() == with_pairs.tokenizer.encode("dull film").ids.tolist()
    assert second.labels_B.tolist() == [0]
