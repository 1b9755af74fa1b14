"""Trains once in peace and once under fire: children are forked (so that torch is imported once) and killed with SIGKILL.

python kill_and_resume.py TEXT FOLDER KILLS writes FOLDER/whole and FOLDER/killed; exits with 1 if a child failed by itself.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import lmlab
from lmlab.learn import loop
from lmlab.learn.checkpoint import load_checkpoint

SETTINGS = {"layers": 1, "width": 32, "heads": 2, "context": 32}


def train(text: str, out: Path) -> None:
    """As `lmlab train --resume` does: go on if there is something to go on with."""
    torch.set_num_threads(1)
    loop.CHECKPOINT_EVERY_S = 0.0
    if (out / "config.json").exists():
        lmlab.resume(out)
    else:
        lmlab.train("gpt", text, out=out, budget="120steps", settings=SETTINGS, device="cpu")


def step_on_disk(out: Path) -> int:
    path = out / "state" / "checkpoint.safetensors"
    try:
        return load_checkpoint(path)[0].steps if path.exists() else 0
    except FileNotFoundError:  # finished, and cleaned up, in between
        return 0


def kill_once(text: str, out: Path, steps: int, delay_s: float) -> bool:
    """Start a child and kill it once it is `steps` further (and `delay_s` later); False if it came to its end before."""
    before = step_on_disk(out)
    child = os.fork()
    if child == 0:
        train(text, out)
        os._exit(0)
    while step_on_disk(out) < before + steps:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0, "the child failed by itself"
            return False
        time.sleep(0.001)
    time.sleep(delay_s)  # any moment inside a step or a write
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def main() -> None:
    text, folder, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    moments = random.Random(0)
    for _ in range(kills):
        if not kill_once(text, folder / "killed", moments.randint(1, 9), moments.random() * 0.02):
            sys.exit("the run ended before it was killed often enough")
    for out in (folder / "killed", folder / "whole"):
        child = os.fork()
        if child == 0:
            train(text, out)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    main()
