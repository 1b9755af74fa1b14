"""How well a classifier labels texts: accuracy, F1, bits and calibration, beside simpler ways to label them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmlab.config import Mistake
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run
from lmlab.learn.run_advice import weights_warning
from lmlab.models.families.labelling import TextClassifier
from lmlab.results import Figure
from lmlab.tasks.classification.data import Encoded, encoded, words_of
from lmlab.tasks.classification.misclassified import probabilities_of
from lmlab.tasks.classification.scores import BagOfWords, ClassifierResult, gain, majority, of_share, scores
from lmlab.text.labelled import Examples, Labelled, read_labelled
from lmlab.text.tokenizers import Tokenizer, train_tokenizer


def evaluate(
    run: Run, data: str | Path | None = None, *, part: str = "test", seed: int = 0, device: str = "auto"
) -> ClassifierResult:
    """Accuracy, F1, bits and calibration with intervals, a majority and a bag-of-words model beside them.

    data: another table with the same labels, used whole; without it a part of the run's own.
    """
    table = Labelled.from_spec(run.record.inputs.corpus)
    name, examples = (table.name, table.parts[part]) if data is None else _other(data, table)
    if not len(examples):
        raise Mistake(
            f"the {part} part of {table.name} is empty; choose another {{part}}, or name a table",
            code="part-empty",
            part=None,
        )
    model, labels, labels_B = model_of(run, device), len(table.classes), examples.labels_B
    texts = encoded(run.tokenizer, examples, model.by_words)
    p_BK = probabilities_of(model, texts)
    words = run.tokenizer if model.by_words else _words(table)
    train, held_out = encoded(words, table.parts["train"]), texts if model.by_words else encoded(words, examples)
    counted = BagOfWords.fit(train.ids_N, train.starts_B, train.labels_B, words.vocab_size, labels)
    bag_BK = counted.probabilities(held_out.ids_N, held_out.starts_B)
    right_B, bag_right_B = p_BK.argmax(1) == labels_B, bag_BK.argmax(1) == labels_B
    is_its_own = part == "train" and data is None
    copy_B, copied = (None, None) if is_its_own else table.copied(examples)
    confusion_KK = np.zeros((labels, labels), dtype=np.int64)
    np.add.at(confusion_KK, (labels_B, p_BK.argmax(1)), 1)
    return ClassifierResult(
        model=run.record.model.name,
        data=name,
        part=part if data is None else "whole",
        examples=len(examples),
        classes=table.classes,
        scores=scores(p_BK, labels_B, seed),
        majority=scores(majority(train.labels_B, labels, len(examples)), labels_B, seed),
        bag_of_words=scores(bag_BK, labels_B, seed),
        gain=gain(right_B, bag_right_B),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion_KK),
        copied=copied,
        accuracy_without_copies=_without_copies(right_B, copy_B),
        notes=tuple(note for note in (weights_warning(run), _cut(model, texts)) if note),
    )


def _without_copies(right_B: np.ndarray, copy_B: np.ndarray | None) -> Figure | None:
    """The accuracy on the examples that are no copies; None: there are no copies, or no others."""
    if copy_B is None or not copy_B.any() or copy_B.all():
        return None
    return of_share(int(right_B[~copy_B].sum()), int((~copy_B).sum()))


def model_of(run: Run, device: str = "auto") -> TextClassifier:
    """The classifier of a run, where it is wanted."""
    model = run.saved
    assert isinstance(model, TextClassifier)
    return model.to(choose_device(device)).eval()


def _words(table: Labelled) -> Tokenizer:
    """The words of the training part, for counting them."""
    return train_tokenizer("words", (words_of(text) for text in table.parts["train"].texts))


def _cut(model: TextClassifier, texts: Encoded) -> str:
    """What a reader should know of texts that are longer than the model reads."""
    if model.longest is None or not (long := int((np.diff(texts.starts_B) > model.longest).sum())):
        return ""
    return f"{long:,} of {len(texts):,} texts are longer than the {model.longest} tokens that it reads: their beginning and end"


def _other(data: str | Path, table: Labelled) -> tuple[str, Examples]:
    """All rows of another table, with the numbers that the classes have here."""
    try:
        other = read_labelled(data, split=(100, 0, 0), columns=table.origin["columns"])
    except Mistake as error:
        if "columns" not in error.settings:
            raise
        raise Mistake(
            f"{data}: which columns? Let its first line name them, such as text and label", code="columns-unnamed"
        ) from None
    unknown = [label for label in other.classes if label not in table.classes]
    if unknown:
        raise Mistake(
            f"{data} has the label {unknown[0]!r}, which the classifier never saw; it knows {', '.join(table.classes)}",
            code="label-unknown",
        )
    number = np.array([table.classes.index(label) for label in other.classes])
    rows = other.parts["train"]
    return other.name, Examples(rows.texts, number[rows.labels_B])
