"""The Python face: what `lmlab` exports, lazily, so that importing it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.checker import check
from lmlab.comparison import compare
from lmlab.config import Mistake
from lmlab.learn.run import Run
from lmlab.learn.run import load_run as load
from lmlab.learn.train import resume, train
from lmlab.text.corpus import PARTS, read

if TYPE_CHECKING:
    from lmlab.decode import Generated
    from lmlab.measure import Result

__all__ = ["check", "compare", "evaluate", "generate", "load", "read", "resume", "train"]


def evaluate(
    run: Run | str | Path, text: str | Path | None = None, *, part: str = "test", seed: int = 0, **options: Any
) -> Result:
    """Bits per byte of a text under a run's model, with interval and certificate.

    text: another text, scored whole; without it, `part` ("train", "valid" or "test") of the run's own corpus.
    """
    from lmlab.measure import evaluate as measure
    from lmlab.text.parts import Part

    run = run if isinstance(run, Run) else load(run)
    if part not in PARTS:
        raise Mistake(f"part is train, valid or test; got {part!r}")
    if text is None:
        name, chosen = run.corpus.name, run.corpus.parts[part]
        if not chosen.bytes:
            raise Mistake(f"the {part} part of {name} is empty; measure another with --part, or name a text")
    else:
        corpus = read(text, split=(100, 0, 0))
        name, chosen = corpus.name, Part("whole", corpus.train.documents)
    return measure(run.model, run.tokenizer, chosen, name=name, seed=seed, **options)


def generate(run: Run | str | Path, prompt: str = "", **options: Any) -> Sequence[Generated]:
    """Continuations of `prompt`; see `lmlab.decode.generate` for the options."""
    from lmlab.decode import generate as decode

    run = run if isinstance(run, Run) else load(run)
    return decode(run.model, run.tokenizer, prompt, **options)
