"""The texts that golden values are measured on, made by rules of our own: the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

WHO = ("the cat", "a dog", "the old miller", "her sister", "nobody", "the café owner")
DID = ("sees", "follows", "paints", "forgets", "carries")
WHAT = ("the river", "a red boat", "two apples", "the long road", "an übermütig goat")
WHEN = ("at noon", "in winter", "again", "before the rain")
TENS = ("twenty", "thirty", "forty", "fifty")
ZEHNER = ("zwanzig", "dreißig", "vierzig", "fünfzig")
ONES = ("one", "two", "three", "four", "five", "six")
EINER = ("ein", "zwei", "drei", "vier", "fünf", "sechs")
SYLLABLES = ("ba", "lo", "mi", "ra", "te", "nu")

PROBE = "The cat sees a red boat at noon.\nNobody paints the übermütig Zebra, 47 times!"


def drawn(seed: int) -> Iterator[int]:
    """Numbers from 0 to 2^16 - 1 by a linear congruence, which no library can change."""
    state = seed
    while True:
        state = (1103515245 * state + 12345) % 2**31
        yield state >> 15


def sentences(count: int, seed: int) -> str:
    """Lines of a small grammar; every fifth has a name that hardly any other line has."""
    numbers = drawn(seed)

    def one_of(words: Sequence[str]) -> str:
        return words[next(numbers) % len(words)]

    lines = []
    for line in range(count):
        who = "".join(one_of(SYLLABLES) for _ in range(3)).title() if line % 5 == 4 else one_of(WHO)
        text = f"{who} {one_of(DID)} {one_of(WHAT)} {one_of(WHEN)}"
        lines.append(f"{text[0].upper()}{text[1:]}{'!' if next(numbers) % 7 == 0 else '.'}\n")
    return "".join(lines)


def films(count: int, seed: int) -> str:
    """A table of labels and texts, told apart by one of their words."""
    numbers, rows = drawn(seed), ["label\ttext\n"]
    for _ in range(count):
        label = ("good", "bad")[next(numbers) % 2]
        word = {"good": ("bright", "warm"), "bad": ("dull", "grey")}[label][next(numbers) % 2]
        rows.append(f"{label}\t{WHO[next(numbers) % len(WHO)]} {DID[next(numbers) % len(DID)]} a {word} film\n")
    return "".join(rows)


def pairs() -> str:
    """A table of numbers in words, in two languages."""
    rows = [
        f"{ten}-{one}\t{eins}und{zehn}\n"
        for ten, zehn in zip(TENS, ZEHNER, strict=True)
        for one, eins in zip(ONES, EINER, strict=True)
    ]
    return "en\tde\n" + "".join(rows)


def neighbours(count: int) -> str:
    """A text in which some words follow some others."""
    return "".join(f"the w{5 * i % 17} v{7 * i % 23} and " for i in range(count))


TEXTS = {
    "train.txt": sentences(70, 1),
    "valid.txt": sentences(30, 2),
    "test.txt": sentences(24, 3),
    "films.tsv": films(40, 4),
    "pairs.tsv": pairs(),
    "neighbours.txt": neighbours(200),
}


def write_texts(folder: Path) -> None:
    """All of them, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
