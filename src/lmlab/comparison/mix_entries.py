"""Mixes the entries of a comparison under one tokenizer, and evaluates the mix like each of them.

A mix has no rank, since it used the training time of all its parts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.mixes import EntryMix, MixedPart
from lmlab.comparison.score_found import Score
from lmlab.learn.fit import stream_folder
from lmlab.learn.mixing import FEWEST_TOKENS, ROWS, mix
from lmlab.learn.run import Run
from lmlab.measure import paired_difference
from lmlab.measure.score import device_of, evaluating
from lmlab.page.numbers import counted
from lmlab.text.batches import even_windows
from lmlab.text.stream import tokenize

READINGS = 1.5  # time of mixing, as a multiple of the time to score the parts: validation part, then test part
FITTING_S = 2e-5  # seconds per token to fit the weights
TRIED = 1 / 8  # validation tokens read to select the best entries, as a share of the scored tokens
WINDOW = 256  # tokens per window of that selection


def why_not_mixed(entries: Sequence[ComparedEntry]) -> str:
    """Return why these entries of one tokenizer cannot be mixed: too little validation text to fit weights. Empty: they can."""
    return why_not_mixed_runs(entries[0].tokenizer, entries[0].runs[0])


def why_not_mixed_runs(spec: str, run: Run) -> str:
    """Return why runs of a tokenizer, of which this is one, cannot be mixed. Empty: they can."""
    valid = run.corpus.valid
    tokens = tokenize(valid, run.tokenizer, stream_folder()).tokens if valid.bytes else 0
    if tokens >= FEWEST_TOKENS:
        return ""
    return (
        f"The {spec} models were not mixed to see what they are worth together: the validation part has"
        f" {counted(tokens, 'token')}, and the weights of a mix are fitted on {FEWEST_TOKENS} or more."
    )


def worth_mixing(entries: Sequence[ComparedEntry], time_s: float | None, device: str) -> list[ComparedEntry]:
    """Return the entries that there is time to mix, in their order; none if there is not time for two.

    If time is short, the best entries by validation loss are chosen, on tokens that all of them score. A choice by the test
    part would bias the result of the mix.

    Args:
        entries: the entries that can be mixed.
        time_s: seconds for mixing; None: no limit.
        device: the device to score on.
    """
    if time_s is None:
        return list(entries)
    measured = entries[0].scored.tokens
    left_s = time_s - FITTING_S * measured
    seconds = [entry.seed_results[0].seconds for entry in entries]
    if READINGS * sum(seconds) <= left_s:
        return list(entries)
    tried = max(FEWEST_TOKENS, int(TRIED * measured))
    left_s -= tried / measured * sum(seconds)
    if READINGS * sum(sorted(seconds)[:2]) > left_s:
        return []  # not enough time even for the two fastest
    nats = [_validation_nats(entry.runs[0], tried, device) for entry in entries]
    chosen: list[int] = []
    for place in sorted(range(len(entries)), key=nats.__getitem__):
        left_s -= READINGS * seconds[place]
        if left_s < 0:
            break
        chosen.append(place)
    return [entries[place] for place in sorted(chosen)] if len(chosen) > 1 else []


@torch.no_grad()
def _validation_nats(run: Run, tokens: int, device: str) -> float:
    """Return the mean nats per token over about `tokens` validation tokens, the same ones for all runs of a tokenizer."""
    stream, model = tokenize(run.corpus.valid, run.tokenizer, stream_folder()), run.load(device)
    length = min(WINDOW, stream.tokens)
    nats = []
    with evaluating(model):
        for batch in even_windows(stream, tokens // length, length).split(ROWS):
            nats_BT = model.score(batch.tokens_BT.to(device_of(model))).cpu()
            nats.append(nats_BT.flatten() if batch.mask_BT is None else nats_BT[batch.mask_BT])
    return float(torch.cat(nats).mean(dtype=torch.float64))


def mixed(
    entries: Sequence[ComparedEntry], folder: Path, *, device: str, seed: int, untried: Sequence[ComparedEntry]
) -> EntryMix:
    """Mix these entries, save the mix in the folder, and evaluate it as the entries are.

    untried: certified entries that are not in the mix.
    """
    best = min(entries, key=lambda entry: entry.seed_results[0].bits_per_byte)
    if folder.exists():
        shutil.rmtree(folder)  # an outdated mix
    made = mix(
        [entry.runs[0] for entry in entries], out=folder, device=device, tokens=max(FEWEST_TOKENS, best.scored.tokens)
    )
    result = measure_run(made, best.text, name=best.seed_results[0].data["name"], seed=seed, device=device)
    parts = zip(entries, made.record.inputs.parts, strict=True)
    saved = paired_difference(best.seed_results[0].scored, result.scored)
    return EntryMix(
        tokenizer=best.tokenizer,
        parts=tuple(MixedPart(name=entry.name, weight=part.weight) for entry, part in parts if part.weight),
        weighting=made.record.model.config["weighting"],
        result=Score(result.to_json()),
        seconds=made.record.result.seconds,
        best=best.name,
        saved_bits_per_byte=saved.estimate if math.isfinite(saved.estimate) else None,
        saved_interval=None if saved.low is None or saved.high is None else (saved.low, saved.high),
        untried=tuple(entry.name for entry in untried),
    )
