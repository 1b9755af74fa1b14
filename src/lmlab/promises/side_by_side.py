"""What every language model promises of rows side by side: joining, leaving and cancelling change nothing for the others.

Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from lmlab.engine import Engine, Generated, Request
from lmlab.interface import LanguageModel, State, advance, side_by_side, with_rows_replaced
from lmlab.promises.checks import advanced, random_tokens, same
from lmlab.text.tokenizers import Tokenizer

LENGTHS = (2, 9, 0, 5)  # tokens that the rows have read when they meet
CLOSE = 1e-5  # nats a token: products of other sizes round otherwise


def _read(model: LanguageModel, length: int, seed: int) -> tuple[torch.Tensor, State]:
    """Return the tokens of one row, and the state after the first of them."""
    tokens_1T = random_tokens(model, 1, (model.policy.window or 0) + 32, seed)
    return tokens_1T, _after(model, tokens_1T, length)


def _after(model: LanguageModel, tokens_1T: torch.Tensor, length: int) -> State:
    return (advanced(model, tokens_1T[:, :length]) if length else model.begin(1))[1]


def _follow(model: LanguageModel, texts: list[torch.Tensor], read: list[int], state: State, what: str) -> None:
    """AssertionError that begins with `what` unless the rows of a state say what each of their texts says alone."""
    alone = [_after(model, text_1T, length) for text_1T, length in zip(texts, read, strict=True)]
    for step in range((model.policy.window or 0) + 6):  # beyond the end of every window
        next_B1 = torch.cat([text_1T[:, at + step, None] for text_1T, at in zip(texts, read, strict=True)])
        logp_BV, state = advance(model, next_B1, state)
        for row, before in enumerate(alone):
            logp_1V, alone[row] = model.advance(next_B1[row, None], before)
            same(logp_BV[row], logp_1V[0], what)


def check_states_side_by_side_go_on_as_alone(model: LanguageModel) -> None:
    """Rows that have read different numbers of tokens are joined; each goes on as it would alone."""
    rows = [_read(model, length, seed) for seed, length in enumerate(LENGTHS)]
    joined = side_by_side([state for _, state in rows], [1] * len(rows))
    _follow(model, [text for text, _ in rows], list(LENGTHS), joined, "a row beside others differs from the row alone")


def check_a_row_that_joins_takes_the_place_of_one_that_left(model: LanguageModel) -> None:
    """Rows are replaced, and others are left out; those that stay and those that joined go on as they would alone."""
    (_, first), (b, second), (c, third) = (_read(model, length, seed) for seed, length in enumerate((4, 7, 1)))
    joined = side_by_side([first, second], [1, 1])
    replaced = with_rows_replaced(joined, 2, torch.tensor([0]), third)
    _follow(model, [c, b], [1, 7], replaced, "after one row was replaced")
    rows = [_read(model, length, seed) for seed, length in enumerate(LENGTHS)]
    kept = side_by_side([state for _, state in rows], [1] * len(rows)).select(torch.tensor([3, 1]))
    texts = [rows[3][0], rows[1][0]]
    _follow(model, texts, [LENGTHS[3], LENGTHS[1]], kept, "after other rows left")


def check_states_that_were_joined_are_spent(model: LanguageModel) -> None:
    """A state that was joined to others and advanced with them cannot be advanced again."""
    for lengths in ((3, 3), (2, 5)):
        rows = [_read(model, length, seed) for seed, length in enumerate(lengths)]
        advance(model, random_tokens(model, 2, 1), side_by_side([state for _, state in rows], [1, 1]))
        for _, state in rows:
            try:
                model.advance(random_tokens(model, 1, 1), state)
            except RuntimeError:
                continue
            raise AssertionError("a state was advanced with others and again alone")


def _requests(stop: tuple[str, ...]) -> list[Request]:
    """Requests with prompts of different lengths and different settings; the fourth is to be cancelled."""
    prompts = ("a b c", "", "b a\nc a b b a c", "a", "c")
    settings = (
        {"seed": 1},
        {"method": "greedy"},
        {"seed": 2, "temperature": 0.8, "stop": stop},
        {"seed": 3},
        {"seed": 4},
    )
    return [
        Request(prompt, max_tokens=6 + 3 * i, logprobs=2, **given)  # type: ignore[arg-type]
        for i, (prompt, given) in enumerate(zip(prompts, settings, strict=True))
    ]


def check_requests_side_by_side_are_what_they_are_alone(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """Requests that join one after the other, one of which is cancelled, have the tokens and the nats they have alone."""
    stop = ("b a",)
    alone = [Engine(model, tokenizer).run([request])[0] for request in _requests(stop)]
    for rows in (3, 5):  # rows that are used again, and rows that are given up
        _check_beside(Engine(model, tokenizer, max_rows=rows, chunk=4), _requests(stop), alone)


def _check_beside(engine: Engine, beside: list[Request], alone: list[Generated]) -> None:
    arriving = list(beside)
    while arriving or engine.busy:
        if arriving:
            engine.submit(arriving.pop(0))
        for event in engine.step():
            if event.request is beside[3] and len(event.request.continuation.ids) == 2:
                engine.cancel(beside[3])
    for request, expected in zip(beside, alone, strict=True):
        found = request.result()
        count = len(found.ids)
        assert found.ids == expected.ids[:count], f"beside others a request finds {found.ids}, alone {expected.ids}"
        assert (request is beside[3]) == (found.finish == "cancelled"), f"a request ends by {found.finish!r}"
        if request is not beside[3]:
            assert found.text == expected.text, (
                f"beside others a request writes {found.text!r}, alone {expected.text!r}"
            )
            apart = abs(found.nats - expected.nats) / count
            assert apart < CLOSE, f"beside others a token of a request costs {apart:.1e} nats more or less"


def check_text_is_shown_as_soon_as_it_is_certain(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """What is held back is a proper beginning of a stop string, or part of a character; in the end nothing is."""
    stops = ("a b", "b a c", "\n\n")
    for seed in range(3):
        engine = Engine(model, tokenizer)
        request, shown = engine.submit(Request("a", seed=seed, max_tokens=12, stop=stops)), ""
        before = len(tokenizer.decode(request.prompt_ids, []))
        while engine.busy:
            for event in engine.step():
                shown += event.text
                continuation = request.continuation
                whole = tokenizer.decode([*request.prompt_ids, *continuation.ids], continuation.spellings)[before:]
                held = whole[len(shown) :].rstrip("\N{REPLACEMENT CHARACTER}") if event.finish is None else ""
                proper = any(stop.startswith(held) and held != stop for stop in stops)
                assert not held or proper, f"{held!r} is held back, which begins none of {stops}"
        assert shown == request.result().text, "the pieces of a text are not the text"
        assert not any(stop in shown for stop in stops), f"{shown!r} has one of the stop strings {stops}"


OF_ROWS: tuple[Callable[[LanguageModel], None], ...] = (
    check_states_side_by_side_go_on_as_alone,
    check_a_row_that_joins_takes_the_place_of_one_that_left,
    check_states_that_were_joined_are_spent,
)
OF_REQUESTS: tuple[Callable[[LanguageModel, Tokenizer], None], ...] = (
    check_requests_side_by_side_are_what_they_are_alone,
    check_text_is_shown_as_soon_as_it_is_certain,
)
