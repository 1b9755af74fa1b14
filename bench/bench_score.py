"""How fast many short lines are scored with a word n-gram, beside the `kenlm` Python module over the same ARPA file.

    python bench/bench_score.py [--lines 100000] [--order 5]

The lines are stretches of 3 to 12 words of a text that the model has not seen, without words it does not know. Both sides give
log-probabilities with a begin and without an end (`bos=True, eos=False`), and these must agree. The text is Penn Treebank where
LMLAB_BENCH_DATA names a folder with ptb/, else the documentation inside CPython. kenlm uses one core; lmlab all that torch may.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kenlm
import torch

import lmlab
from lmlab.page.numbers import counted
from table import add_row

ROUNDS = 5
AGREE = 1e-4  # log10 units


def short_lines(text: str, known: set[str], count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    sentences = [words for line in text.splitlines() if len(words := line.split()) > 3]
    found: list[str] = []
    while len(found) < count:
        words = rng.choice(sentences)
        length = rng.randint(3, 12)
        start = rng.randrange(max(1, len(words) - length))
        piece = words[start : start + length]
        if known.issuperset(piece):
            found.append(" ".join(piece))
    return found


def fastest(work: Callable[[], list[float]]) -> tuple[float, list[float]]:
    seconds, result = math.inf, []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--order", type=int, default=5)
    options = parser.parse_args()
    data = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere")) / "ptb"
    with tempfile.TemporaryDirectory() as folder:
        run_folder, arpa = Path(folder) / "run", Path(folder) / "model.arpa"
        text, parts = (
            ("python-docs", {}) if not data.is_dir() else (data / "ptb.train.txt", {"test": data / "ptb.test.txt"})
        )
        settings = {"order": options.order}
        run = lmlab.train("ngram", text, out=run_folder, tokenizer="words", settings=settings, **parts)
        lmlab.export(run, out=arpa)
        held_out = "\n".join(piece for _, piece in run.corpus.test.pieces())
        reserved = {"<s>", "</s>", "<unk>"}  # kenlm has meanings of its own for these
        lines = short_lines(held_out, set(run.tokenizer.vocabulary.pieces) - reserved, options.lines)

        start = time.perf_counter()
        config = kenlm.Config()
        config.show_progress = False
        theirs = kenlm.Model(str(arpa), config)
        their_load_s = time.perf_counter() - start
        start = time.perf_counter()
        ours = lmlab.load(run_folder)
        lmlab.score(ours, ["a"])
        our_load_s = time.perf_counter() - start

        their_s, their_log10 = fastest(lambda: [theirs.score(line, bos=True, eos=False) for line in lines])
        our_s, our_bits = fastest(lambda: lmlab.score(ours, lines).bits)
    apart = max(abs(t + bits * math.log10(2)) for t, bits in zip(their_log10, our_bits, strict=True))
    words = sum(line.count(" ") + 1 for line in lines)
    print(f"{len(lines):,} lines, {words:,} words, order {options.order}, {counted(torch.get_num_threads(), 'thread')}")
    print(f"kenlm: {their_load_s:.2f} s to load, {their_s:.3f} s to score")
    print(f"lmlab: {our_load_s:.2f} s to load, {our_s:.3f} s to score")
    whole = (their_load_s + their_s) / (our_load_s + our_s)
    add_row(f"score, {len(lines):,} lines", their_s / our_s, against="kenlm", least=1)
    add_row(f"score, {len(lines):,} lines, loading included", whole, against="kenlm")
    print(f"largest difference {apart:.1e} in log10 p ({'equal' if apart < AGREE else 'NOT EQUAL'} to {AGREE:g})")
    raise SystemExit(apart >= AGREE)


if __name__ == "__main__":
    main()
