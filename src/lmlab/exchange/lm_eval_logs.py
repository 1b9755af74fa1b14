"""Samples that lm-evaluation-harness logs: what each model got for each document of each task.

A file is one model on one task, a JSON object a line. Read are `doc_id`, `doc_hash`, `filter`, and the metrics that `metrics`
names: a number, a truth value, or a pair (log-likelihood, length) as of bits per byte.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.config import Mistake

NAMED = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.\-:]+)?")
LONGEST_LINE = 64 << 20  # characters
USUAL_FILTER = "none"
SAME_PAIR = ("word_perplexity", "byte_perplexity")  # logged with the log-likelihood that bits_per_byte has too


@dataclass(frozen=True)
class Samples:
    """One model on one task: by metric and document, a value and its weight (1, or a length)."""

    path: Path
    model: str
    task: str
    values: Mapping[str, Mapping[str, tuple[float, float]]]
    hashes: Mapping[str, str]  # of the documents, where the log has them


def read_samples(files: Sequence[Path]) -> list[Samples]:
    """Read log files and give each model a name that no other has on its task.

    Raises:
        Mistake: a file is no such log, or two files are of one model and task.
    """
    found = [_read(path, len({one.parent for one in files}) > 1) for path in files]
    seen: dict[tuple[str, str], Path] = {}
    for one in found:
        if (before := seen.setdefault((one.model, one.task), one.path)) is not one.path:
            raise Mistake(
                f"{before} and {one.path} would both be {one.model} on {one.task}; put the logs of each model into a folder"
                " of its own",
                code="logs-of-one-model",
            )
    return found


def _read(path: Path, by_folder: bool) -> Samples:
    match = NAMED.fullmatch(path.stem)
    task = match["task"] if match else "task"
    model = path.resolve().parent.name if match and by_folder else path.stem
    values: dict[str, dict[str, tuple[float, float]]] = {}
    hashes: dict[str, str] = {}
    if not path.is_file():
        raise Mistake(f"there is no file {path}; name the samples_….jsonl files of lm-eval", code="log-not-found")
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), start=1):
                if line.strip():
                    _take(line, f"{path}, line {number}", values, hashes)
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} cannot be read: {error}", code="log-not-readable") from None
    if not values:
        raise Mistake(f"{path} has no metrics; lm-eval writes such logs with --log_samples", code="log-without-metrics")
    pairs = "bits_per_byte" in values
    kept = {name: documents for name, documents in values.items() if not (pairs and name in SAME_PAIR)}
    return Samples(path, model, task, kept, hashes)


def _take(line: str, where: str, values: dict[str, dict[str, tuple[float, float]]], hashes: dict[str, str]) -> None:
    """Add one line."""
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError):
        raise Mistake(f"{where} is no JSON; the log is damaged or cut short", code="log-damaged") from None
    if not isinstance(sample, dict) or "doc_id" not in sample or not isinstance(sample.get("metrics", []), list):
        raise Mistake(f"{where} is no sample of lm-eval: it has no doc_id", code="log-of-other-format")
    document, kind = str(sample["doc_id"]), str(sample.get("filter", USUAL_FILTER))
    if "doc_hash" in sample:
        hashes[document] = str(sample["doc_hash"])
    for metric in sample.get("metrics", []):
        name = str(metric) if kind == USUAL_FILTER else f"{metric},{kind}"
        if (value := _value(sample.get(str(metric)))) is None:
            continue
        if document in values.setdefault(name, {}):
            raise Mistake(f"{where}: document {document} is there twice", code="log-document-twice")
        values[name][document] = value


def _value(value: Any) -> tuple[float, float] | None:
    """A value and its weight; None for what is no number, such as a list of predictions."""
    match value:
        case bool() | int() | float():
            pair = (float(value), 1.0)
        case [int() | float() as likelihood, int() | float() as length] if length > 0:
            pair = (-float(likelihood) / math.log(2), float(length))
        case _:
            return None
    return pair if all(map(math.isfinite, pair)) else None
