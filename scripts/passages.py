"""Two passages, one of Shakespeare and one of Wikipedia, measured honestly: the numbers behind docs/perplexity.md.

    python scripts/passages.py DATA RUNS

DATA holds tinyshakespeare/input.txt, ptb/ptb.{train,valid,test}.txt, glove/ and passages/. Models are trained into the
folder RUNS, unless they are there. Budgets are steps: a busy machine does not change what comes out. The Shakespeare
passage is from Coriolanus, the first play of tiny Shakespeare: the character models are trained on what comes after
that play, and one of them on everything, to see what it is worth to have read the passage before.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import lmlab
from lmlab.measure import Interval, Result

SECOND_PLAY = "GLOUCESTER:\nNow is the winter of our discontent"
GPT_STEPS, BIGRAM_STEPS = "800steps", "6000steps"

APART = re.compile(r"(?<=\S)(?=[^\w\s])|(?<=[^\w\s])(?=\S)")  # beside a mark, where there is no space yet
BESIDE = re.compile(r"(?<=[^\w\s]) | (?=[^\w\s])")  # a space beside a mark
STEPS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "lower case": str.lower,
    "punctuation apart": lambda text: APART.sub(" ", text),
    "both": lambda text: APART.sub(" ", text.lower()),
}


def side_bits(text: str, step: str) -> float:
    """What the decoder must be told to undo a step: which letters were capitals, which spaces beside marks were put in.

    Both are choices of k places among n, coded with log2(n choose k) bits: a fair price without a model.
    """
    bits = 0.0
    if step in ("lower case", "both"):
        letters = [c for c in text if c.isalpha()]
        bits += _choose(len(letters), sum(c.isupper() for c in letters))
    if step in ("punctuation apart", "both"):
        bits += _choose(len(BESIDE.findall(APART.sub(" ", text))), len(APART.findall(text)))
    return bits


def _choose(n: int, k: int) -> float:
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)


def trained(data: Path, runs: Path) -> dict[str, lmlab.Run]:
    """The runs, by the name that the table has for them."""
    runs.mkdir(parents=True, exist_ok=True)
    plays = (data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    later = runs / "without-the-first-play.txt"
    later.write_text(plays[plays.index(SECOND_PLAY) :], encoding="utf-8")
    everything, ptb = data / "tinyshakespeare" / "input.txt", data / "ptb"
    vectors = str(next((data / "glove").iterdir()))

    def run(name: str, model: str, text: Path, **options: object) -> lmlab.Run:
        folder = runs / name
        if folder.exists():
            return lmlab.load(folder)
        return lmlab.train(model, text, out=folder, device="cpu", **options)  # type: ignore[arg-type]

    halves = (90, 10, 0)
    words = {"tokenizer": "words:2000", "settings": {"vectors": vectors}, "valid": ptb / "ptb.valid.txt"}
    return {
        "ngram": run("ngram", "ngram", later, split=halves),
        "gpt": run("gpt", "gpt", later, split=halves, budget=GPT_STEPS),
        "ngram that has read the plays, this one too": run("ngram-all", "ngram", everything, split=halves),
        "bigram": run("bigram", "bigram", ptb / "ptb.train.txt", budget=BIGRAM_STEPS, **words),
    }


def main() -> None:
    """Train what is missing and print the tables."""
    if len(sys.argv) != 3:
        sys.exit("usage: python scripts/passages.py DATA RUNS")
    data, folder = Path(sys.argv[1]), Path(sys.argv[2])
    runs = trained(data, folder)
    for name, run in runs.items():
        print(f"{name}: {run.record.model.config}, {run.record.result.tokens:,} tokens read")
    bigram = runs.pop("bigram")
    test = measured(bigram, data / "ptb" / "ptb.test.txt")
    print(f"bigram, test part of the treebank: {_textbook(test)}; {test.perplexity['token']:.1f} a token,", end=" ")
    print(f"{test.bits_per_byte:.3f} {_ends(test.interval)} bits per byte, {test.scored.bytes:,} bytes")
    with tempfile.TemporaryDirectory() as scratch:
        for passage in sorted((data / "passages").glob("*.txt")):
            text = passage.read_text(encoding="utf-8")
            size = len(text.encode())
            print(f"\n{passage.stem}: {size} bytes, {len(text.split())} words")
            for name, run in runs.items():
                found = measured(run, passage)
                print(
                    f"  {name}: {found.bits_per_byte:.3f} {_ends(found.interval)} bits per byte,"
                    f" {found.perplexity['character']:.2f} a character; {found.held_out.verdict}"
                )
            for name, change in STEPS.items():
                changed = Path(scratch) / "passage.txt"
                changed.write_text(change(text), encoding="utf-8")
                result = measured(bigram, changed)
                undo, scale = side_bits(text, name) / size, result.scored.bytes / size
                print(
                    f"  bigram, {name}: {_textbook(result)}; {result.bits_per_byte * scale:.3f} + {undo:.3f} to undo ="
                    f" {result.bits_per_byte * scale + undo:.3f} {_ends(result.interval, scale, undo)} bits per byte"
                )


def measured(run: lmlab.Run, text: Path) -> Result:
    """A text under a run's model."""
    found = lmlab.evaluate(run, text)
    assert isinstance(found, Result), "these are language models"
    return found


def _textbook(result: Result) -> str:
    perplexity = result.perplexity
    return (
        f"closed-vocabulary perplexity {perplexity['closed_vocabulary']:.1f}, {perplexity['unknown_share']:.0%} unknown"
    )


def _ends(found: Interval, scale: float = 1.0, more: float = 0.0) -> str:
    if found.low is None or found.high is None:
        return f"[no interval: {found.note}]"
    return f"[{found.low * scale + more:.3f}, {found.high * scale + more:.3f}]"


if __name__ == "__main__":
    main()
