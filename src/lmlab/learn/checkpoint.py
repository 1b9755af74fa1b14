"""Checkpoints: one safetensors file with everything a run needs to go on, replaced whole or not at all."""

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
from lmlab.learn.world import ALONE, World

Groups = dict[str, dict[str, Tensor]]

CHECKPOINT_EVERY_S = 20.0  # while a run learns: at most so much is lost to a kill


def save_checkpoint(path: Path, progress: Progress, groups: Groups) -> None:
    """Write groups of named tensors (weights, best weights, optimizer slots) and the progress."""
    flat = {f"{group}/{name}": t for group, tensors in groups.items() for name, t in tensors.items()}
    write_tensors(path, flat, {"progress": json.dumps(asdict(progress))})


class Checkpoints:
    """This class writes the checkpoints of a run, one after the other, into one file; of several processes the writer does.

    Args:
        path: Of the file.
        beside: Whether a GPU goes on while the disk is written to.
        world: The processes that train together.
    """

    def __init__(self, path: Path, *, beside: bool, world: World = ALONE) -> None:
        self.path, self.world = path, world
        self.any = world.broadcast(path.exists())  # whether there is one
        self._pool = _thread_of_this_gpu() if beside and world.is_writer else None
        self._last: Future[None] | None = None

    def save(self, progress: Progress, groups: Groups, *, wait: bool) -> None:
        """As `save_checkpoint`. Without waiting it may still be under way afterwards, where a GPU has room for a copy."""
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

    def lack(self, progress: Progress) -> bool:
        """Whether weights were validated and none are kept yet: a short run may be killed before its next look at the clock."""
        return progress.best_nats is not None and not self.any

    def finish(self) -> None:
        """Wait until the last one is written; what went wrong with it is raised here."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


def _thread_of_this_gpu() -> ThreadPoolExecutor:
    """A thread begins with the first GPU of several; on another's streams it would wait for the wrong work."""
    return ThreadPoolExecutor(1, initializer=torch.cuda.set_device, initargs=(torch.cuda.current_device(),))


def _save_copies(path: Path, progress: Progress, copies: Groups, copied: torch.cuda.Event) -> None:
    """Fetched beside the kernels of the training, not between them."""
    stream = torch.cuda.Stream()
    stream.wait_event(copied)
    with torch.cuda.stream(stream):
        save_checkpoint(path, progress, copies)


def kernels_begun_with(named: Mapping[str, bool] | None, say: Callable[[str], None]) -> Mapping[str, bool]:
    """Return the functions in C that a resumed run uses and those that it leaves, and say which are not here any more.

    Args:
        named: those that the run began with; None: an older run, which used all of those times.
        say: where a sentence goes.
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
    """Where a run stands, without its tensors; None where there is no checkpoint."""
    return load_checkpoint(path, tensors=False)[0] if path.exists() else None


def load_checkpoint(path: Path, *, tensors: bool = True) -> tuple[Progress, dict[str, dict[str, Tensor]]]:
    """What `save_checkpoint` wrote; Mistake when the file is damaged."""
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
