"""The JSON Lines files of a run: metrics.jsonl and samples.jsonl.

They are not flushed to disk after each line, so a power failure can damage the last lines.
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
    """Whether a document is a line of metrics.jsonl: step, tokens, seconds, and metrics of training and validation."""
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
    """Whether a document is a line of samples.jsonl: a step and a generated text."""
    return isinstance(found, dict) and _is_number(found.get("step")) and isinstance(found.get("text"), str)


def unit_of(metrics: dict[str, Any]) -> str | None:
    """Return the unit of the first metric in a line, as it is written in the keys; None: the line has no metrics."""
    return next((key.removeprefix("train_") for key in metrics if key.startswith("train_")), None)


def documents(path: Path, is_ours: Callable[[Any], bool]) -> list[dict[str, Any]]:
    """Return the parsed lines of a file.

    Args:
        path: the file.
        is_ours: tells whether a document is valid.

    Raises:
        Mistake: a line is not valid.
    """
    found = [_read(line) for line in whole_lines(path)]
    for number, document in enumerate(found, 1):
        if not is_ours(document):
            raise Mistake(
                f"{path} is damaged in line {number}; delete that line, and the run opens without it",
                code="lines-damaged",
            )
    return found


def cut_back(path: Path, is_ours: Callable[[Any], bool], step: int, most: int | None = None) -> int:
    """Delete the lines of a file after a step, and return the number of lines that remain.

    Damaged lines are dropped with a note, because training continues without them.

    Args:
        path: the file.
        is_ours: tells whether a document is valid.
        step: the last step to keep; 0 deletes all lines.
        most: the maximum number of lines to keep; None: no limit.
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
    """Return the document in a line; None if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
