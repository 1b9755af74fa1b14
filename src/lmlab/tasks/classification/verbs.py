"""`lmlab.classify` and `lmlab.mistakes`: what is done with a trained classifier, given as a run or its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmlab.config import Mistake, texts_of
from lmlab.learn.run import Run, opened
from lmlab.models.registry import Role, kind_of
from lmlab.tasks.classification import using
from lmlab.tasks.classification.misclassified import Explanation
from lmlab.tasks.classification.page import mistakes_page
from lmlab_derive.shared.html import refuse_names, write


def classify(run: Run | str | Path, texts: str | Sequence[str], *, device: str = "auto") -> list[using.Label]:
    """What a classifier says of each text, with the probability of every class."""
    return using.classify(_classifier(run), texts_of(texts), device=device)


def mistakes(
    run: Run | str | Path,
    *,
    number: int = 5,
    part: str = "test",
    device: str = "auto",
    html: str | Path | None = None,
) -> list[Explanation]:
    """The surest mistakes of a classifier on its own data, each explained by what really moves it. html: a page of them."""
    refuse_names(html=html)
    if part not in ("train", "valid", "test"):
        raise Mistake(f"{{part}} is train, valid or test; got {part!r}", code="part-unknown", part=None)
    if number < 1:
        raise Mistake(
            f"{{number}} of mistakes is 1 or more; got {number}", code="number-of-mistakes-below-one", number=None
        )
    run = _classifier(run)
    found = using.mistakes(run, number=number, part=part, device=device)
    if html is not None:
        write(Path(html), mistakes_page(run.record.inputs.corpus["name"], found, using.model_of(run).ordered))
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
