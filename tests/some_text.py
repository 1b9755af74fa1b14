"""Small texts for tests that are about something else."""

from __future__ import annotations

from random import Random

COMMON = "the cat sat on a mat and dog log man plan canal where wind blows grass bends tree stands by of in"
WORDS = COMMON.split(" ")


FIRST = (
    "the cat sat on the mat and the dog sat on the log\n"
    "a man and a plan and a canal and a cat\n"
    "where the wind blows the grass bends and the tree stands\n"
)


def some_lines(count: int, seed: int = 0) -> str:
    """Lines of some common words, no two alike: what is held out of them stands nowhere else."""
    random, often = Random(seed), range(len(WORDS) + 10, 10, -1)
    return "".join(" ".join(random.choices(WORDS, often, k=random.randint(8, 13))) + "\n" for _ in range(count))


TEXT = FIRST + some_lines(117)
