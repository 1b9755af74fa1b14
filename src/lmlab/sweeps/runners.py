"""Where the jobs of a sweep run: in processes here, or on a Ray cluster. Either way each job has an outcome."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, in_one_line
from lmlab.sweeps.grid import Job, Measured, Outcome

TEST_BYTES = 120_000  # measured, spread over the test part: more would take longer than training does
VALID_BYTES = 60_000  # likewise, of the validation part, by which the best cell is chosen
_STARTING = threading.Lock()  # one at a time hides the script
DIED = "its process died; it was killed, or there was not enough memory"


def run_job(job: Job) -> Outcome:
    """Train and measure one job in this process."""
    from lmlab.comparison.measure_run import measure_run
    from lmlab.hardware.openmp import set_threads
    from lmlab.learn.train import train
    from lmlab.measure import score_part, spread
    from lmlab.measure.counted import count_within
    from lmlab.text.corpus import Corpus

    set_threads(1)  # sums in the same order everywhere
    corpus = Corpus.from_spec(job.corpus)
    run = train(
        job.model,
        corpus,
        out=Path(job.out) / "run",
        tokenizer=job.tokenizer,
        budget=job.budget,
        seed=job.seed,
        settings=job.settings,
        learning=job.learning,
        device=job.device,
    )
    if run.status == "unfinished":
        raise KeyboardInterrupt
    part = corpus.test if corpus.test.bytes else corpus.valid
    chosen = spread(part, TEST_BYTES, history_bytes=job.history_bytes)
    model = run.that_learned().load(job.device)
    held_out = None
    if corpus.valid.bytes:  # with the weights that were kept, calibrated where they are: those of the test part, too
        looked_at = spread(corpus.valid, VALID_BYTES, history_bytes=job.history_bytes)
        read = score_part(model, run.tokenizer, looked_at.part)
        held_out = count_within(run.tokenizer, read, looked_at).bits_per_byte
    result = measure_run(run, chosen, name=corpus.name, seed=job.seed, device=job.device)
    if result.certificate.failures:
        failed = ", ".join(check.name for check in result.certificate.checks if check.passed is False)
        raise RuntimeError(f"the certificate of its result fails: {failed}")
    return Outcome(
        job=job,
        perplexity=result.perplexity["token"],
        bits_per_byte=result.bits_per_byte,
        valid_bits_per_byte=held_out,
        parameters=result.model["parameters"],
        diverged=run.status == "diverged",
        measured=Measured(part=part.name, bytes=chosen.bytes, sha256=chosen.counted().sha256, sentence=chosen.sentence),
    )


def attempt(job: Job) -> Outcome:
    """`run_job`, with a failure turned into a result that says so."""
    try:
        return run_job(job)
    except Exception as error:  # one job must not end the sweep
        return _failed(job, in_one_line(error))


def _failed(job: Job, why: str) -> Outcome:
    return Outcome(job=job, error=why)


def in_processes(
    jobs: Sequence[Job], processes: int, work: Callable[[Job], Outcome] = attempt
) -> Generator[Outcome, None, None]:
    """Here, one by one or side by side. In processes of their own, because a thread count cannot be taken back.

    When a process dies, its pool does not say which job it had. So those without a result get a process each, and the
    one that dies again is the one that failed. Whatever ends this ends the processes too.
    """
    if not jobs:
        return
    others = set(active_children())
    left = {job.out: job for job in jobs}
    with _pool(processes) as pool:
        try:
            with _deaf_to_ctrl_c(), _main_left_alone(jobs, work):
                waiting = {pool.submit(work, job): job for job in jobs}
            for future in as_completed(waiting):
                outcome = future.result()
                left.pop(waiting[future].out)
                yield outcome
            return
        except BrokenProcessPool:
            pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or every job would still have its turn
            for child in set(active_children()) - others:
                child.terminate()  # a polite kill: a run that is being trained is saved first
            raise
    with ThreadPoolExecutor(processes) as threads:
        alone = [threads.submit(_in_own_process, job, work) for job in left.values()]
        for done in as_completed(alone):
            yield done.result()


def _in_own_process(job: Job, work: Callable[[Job], Outcome]) -> Outcome:
    with _pool(1) as pool:
        try:
            with _deaf_to_ctrl_c(), _main_left_alone([job], work):
                future = pool.submit(work, job)
            return future.result()
        except BrokenProcessPool:
            return _failed(job, DIED)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_follow_parent)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that start in this block do not hear Ctrl-C, which is for the parent, not even while they import torch."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_left_alone(jobs: Sequence[Job], work: Callable[[Job], Outcome]) -> Iterator[None]:
    """Processes that start in this block do not run the script again that they are started from.

    They would, so that what it defines can be had from `__main__`: of use only to a model or a way to work that is defined
    there. A script that calls a sweep at its top would begin another sweep in each of them.
    """
    if work.__module__ == "__main__" or any(job.model.startswith("__main__:") for job in jobs):
        yield
        return
    main: Any = sys.modules["__main__"]
    with _STARTING:
        spec, file = main.__spec__, main.__dict__.pop("__file__", None)
        main.__spec__ = None
        try:
            yield
        finally:
            main.__spec__ = spec
            if file is not None:
                main.__file__ = file


def _follow_parent() -> None:
    """In a process of the pool: Ctrl-C is for the parent, which says what follows; and when it is gone, so are we.

    A pool's process would wait forever for its next job from a parent that was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a process of a pool has a parent"

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def on_ray(jobs: Sequence[Job], address: str) -> Generator[Outcome, None, None]:
    """On a Ray cluster ("local": one started here for the purpose); its machines must see the text's files."""
    try:
        import ray
    except ImportError:
        raise Mistake(
            "{ray} needs the ray package; install it with: pip install 'lmlab[ray]'", code="ray-missing", ray=None
        ) from None
    ray.init(address=None if address == "local" else address, log_to_driver=False)
    try:
        remote = ray.remote(num_cpus=1)(attempt)
        waiting = {remote.remote(job): job for job in jobs}
        while waiting:
            (done,), _ = ray.wait(list(waiting))
            job = waiting.pop(done)
            try:
                outcome = ray.get(done)
            except ray.exceptions.RayError:
                outcome = _failed(job, DIED)
            yield outcome
    finally:
        ray.shutdown()
