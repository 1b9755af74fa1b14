"""What a comparison found, as JSON can hold it: the page, the table and --json are all made from this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lmlab.comparison.about import versions
from lmlab.comparison.entry import Entry
from lmlab.comparison.luck import Luck
from lmlab.comparison.passages import differing_passages
from lmlab.comparison.yardsticks import Yardstick
from lmlab.interface import NeuralModel
from lmlab.learn.run import Run
from lmlab.measure import Result

if TYPE_CHECKING:
    from lmlab.text.corpus import Corpus
    from lmlab.text.parts import Part


def document(
    corpus: Corpus,
    measured: Part,
    entries: Sequence[Entry],
    yardsticks: Sequence[Yardstick],
    luck: Luck,
    ranking: dict[str, Any] | None,
    *,
    overlap: Sequence[str],
    **facts: Any,
) -> dict[str, Any]:
    """Everything that was found; `entries` best first.

    ranking: all pairs, as `Ranking.to_json` gives them. facts: of the whole run, taken over as they are.
    """
    ranked = [e for e in entries if e.rank is not None]
    return {
        "format": 1,
        **facts,
        "versions": versions(),
        "corpus": {
            "name": corpus.name,
            "documents": corpus.documents,
            "parts": {n: {"bytes": p.bytes, "sha256": p.sha256} for n, p in corpus.parts.items()},
            "entropy_bits_per_byte": corpus.entropy_bits_per_symbol,
            "overlap": list(overlap),
        },
        "measured": {"bytes": measured.bytes, "of": corpus.test.bytes, "sha256": measured.sha256},
        "entries": [_entry(e) for e in entries],
        "yardsticks": [vars(y) for y in yardsticks],
        "luck": luck.to_json(),
        "ranking": ranking,
        "pairs": [_pair(a, b, ranking) for a, b in pairwise(ranked)] if ranking is not None else [],
        "differences": _differences(ranked),
    }


def order(entry: Entry) -> tuple[float, float]:
    """Ranked ones by bits per byte, then those whose certificate fails, then those without a number."""
    bits = entry.result.bits_per_byte if entry.result is not None else math.inf
    return ({"ranked": 0.0, "unranked": 1.0}.get(entry.status, 2.0), bits)


def _entry(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": entry.name,
        "model": entry.model,
        "tokenizer": entry.tokenizer,
        "status": entry.status,
        "error": entry.error,
        "rank": entry.rank,
        "seconds": entry.seconds,
        "peak_memory_bytes": entry.peak_bytes,
        "reused": entry.reused,
        **entry.details,
    }
    if entry.run is None or entry.result is None:
        return found
    facts = [run.config["training"] for run in entry.runs]
    tokens, seconds, steps = (sum(f.get(key) or 0 for f in facts) for key in ("tokens", "seconds", "steps"))
    model = entry.run.model
    if entry.reused:  # what it took in all, not only to measure it again
        found["seconds"] += seconds
    flops = model.training_flops_per_token * tokens if isinstance(model, NeuralModel) else None
    return found | {
        "result": entry.result.to_json(),
        "seeds": [_seed(run, found) for run, found in zip(entry.runs, entry.seed_results, strict=True)],
        "training": {"tokens": tokens, "seconds": seconds, "steps": steps or None},
        "training_flops": flops,
        "tokens_per_second": tokens / seconds if seconds > 0.01 else None,
        "curve": _curve(entry.run),
    }


def _seed(run: Run, result: Result) -> dict[str, Any]:
    """The number of one run."""
    return {"seed": run.config["training"]["seed"], "bits_per_byte": result.to_json()["bits_per_byte"]}


def _curve(run: Run) -> list[dict[str, float]]:
    """Validation bits per byte over seconds."""
    return [
        {"seconds": line["seconds"], "bits_per_byte": line["valid_bits_per_byte"]}
        for line in run.metrics
        if line["valid_bits_per_byte"] is not None
    ]


def _pair(better: Entry, worse: Entry, ranking: dict[str, Any]) -> dict[str, Any]:
    """How much better one entry is than the next, and how sure that is, from the intervals of all pairs together."""
    pair = next(p for p in ranking["pairs"] if {p["a"], p["b"]} == {better.name, worse.name})
    sign = 1.0 if pair["a"] == worse.name else -1.0
    known = None not in (pair["difference"], pair["low"], pair["high"])
    return {
        "better": better.name,
        "worse": worse.name,
        "difference": sign * pair["difference"] if known else None,
        "interval": sorted([sign * pair["low"], sign * pair["high"]]) if known else None,
        "real": pair["apart"],
    }


def _differences(ranked: Sequence[Entry]) -> dict[str, Any] | None:
    """Passages where the best beats the second best by most, and the reverse."""
    if len(ranked) < 2:
        return None
    best, second = ranked[0], ranked[1]
    return {
        "best": best.name,
        "second": second.name,
        "for_best": differing_passages(best.scored, second.scored),
        "for_second": differing_passages(second.scored, best.scored),
    }
