"""Mixes the entries of a comparison under one tokenizer, and evaluates the mix like each of them.

A mix has no rank, since it used the training time of all its parts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.mixes import EntryMix, MixedPart
from lmlab.comparison.score_found import Score
from lmlab.learn.fit import stream_folder
from lmlab.learn.mixing import FEWEST_TOKENS, mix
from lmlab.learn.run import Run
from lmlab.measure import paired_difference
from lmlab.page.numbers import counted
from lmlab.text.stream import tokenize

READINGS = 1.5  # time of mixing, as a multiple of the time to score the parts: validation part, then test part
FITTING_S = 2e-5  # seconds per token to fit the weights
FEWEST = 2  # models are mixed even if no time is left: people ask for the mix, and two take a few seconds


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


def worth_mixing(entries: Sequence[ComparedEntry], time_s: float | None) -> list[ComparedEntry]:
    """Return the entries that there is time to mix, in their order; if time is short the best by validation, and at least two.

    A choice by the test part would bias the result of the mix.

    Args:
        entries: the entries that can be mixed.
        time_s: seconds for mixing; None: no limit.
    """
    if time_s is None:
        return list(entries)
    left_s = time_s - FITTING_S * entries[0].scored.tokens
    seconds = [entry.seed_results[0].seconds for entry in entries]
    if READINGS * sum(seconds) <= left_s:
        return list(entries)
    valid = [math.inf if (bits := entry.valid_bits_per_byte) is None else bits for entry in entries]
    best_first = sorted(range(len(entries)), key=valid.__getitem__)
    chosen = best_first[:FEWEST]
    left_s -= READINGS * sum(seconds[place] for place in chosen)
    for place in best_first[FEWEST:]:
        left_s -= READINGS * seconds[place]
        if left_s < 0:
            break
        chosen.append(place)
    return [entries[place] for place in sorted(chosen)]


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
