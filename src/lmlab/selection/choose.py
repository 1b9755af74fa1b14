"""The choice of the best model by validation: the best finished run of each tokenizer, or the mix of those that finished."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmlab.comparison.mix_entries import why_not_mixed_runs
from lmlab.learn.fit import stream_folder
from lmlab.learn.mixing import FEWEST_TOKENS, MOST_TOKENS, mix_and_compare
from lmlab.learn.run import Run
from lmlab.measure import Spread, score_part
from lmlab.measure.counted import count_within
from lmlab.selection.records import Choice, Part
from lmlab.text.batches import even_windows
from lmlab.text.stream import tokenize

MIXING = 0.5  # share of the time for choosing in which a mix is fitted
FITTING_S = 1e-4  # rough seconds to fit weights on a token
TRIED, WINDOW = 1024, 256  # tokens that are read to time the parts


@dataclass(frozen=True, kw_only=True)
class Finalist:
    """A finished run. bits_per_byte: of the sample of the validation part."""

    name: str
    run: Run
    bits_per_byte: float


def validation_bits(run: Run, text: Spread, device: str) -> float:
    """Return the bits per byte of a sample of the validation part."""
    read = score_part(run.load(device), run.tokenizer, text.part)
    return float(count_within(run.tokenizer, read, text).bits_per_byte)


def choose(
    finalists: Mapping[str, Sequence[Finalist]], text: Spread, models: Path, *, device: str, left_s: float
) -> Choice:
    """Choose among the finished runs and their mix by the validation part.

    Args:
        finalists: the finished runs by tokenizer. Only those of one tokenizer can be mixed.
        text: the sample of the validation part.
        models: the folder of runs, in which the mix is saved.
        device: the device to score on.
        left_s: seconds for choosing.
    """
    known: dict[str, float] = {}
    best: tuple[float, Run, tuple[Part, ...], str] | None = None
    for spec, group in finalists.items():
        run, parts, why = _best_of_group(spec, group, models, device, left_s / len(finalists))
        alone = next((f for f in group if f.run is run), None)
        bits = validation_bits(run, text, device) if alone is None else alone.bits_per_byte
        known |= {f.name: f.bits_per_byte for f in group}
        known[run.folder.name] = bits
        if best is None or bits < best[0]:
            best = bits, run, parts, why
    assert best is not None, "at least one run is finished"
    _, run, parts, why = best
    sha256 = run.record.model.sha256
    assert sha256 is not None, "a finished run has weights"
    return Choice(
        run=run.folder.name,
        sha256=sha256,
        tokenizer=str(run.record.inputs.tokenizer),
        parts=parts,
        bits_per_byte=known,
        why=why,
    )


def _best_of_group(
    spec: str, group: Sequence[Finalist], models: Path, device: str, left_s: float
) -> tuple[Run, tuple[Part, ...], str]:
    """Return the mix of the finished runs of one tokenizer if it validates better than each of them, else the best run."""
    single = min(group, key=lambda f: f.bits_per_byte)
    alone = (Part(name=single.name, weight=1.0),)
    if len(group) == 1:
        return single.run, alone, ""
    if why := why_not_mixed_runs(spec, single.run):
        return single.run, alone, why
    folder = models / f"mix-{spec.replace(':', '')}"
    shutil.rmtree(folder, ignore_errors=True)  # an outdated mix, or the remains of one
    tokens = _tokens_in([f.run for f in group], device, MIXING * left_s)
    if tokens < FEWEST_TOKENS:
        return single.run, alone, "There was no time to mix the models that finished."
    made, mixed_nats, alone_nats = mix_and_compare([f.run for f in group], out=folder, device=device, tokens=tokens)
    best = min(range(len(group)), key=alone_nats.__getitem__)
    if mixed_nats >= alone_nats[best]:
        why = "By validation the mix of the models that finished is no better than the best of them."
        return group[best].run, (Part(name=group[best].name, weight=1.0),), why
    ingredients = zip(group, made.record.inputs.parts, strict=True)
    parts = tuple(Part(name=f.name, weight=part.weight) for f, part in ingredients if part.weight)
    return made, parts, ""


def _tokens_in(runs: Sequence[Run], device: str, time_s: float) -> int:
    """Return on how many validation tokens a mix of these runs can be fitted in so many seconds."""
    stream = tokenize(runs[0].corpus.valid, runs[0].tokenizer, stream_folder())
    length = min(WINDOW, stream.tokens)
    windows = even_windows(stream, max(1, TRIED // length), length)
    read_s = 0.0
    for run in runs:
        model = run.load(device)
        model.score(windows.tokens_BT[:1])  # the first call compiles and allocates
        started = time.perf_counter()
        model.score(windows.tokens_BT)
        read_s += (time.perf_counter() - started) / windows.count
    return int(min(MOST_TOKENS, stream.tokens, time_s / (read_s + FITTING_S)))
