"""`lmlab.classify` and `lmlab.mistakes`: what is done with a trained classifier, given as a run or its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmlab.config import Mistake, texts_of
from lmlab.learn.run import Run, opened
from lmlab.models.registry import Role, kind_of
from lmlab.records import JsonRecord
from lmlab.tasks.classification.data import Encoded, encoded
from lmlab.tasks.classification.measure import model_of
from lmlab.tasks.classification.misclassified import Explanation, explain, probabilities_of
from lmlab.tasks.classification.page import mistakes_page
from lmlab.text.labelled import Labelled
from lmlab_derive.shared.html import refuse_names, write


@dataclass(frozen=True, kw_only=True)
class Label(JsonRecord):
    """What a classifier says of a text. p: the probability of each class."""

    text: str
    label: str
    p: dict[str, float]


def classify(run: Run | str | Path, texts: str | Sequence[str], *, device: str = "auto") -> list[Label]:
    """What a classifier says of each text, with the probability of every class."""
    run, texts = _classifier(run), texts_of(texts)
    if any(not text.strip() for text in texts):
        raise Mistake("a text to classify is empty; give it some words", code="text-to-classify-empty")
    classes = tuple(run.record.inputs.corpus["classes"])
    model = model_of(run, device)
    p_BK = probabilities_of(model, Encoded.of(run.tokenizer, texts, by_words=model.by_words))
    return [
        Label(text=text, label=classes[int(p_K.argmax())], p=dict(zip(classes, map(float, p_K), strict=True)))
        for text, p_K in zip(texts, p_BK, strict=True)
    ]


def mistakes(
    run: Run | str | Path,
    *,
    number: int = 5,
    part: str = "test",
    device: str = "auto",
    html: str | Path | None = None,
) -> list[Explanation]:
    """Find the surest mistakes of a classifier on its own data, and explain each by the words that really move it.

    Args:
        number: How many, at most.
        part: Of the data of the run: train, valid or test.
        html: Where to write a page of them.
    """
    refuse_names(html=html)
    if part not in ("train", "valid", "test"):
        raise Mistake(f"{{part}} is train, valid or test; got {part!r}", code="part-unknown", part=None)
    if number < 1:
        raise Mistake(
            f"{{number}} of mistakes is 1 or more; got {number}", code="number-of-mistakes-below-one", number=None
        )
    run = _classifier(run)
    table = Labelled.from_spec(run.record.inputs.corpus)
    examples = table.parts[part]
    if not len(examples):
        raise Mistake(
            f"the {part} part of {table.name} is empty; choose another {{part}}", code="part-empty", part=None
        )
    model = model_of(run, device)
    p_BK = probabilities_of(model, encoded(run.tokenizer, examples, model.by_words))
    wrong = np.flatnonzero(p_BK.argmax(1) != examples.labels_B)
    surest = wrong[np.argsort(-p_BK[wrong].max(1), kind="stable")][:number]
    found = [
        explain(model, run.tokenizer, table.classes, examples.texts[i], int(examples.labels_B[i]), i)
        for i in surest.tolist()
    ]
    if html is not None:
        write(Path(html), mistakes_page(table.name, found, model.ordered))
    return found


def _classifier(run: Run | str | Path) -> Run:
    """The run, which must hold a classifier."""
    run = opened(run)
    name = run.record.model.name
    if kind_of(name).role is not Role.CLASSIFIER:
        raise Mistake(
            f"{run.folder} holds a {name}, which gives no labels; train a classifier: lmlab train dan DATA",
            code="run-is-no-classifier",
        )
    return run
