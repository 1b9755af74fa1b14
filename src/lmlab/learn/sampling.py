"""What a model makes while it learns, written down now and then, for a small share of the time."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from lmlab.disk.files import append_line
from lmlab.interface import Learner
from lmlab.learn.task import Task

FROM_S, SHARE = 2.0, 0.02  # seconds of training before there is anything to see; share of it


class Samples:
    """Those of one run, a line each in a file of its folder."""

    def __init__(self, path: Path, task: Task, model: Learner) -> None:
        self.path, self.task, self.model = path, task, model
        self.taken_s = self.last_s = 0.0

    @property
    def any(self) -> bool:
        """Whether one was written."""
        return self.path.exists() and self.path.stat().st_size > 0

    def is_due(self, trained_s: float) -> bool:
        """Whether there is time for one more after so many seconds."""
        return sample_is_due(trained_s, self.taken_s, self.last_s)

    def took(self, seconds: float) -> None:
        """The last one did."""
        self.last_s, self.taken_s = seconds, self.taken_s + seconds

    @torch.no_grad()
    def write(self, step: int) -> None:
        """What the model makes now, under the number of a step."""
        text = self.task.sample(self.model.eval())
        if text is not None:
            append_line(self.path, json.dumps({"step": step, "text": text}))


def sample_is_due(trained_s: float, sampling_s: float, last_s: float) -> bool:
    """Whether there is time for one more sample, after so many seconds, of which so many went into samples."""
    return trained_s >= FROM_S and sampling_s + last_s <= SHARE * trained_s
