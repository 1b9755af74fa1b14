"""From a text file to a saved 5-gram model of words: `lmlab train ngram` beside KenLM's `lmplz`, one after the other.

    python bench/bench_lmplz.py --lmplz PATH [--text FILE] [--order 5] [--rounds 2]

`lmplz` is built by hand from KenLM's sources (its BUILDING says how). It writes an ARPA file, which is part of its work, and
may use 4 GB. Both sides read the same file of words between spaces and keep all of them. Time is that of the clock, the whole
process; memory its peak. The better of the rounds counts, on both sides. Both are compiled beforehand: ours by training on a
small part of the text, once; what it keeps of a text it has read is thrown away before every round. Without a file the text is
the reviews of a folder that LMLAB_BENCH_DATA names (imdb/{train,test}.tsv.gz), punctuation split from words, one a line.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from table import add_row

FASTER, MEMORY = 2.0, 1.3  # at least so many times as fast, with at most so many times its memory
SMALL = 1 << 23  # bytes of the part that is trained on beforehand
WORDS = re.compile(r"\w+|[^\w\s]")


def write_reviews(folder: Path, out: Path) -> None:
    """The reviews as words between spaces, one review a line."""
    with out.open("w", encoding="utf-8") as file:
        for part in ("train", "test"):
            with gzip.open(folder / "imdb" / f"{part}.tsv.gz", "rt", encoding="utf-8") as rows:
                file.writelines(" ".join(WORDS.findall(row.split("\t", 1)[1])) + "\n" for row in rows)


def timed(command: Sequence[str], given: Path | None = None, cache: Path | None = None) -> tuple[float, float]:
    """Seconds by the clock and peak gigabytes of a process of its own; cache: where lmlab keeps things."""
    environment = {**os.environ, **({} if cache is None else {"LMLAB_CACHE": str(cache)})}
    with tempfile.TemporaryFile() as said, open(given or os.devnull, "rb") as source:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=said, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            said.seek(0)
            raise SystemExit(f"{command[0]} failed: {said.read()[-2000:].decode(errors='replace')}")
    return seconds, usage.ru_maxrss / (1e6 if sys.platform != "darwin" else 1e9)


def train(text: Path, order: int, out: Path, cache: Path) -> tuple[float, float]:
    """Ours, as somebody trains who has never read this text."""
    shutil.rmtree(cache / "tokens", ignore_errors=True)
    command = [sys.executable, "-m", "lmlab", "train", "ngram", str(text), "--tokenizer", "words"]
    return timed([*command, "--set", f"order={order}", "--split", "100,0,0", "--out", str(out)], cache=cache)


def compiled(text: Path, cache: Path) -> None:
    """Make what is made at first use, by training on a part of the text that is long enough for all of it."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.txt"
        with text.open("rb") as file:
            small.write_bytes(b"".join(file.readlines(SMALL)))
        train(small, 2, Path(folder) / "run", cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lmplz", type=Path, required=True)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = asked.text
        if text is None:
            text = Path(folder) / "reviews.txt"
            write_reviews(Path(os.environ["LMLAB_BENCH_DATA"]), text)
        words = sum(len(line.split()) for line in text.open("rb"))
        print(f"{words / 1e6:.1f} million words, {text.stat().st_size / 1e6:.0f} MB", flush=True)
        best: dict[str, tuple[float, float]] = {}
        scratch, cache = Path(folder), Path(folder) / "cache"
        compiled(text, cache)
        theirs = [asked.lmplz, "-o", asked.order, "-S", "4G", "-T", scratch, "--arpa", scratch / "arpa"]
        for number in range(asked.rounds):
            found = {
                "lmplz": timed([str(word) for word in theirs], given=text),
                "lmlab": train(text, asked.order, scratch / f"ours-{number}", cache),
            }
            for name, (seconds, gigabytes) in found.items():
                print(f"{name:8}{seconds:8.1f} s {gigabytes:8.2f} GB", flush=True)
                before = best.get(name, (seconds, gigabytes))
                best[name] = (min(before[0], seconds), min(before[1], gigabytes))
    add_row("ngram, file to model", best["lmplz"][0] / best["lmlab"][0], against="lmplz", least=FASTER)
    memory = best["lmlab"][1] / best["lmplz"][1]
    add_row("ngram, peak memory", memory, against="lmplz", unit="times as much", most=MEMORY)


if __name__ == "__main__":
    main()
