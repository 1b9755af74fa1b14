"""Many requests side by side: each is what it is alone, whoever joins, leaves or is cancelled beside it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from test_generate import TEXT, Pair, gpt, ngram

from lmlab.engine import Engine, Generated, Request
from lmlab.promises import subjects

CLOSE = 1e-5  # nats a token

CHOICES: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"seed": 3},
    {"seed": 1, "stop": ["at", "\n", "e"]},
    {"temperature": 0.7, "top_k": 5},
    {"top_p": 0.8, "min_p": 0.05, "logprobs": 3},
]


def pair_of(kind: str) -> Pair:
    return KINDS[kind]()


@cache
def small(kind: str, **settings: Any) -> Pair:
    from lmlab.models.registry import model_class

    tokenizer = subjects.tokenizer("char")
    return Pair(subjects.build(model_class(kind), dict(settings), tokenizer), tokenizer)


KINDS = {
    "gpt": lambda: gpt("char"),
    "ngram": lambda: ngram("words"),
    "lstm": lambda: small("lstm", layers=2, width=8, embedding_width=6, tie=False),
    "rnn-attention": lambda: small("rnn-attention", width=8, embedding_width=6, memory=5, score_width=4, tie=False),
    "mix": lambda: small("mix", weighting="gate", adapt=True),
}


def requests(count: int) -> list[Request]:
    """Requests with prompts of many lengths, some of which begin alike or are the same."""
    starts = [(7 * i) % 40 if i % 3 else 0 for i in range(count)]
    prompts = [TEXT[start : start + (5 * i) % 37] for i, start in enumerate(starts)]
    return [
        Request(prompt, max_tokens=3 + (11 * i) % 23, sample=i % 2, **CHOICES[i % len(CHOICES)])
        for i, prompt in enumerate(prompts)
    ]


def alone(pair: Pair, count: int) -> Iterator[Generated]:
    for request in requests(count):
        yield Engine(*pair).run([request])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_64_requests_side_by_side_are_what_they_are_alone(kind: str) -> None:
    """They arrive a few at a time, so that they join and leave while others run."""
    pair, beside = pair_of(kind), requests(64)
    engine, arriving = Engine(*pair, max_rows=24, chunk=20), list(beside)
    while arriving or engine.busy:
        for request in arriving[:5]:
            engine.submit(request)
        del arriving[:5]
        engine.step()
    for request, expected in zip(beside, alone(pair, 64), strict=True):
        found = request.result()
        assert (found.ids, found.text, found.finish) == (expected.ids, expected.text, expected.finish)
        assert found.nats == pytest.approx(expected.nats, abs=CLOSE * len(found.ids))
