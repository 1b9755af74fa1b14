"""Measuring a model whose code is not the lab's own, out of that code's reach.

Four processes take part, all forked from one that has seen no text and loaded no code of others:

    the judge    tokenizes the text, draws the places that are looked at, compares, and writes the result
    the walker   is asked for probabilities, and shown one token after the other; it has ended before the text is scored
    the scorer   is given the text to score; it has ended before the checker is asked
    the checker  scores other texts and other rows, which must not change earlier scores

The last three load the model, one after the other (`InTurns`), so that no two of them can talk. None sees the judge's memory or
the user's files (`lmlab.hardware.sandbox`). So the walker can answer as the scorer scored only if both are what they claim:
probabilities of the model itself.
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
from lmlab.models.registry import KINDS, Way, where
from lmlab_derive.shared import mistakes

if TYPE_CHECKING:
    from lmlab.measure import Result, Spread
    from lmlab.measure.score import Progress
    from lmlab.text.parts import Part

CAN_FORK = hasattr(os, "fork")
PROGRAM = "import sys; sys.path[:0] = sys.argv[1:]; from lmlab.comparison.measure_apart import judge_all; judge_all()"
ENVIRONMENT = (  # what a judge needs to know; more could hold the text that is measured
    "PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LMLAB_CACHE", "LMLAB_DEBUG", "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is to be measured."""

    folder: Path  # of the run
    text: Part | Spread
    name: str
    level: float
    device: str
    threads: int
    paths: tuple[str, ...]
    here: str


def needs_to_be_apart(kind: str, config: Mapping[str, Any]) -> bool:
    """Whether a model, or one that it is mixed of, is not the lab's own."""
    if kind not in KINDS:
        return True
    parts = config.get("parts", ()) if KINDS[kind].way is Way.MIXES else ()
    return any(needs_to_be_apart(part["model"], part["config"]) for part in parts)


def measure_apart(job: Job, progress: Progress | None = None) -> Result:
    """The result of a run, measured by a judge; a Mistake where the model's code fails."""
    requests, answers = _judge()
    try:
        pickle.dump(job, requests)
        requests.flush()
        while True:
            what, *found = pickle.load(answers)  # the judge is the lab's own code
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
        _judge.cache_clear()  # what it would have answered is nobody's any more
        raise


@cache
def _judge() -> tuple[IO[bytes], IO[bytes]]:
    """What a judge is asked through, and what it answers through; begun once in a process."""
    paths = [str(Path(lmlab.__file__).resolve().parents[1]), str(Path(mistakes.__file__).resolve().parents[2])]
    process = subprocess.Popen(
        # -E: what a model put into PYTHONPATH would be loaded in the judge
        [sys.executable, "-E", "-P", "-c", PROGRAM, *paths],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name in ENVIRONMENT},
        start_new_session=True,  # Ctrl-C is for whoever asks
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
    """Judge one job after another, each in a process of its own, until nobody asks."""
    import torch

    from lmlab.comparison import model_process  # noqa: F401  (loaded once, for all that are forked)
    from lmlab.comparison.evaluate_run import evaluate_run  # noqa: F401

    torch.set_num_threads(1)  # threads that were begun would be missing after a fork
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # nothing but answers goes through the pipe
    while True:
        try:
            job: Job = pickle.load(requests)
        except EOFError:
            return
        if (child := os.fork()) == 0:
            _judge_one(job, answers)
        os.waitpid(child, 0)


def _judge_one(job: Job, answers: IO[bytes]) -> None:
    """Judge, answer, and end this process."""

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
    turns = InTurns(about, here)  # before threads begin here
    copies = CopiesApart(turns)
    model = Scorer(turns, copies.new().policy)
    set_threads(job.threads)
    seed = secrets.randbits(63)  # nobody can know where the walker will be asked
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
