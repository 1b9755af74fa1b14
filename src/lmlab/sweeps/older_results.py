"""Reads results of sweeps that hold result.json instead of records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmlab.comparison.entry_records import MeasuredEntry, TrainedEntry
from lmlab.comparison.score_found import Score
from lmlab.comparison.work import Outcome, Task
from lmlab.config import Mistake

RESULT = "result.json"


def read_older_result(folder: Path, task: Task) -> Outcome | None:
    """Return the outcome in a folder's result.json, with the specification it was made for; None: there is no such file."""
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        return _outcome(json.loads(path.read_text(encoding="utf-8")), task)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Mistake(f"{path} is damaged; delete {folder} to train it again", code="sweep-attempt-damaged") from None


def _outcome(document: dict[str, Any], task: Task) -> Outcome:
    job, data = document["job"], document["measured"]
    keys = ("model", "tokenizer", "settings", "budget", "seed", "device")
    parts = {name: part["sha256"] for name, part in job["corpus"]["parts"].items()}
    spec = replace(task.spec, text=parts, learning=job.get("learning", {}), **{key: job[key] for key in keys})
    result = {
        "bits_per_byte": document["bits_per_byte"],
        "perplexity": {"token": document["perplexity"]},
        "model": {"parameters": document["parameters"]},
        "data": {**data, "sha256": data.get("sha256", ""), "measured": {"sentence": data.get("sentence", "")}},
        "certificate": {},
        "certificate_details": {},
    }
    assert task.text is not None, "a run of a sweep is measured"
    return Outcome(
        task=replace(task, spec=spec),
        trained=TrainedEntry(
            status="diverged" if document.get("diverged") else "finished", weights_sha256="", seconds=0.0
        ),
        measured=MeasuredEntry(
            weights_sha256="",
            text=task.text,
            read_sha256="",
            result=Score(result),
            seconds=0.0,
            validated="valid_bits_per_byte" in document and job["corpus"]["parts"]["valid"]["bytes"] > 0,
            valid_bits_per_byte=document.get("valid_bits_per_byte"),
        ),
    )
