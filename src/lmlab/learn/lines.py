"""The files of a run that grow by lines, each a JSON document: metrics.jsonl and samples.jsonl.

They are not flushed to the disk line by line, so that a power cut may leave anything in the place of the last ones.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, Note
from lmlab.disk.files import whole_lines, write_atomically


def is_metrics(found: Any) -> bool:
    """Whether a document is a line of metrics: how far it was, and what was measured there."""
    if not isinstance(found, dict) or not all(_is_number(found.get(key)) for key in ("step", "tokens", "seconds")):
        return False
    measured = {key: value for key, value in found.items() if key.startswith(("train_", "valid_"))}
    unit = unit_of(found)
    return (
        unit is not None
        and _is_number(found[f"train_{unit}"])
        and f"valid_{unit}" in found
        and all(value is None or _is_number(value) for value in measured.values())
    )


def is_sample(found: Any) -> bool:
    """Whether a document is a line of samples: what the model wrote, and at which step."""
    return isinstance(found, dict) and _is_number(found.get("step")) and isinstance(found.get("text"), str)


def unit_of(metrics: dict[str, Any]) -> str | None:
    """What a line of metrics measures first, as its keys write it; None: nothing."""
    return next((key.removeprefix("train_") for key in metrics if key.startswith("train_")), None)


def documents(path: Path, is_ours: Callable[[Any], bool]) -> list[dict[str, Any]]:
    """The lines of a file, read; Mistake where one is not of the kind that `is_ours` knows."""
    found = [_read(line) for line in whole_lines(path)]
    for number, document in enumerate(found, 1):
        if not is_ours(document):
            raise Mistake(
                f"{path} is damaged in line {number}; delete that line, and the run opens without it",
                code="lines-damaged",
            )
    return found


def cut_back(path: Path, is_ours: Callable[[Any], bool], step: int, most: int | None = None) -> int:
    """Leave the lines of up to this step, of no more than the first `most`; returns how many are left.

    Damaged ones are dropped, with a note: they are a look at a training that goes on without them.
    """
    kept, damaged = [], 0
    for line in whole_lines(path)[:most] if step else []:
        document = _read(line)
        if not is_ours(document):
            damaged += 1
        elif document["step"] <= step:
            kept.append(line)
    if damaged:
        lines = "a damaged line was" if damaged == 1 else f"{damaged} damaged lines were"
        warnings.warn(f"{lines} dropped from {path}", Note, stacklevel=2)
    write_atomically(path, "".join(kept).encode())
    return len(kept)


def _read(line: str) -> Any:
    """What a line holds; None where it is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
