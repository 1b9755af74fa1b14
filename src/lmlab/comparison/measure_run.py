"""A run measured: its model on a text, with the certificate made from what the run keeps on disk."""

from __future__ import annotations

import os
import sys
from functools import partial

import torch

from lmlab.comparison.evaluate_run import evaluate_run
from lmlab.comparison.measure_apart import CAN_FORK, Job, measure_apart, needs_to_be_apart
from lmlab.learn.run import Run
from lmlab.measure import Result, Spread
from lmlab.measure.score import Progress
from lmlab.measure.walk import Copies
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
    """Bits per byte of a text under a run's model. Code that is not the lab's own runs in processes of its own.

    name: of the corpus. level: of the interval. progress: told what is being done, and how much of it is done.
    """
    known = run.record.model
    if CAN_FORK and needs_to_be_apart(known.name, known.config):
        here, threads = os.getcwd(), torch.get_num_threads()
        job = Job(
            folder=run.folder,
            text=text,
            name=name,
            level=level,
            device=device,
            threads=threads,
            paths=(*sys.path, here),
            here=here,
        )
        return measure_apart(job, progress)
    model = run.load(device)
    copies = partial(Copies, model, partial(run.load_again, device))
    return evaluate_run(
        run, model, text, copies=copies, known_hash=run.model_hash, name=name, seed=seed, level=level, progress=progress
    )
