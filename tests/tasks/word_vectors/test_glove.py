"""`glove`: its objective, its training by the loop, what is held out, and a kill that changes nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

import lmlab
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.learn.micro_batches import cut
from lmlab.learn.run import Run
from lmlab.models.glove import GloVe, GloVeConfig, PairBatch
from lmlab.tasks.word_vectors.counting import Pairs
from lmlab.tasks.word_vectors.data import Entries, divided
from lmlab.tasks.word_vectors.learner import CoOccurrence
from lmlab.tasks.word_vectors.measure import VectorsResult, frequency_biases

PAIRS = Pairs(np.array([0, 0, 1], np.int32), np.array([0, 1, 2], np.int32), np.array([2.0, 200.0, 0.5]))
CONFIG = GloVeConfig(width=3, most=100.0)


def test_the_objective_is_the_published_one_written_out() -> None:
    torch.manual_seed(0)
    model = GloVe(CONFIG, 3)
    with torch.no_grad():
        model.word_bias_V.uniform_(-1, 1)
        model.context_bias_V.uniform_(-1, 1)
    (batch,) = Entries.of(PAIRS, CONFIG).batches()
    expected = 0.0
    for i, j, x in ((0, 0, 2.0), (0, 1, 200.0), (1, 0, 200.0), (1, 2, 0.5), (2, 1, 0.5)):
        said = model.words_VX[i] @ model.contexts_VX[j] + model.word_bias_V[i] + model.context_bias_V[j]
        expected += 0.5 * min(1.0, (x / 100) ** 0.75) * (float(said.detach()) - math.log(x)) ** 2
    loss = model.loss(batch)
    assert loss.count == 5
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-5)


def test_an_epoch_shows_every_pair_once_and_micro_batches_share_a_step() -> None:
    many = Pairs(np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32), np.arange(1.0, 21.0))
    task = CoOccurrence.of({"train": many, "valid": PAIRS}, CONFIG, rows=6, seed=0)
    epoch = [task.batch(0, step).words_B.tolist() for step in range(task.steps_per_epoch)]
    assert sorted(word for words in epoch for word in words) == list(range(20))
    assert task.batch(0, task.steps_per_epoch + 1).words_B.tolist() == epoch[1]
    shared = [part.words_B.tolist() for part in cut(task.batch(0, 1), 2)]
    assert shared[0] + shared[1] == epoch[1]


def test_held_out_pairs_are_learned_from_in_neither_direction() -> None:
    size = 40
    first, second = np.triu_indices(size)
    pairs = Pairs(first.astype(np.int32), second.astype(np.int32), np.ones(len(first)))
    parts = divided(pairs, 0.2, seed=1)
    assert sum(map(len, parts.values())) == len(pairs)
    learned = set(zip(*(a.tolist() for a in parts["train"].both_ways()[:2]), strict=True))
    for name in ("valid", "test"):
        assert 0.1 < len(parts[name]) / len(pairs) < 0.3
        assert not learned & set(zip(*(a.tolist() for a in parts[name].both_ways()[:2]), strict=True))


def test_frequencies_alone_are_the_weighted_least_squares_of_two_biases() -> None:
    random = np.random.default_rng(0)
    first, second = np.triu_indices(6)
    pairs = Pairs(first.astype(np.int32), second.astype(np.int32), random.uniform(0.5, 300, len(first)))
    entries = Entries.of(pairs, CONFIG)
    root = np.sqrt(entries.weights_P.astype(float))
    design = np.zeros((len(entries), 6))
    np.add.at(design, (np.arange(len(entries)), entries.words_P), root)
    np.add.at(design, (np.arange(len(entries)), entries.contexts_P), root)
    best, *_ = np.linalg.lstsq(design, root * entries.logs_P, rcond=None)
    np.testing.assert_allclose(frequency_biases(entries, 6), best, atol=2e-2)


def test_words_that_stand_together_come_near_each_other(vectors_run: Run) -> None:
    for word, topic in (("king", {"queen", "crown", "throne"}), ("oven", {"bread", "flour", "dough"})):
        assert {one.word for one in lmlab.neighbours(vectors_run, word, number=3)} == topic


def test_eval_explains_more_of_held_out_pairs_than_frequencies_alone(vectors_run: Run, text: Path) -> None:
    result = lmlab.evaluate(vectors_run)
    assert isinstance(result, VectorsResult)
    assert result.part == "test"
    assert result.gain.low <= result.gain.value <= result.gain.high
    learned = lmlab.evaluate(vectors_run, part="train")
    assert isinstance(learned, VectorsResult)
    assert learned.gain.low > 0
    assert learned.scores.objective.value < learned.frequencies.objective.value
    assert learned.pairs > result.pairs
    other = lmlab.evaluate(vectors_run, text)
    assert isinstance(other, VectorsResult)
    assert other.part == "whole"
    assert other.scores.explained.value == pytest.approx(learned.scores.explained.value, abs=0.05)
    assert json.dumps(other.to_json())


def test_a_text_that_vectors_were_learned_from_is_not_called_another(tmp_path: Path) -> None:
    lines = [line + "\n" for name in sorted(topics)[:30] for line in topics[name].splitlines()]
    mine, others = tmp_path / "mine.txt", tmp_path / "others.txt"
    mine.write_text("".join(lines[: len(lines) // 2]))
    others.write_text("".join(lines[len(lines) // 2 :]))
    run = lmlab.train("glove", mine, out=tmp_path / "run", budget="5steps", settings={"width": 8})
    (note,) = lmlab.evaluate(run, mine).notes
    assert note.startswith("not held out: ")
    assert lmlab.evaluate(run, others).notes == ()
    assert lmlab.evaluate(run).notes == ()  # whose test pairs were not learned


def test_killed_and_resumed_it_ends_with_the_same_bits(text: Path, tmp_path: Path) -> None:
    survives_a_kill("train", "glove", text, folder=tmp_path, at_step=13, budget="24steps", settings={"width": 8})
    files = [(tmp_path / run / "vectors.txt").read_bytes() for run in ("whole", "killed")]
    assert files[0] == files[1]


def test_the_recipe_of_a_run_repeats_it(vectors_run: Run, tmp_path: Path) -> None:
    again = lmlab.train(**lmlab.recipe(vectors_run.folder), out=tmp_path / "again")
    for name, weight in vectors_run.saved.tensors().items():
        assert torch.equal(again.saved.tensors()[name].cpu(), weight.cpu()), name


def test_the_classifier_begins_with_the_vectors_of_a_run(vectors_run: Run, tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("".join(f"{i % 2}\tking bread number{i}\n" for i in range(30)))
    settings = {"vectors": str(vectors_run.folder)}
    run = lmlab.train(
        "dan", tmp_path / "table.tsv", out=tmp_path / "dan", budget="1steps", settings=settings,
        learning={"learning_rate": 1e-9}, device="cpu",
    )  # fmt: skip
    pieces = [piece.strip() for piece in run.tokenizer.vocabulary.pieces]
    found = run.saved.tensors()["embedding_VX"][pieces.index("king")].numpy()
    space = lmlab.vectors(vectors_run)
    known = [space.number(word) for word in ("king", "bread")]  # of the file's words those that the table has
    centred = space.vectors_VX[known] - space.vectors_VX[known].mean(axis=0)
    cosine = found @ centred[0] / np.linalg.norm(found) / np.linalg.norm(centred[0])
    assert cosine > 0.999  # the scale is the model's own


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"split": (90, 5, 5)}, "holds out pairs of words"),
        ({"test": "other.txt"}, "holds out pairs of words"),
        ({"tokenizer": "bpe:300"}, "words or words:N"),
        ({"settings": {"held_out": 0.5}}, "below 0.5"),
        ({"settings": {"window": 0}}, "window must be 1 or more"),
        ({"settings": {"most": 0.0}}, "above 0"),
        ({"settings": {"most": float("inf")}}, "above 0"),
        ({"settings": {"power": float("inf")}}, "from 0 up"),
        ({"learning": {"length": 8}}, "leave length out"),
        ({"settings": {"least": 400}}, "is too short"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: Path, tmp_path: Path, changed: dict[str, object], says: str) -> None:
    with pytest.raises(Mistake, match=says):
        lmlab.train("glove", text, out=tmp_path / "run", budget="1steps", **changed)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_pairs_go_where_the_model_is() -> None:
    batch = PairBatch(*(torch.zeros(2) for _ in range(4))).to(torch.device("meta"))
    assert batch.logs_B.device.type == "meta"
