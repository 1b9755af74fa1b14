"""Does counting scale? From a text file to a saved n-gram model of words: seconds and memory as the text grows.

    python bench/bench_counting.py [--words 2,10,50] [--lmplz PATH] [--write]

Each size is `lmlab train ngram` in a process of its own, on a text it has not read before; time is that of the clock, memory
the peak of the process. The words are generated: a word follows from the last 0 to 3 words, by a Zipf-like choice, and new
words keep coming, as in real text (Heaps' law). `--lmplz` names KenLM's program; then both sides also count the film reviews of
LMLAB_BENCH_DATA (imdb/), and the better of two rounds counts on either side. `lmplz` writes its ARPA file and may use 4 GB.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from record import Recorder, arguments

VOCAB = 100_000  # id 0 is the line break
AT_ONCE = 1_000_000  # words made in one go
HEAPS = 30.0, 0.6  # distinct words after n: 30 n^0.6
ORDER, SMALL = 5, 1 << 23  # SMALL: bytes of the part that is trained on beforehand
GROWTH, GIGABYTES, FASTER, MEMORY = 1.1, 6.0, 2.0, 1 / 1.3  # aims
WORDS = re.compile(r"\w+|[^\w\s]")
LIMIT_S = 150.0  # no larger size begins after so many seconds


def generated_ids(tokens: int, seed: int, line: int = 230) -> np.ndarray:
    """Return about `tokens` words in lines; the successors of a history are the same wherever the history occurs."""
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


def generated_text(words: int) -> Iterator[str]:
    """Yield lines of about so many generated words; the vocabulary keeps growing."""
    scale, power = HEAPS
    rng, met = np.random.default_rng(1), 0
    for first in range(0, words, AT_ONCE):
        ids = generated_ids(min(AT_ONCE, words - first), seed=first + 1).astype(np.int64)
        new = int(scale * (first + len(ids)) ** power) - met
        places = rng.choice(np.flatnonzero(ids), new, replace=False)
        ids[places] = 10_000_000 + met + np.arange(new)
        met += new
        yield " ".join("\n" if i == 0 else f"w{i:x}" for i in ids.tolist()) + "\n"


def write_reviews(folder: Path, out: Path) -> int:
    """Write the reviews as words between spaces, one review a line; return the number of words."""
    words = 0
    with out.open("w", encoding="utf-8") as file:
        for part in ("train", "test"):
            with gzip.open(folder / "imdb" / f"{part}.tsv.gz", "rt", encoding="utf-8") as rows:
                for row in rows:
                    found = WORDS.findall(row.split("\t", 1)[1])
                    file.write(" ".join(found) + "\n")
                    words += len(found)
    return words


def timed(command: Sequence[str], given: Path | None = None, cache: Path | None = None) -> tuple[float, float]:
    """Return seconds by the clock and peak gigabytes of a process of its own."""
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


def train(text: Path, out: Path, cache: Path, order: int = ORDER) -> tuple[float, float]:
    """Train as somebody does who has never read this text."""
    shutil.rmtree(cache / "tokens", ignore_errors=True)
    command = [sys.executable, "-m", "lmlab", "train", "ngram", str(text), "--tokenizer", "words"]
    return timed([*command, "--set", f"order={order}", "--split", "100,0,0", "--out", str(out)], cache=cache)


def warm_up(text: Path, scratch: Path) -> Path:
    """Compile what is compiled at first use, by training on a small part; return the cache folder."""
    small, cache = scratch / "small.txt", scratch / "cache"
    with text.open("rb") as file:
        small.write_bytes(b"".join(file.readlines(SMALL)))
    train(small, scratch / "small", cache, order=2)
    return cache


def growth(record: Recorder, sizes: list[float]) -> None:
    """Record seconds and memory for each size, and how the time of a word grows."""
    began, found = time.perf_counter(), {}
    for millions in sizes:
        if time.perf_counter() - began > LIMIT_S:
            break
        with tempfile.TemporaryDirectory() as name:
            text, scratch = Path(name) / "words.txt", Path(name)
            with text.open("w", encoding="utf-8") as out:
                out.writelines(generated_text(int(millions * 1e6)))
            seconds, gigabytes = train(text, scratch / "run", warm_up(text, scratch))
        found[millions] = seconds / millions
        what = f"{millions:g} million generated words, order {ORDER}, from the file to the saved model"
        record.add(f"seconds-{millions:g}M", f"Counting {what}", seconds, "s")
    record.add("memory", f"Peak memory for {what}", gigabytes, "GB", most=GIGABYTES)
    few, many = min(found), max(found)
    if few < many:
        what = f"Time of a word, {many:g} million words beside {few:g} million (1 is linear)"
        record.add("growth", what, found[many] / found[few], "times", most=GROWTH)


def beside_lmplz(record: Recorder, lmplz: Path, quick: bool) -> None:
    """Record both sides on the film reviews."""
    with tempfile.TemporaryDirectory() as name:
        text, scratch = Path(name) / "reviews.txt", Path(name)
        words = write_reviews(Path(os.environ["LMLAB_BENCH_DATA"]), text)
        cache = warm_up(text, scratch)
        theirs = [lmplz, "-o", ORDER, "-S", "4G", "-T", scratch, "--arpa", scratch / "arpa"]
        their_best = our_best = (float("inf"), float("inf"))
        for number in range(1 if quick else 2):
            found = timed([str(word) for word in theirs], given=text)
            their_best = min(their_best[0], found[0]), min(their_best[1], found[1])
            found = train(text, scratch / f"run-{number}", cache)
            our_best = min(our_best[0], found[0]), min(our_best[1], found[1])
    what = f"{words / 1e6:.1f} million words of film reviews, order {ORDER}"
    record.compare("lmplz-seconds", f"Counting {what}", [our_best[0]], [their_best[0]], "s", peer="lmplz", least=FASTER)
    record.compare(
        "lmplz-memory", f"Peak memory, {what}", [our_best[1]], [their_best[1]], "GB", peer="lmplz", least=MEMORY
    )


def main() -> None:
    """Measure growth, and the peer where it is."""
    parser = arguments(__doc__)
    parser.add_argument("--words", default="2,10,50", help="millions of them, from few to many")
    parser.add_argument("--lmplz", type=Path, help="the program of KenLM, built by hand")
    asked = parser.parse_args()
    record = Recorder("counting", "scale", asked)
    growth(record, [0.01, 0.02] if asked.quick else [float(size) for size in asked.words.split(",")])
    if asked.lmplz is None or "LMLAB_BENCH_DATA" not in os.environ:
        print("no --lmplz, or no LMLAB_BENCH_DATA: the comparison with lmplz is skipped")
    else:
        beside_lmplz(record, asked.lmplz, asked.quick)


if __name__ == "__main__":
    main()
