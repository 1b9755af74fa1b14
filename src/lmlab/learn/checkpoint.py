"""Checkpoints: one safetensors file with everything a run needs to resume, replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import safetensors
import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.layers.raced import ALL_TAKEN, missing
from lmlab.learn.progress import Progress
from lmlab.learn.tensor_file import write_tensors
from lmlab.learn.world import SINGLE_PROCESS, World

Groups = dict[str, dict[str, Tensor]]

CHECKPOINT_EVERY_S = 20.0  # seconds between checkpoints, the most that a kill loses


def save_checkpoint(path: Path, progress: Progress, groups: Groups) -> None:
    """Write groups of named tensors (weights, best weights, optimizer state) and the progress to a file."""
    flat = {f"{group}/{name}": t for group, tensors in groups.items() for name, t in tensors.items()}
    write_tensors(path, flat, {"progress": json.dumps(asdict(progress))})


class Checkpoints:
    """A writer of the checkpoints of a run, each of which replaces the previous one.

    Only the writer process of a world writes.

    Args:
        path: the checkpoint file.
        beside: whether to write in a background thread, so that a GPU continues meanwhile.
        world: the processes that train together.
    """

    def __init__(self, path: Path, *, beside: bool, world: World = SINGLE_PROCESS) -> None:
        self.path, self.world = path, world
        self.any = world.broadcast(path.exists())  # whether a checkpoint exists
        self._pool = _thread_of_this_gpu() if beside and world.is_writer else None
        self._last: Future[None] | None = None

    def save(self, progress: Progress, groups: Groups, *, wait: bool) -> None:
        """Save a checkpoint; see `save_checkpoint`.

        Args:
            progress: the progress to save.
            groups: the tensors to save, by group and name.
            wait: False may return early and write in a background thread, if the GPU has memory for a copy of the tensors.
        """
        self.finish()
        self.any = True
        if not self.world.is_writer:
            return
        size = sum(t.nbytes for tensors in groups.values() for t in tensors.values())
        if wait or self._pool is None or torch.cuda.mem_get_info()[0] < 2 * size:
            save_checkpoint(self.path, progress, groups)
            return
        copies = {group: {name: t.detach().clone() for name, t in ts.items()} for group, ts in groups.items()}
        copied = torch.cuda.Event()
        copied.record()
        self._last = self._pool.submit(_save_copies, self.path, progress, copies, copied)

    def is_missing(self, progress: Progress) -> bool:
        """Whether weights were validated but no checkpoint exists, so that a kill would lose all weights of a short run."""
        return progress.best_nats is not None and not self.any

    def finish(self) -> None:
        """Wait until the last checkpoint is written, and raise any error of its background thread."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


def _thread_of_this_gpu() -> ThreadPoolExecutor:
    """Return a thread pool that uses the present GPU. By default a new thread would use the first one."""
    return ThreadPoolExecutor(1, initializer=torch.cuda.set_device, initargs=(torch.cuda.current_device(),))


def _save_copies(path: Path, progress: Progress, copies: Groups, copied: torch.cuda.Event) -> None:
    """Save copied tensors on a CUDA stream of their own, parallel to the kernels of the training."""
    stream = torch.cuda.Stream()
    stream.wait_event(copied)
    with torch.cuda.stream(stream):
        save_checkpoint(path, progress, copies)


def kernels_begun_with(named: Mapping[str, bool] | None, say: Callable[[str], None]) -> Mapping[str, bool]:
    """Return which C functions a resumed run uses, and report those that are unavailable on this machine.

    Args:
        named: the C functions that the run started with. None: an older run, which used all of its time.
        say: receives the report.
    """
    if named is None:
        return ALL_TAKEN
    if lacking := missing(named):
        say(
            f"it began with functions in C that are not here now ({', '.join(lacking)}):"
            " the same is done without them, and rounded differently"
        )
    return named


def read_progress(path: Path) -> Progress | None:
    """Return the progress in a checkpoint without its tensors; None if there is no checkpoint."""
    return load_checkpoint(path, tensors=False)[0] if path.exists() else None


def load_checkpoint(path: Path, *, tensors: bool = True) -> tuple[Progress, dict[str, dict[str, Tensor]]]:
    """Load a checkpoint: its progress and its tensors by group.

    Args:
        path: the checkpoint file.
        tensors: False reads the progress only.

    Raises:
        Mistake: the file is damaged.
    """
    groups: dict[str, dict[str, Tensor]] = {}
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            for key in file.keys() if tensors else ():
                group, _, name = key.partition("/")
                groups.setdefault(group, {})[name] = file.get_tensor(key)
    except (safetensors.SafetensorError, KeyError, TypeError, json.JSONDecodeError, OSError) as error:
        raise Mistake(
            f"{path} is damaged ({error}); delete the folder it lies in and train again", code="checkpoint-damaged"
        ) from None
    return progress, groups
