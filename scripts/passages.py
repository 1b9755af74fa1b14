"""The two passages of assignment2 section 3, measured honestly: the numbers behind docs/perplexity.md.

    python scripts/passages.py BIGRAM_RUN CHAR_RUN PASSAGES

prints, for each text file in the folder PASSAGES and each preprocessing, what a textbook would print and what the text
really costs. The runs, from the training part of the Penn Treebank, GloVe vectors and tiny Shakespeare:

    lmlab train bigram TREEBANK --valid DEVELOPMENT --tokenizer words:2000 --set vectors=GLOVE --budget 1m --out BIGRAM_RUN
    lmlab train gpt SHAKESPEARE --split 90,10,0 --tokenizer char --budget 3m --out CHAR_RUN
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import lmlab

STEPS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "lower case": str.lower,
    "punctuation apart": lambda text: re.sub(r"([^\w\s])", r" \1 ", text),
    "both": lambda text: re.sub(r"([^\w\s])", r" \1 ", text.lower()),
}


def side_bits(text: str, step: str) -> float:
    """What the decoder must be told to undo a step: which letters were capitals, which spaces were put in.

    Both are choices of k places among n, coded with log2(n choose k) bits: a fair price without a model.
    """
    bits = 0.0
    if step in ("lower case", "both"):
        letters = [c for c in text if c.isalpha()]
        bits += _choose(len(letters), sum(c.isupper() for c in letters))
    if step in ("punctuation apart", "both"):
        marks = re.findall(r"(\s?)[^\w\s](\s?)", text)
        bits += _choose(2 * len(marks), sum(bool(before) + bool(after) for before, after in marks))
    return bits


def _choose(n: int, k: int) -> float:
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 4:
        sys.exit("usage: python scripts/passages.py BIGRAM_RUN CHAR_RUN PASSAGES")
    bigram, char, folder = lmlab.load(sys.argv[1]), lmlab.load(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        for passage in sorted(folder.glob("*.txt")):
            text = passage.read_text(encoding="utf-8")
            size = len(text.encode())
            print(f"\n{passage.stem}: {size} bytes, {len(text.split())} words")
            honest = lmlab.evaluate(char, passage)
            print(f"  {char.record.model.name} over characters: {honest.bits_per_byte:.3f} bits per byte,"
                  f" perplexity per character {honest.perplexity['character']:.2f}")  # fmt: skip
            for name, change in STEPS.items():
                changed = Path(scratch) / "passage.txt"
                changed.write_text(change(text), encoding="utf-8")
                result = lmlab.evaluate(bigram, changed)
                scored, ppl = result.scored, result.perplexity
                bits = scored.total_nats / math.log(2) / size
                undo = side_bits(text, name) / size
                print(
                    f"  bigram, {name}: closed-vocabulary perplexity {ppl['closed_vocabulary']:.1f} with"
                    f" {ppl['unknown_share']:.0%} unknown; everything paid for: {bits:.3f} + {undo:.3f} to undo"
                    f" = {bits + undo:.3f} bits per byte"
                )


if __name__ == "__main__":
    main()
