"""The two passages of assignment2 section 3, measured honestly: the numbers behind docs/perplexity.md.

python scripts/passages.py BIGRAM_RUN CHAR_RUN PASSAGES prints, for each passage and preprocessing, what a textbook would
print and what the text really costs. BIGRAM_RUN: a `bigram` with `words:2000`; CHAR_RUN: any model over characters.
"""

from __future__ import annotations

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
    "both, punctuation dropped": lambda text: re.sub(r"[^\w\s]", " ", text.lower()),
    "both, numbers as N": lambda text: re.sub(r"\b\d+\b", "N", re.sub(r"([^\w\s])", r" \1 ", text.lower())),
}


def main() -> None:
    """Print the table."""
    bigram, char, folder = lmlab.load(sys.argv[1]), lmlab.load(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        for passage in sorted(folder.glob("*.txt")):
            text = passage.read_text()
            size = len(text.encode())
            print(f"\n{passage.stem}: {size} bytes, {len(text.split())} words")
            honest = lmlab.evaluate(char, passage)
            print(f"  {char.config['model']['name']} over characters: {honest.bits_per_byte:.3f} bits per byte,"
                  f" perplexity per character {honest.perplexity['character']:.2f}")  # fmt: skip
            for name, change in STEPS.items():
                changed = Path(scratch) / "passage.txt"
                changed.write_text(change(text))
                result = lmlab.evaluate(bigram, changed)
                scored, ppl = result.scored, result.perplexity
                bits = scored.total_nats / 0.6931471805599453 / size
                lossless = change(text) == text or name == "punctuation apart"
                print(
                    f"  bigram, {name}: closed-vocabulary perplexity {ppl['closed_vocabulary']:.1f}"
                    f" with {ppl['unknown_share']:.0%} unknown; everything paid for: {bits:.3f} bits per original byte"
                    + ("" if lossless else " (and what was thrown away is not paid for)")
                )


if __name__ == "__main__":
    main()
