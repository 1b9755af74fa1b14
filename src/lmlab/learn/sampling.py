"""Samples: texts that the model generates during training, logged within a small share of the training time."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from lmlab.disk.files import append_line
from lmlab.interface import Learner
from lmlab.learn.task import Task

FROM_S, SHARE = 2.0, 0.02  # seconds of training before the first sample; share of the training time for samples


class Samples:
    """The samples of one run, one JSON line each in a file of its folder."""

    def __init__(self, path: Path, task: Task, model: Learner) -> None:
        self.path, self.task, self.model = path, task, model
        self.taken_s = self.last_s = 0.0

    @property
    def any(self) -> bool:
        """Whether the file holds a sample."""
        return self.path.exists() and self.path.stat().st_size > 0

    def is_due(self, trained_s: float) -> bool:
        """Whether another sample fits into the time share for samples after `trained_s` seconds of training."""
        return sample_is_due(trained_s, self.taken_s, self.last_s)

    def took(self, seconds: float) -> None:
        """Record the seconds that the last sample took."""
        self.last_s, self.taken_s = seconds, self.taken_s + seconds

    @torch.no_grad()
    def write(self, step: int) -> None:
        """Generate a text with the present weights and append it to the file, with its step."""
        text = self.task.sample(self.model.eval())
        if text is not None:
            append_line(self.path, json.dumps({"step": step, "text": text}))


def sample_is_due(trained_s: float, sampling_s: float, last_s: float) -> bool:
    """Whether another sample fits into the time share for samples.

    Args:
        trained_s: seconds of training so far.
        sampling_s: seconds of these that were spent on samples.
        last_s: seconds that the last sample took.
    """
    return trained_s >= FROM_S and sampling_s + last_s <= SHARE * trained_s
