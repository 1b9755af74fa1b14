"""How often a copy of the training text is seen, and how often honest text is taken for one.

    python bench/bench_copies.py [--out results/copies.json]

Needs LMLAB_BENCH_DATA. Each kind of text is measured as `lmlab eval RUN` does it: a span of it is held out and
the rest is the training text, whose bytes are at hand.

    honest    200 texts of all kinds, divided as `lmlab train` divides one: how many get another verdict than "held out"; and as
              many of which one span is held out, which may be unlike the rest or say again what the rest says
    copies    the training text holds the test text too, changed in one of several ways: how many get the verdict "not held out"
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from table import add_row

from lmlab.measure.near_copies import Verdict, held_out
from lmlab.text.corpus import read
from lmlab.text.fingerprint import Fingerprint
from lmlab.text.parts import Document, Part

HONEST, COPIES = 200, 5  # spans of all kinds; and of each kind for each way of copying
MOST = 1_000_000  # characters of a text
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def texts(data: Path) -> Iterator[tuple[str, str]]:
    """(kind, text)."""
    yield "plays", (data / "tinyshakespeare" / "input.txt").read_text()
    yield "news", (data / "ptb" / "ptb.train.txt").read_text()
    for language in ("en", "de", "fr"):
        yield f"captions {language}", (data / "multi30k" / f"train.{language}").read_text()
    yield "film reviews", gzip.decompress((data / "imdb" / "train.tsv.gz").read_bytes()).decode()
    vectors = gzip.decompress((data / "glove" / "glove.6B.50d.top30k.txt.gz").read_bytes()).decode()
    yield "tables of numbers", vectors
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(
        path for path in library.rglob("*.py") if "test" not in path.parts and "site-packages" not in path.parts
    )
    Random(0).shuffle(files)
    yield "Python source", "\n".join(path.read_text(errors="ignore") for path in files[:120])
    random = Random(0)
    logs = (
        f"{n} INFO request {random.randrange(10**9)} was answered in {random.randrange(900)} ms" for n in range(20_000)
    )
    yield "a log", "\n".join(logs)
    yield "random letters", "".join(random.choices(ALPHABET[:4], k=400_000))


def pieces(words: int) -> Callable[[str, Random], str]:
    """Cut into pieces of so many words, and shuffled."""

    def cut(text: str, random: Random) -> str:
        found = text.split()
        short = [" ".join(found[i : i + words]) for i in range(0, len(found), words)]
        random.shuffle(short)
        return "\n".join(short)

    return cut


def letters_changed(one_in: int) -> Callable[[str, Random], str]:
    """One letter in so many replaced by another."""
    return lambda text, random: "".join(
        random.choice(ALPHABET) if c.isalpha() and random.random() < 1 / one_in else c for c in text
    )


def lines_shuffled(text: str, random: Random) -> str:
    """All lines in another order."""
    lines = text.splitlines()
    random.shuffle(lines)
    return "\n".join(lines)


def neighbours_swapped(text: str, random: Random) -> str:
    """Every word changed places with the one beside it."""
    words = text.split()
    return " ".join(word for i in range(0, len(words), 2) for word in reversed(words[i : i + 2]))


WAYS: dict[str, Callable[[str, Random], str]] = {
    "as it is": lambda text, _: text,
    "in capitals": lambda text, _: text.upper(),
    "lines shuffled": lines_shuffled,
    "backwards": lambda text, _: text[::-1],
    "words in reverse order": lambda text, _: " ".join(text.split()[::-1]),
    "every word backwards": lambda text, _: " ".join(word[::-1] for word in text.split()),
    "punctuation left out": lambda text, _: re.sub(r"[^\w\s]", "", text),
    "a tenth of it": lambda text, _: text[: len(text) // 10],
    "a quarter of it": lambda text, _: text[: len(text) // 4],
    "one letter in 12 changed": letters_changed(12),
    "one letter in 6 changed": letters_changed(6),
    "pieces of six words, shuffled": pieces(6),
    "pieces of four words, shuffled": pieces(4),
    "pieces of three words, shuffled": pieces(3),
    "pieces of two words, shuffled": pieces(2),
    "neighbouring words swapped": neighbours_swapped,
}


def as_usual(text: str, random: Random, folder: Path) -> tuple[str, str]:
    """(training text, test text): two thirds or more of the text, divided into blocks."""
    size = int(len(text) * random.uniform(0.67, 1.0))
    start = random.randrange(len(text) - size + 1)
    (folder / "text.txt").write_text(text[start : start + size])
    corpus = read(folder / "text.txt")
    return corpus.train.text(), corpus.test.text()


def divided(text: str, random: Random) -> tuple[str, str]:
    """(training text, test text): a tenth or less of it, one span from anywhere."""
    size = int(len(text) * random.uniform(0.03, 0.1))
    start = random.randrange(len(text) - size)
    return text[:start] + "\n" + text[start + size :], text[start : start + size]


def verdict(folder: Path, training: str, test: str) -> Verdict:
    """What `lmlab eval` would say."""
    parts = []
    for name, text in (("train", training), ("test", test)):
        content = text.encode()
        (folder / name).write_bytes(content)
        parts.append(Part(name, [Document(folder / name, 0, len(content))]))
    train, held = parts
    return held_out([Fingerprint.of(train)], held, {train.sha256: train}.get).verdict


def main() -> None:
    """Print a row for honest text and one for each way of copying."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    options = parser.parse_args()
    kinds = {kind: text[:MOST] for kind, text in texts(Path(os.environ["LMLAB_BENCH_DATA"]))}
    found: dict[str, dict[str, list[int]]] = {"honest": {}, "honest spans": {}, "copies": {}}
    with tempfile.TemporaryDirectory(prefix="lmlab-") as scratch:
        folder, random = Path(scratch), Random(1)
        for kind, text in kinds.items():
            for what, cut in (("honest", partial(as_usual, folder=folder)), ("honest spans", divided)):
                said = [verdict(folder, *cut(text, random)) for _ in range(HONEST // len(kinds))]
                found[what][kind] = [sum(one != "held out" for one in said), len(said)]
        for way, change in WAYS.items():
            for kind, text in kinds.items():
                said = []
                for _ in range(COPIES):
                    training, test = divided(text, random)
                    said.append(verdict(folder, training + "\n" + change(test, random), test))
                found["copies"][f"{way} | {kind}"] = [sum(one == "not held out" for one in said), len(said)]
    for what, most in (("honest", 0), ("honest spans", None)):
        wrong, tried = (sum(counts) for counts in zip(*found[what].values(), strict=True))
        add_row(f"{what} of {len(kinds)} kinds not taken for held out, of {tried}", wrong, unit="texts", most=most)
    for way in WAYS:
        of_kinds = {kind: counts for kind, counts in found["copies"].items() if kind.startswith(f"{way} | ")}
        seen, tried = (sum(counts) for counts in zip(*of_kinds.values(), strict=True))
        missed = ", ".join(kind.partition(" | ")[2] for kind, (some, all_) in of_kinds.items() if some < all_)
        add_row(f"copies seen: {way}{missed and f' (not always: {missed})'}", 100 * seen / tried, unit="% of copies")
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
