"""`lmlab.score`: computes the bits of strings under a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from lmlab.learn.run import Run, opened
from lmlab.measure.strings import ScoredText, ScoredTexts, score_texts


@overload
def score(run: Run | str | Path, texts: str, *, end: bool = ..., device: str = ...) -> ScoredText: ...  # type: ignore[overload-overlap]
@overload
def score(run: Run | str | Path, texts: Sequence[str], *, end: bool = ..., device: str = ...) -> ScoredTexts: ...
def score(
    run: Run | str | Path, texts: str | Sequence[str], *, end: bool = True, device: str = "auto"
) -> ScoredText | ScoredTexts:
    """Score strings under a trained model, token by token and word by word.

    Each string is a text of its own: it begins without history. If the model was trained on documents whose end it predicts,
    the end of each string is scored too, so that 2^-bits is the probability of the string; else its end costs nothing.

    Args:
        run: the run, or its folder.
        texts: a string, or several.
        end: score the end of each string, if the model predicts ends.
        device: "auto", "cpu", "cuda" or "mps".

    Returns:
        One `ScoredText` for a string, a sequence of them for a sequence.
    """
    run = opened(run)
    found = score_texts(run.load(device), run.tokenizer, [texts] if isinstance(texts, str) else texts, end=end)
    return found[0] if isinstance(texts, str) else found
