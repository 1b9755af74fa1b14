"""A run whose process kills itself in the middle of a step, gone on with, beside the same run left in peace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import lmlab
from lmlab.learn.run import Run

SCRIPT = """
import os, signal
import lmlab
from lmlab.learn import loop

loop.CHECKPOINT_EVERY_S = 0.0
take, done = loop.Trainer._step, 0

def step(self, piece, carry):
    global done
    done += {out!r} in str(self.checkpoint_path)  # and not of what it may learn first, such as word vectors
    if done == {at_step}:
        os.kill(os.getpid(), signal.SIGKILL)
    return take(self, piece, carry)

loop.Trainer._step = step
lmlab.{verb}(*{given!r}, out={out!r}, device="cpu", **{options!r})
"""


def survives_a_kill(verb: str, *given: str | Path, folder: Path, at_step: int, **options: Any) -> Run:
    """Train by a verb of Python with and without SIGKILL at that step; after resuming every weight is the same, to the bit.

    Returns the resumed run, in folder/killed; the other is in folder/whole.
    """
    options = {"precision": "float32", **options}  # else a busy machine, measured twice, may answer twice differently
    names = [str(one) for one in given]
    whole: Run = getattr(lmlab, verb)(*names, out=folder / "whole", device="cpu", **options)
    out = folder / "killed"
    script = SCRIPT.format(at_step=at_step, verb=verb, given=names, out=str(out), options=options)
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # as the tests themselves have
    assert subprocess.run([sys.executable, "-c", script], check=False, env=one_thread).returncode == -signal.SIGKILL
    assert lmlab.load(out).status == "unfinished"
    resumed = lmlab.resume(out)
    assert resumed.status == whole.status
    weights = resumed.saved.tensors()
    for name, weight in whole.saved.tensors().items():
        assert torch.equal(weights[name], weight), name
    return resumed
