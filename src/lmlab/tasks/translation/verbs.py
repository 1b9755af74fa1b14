"""`lmlab.translate`: what is done with a trained translator, given as a run or its folder."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmlab.config import Mistake, Note, an, nearest, texts_of
from lmlab.engine import as_verbs_call_them
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run, opened
from lmlab.models.translator import Translator
from lmlab.records import JsonRecord
from lmlab.tasks.translation.decoding import translations
from lmlab.tasks.translation.unlike_training import unlike_training


@dataclass(frozen=True, kw_only=True)
class Translated(JsonRecord):
    """A text in another language. nats: -log p of it given the text, its end included. score: what the search ranks by."""

    text: str
    language: str
    translation: str
    nats: float
    score: float | None
    ended: bool  # whether the model ended it, rather than the number of tokens that are allowed


def translate(
    run: Run | str | Path,
    texts: str | Sequence[str],
    to: str | Sequence[str] | None = None,
    *,
    beam: int = 5,
    best: int = 1,
    length_penalty: float = 1.0,
    device: str = "auto",
) -> list[Translated]:
    """Texts in other languages: of each text all of them, in each the `best`, best first.

    to: the languages; by itself all that the translator knows. A text is read once, whatever it is to become. A beam of 1 is
    greedy; length_penalty: translations are ranked by log p / tokens^length_penalty.
    """
    run = opened(run)
    model = run.saved
    if not isinstance(model, Translator):
        raise Mistake(
            f"{run.folder} holds {an(run.record.model.name)}, which does not translate; train one: lmlab train"
            " translator PAIRS",
            code="run-is-no-translator",
        )
    known = list(run.record.inputs.corpus["languages"])[1:]
    wanted = known if to is None else [to] if isinstance(to, str) else list(to)
    for language in wanted:
        if language not in known:
            raise Mistake(
                f"{run.folder} does not translate into {language!r}; {nearest(language, known)}",
                code="language-unknown",
            )
    given = texts_of(texts)
    if not given or not wanted:
        raise Mistake("give a text to translate and a language", code="nothing-to-translate")
    if any(not text.strip() for text in given):
        raise Mistake("a text to translate is empty; give it some words", code="text-to-translate-empty")
    for text in unlike_training(run, given):
        warnings.warn(f"{text[:40]!r} is unlike every source that {run.folder.name} learned from", Note, stacklevel=2)
    model = model.to(choose_device(device)).eval()
    with as_verbs_call_them():
        found = translations(
            model, run.tokenizer, [text.strip() for text in given], [known.index(language) for language in wanted],
            beam=beam, best=best, length_penalty=length_penalty,
        )  # fmt: skip
    return [
        Translated(
            text=text,
            language=language,
            translation=one.text,
            nats=one.nats,
            score=one.score,
            ended=one.finish == "end",
        )
        for i, text in enumerate(given)
        for language, of_language in zip(wanted, found, strict=True)
        for one in of_language[i]
    ]
