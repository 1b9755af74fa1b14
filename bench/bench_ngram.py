"""How fast n-grams are counted and looked up: order-5 Kneser-Ney over words, 2, 6 and 20 million tokens.

    python bench/bench_ngram.py [--tokens 2,6,20] [--order 5]

Each size runs in a process of its own, so that its peak memory is its own. Processor time counts all cores together;
where it is far below the time on the clock, other programs were in the way.

The text comes from a source whose n-grams grow like those of real text: a word follows from the last 0 to 3 words, by a
Zipf-like choice among successors that are themselves Zipf-like words. Where LMLAB_BENCH_DATA names a folder with
imdb/{train,test}.tsv.gz, the same is done with those reviews, which also shows how real growth compares.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from table import add_row

VOCAB = 100_000  # id 0 is the line break, 1 the unknown word
SCORED = 500_000
WANTED_M_TOKENS_PER_S, WANTED_SCORED_M_PER_S, WANTED_GB = 0.5, 1.0, 4.0


def synthetic(tokens: int, seed: int = 0, line: int = 230) -> np.ndarray:
    """About `tokens` words in lines; successors of a history are the same wherever the history occurs."""
    rng = np.random.default_rng(seed)
    words = np.cumsum(1 / (np.arange(1, VOCAB) + 2.7) ** 1.15)
    ranks = np.cumsum(1 / np.arange(1, 5001) ** 1.5)
    reach = np.cumsum([0.25, 0.35, 0.25, 0.15])  # how often 0, 1, 2, 3 words of history decide
    rows = max(1, tokens // (line + 1))
    text = np.zeros((rows, line + 1), dtype=np.uint32)
    history = np.zeros((len(reach), rows), dtype=np.uint64)
    for t in range(line):
        m = np.searchsorted(reach, rng.random(rows) * reach[-1])
        rank = np.searchsorted(ranks, rng.random(rows) * ranks[-1]).astype(np.uint64)
        history[0] = rng.integers(2**63, size=rows, dtype=np.uint64)
        u = _hash01(history[m, np.arange(rows)], rank)
        text[:, t] = np.searchsorted(words, u * words[-1]) + 1
        for k in range(len(reach) - 1, 0, -1):
            history[k] = (history[k - 1] if k > 1 else np.uint64(0)) * np.uint64(1_000_003) + text[:, t] + np.uint64(1)
    return text.ravel()


def _hash01(history: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """A number in [0, 1) that depends on nothing but the history and the rank."""
    h = history * np.uint64(0x9E3779B97F4A7C15) + rank * np.uint64(0xD1B54A32D192ED03)
    h ^= h >> np.uint64(31)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(29)
    return (h >> np.uint64(11)).astype(np.float64) / 2**53


def reviews(folder: Path, tokens: int) -> np.ndarray:
    """The first `tokens` words of the reviews, the most frequent kept, the others unknown."""
    counts: Counter[str] = Counter()
    for words in _review_words(folder):
        counts.update(words)
    id_of = {word: i for i, (word, _) in enumerate(counts.most_common(VOCAB - 2), start=2)}
    ids = (i for words in _review_words(folder) for i in (*(id_of.get(w, 1) for w in words), 0))
    return np.fromiter(islice(ids, tokens), dtype=np.uint32)


def _review_words(folder: Path) -> Iterator[list[str]]:
    for part in ("train", "test"):
        with gzip.open(folder / "imdb" / f"{part}.tsv.gz", "rt", encoding="utf-8") as file:
            for row in file:
                yield row.split("\t", 1)[1].split()


def measure(source: str, millions: float, order: int) -> dict[str, float]:
    """Train and score once in this process."""
    import torch

    from lmlab.models.ngram import NGram
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream

    wanted = round(millions * 1e6) + SCORED
    text = synthetic(wanted) if source == "synthetic" else reviews(Path(os.environ["LMLAB_BENCH_DATA"]), wanted)
    train, held_out = text[:-SCORED], text[-SCORED:]
    vocabulary = Vocabulary(["\n", *["w"] * (VOCAB - 1)], words=True, unknown_id=1)
    stream = TokenStream(ids=train, starts=np.array([0, len(train)]), bytes=0, chars=0, words=len(train))
    ready_gb = _peak_gb()
    start, start_cpu = time.perf_counter(), time.process_time()
    model = NGram.fit(NGram.Config(order=order), vocabulary, stream)
    fit_s, fit_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    result = {"tokens": len(train), "fit_s": fit_s, "fit_cpu_s": fit_cpu_s, "ready_gb": ready_gb, "peak_gb": _peak_gb()}
    result["ngrams_per_token"] = sum(len(level.keys) for level in model.tables.levels) / len(train)
    for name, ids in (("held_out", held_out), ("seen", train[:SCORED])):
        tokens_BT = torch.from_numpy(ids.astype(np.int64))[None]
        start = time.perf_counter()
        nats = model.score(tokens_BT).double().mean()
        result[f"{name}_per_s"] = len(ids) / (time.perf_counter() - start)
        result[f"{name}_nats"] = float(nats)
    return result


def _peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform != "darwin" else 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", default="2,6,20", help="millions of tokens, comma-separated")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        source, millions = options.one.split(":")
        print(json.dumps(measure(source, float(millions), options.order)))
        return
    sizes = [float(m) for m in options.tokens.split(",")]
    results = report("synthetic", sizes, options.order)
    if os.environ.get("LMLAB_BENCH_DATA"):
        report("reviews", [2, 6, 11], options.order)
    first, last = results[0], results[-1]
    print()
    for clock, name in (("fit_s", "time"), ("fit_cpu_s", "processor time")):
        grown = (last[clock] / last["tokens"]) / (first[clock] / first["tokens"])
        print(f"{name} per token, {sizes[-1]:g} million tokens against {sizes[0]:g} million: {grown:.2f} (1 is linear)")
    slowest = min(r["tokens"] / r["fit_s"] / 1e6 for r in results)
    scored = min(min(r["held_out_per_s"], r["seen_per_s"]) / 1e6 for r in results)
    peak = max(r["peak_gb"] for r in results)
    add_row("ngram, training", slowest, unit="million tokens/s", least=WANTED_M_TOKENS_PER_S)
    add_row("ngram, scoring", scored, unit="million tokens/s", least=WANTED_SCORED_M_PER_S)
    add_row("ngram, peak memory", peak, unit="GB", most=WANTED_GB)


def report(source: str, sizes: list[float], order: int) -> list[dict[str, float]]:
    """Measure each size in a fresh process and print a row for it."""
    print(f"\n{source}, order {order}")
    print(
        "tokens (M)  n-grams/token  train (s)  cpu (s)  train (M/s)  peak (GB)  before (GB)"
        "  score held-out (M/s)  score seen (M/s)"
    )
    results = []
    for millions in sizes:
        command = [sys.executable, __file__, "--one", f"{source}:{millions}", "--order", str(order)]
        r = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        results.append(r)
        print(
            f"{r['tokens'] / 1e6:10.2f}  {r['ngrams_per_token']:13.2f}  {r['fit_s']:9.2f}  {r['fit_cpu_s']:7.2f}"
            f"  {r['tokens'] / r['fit_s'] / 1e6:11.2f}  {r['peak_gb']:9.2f}  {r['ready_gb']:11.2f}"
            f"  {r['held_out_per_s'] / 1e6:20.2f}  {r['seen_per_s'] / 1e6:16.2f}",
            flush=True,
        )
    return results


if __name__ == "__main__":
    main()
