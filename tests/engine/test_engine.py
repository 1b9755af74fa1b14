"""Many requests side by side: each is what it is alone, whoever joins, leaves or is cancelled beside it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch
from test_generate import TEXT, Pair, gpt, ngram

from lmlab.config import Mistake
from lmlab.engine import Engine, Generated, Options, Request, Stream, generate
from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.models.registry import model_class
from lmlab.models.translator import Translator, TranslatorConfig
from lmlab.models.uniform import Uniform, UniformConfig
from lmlab.promises import subjects
from lmlab.text.tokenizers import train_tokenizer

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
    tokenizer = subjects.tokenizer("char")
    return Pair(subjects.build(model_class(kind), dict(settings), tokenizer), tokenizer)


LLAMA_LIKE = {"layers": 2, "width": 16, "heads": 4, "kv_heads": 2, "context": 12, "stride": 5, "norm": "rms"}
LLAMA_LIKE |= {"activation": "swiglu"}
KINDS = {
    "gpt": lambda: gpt("char"),
    "llama-like": lambda: small("gpt", **LLAMA_LIKE),
    "sliding": lambda: small("gpt", **LLAMA_LIKE | {"window": 3, "positions": "learned", "biases": "all"}),
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


@cache
def sources() -> list[LanguageModel]:
    """A translator that was given sources of different lengths, one each."""
    torch.manual_seed(0)
    tokenizer = subjects.tokenizer("char")
    config = TranslatorConfig(languages=2, layers=2, width=16, heads=2, context=48, dropout=0.0)
    model = Translator(config, tokenizer.vocab_size).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
        model.embedding[model.end_id] *= 3  # so that some texts end by themselves
    texts = [torch.tensor([tokenizer.encode("a b c a b"[: 1 + i]).ids.tolist()]) for i in range(8)]
    return [
        model.given(model.encode(ids_1S, torch.ones_like(ids_1S, dtype=torch.bool)), i % 2)
        for i, ids_1S in enumerate(texts)
    ]


def test_64_translations_of_different_sources_side_by_side_are_what_they_are_alone() -> None:
    def asked() -> list[Request]:
        return [
            Request("", model=sources()[i % 8], max_tokens=3 + (11 * i) % 23, sample=i, **CHOICES[i % len(CHOICES)])
            for i in range(64)
        ]

    beside, engine = asked(), Engine(sources()[0], subjects.tokenizer("char"), max_rows=24)
    arriving = list(beside)
    while arriving or engine.busy:
        for request in arriving[:5]:
            engine.submit(request)
        del arriving[:5]
        engine.step()
    same(beside, [Engine(sources()[0], subjects.tokenizer("char")).run([request])[0] for request in asked()])
    assert {request.finish for request in beside} == {"length", "stop", "end"}


def same(beside: Sequence[Request], alone: Sequence[Generated]) -> None:
    for request, expected in zip(beside, alone, strict=True):
        found = request.result()
        assert (found.ids, found.text, found.finish) == (expected.ids, expected.text, expected.finish)
        assert found.nats == pytest.approx(expected.nats, abs=CLOSE * len(found.ids))


@cache
def alone(kind: str, count: int) -> list[Generated]:
    return [Engine(*pair_of(kind)).run([request])[0] for request in requests(count)]


@pytest.mark.parametrize(("kind", "ahead"), [*((kind, False) for kind in KINDS), ("gpt", True)])
def test_64_requests_side_by_side_are_what_they_are_alone(
    kind: str, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They arrive a few at a time, so that they join and leave while others run. ahead: as on a GPU."""
    pair, beside = pair_of(kind), requests(64)
    expected = alone(kind, 64)
    monkeypatch.setattr(Engine, "_runs_ahead", lambda *_: ahead and pair.tokenizer.unknown_id is None)
    engine, arriving = Engine(*pair, max_rows=24, chunk=20, lookahead=4), list(beside)
    while arriving or engine.busy:
        for request in arriving[:5]:
            engine.submit(request)
        del arriving[:5]
        engine.step()
    same(beside, expected)


def advance_by(engine: Engine, steps: int) -> None:
    for _ in range(steps):
        engine.step()


def test_a_cancelled_request_ends_with_what_it_has_wherever_it_is() -> None:
    engine = Engine(*gpt("char"), max_rows=2, chunk=4)
    running = engine.submit(Request("the cat", max_tokens=50))
    advance_by(engine, 3)
    reading = engine.submit(Request("a long prompt", max_tokens=50))
    waiting = engine.submit(Request("a", max_tokens=50))
    advance_by(engine, 1)
    for request in (waiting, reading, running, running):
        engine.cancel(request)
    events = engine.step()
    assert [event.request for event in events] == [waiting, reading, running]
    assert {event.finish for event in events} == {"cancelled"}
    assert len(running.result().ids) > 2
    assert waiting.result().ids == reading.result().ids == ()
    assert not engine.busy
    engine.cancel(running)
    assert engine.step() == []


def test_a_prompt_is_read_in_chunks_while_others_go_on() -> None:
    engine = Engine(*ngram("char", order=40), chunk=6)
    first = engine.submit(Request("the", max_tokens=40))
    advance_by(engine, 2)
    second = engine.submit(Request(TEXT[:33], max_tokens=5))
    for chunks in range(1, 6):
        before = len(first.continuation.ids)
        advance_by(engine, 1)
        assert len(first.continuation.ids) == before + 1
        assert not second.continuation.ids, f"{6 * chunks} of 33 tokens were read"
    advance_by(engine, 1)
    assert len(second.continuation.ids) == 1


def test_what_prompts_begin_with_is_read_once_and_equal_prompts_too() -> None:
    read: list[tuple[int, ...]] = []

    class Watched(Uniform):
        policy = ContextPolicy.everything()

        def advance(self, tokens_BT: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            read.append(tuple(tokens_BT.shape))
            return super().advance(tokens_BT, state)

    tokenizer = subjects.tokenizer("byte")
    engine = Engine(Watched(UniformConfig(), tokenizer.vocab_size), tokenizer)
    beginning = "a beginning of 28 characters"
    engine.run([Request(beginning + end, max_tokens=1, sample=i) for i, end in enumerate(("x", "yy", "zz", "yy"))])
    assert read == [(1, len(beginning)), (1, 1), (2, 2)]


def test_requests_wait_again_where_memory_ran_out() -> None:
    class Small(Uniform):
        policy = ContextPolicy.everything()

        def advance(self, tokens_BT: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            if tokens_BT.shape[1] > 1 and engine._batch.busy > 1:
                raise torch.OutOfMemoryError
            return super().advance(tokens_BT, state)

    tokenizer = subjects.tokenizer("byte")
    engine = Engine(Small(UniformConfig(), tokenizer.vocab_size), tokenizer)
    first = [engine.submit(Request("ab", max_tokens=n, seed=n)) for n in (4, 6)]
    advance_by(engine, 1)
    more = [engine.submit(Request("abc", max_tokens=3, seed=n)) for n in (7, 8)]
    advance_by(engine, 1)
    assert list(engine.scheduler.running) == first
    assert list(engine.scheduler.waiting) == more
    assert engine.scheduler.max_rows == 2
    while engine.busy:
        engine.step()
    assert [len(request.result().ids) for request in (*first, *more)] == [4, 6, 3, 3]


def test_an_engine_whose_model_failed_goes_on_with_those_that_wait() -> None:
    class Failing(Uniform):
        policy = ContextPolicy.everything()

        def advance(self, tokens_BT: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            if int(tokens_BT[0, 0]) == ord("!"):
                raise ArithmeticError
            return super().advance(tokens_BT, state)

    tokenizer = train_tokenizer("byte", [TEXT])
    engine = Engine(Failing(UniformConfig(), tokenizer.vocab_size), tokenizer, max_rows=1)
    engine.submit(Request("!", max_tokens=2))
    good = engine.submit(Request("a", max_tokens=2, temperature=0))
    with pytest.raises(ArithmeticError):
        engine.step()
    while engine.busy:
        engine.step()
    assert good.result().ids == (0, 0)


def test_alternatives_are_the_likeliest_tokens_and_every_event_adds_up_to_the_text() -> None:
    engine, text, ids = Engine(*gpt("char")), "", list[int]()
    request = engine.submit(Request("the", max_tokens=9, logprobs=4, temperature=0))
    while engine.busy:
        for event in engine.step():
            for token in event.tokens:
                assert token.top[0] == (token.id, token.logprob)
                assert len(token.top) == 4
                assert sorted(token.top, key=lambda pair: -pair[1]) == list(token.top)
            text, ids = text + event.text, ids + event.ids
    assert (text, tuple(ids)) == (request.result().text, request.result().ids)
    assert event.finish == "length"


def test_engines_of_one_model_run_in_threads_beside_each_other() -> None:
    pair, found = gpt("char"), dict[int, list[Generated]]()

    def run(number: int) -> None:
        found[number] = Engine(*pair).run([Request("the cat", max_tokens=40, seed=number) for _ in range(2)])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert found[number] == Engine(*pair).run([Request("the cat", max_tokens=40, seed=number) for _ in range(2)])


def test_requests_are_submitted_by_other_threads_while_the_engine_steps() -> None:
    engine, asked = Engine(*ngram("char")), [Request("the", max_tokens=5, seed=n) for n in range(40)]
    threads = [
        threading.Thread(target=lambda part=part: [engine.submit(r) for r in part]) for part in (asked[:20], asked[20:])
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or engine.busy:
        engine.wait(0.01)
        engine.step()
    assert [request.result().ids for request in asked] == [
        Engine(*ngram("char")).run([Request("the", max_tokens=5, seed=n)])[0].ids for n in range(40)
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"logprobs": -1}, "logprobs"),
        ({"samples": 2}, "one text"),
        ({"method": "beam"}, "one text"),
        ({"prompt": [0, 5000]}, "no token 5000"),
        ({"prompt": 3}, "a prompt is a text"),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_is_refused_in_one_line(settings: dict[str, Any], words: str) -> None:
    engine = Engine(*ngram("char"))
    with pytest.raises(Mistake, match=words):
        engine.submit(Request(**settings))
    assert not engine.busy


def test_a_request_is_submitted_once() -> None:
    engine, request = Engine(*ngram("char")), Request("a", max_tokens=1)
    engine.run([request])
    with pytest.raises(ValueError, match="submitted already"):
        engine.submit(request)


def test_a_stream_that_is_left_leaves_nothing_in_the_next_one() -> None:
    pair, options = gpt("char"), Options(max_tokens=30, seed=3)
    engine = Engine(*pair, max_rows=1)
    left = Stream(engine, "the cat", options)
    next(left)
    left.close()
    assert "".join(Stream(engine, "an owl", options)) == generate(*pair, "an owl", max_tokens=30, seed=3)[0].text
