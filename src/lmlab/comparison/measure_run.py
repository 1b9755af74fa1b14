"""Evaluates a run on a text, with a certificate based on the run's files."""

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
    """Evaluate a run's model in bits per byte of a text. Third-party model code runs in separate processes.

    Args:
        run: the run to evaluate.
        text: the text to score.
        name: the name of the corpus.
        seed: seed of the positions that the certificate checks.
        level: the coverage of the interval.
        device: the device to score on.
        progress: called with the current step, the amount done, and the total.
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
