"""Evaluates a model whose code is not lmlab's own in processes that this code cannot influence.

Four processes take part, all forked from one that has read no text and loaded no third-party code:

    judge    tokenizes the text, draws the checked positions, compares, and writes the result
    walker   returns probabilities as it receives one token after the other; it ends before the text is scored
    scorer   scores the text; it ends before the checker starts
    checker  scores other texts and other rows, which must not change earlier scores

The last three load the model in turn (`InTurns`), so no two of them can communicate. None can read the judge's memory or
the user's files (`lmlab.hardware.sandbox`). So walker and scorer agree only if both return the model's own probabilities.
"""

from __future__ import annotations

import atexit
import os
import pickle
import secrets
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import lmlab
from lmlab.config import Mistake
from lmlab.models.registry import KINDS, OPENED, Way, where
from lmlab_derive.shared import mistakes

if TYPE_CHECKING:
    from lmlab.measure import Result, Spread
    from lmlab.measure.score import Progress
    from lmlab.text.parts import Part

CAN_FORK = hasattr(os, "fork")
PROGRAM = "import sys; sys.path[:0] = sys.argv[1:]; from lmlab.comparison.measure_apart import judge_all; judge_all()"
ENVIRONMENT = (  # variables passed to the judge; others could hold the scored text
    "PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LMLAB_CACHE", "LMLAB_DEBUG", "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Job:
    """The specification of one evaluation."""

    folder: Path  # of the run
    text: Part | Spread
    name: str
    level: float
    device: str
    threads: int
    paths: tuple[str, ...]
    here: str


def needs_to_be_apart(kind: str, config: Mapping[str, Any]) -> bool:
    """Return whether a model, or a part of a mix, has code that is not lmlab's own."""
    if kind in OPENED:
        return False
    if kind not in KINDS:
        return True
    parts = config.get("parts", ()) if KINDS[kind].way is Way.MIXES else ()
    return any(needs_to_be_apart(part["model"], part["config"]) for part in parts)


def measure_apart(job: Job, progress: Progress | None = None) -> Result:
    """Evaluate a run in the judge's process.

    Raises:
        Mistake: the model's code fails.
    """
    requests, answers = _judge()
    try:
        pickle.dump(job, requests)
        requests.flush()
        while True:
            what, *found = pickle.load(answers)  # safe, since the judge runs only lmlab's own code
            if what == "result":
                result: Result = found[0]
                return result
            if what == "mistake":
                raise Mistake(found[0], code=found[1])
            if what == "bug":
                raise RuntimeError(found[0])
            if progress is not None:
                progress(*found)
    except (EOFError, OSError, KeyboardInterrupt):
        _judge.cache_clear()  # so that a later job cannot read the answer to this one
        raise


@cache
def _judge() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes to and from the judge; its process starts at the first call."""
    paths = [str(Path(lmlab.__file__).resolve().parents[1]), str(Path(mistakes.__file__).resolve().parents[2])]
    process = subprocess.Popen(
        # -E: otherwise modules that a model put into PYTHONPATH would be loaded in the judge
        [sys.executable, "-E", "-P", "-c", PROGRAM, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name in ENVIRONMENT},
        start_new_session=True,  # so that Ctrl-C reaches only the calling process
    )
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(_end, process)
    return process.stdin, process.stdout


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            assert pipe is not None
            pipe.close()
    process.wait()


# --- in the process of the judge ---


def judge_all() -> None:
    """Evaluate one job after another, each in its own process, until the pipe closes."""
    import torch

    from lmlab.comparison import model_process  # noqa: F401  (loaded once, for all that are forked)
    from lmlab.comparison.evaluate_run import evaluate_run  # noqa: F401

    torch.set_num_threads(1)  # a fork would not copy other threads
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # so that only answers go through the pipe
    while True:
        try:
            job: Job = pickle.load(requests)
        except EOFError:
            return
        if (child := os.fork()) == 0:
            _judge_one(job, answers)
        os.waitpid(child, 0)


def _judge_one(job: Job, answers: IO[bytes]) -> None:
    """Evaluate one job, send the answer, and end this process."""

    def say(*answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    try:
        with tempfile.TemporaryDirectory(prefix="lmlab-") as folder:
            os.chdir(job.here)
            try:
                say("result", _judged(job, Path(folder), lambda *done: say("progress", *done)))
            except Mistake as mistake:
                say("mistake", str(mistake), mistake.code)
            except Exception:
                say("bug", traceback.format_exc())
    finally:
        os._exit(0)


def _judged(job: Job, folder: Path, progress: Progress) -> Result:
    from safetensors.torch import save

    from lmlab.comparison.evaluate_run import evaluate_run
    from lmlab.comparison.model_process import CopiesApart, Description, InTurns, Scorer
    from lmlab.hardware.openmp import set_threads
    from lmlab.identity import hash_of
    from lmlab.learn.run import load_run

    run = load_run(job.folder)
    known = run.record.model
    tensors = {name: tensor.contiguous() for name, tensor in run.weights().items()}
    about = Description(
        kind=known.name,
        config=known.config,
        vocab_size=run.tokenizer.vocab_size,
        tensors=save(tensors),
        device=job.device,
    )
    sys.path[:] = [*sys.path, *(path for path in job.paths if path not in sys.path)]
    (here := folder / "empty").mkdir()
    turns = InTurns(about, here)  # forked before this process starts threads
    copies = CopiesApart(turns)
    model = Scorer(turns, copies.new().policy)
    set_threads(job.threads)
    seed = secrets.randbits(63)  # so that the model cannot predict the checked positions
    known_hash = hash_of(where(known.name), known.config, run.tokenizer, tensors)
    result = evaluate_run(
        run,
        model,
        job.text,
        copies=lambda: copies,
        known_hash=known_hash,
        name=job.name,
        seed=seed,
        level=job.level,
        folder=folder,
        progress=progress,
    )
    turns.end()
    count = sum(tensor.numel() for tensor in tensors.values())
    described = {**result.model, "name": where(known.name), "config": dict(known.config), "parameters": count}
    return replace(result, model=described)
