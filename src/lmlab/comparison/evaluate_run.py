"""Evaluates a run with its tokenizer, its training text and its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lmlab.interface import LanguageModel
from lmlab.learn.run import Run
from lmlab.measure import Result, Spread, evaluate
from lmlab.measure.near_copies import long_strings, strings_in
from lmlab.measure.score import Progress
from lmlab.measure.walk import CopyMaker
from lmlab.text.parts import Part


def evaluate_run(
    run: Run,
    model: LanguageModel,
    text: Part | Spread,
    *,
    copies: Callable[[], CopyMaker],
    known_hash: str | None,
    name: str,
    seed: int,
    level: float,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Evaluate a run's model, in this or another process, in bits per byte of a text; see `lmlab.measure.evaluate`."""
    return evaluate(
        model,
        run.tokenizer,
        text,
        name=name,
        folder=folder,
        seed=seed,
        level=level,
        copies=copies,
        learned_from=run.learned_from,
        at_hand=run.training_text,
        settings=[*strings_in(run.record.model.config), *long_strings(run.tokenizer.written())],
        known_hash=known_hash,
        progress=progress,
    )
