"""Combines the trained and scored entries into the findings of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.differing_passages import differing_passages
from lmlab.comparison.findings import (
    Baseline,
    CurvePoint,
    Differences,
    Entry,
    Findings,
    Measured,
    OverlapFound,
    Pair,
    RankingFound,
    SeedScore,
    Text,
    TextPart,
    Training,
)
from lmlab.comparison.mixes import EntryMix
from lmlab.comparison.score_found import Score
from lmlab.comparison.seed_variance import SeedVariance
from lmlab.config import Budget
from lmlab.hardware.versions import versions
from lmlab.learn.run import Run
from lmlab.learn.undertrained import too_short_to_tell

if TYPE_CHECKING:
    from lmlab.measure import Spread
    from lmlab.text.corpus import Corpus
    from lmlab.text.parts import Part


def summarize(
    corpus: Corpus,
    measured: Spread,
    entries: Sequence[ComparedEntry],
    baselines: Sequence[Baseline],
    variance: SeedVariance,
    ranking: RankingFound | None,
    *,
    mixes: Sequence[EntryMix],
    not_mixed: Sequence[str],
    shares: dict[str, float],
    overlap: OverlapFound,
    command: str,
    budget_s: float | None,
    each: str | None,
    seed: int,
    seconds: float,
) -> Findings:
    """Return all findings of a comparison. entries: best first. seconds: the time that the comparison took."""
    ranked = [e for e in entries if e.rank is not None]
    return Findings(
        command=command,
        budget_s=budget_s,
        each=each,
        seed=seed,
        versions=versions(),
        corpus=Text(
            name=corpus.name,
            documents=corpus.documents,
            parts={name: _part(part) for name, part in corpus.parts.items()},
            entropy_bits_per_byte=corpus.entropy_bits_per_symbol,
            overlap=overlap.sentences,
            shared=overlap.shared,
            division=corpus.division,
        ),
        measured=_measured(measured),
        entries=tuple(_entry(e) for e in entries),
        yardsticks=tuple(baselines),
        luck=variance.found(),
        ranking=ranking,
        shares=shares,
        pairs=() if ranking is None else tuple(_pair(a.name, b.name, ranking) for a, b in pairwise(ranked)),
        differences=_differences(ranked),
        together=tuple(mixes),
        not_mixed=tuple(not_mixed),
        seconds=seconds,
    )


def _part(part: Part) -> TextPart:
    is_blocks = not any(document.separator_bytes for document in part.documents)  # one document may have several
    documents = len({document.path for document in part.documents}) if is_blocks else len(part.documents)
    return TextPart(bytes=part.bytes, sha256=part.sha256, documents=documents)


def _measured(chosen: Spread) -> Measured:
    return Measured(
        bytes=chosen.bytes,
        of=chosen.whole.bytes,
        sha256=chosen.counted().sha256,
        stretches=chosen.stretches,
        documents=chosen.documents,
        of_documents=len(chosen.whole.documents),
        read_bytes=chosen.part.bytes,
        sentence=chosen.sentence,
    )


def order(entry: ComparedEntry) -> tuple[int, float]:
    """Return the sort key of an entry: ranked ones by bits per byte, then those that fail a check, then the others."""
    bits = entry.result.bits_per_byte if entry.result is not None else math.inf
    return ({"ranked": 0, "unranked": 1}.get(entry.status, 2), bits)


def _entry(entry: ComparedEntry) -> Entry:
    went = [run.record.result for run in entry.runs]
    tokens, seconds, steps = sum(r.tokens for r in went), sum(r.seconds for r in went), sum(r.steps or 0 for r in went)
    plans = [run.record.training.plan for run in entry.runs]
    planned = sum(plan.tokens or 0.0 for plan in plans if plan is not None) or None
    found = Entry(
        name=entry.name,
        model=entry.model,
        tokenizer=entry.tokenizer,
        status=entry.status,
        error=entry.error,
        rank=entry.rank,
        seconds=entry.seconds,
        peak_memory_bytes=entry.peak_memory_bytes,
        reused=entry.reused,
        message=entry.message,
        valid_bits_per_byte=entry.valid_bits_per_byte,
    )
    if entry.run is None or entry.result is None:
        return found
    results = zip(entry.runs, entry.seed_results, strict=True)
    return replace(
        found,
        excerpt=entry.look.excerpt,
        excerpt_cut=entry.look.excerpt_cut,
        sample=entry.look.sample,
        proof=entry.look.proof,
        result=Score(entry.result.to_json()),
        seeds=tuple(
            SeedScore(seed=run.record.training.seed, bits_per_byte=result.to_json()["bits_per_byte"])
            for run, result in results
        ),
        training=Training(
            tokens=tokens,
            allowed_s=min(filter(None, map(_allowed_s, entry.runs)), default=None) if steps else None,
            planned_tokens=planned,
            seconds=seconds,
            steps=steps or None,
            still_falling=None if (short := entry.run.record.result.undertrained) is None else short.fell,
            untold=short is None and _untold(entry.run),
            calibrated=entry.run.record.result.calibrated,
            diverged=sum(run.status == "diverged" for run in entry.runs),
        ),
        training_flops=sum(filter(None, (run.training_flops for run in entry.runs))) or None,
        tokens_per_second=tokens / seconds if seconds > 0.01 else None,
        curve=_curve(entry.run),
    )


def _allowed_s(run: Run) -> float | None:
    """Return the budget of a run in seconds; None if it is in another unit."""
    return Budget.parse(run.record.training.budget).seconds


def _untold(run: Run) -> bool:
    """Return whether a run used up its time and its curve is too short to judge whether the time sufficed."""
    return run.status == "finished" and too_short_to_tell(run.metrics, run.record.training.earlier)


def _curve(run: Run) -> tuple[CurvePoint, ...]:
    """Return the validation bits per byte over training seconds."""
    return tuple(
        CurvePoint(seconds=line["seconds"], bits_per_byte=line["valid_bits_per_byte"])
        for line in run.metrics
        if line["valid_bits_per_byte"] is not None
    )


def _pair(better: str, worse: str, ranking: RankingFound) -> Pair:
    """Return the difference between one entry and the next, with the simultaneous interval over all pairs."""
    pair = ranking.between(better, worse)
    if pair.difference is None or pair.low is None or pair.high is None:
        return Pair(better=better, worse=worse, difference=None, interval=None, real=pair.apart)
    forward = pair.a == worse
    return Pair(
        better=better,
        worse=worse,
        difference=pair.difference if forward else -pair.difference,
        interval=(pair.low, pair.high) if forward else (-pair.high, -pair.low),
        real=pair.apart,
    )


def _differences(ranked: Sequence[ComparedEntry]) -> Differences | None:
    """Return the passages where the best entry gains most on the second best, and the reverse."""
    if len(ranked) < 2:
        return None
    best, second = ranked[0], ranked[1]
    return Differences(
        best=best.name,
        second=second.name,
        for_best=differing_passages(best.scored, second.scored),
        for_second=differing_passages(second.scored, best.scored),
    )
