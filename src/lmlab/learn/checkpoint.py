"""Checkpoints: one safetensors file with everything a run needs to go on, replaced whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import safetensors
from safetensors.torch import save
from torch import Tensor

from lmlab.config import Mistake
from lmlab.text.files import write_atomically


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands, apart from its tensors."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_nats: float | None = None  # per token, on the validation windows
    best_step: int = 0
    lowest_nats: float | None = None  # as best_nats, of the weights that were learned since the budget began
    worse: int = 0  # validations since the lowest one
    metrics: int = 0  # lines of metrics.jsonl that belong to the run so far


def save_checkpoint(path: Path, progress: Progress, groups: dict[str, dict[str, Tensor]]) -> None:
    """Write groups of named tensors (weights, best weights, optimizer slots) and the progress."""
    flat = {f"{group}/{name}": t.detach().cpu().contiguous() for group, ts in groups.items() for name, t in ts.items()}
    write_atomically(path, save(flat, metadata={"progress": json.dumps(asdict(progress))}))


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
        raise Mistake(f"{path} is damaged ({error}); delete the folder it lies in and train again") from None
    return progress, groups
