"""What the models of a comparison are worth together: the mix of those under one tokenizer, measured like each of them.

It stands apart from the ranks, since it had the time of all its parts.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

from lmlab.comparison.contender import Contender
from lmlab.comparison.findings import MixedPart, Score, Together
from lmlab.comparison.measure_all import Measuring
from lmlab.learn.mixing import FEWEST_TOKENS, mix
from lmlab.learn.train import stream_folder
from lmlab.measure import paired_difference
from lmlab.text.stream import tokenize

READINGS = 1.5  # what mixing takes of the time that measuring its parts took: the validation part, then the test part
FITTING_S = 2e-5  # a token: to fit weights on as many as were measured


def worth_mixing(entries: Sequence[Contender], time_s: float | None) -> list[Contender]:
    """The best of these entries, of one tokenizer, that there is time to mix; none where they are not two."""
    chosen: list[Contender] = []
    needed_s = FITTING_S * max((entry.scored.tokens for entry in entries), default=0)
    for entry in sorted(entries, key=lambda entry: entry.seed_results[0].bits_per_byte):
        needed_s += READINGS * entry.seed_results[0].seconds
        if time_s is not None and needed_s > time_s:
            break
        chosen.append(entry)
    return chosen if len(chosen) > 1 else []


def mixed(entries: Sequence[Contender], measuring: Measuring, folder: Path) -> Together | None:
    """The mix of these entries, saved in the folder and measured like them; None where there is nothing to fit weights on.

    entries: at least two, of one tokenizer, the best first.
    """
    runs, best = [entry.runs[0] for entry in entries], entries[0]
    valid = runs[0].corpus.valid
    if not valid.bytes or tokenize(valid, runs[0].tokenizer, stream_folder()).tokens < FEWEST_TOKENS:
        return None
    if folder.exists():
        shutil.rmtree(folder)  # made of what was there before
    made = mix(runs, out=folder, device=measuring.device, tokens=max(FEWEST_TOKENS, best.scored.tokens))
    result = measuring.result(made)
    parts = zip(entries, made.record.inputs.parts, strict=True)
    saved = paired_difference(best.seed_results[0].scored, result.scored)
    return Together(
        tokenizer=best.tokenizer,
        parts=tuple(MixedPart(name=entry.name, weight=part.weight) for entry, part in parts if part.weight),
        weighting=made.record.model.config["weighting"],
        result=Score(result.to_json()),
        seconds=made.record.result.seconds,
        best=best.name,
        saved_bits_per_byte=saved.estimate if math.isfinite(saved.estimate) else None,
        saved_interval=None if saved.low is None or saved.high is None else (saved.low, saved.high),
    )
