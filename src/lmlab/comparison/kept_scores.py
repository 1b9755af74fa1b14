"""Saves the scores of a scored entry, and rebuilds its exact `Result` from them without the model."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from lmlab.comparison.entry_records import MeasuredEntry
from lmlab.config import Mistake
from lmlab.context import ContextPolicy
from lmlab.disk.files import write_atomically
from lmlab.measure import Certificate, Check, Result, Scored, Spread
from lmlab.measure.counted import count_within
from lmlab.measure.interval import interval
from lmlab.measure.near_copies import HeldOut
from lmlab.measure.tally import Tally
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer

ARRAYS = ("nats_per_token", "byte_ends", "spans")
NUMBERS = (*(f.name for f in fields(Tally) if f.name != "byte_ends"), "seams", "seam_difference")


def write_scores(path: Path, scored: Scored) -> str:
    """Write the scores, including those of context bytes, and return the SHA-256 of the file."""
    read = scored if scored.counted is None else scored.counted.read
    arrays = {name: np.ascontiguousarray(getattr(read, name)) for name in ARRAYS}
    arrays |= {name: np.array(getattr(read, name)) for name in NUMBERS}  # as float64, since JSON cannot hold infinity
    content = save(arrays)
    write_atomically(path, content)
    return hashlib.sha256(content).hexdigest()


def read_result(path: Path, measured: MeasuredEntry, chosen: Spread, tokenizer: Tokenizer) -> Result:
    """Rebuild a result from the scores that `write_scores` saved.

    Raises:
        Mistake: the hash of the file differs from the recorded one.
    """
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != measured.scores_sha256:
        raise Mistake(f"{path} is damaged; delete it, and the model is measured again", code="kept-scores-damaged")
    arrays = load(content)
    scored = _scored(arrays, chosen, tokenizer)
    document = measured.result.document
    seen = document["context"]["history"]
    return Result(
        scored=scored,
        interval=interval(scored, level=document["interval_details"]["level"]),
        certificate=_certificate(document, chosen),
        held_out=HeldOut(**document["held_out"]),
        context=ContextPolicy(None if seen is None else seen + 1, document["context"]["stride"]),
        seconds=document["seconds"],
        model=document["model"],
        data=document["data"],
        notes=tuple(document["notes"]),
    )


def _scored(arrays: Mapping[str, np.ndarray], chosen: Spread, tokenizer: Tokenizer) -> Scored:
    place = Path(tempfile.mkdtemp(prefix="lmlab-"))
    kept: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    kept |= {name: arrays[name].item() for name in NUMBERS}
    read = Scored(
        part=chosen.part,
        tokenizer_hash=tokenizer.hash,
        stream=tokenize(chosen.part, tokenizer, place),
        **kept,
    )
    weakref.finalize(read, shutil.rmtree, place, ignore_errors=True)
    return count_within(tokenizer, read, chosen)


def _certificate(document: Mapping[str, Any], chosen: Spread) -> Certificate:
    details = document["certificate_details"]
    model = document["model"]
    return Certificate(
        checks=tuple(Check(name, passed, details[name]) for name, passed in document["certificate"].items()),
        hashes={"data": chosen.part.sha256, "tokenizer": model["tokenizer_hash"], "model": model["hash"]},
        seconds=document["certificate_seconds"],
    )
