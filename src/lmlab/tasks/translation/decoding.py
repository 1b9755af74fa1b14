"""From texts to translations: every source is read once, however many languages it is to become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lmlab.config import Mistake, an
from lmlab.engine import Generated, search_each
from lmlab.hardware.choice import choose_device
from lmlab.models.translator import Source, Translator
from lmlab.tasks.translation.data import Sentences
from lmlab.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    from lmlab.learn.run import Run

AT_ONCE = 64  # sources
ROWS_AT_ONCE = 2048  # translations of all of them, so that a wide beam takes no more memory for many texts than for one


def translator_of(run: Run, device: str) -> Translator:
    """The translator of a run, where it is wanted."""
    model = run.saved
    if not isinstance(model, Translator):
        raise Mistake(f"{run.folder} holds {an(run.record.model.name)}, no translator", code="run-is-no-translator")
    return model.to(choose_device(device)).eval()


def encode(model: Translator, sentences: Sentences, which: np.ndarray) -> Source:
    """What the encoder makes of some sentences."""
    device = model.embedding.device
    ids_BS, there_BS = sentences.padded(which, len(which), int(sentences.lengths_B[which].max()))
    return model.encode(ids_BS.to(device), there_BS.to(device))


def translations(
    model: Translator,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    languages: Sequence[int],
    *,
    beam: int = 5,
    length_penalty: float = 1.0,
    best: int = 1,
) -> list[list[list[Generated]]]:
    """Of each language (by number) and each text the best translations, best first. A beam of 1 is greedy."""
    options: dict[str, Any] = {"beam_width": beam, "length_penalty": length_penalty, "n_best": best}
    sentences = Sentences.of(tokenizer, texts)
    long_B = np.flatnonzero(sentences.lengths_B > model.context)
    if len(long_B):
        at = int(long_B[0])
        raise Mistake(
            f"text {at + 1} has {sentences.lengths_B[at]} tokens, and the translator reads {model.context} at most:"
            f" {texts[at][:60]}…",
            code="translated-text-too-long",
        )
    found: list[list[list[Generated]]] = [[[] for _ in texts] for _ in languages]
    by_length = np.argsort(sentences.lengths_B, kind="stable")
    at_once = max(1, min(AT_ONCE, ROWS_AT_ONCE // max(1, beam)))
    for first in range(0, len(texts), at_once):
        which = by_length[first : first + at_once]
        with torch.inference_mode():
            source = encode(model, sentences, which)
        most = np.minimum(model.context, 2 * sentences.lengths_B[which] + 16).tolist()
        for place, language in enumerate(languages):
            view = model.given(source, language, max(most))
            written = search_each(view, tokenizer, most, **options)
            for at, best_of_it in zip(which.tolist(), written, strict=True):
                found[place][at] = best_of_it
    return found
