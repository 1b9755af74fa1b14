"""A run whose process kills itself in the middle of a step, gone on with, beside the same run left in peace."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch

import lmlab
from lmlab.hardware.openmp import set_threads
from lmlab.learn import loop
from lmlab.learn.run import Run
from processes import FORKED


def _train_until_killed(
    at_step: int, verb: str, given: list[str], out: str, options: dict[str, Any], environment: dict[str, str]
) -> None:
    os.environ.update(environment)  # of the test: that of the process this one is forked from is older
    set_threads(1)  # as the tests themselves have
    loop.CHECKPOINT_EVERY_S = 0.0
    take, done = loop.Trainer._step, 0

    def step(self: loop.Trainer, piece: Any, carry: Any) -> Any:
        nonlocal done
        done += out in str(self.checkpoint_path)  # and not of what it may learn first, such as word vectors
        if done == at_step:
            os.kill(os.getpid(), signal.SIGKILL)
        return take(self, piece, carry)

    loop.Trainer._step = step  # type: ignore[method-assign]
    getattr(lmlab, verb)(*given, out=out, device="cpu", **options)


def survives_a_kill(verb: str, *given: str | Path, folder: Path, at_step: int, **options: Any) -> Run:
    """Train by a verb of Python with and without SIGKILL at that step; after resuming every weight is the same, to the bit.

    Returns the resumed run, in folder/killed; the other is in folder/whole.
    """
    options = {"precision": "float32", **options}  # else a busy machine, measured twice, may answer twice differently
    names = [str(one) for one in given]
    whole: Run = getattr(lmlab, verb)(*names, out=folder / "whole", device="cpu", **options)
    out = folder / "killed"
    doing = (at_step, verb, names, str(out), options, dict(os.environ))
    process = FORKED.Process(target=_train_until_killed, args=doing)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert lmlab.load(out).status == "unfinished"
    resumed = lmlab.resume(out)
    assert resumed.status == whole.status
    weights = resumed.saved.tensors()
    for name, weight in whole.saved.tensors().items():
        assert torch.equal(weights[name], weight), name
    return resumed
