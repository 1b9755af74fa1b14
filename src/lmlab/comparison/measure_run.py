"""A run measured: its model on a text, with the certificate made from what the run keeps on disk."""

from __future__ import annotations

from functools import partial

from lmlab.learn.run import Run
from lmlab.measure import Result, Spread, evaluate
from lmlab.measure.score import Progress
from lmlab.text.parts import Part


def measure_run(
    run: Run,
    text: Part | Spread,
    *,
    name: str,
    seed: int = 0,
    level: float = 0.95,
    device: str = "auto",
    progress: Progress | None = None,
) -> Result:
    """Bits per byte of a text under a run's model.

    name: of the corpus. level: of the interval. progress: told what is being done, and how much of it is done.
    """
    model = run.load(device)
    return evaluate(
        model,
        run.tokenizer,
        text,
        name=name,
        seed=seed,
        level=level,
        load=partial(run.load_again, device),
        learned_from=run.learned_from,
        known_hash=run.model_hash,
        progress=progress,
    )
