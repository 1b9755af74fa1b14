"""The classifier on top of an encoder: against transformers, begun with a `bert`, trained, resumed and explained."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification

import lmlab
from huggingface import config_of, copy, copy_encoder, shaken
from killed_runs import survives_a_kill
from lmlab.config import Mistake
from lmlab.costs.asked_count import count
from lmlab.learn.run import Run, load_run
from lmlab.models.classifier import Classifier, ClassifierConfig
from lmlab.tasks.classification.scores import ClassifierResult

SMALL = ClassifierConfig(
    layers=2, width=12, heads=3, hidden=20, context=8, symbols=False, dropout=0.0, labels=3, pooling="first"
)
IDS_N, STARTS_B = torch.tensor([1, 2, 3, 3, 10, 4, 5, 6, 7, 8, 9, 10, 11]), torch.tensor([0, 4, 5])
TINY = {"layers": 1, "width": 16, "heads": 2, "context": 20}


def small(pooling: str = "first") -> Classifier:
    torch.manual_seed(0)
    model = Classifier(ClassifierConfig(**{**vars(SMALL), "pooling": pooling}), 15).eval()
    shaken(model)
    return model


@torch.no_grad()
def test_it_is_the_classifier_of_transformers() -> None:
    ours = small()
    theirs = BertForSequenceClassification(config_of(SMALL, 15, num_labels=3)).eval()
    copy_encoder(ours.encoder, theirs.bert)
    copy(ours.output, theirs.classifier)
    inputs_BT, text_BT = ours.framed(IDS_N, STARTS_B)
    expected = theirs(inputs_BT, attention_mask=text_BT.long()).logits
    torch.testing.assert_close(ours.logits(IDS_N, STARTS_B), expected, atol=1e-4, rtol=0)
    p_BK = ours.probabilities(IDS_N, STARTS_B)
    torch.testing.assert_close(p_BK, expected.softmax(-1), atol=1e-4, rtol=0)  # labels in the same order
    assert (p_BK - expected.flip(-1).softmax(-1)).abs().max() > 1e-2  # the planted bug: their order is lost


def test_texts_stand_between_symbols_and_of_a_long_one_both_ends_are_read() -> None:
    model = small()
    inputs_BT, text_BT = model.framed(IDS_N, STARTS_B)
    b, e, _ = model.encoder.symbols
    assert inputs_BT.tolist() == [[b, 1, 2, 3, 3, e, 0, 0], [b, 10, e, 0, 0, 0, 0, 0], [b, 4, 5, 6, 9, 10, 11, e]]
    assert text_BT.sum(1).tolist() == [6, 3, 8]


@pytest.mark.parametrize("pooling", ["first", "mean"])
@torch.no_grad()
def test_a_text_has_the_same_label_alone_and_beside_longer_ones(pooling: str) -> None:
    model = small(pooling)
    together = model.probabilities(IDS_N, STARTS_B)
    alone = model.probabilities(IDS_N[4:5], torch.tensor([0]))
    torch.testing.assert_close(together[1:2], alone)


def test_order_matters_to_it() -> None:
    model, ids = small(), torch.tensor([4, 8, 1, 1, 6])
    one, other = (model.probabilities(i, torch.tensor([0])) for i in (ids, ids.flip(0)))
    assert (one - other).abs().max() > 1e-3


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films whose label follows from one word of theirs."""
    draw = random.Random(0)
    words = {"pos": ["great", "lovely"], "neg": ["boring", "dull"]}
    rest = ["the", "film", "a", "plot", "was", "and", "actor", "story"]
    rows = []
    for i in range(300):
        label = ("pos", "neg")[i % 2]
        text = [*draw.choices(rest, k=draw.randint(3, 24)), draw.choice(words[label])]
        draw.shuffle(text)
        rows.append(f"{label}\t{' '.join(text)}\n")
    path = tmp_path_factory.mktemp("films") / "films.tsv"
    path.write_text("".join(rows))
    return path


@pytest.fixture(scope="module")
def encoder(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("bert")
    (folder / "text.txt").write_text("\n".join(line.partition("\t")[2] for line in films.read_text().splitlines()))
    return lmlab.train(
        "bert",
        folder / "text.txt",
        out=folder / "run",
        tokenizer="words",
        budget="20steps",
        settings=TINY,
        device="cpu",
    )


@pytest.fixture(scope="module")
def tuned(encoder: Run, films: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return lmlab.fine_tune(
        encoder, films, model="classifier", out=tmp_path_factory.mktemp("runs") / "tuned", budget="100steps",
        learning={"learning_rate": 0.01}, device="cpu",
    )  # fmt: skip


def test_it_begins_with_the_weights_and_the_tokenizer_of_a_bert(encoder: Run, films: Path, tmp_path: Path) -> None:
    run = lmlab.fine_tune(
        encoder, films, model="classifier", out=tmp_path / "run", budget="1steps", device="cpu",
        learning={"learning_rate": 1e-12, "weight_decay": 0.0},
    )  # fmt: skip
    before, after = encoder.saved.tensors(), run.saved.tensors()
    for name, weight in after.items():
        if name.startswith("encoder.") and "pooler" not in name:
            torch.testing.assert_close(weight, before[name], msg=name)
    assert run.tokenizer.hash == encoder.tokenizer.hash
    (ancestor,) = run.record.training.lineage
    assert ancestor.sha256 == encoder.record.model.sha256


def test_it_learns_labels_and_is_measured_beside_a_bag_of_words(tuned: Run) -> None:
    texts = ["a great lovely film", "the plot was dull and boring"]
    labels = lmlab.classify(tuned, texts)
    assert [label.label for label in labels] == ["pos", "neg"]
    found = lmlab.evaluate(tuned)
    assert isinstance(found, ClassifierResult)
    assert found.scores.accuracy.value > found.majority.accuracy.value
    assert found.bag_of_words.accuracy.value > 0.5
    assert lmlab.classify(load_run(tuned.folder), texts) == labels


def test_its_mistakes_are_explained_without_a_word_of_averages(tuned: Run, tmp_path: Path) -> None:
    found = lmlab.mistakes(tuned, number=2, part="train", html=tmp_path / "page.html", device="cpu")
    assert all(one.negations == () for one in found)
    assert "average" not in (tmp_path / "page.html").read_text()
    for one in found:
        assert one.right != one.predicted


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(encoder: Run, films: Path, tmp_path: Path) -> None:
    given = (encoder.folder, films)
    survives_a_kill("fine_tune", *given, folder=tmp_path, at_step=4, model="classifier", budget="8steps")


def test_the_recipe_of_a_tuned_run_repeats_it(tuned: Run, tmp_path: Path) -> None:
    recipe = lmlab.recipe(tuned.folder / "recipe.toml")
    assert recipe["model"] == "classifier"
    again = lmlab.fine_tune(**recipe, out=tmp_path / "again")
    assert again.record.model.sha256 == tuned.record.model.sha256


def test_without_a_bert_it_begins_afresh_in_byte_pairs(tmp_path: Path) -> None:
    rows = [
        f"{'pos' if i % 2 else 'neg'}\t{'great' if i % 2 else 'dull'} film, the story of it all, and a very long one it was\n"
        for i in range(40)
    ]
    table = tmp_path / "films.tsv"
    table.write_text("".join(rows))
    run = lmlab.train(
        "classifier", table, out=tmp_path / "run", tokenizer="bpe:280", budget="2steps", settings=TINY, device="cpu"
    )
    assert np.isfinite(lmlab.classify(run, "great")[0].p["pos"])
    found = lmlab.evaluate(run)
    assert isinstance(found, ClassifierResult)
    assert any("longer than the 18 tokens" in note for note in found.notes)


def test_a_preset_has_the_sizes_that_were_published() -> None:
    found = count("classifier", settings={"preset": "bert-base", "labels": 2}, vocab=30_522)
    assert found.parameters == 109_482_240 + 2 * 768 + 2


@pytest.mark.parametrize("settings", [{**TINY, "symbols": False}, {**TINY, "preset": "bert-base"}], ids=str)
def test_texts_are_not_read_with_their_own_tokens_for_symbols(
    settings: dict[str, object], films: Path, tmp_path: Path
) -> None:
    with pytest.raises(Mistake, match="symbols=true"):
        lmlab.train("classifier", films, out=tmp_path / "run", budget="1steps", settings=settings)
    assert not (tmp_path / "run").exists()


def test_what_it_cannot_begin_with_is_refused(encoder: Run, classifier: Run, films: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="cannot begin with its weights"):
        lmlab.fine_tune(classifier, films, model="classifier", out=tmp_path / "a")
    with pytest.raises(Mistake, match="cannot begin with its weights"):
        lmlab.fine_tune(encoder, films, model="dan", out=tmp_path / "a")
    with pytest.raises(Mistake, match="do not fit the weights"):
        lmlab.fine_tune(encoder, films, model="classifier", out=tmp_path / "a", settings={"width": 8}, budget="1steps")
    with pytest.raises(Mistake, match="does not read"):
        lmlab.fine_tune(encoder, films, out=tmp_path / "a", columns=["text", "label"])
    assert not (tmp_path / "a").exists()
