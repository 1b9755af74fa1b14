"""From a text file of many words to a saved 5-gram: how the time per word and the memory grow from 10 to 100 million words.

    python bench/bench_many_words.py [--words 10,100] [--order 5] [--real FILE]

The text comes from the source of `bench_ngram.py`, with words that nobody has used yet among the others, fewer and fewer
of them but without end, as real text has them (Heaps' law). With --real it is that file again and again, one word in
twelve replaced by another of its words each time, so that most long n-grams are new. Each size is a process of its own,
`lmlab train ngram`, that has not read this text before; time is that of the clock, memory the peak of the process.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench_lmplz import compiled, train
from bench_ngram import synthetic
from table import add_row

GROWTH, GIGABYTES = 1.1, 6.0  # of the time per word, and of memory: at most
AT_ONCE = 1_000_000  # words made in one go
HEAPS = 30.0, 0.6  # distinct words after n: 30 n^0.6
CHANGED = 12  # one word in so many of a real text, each time it is read


def written_words(words: int) -> Iterator[str]:
    """Lines of about so many generated words; the vocabulary keeps growing."""
    scale, power = HEAPS
    rng, met = np.random.default_rng(1), 0
    for first in range(0, words, AT_ONCE):
        ids = synthetic(min(AT_ONCE, words - first), seed=first + 1).astype(np.int64)
        new = int(scale * (first + len(ids)) ** power) - met
        places = rng.choice(np.flatnonzero(ids), new, replace=False)
        ids[places] = 10_000_000 + met + np.arange(new)
        met += new
        yield " ".join("\n" if i == 0 else f"w{i:x}" for i in ids.tolist()) + "\n"


def repeated_words(file: Path, words: int) -> Iterator[str]:
    """A real text so often that it has so many words, each time changed in other places."""
    rng, lines = np.random.default_rng(2), [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    pool = [word for line in lines for word in line]
    left = words
    while left > 0:
        for line in lines:
            where = np.flatnonzero(rng.integers(CHANGED, size=len(line)) == 0)
            changed = list(line)
            for place, other in zip(where.tolist(), rng.integers(len(pool), size=len(where)).tolist(), strict=True):
                changed[place] = pool[other]
            yield " ".join(changed) + "\n"
            left -= len(line)
            if left <= 0:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", default="10,100", help="millions of them, from few to many")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--real", type=Path)
    asked = parser.parse_args()
    found: dict[float, float] = {}  # nanoseconds a word, by millions
    for millions in map(float, asked.words.split(",")):
        words = int(millions * 1e6)
        with tempfile.TemporaryDirectory() as scratch:
            text = Path(scratch) / "words.txt"
            with text.open("w", encoding="utf-8") as out:
                out.writelines(written_words(words) if asked.real is None else repeated_words(asked.real, words))
            compiled(text, Path(scratch) / "cache")
            seconds, gigabytes = train(text, asked.order, Path(scratch) / "run", Path(scratch) / "cache")
        found[millions] = 1e3 * seconds / millions
        print(
            f"{millions:g} million words: {seconds:.1f} s, {found[millions]:.0f} ns a word, {gigabytes:.2f} GB",
            flush=True,
        )
    what = f"order {asked.order}, {'generated' if asked.real is None else 'real'} words"
    add_row(f"{what}: memory of {millions:g} million", gigabytes, unit="GB", most=GIGABYTES)
    growth = found[millions] / next(iter(found.values()))
    add_row(
        f"{what}: time a word, {millions:g} million against {next(iter(found)):g}", growth, unit="times", most=GROWTH
    )


if __name__ == "__main__":
    main()
