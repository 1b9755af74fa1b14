"""What every language model promises, as functions that raise AssertionError when a model breaks a promise.

They take any model, so that they can be tried on models with planted bugs (tests/promises/test_planted_bugs.py). A check
shares its model with the others and leaves it as it was. Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import safetensors.torch
import torch
from torch import Tensor

from lmlab.interface import LanguageModel, State

Check = Callable[[LanguageModel], None]

ATOL, RTOL = 3e-5, 1e-5  # nats: float32 sums in another order; a planted bug moves tenths


def random_tokens(model: LanguageModel, rows: int, length: int, seed: int = 0) -> Tensor:
    """Token ids, B×T."""
    return torch.randint(model.vocab_size, (rows, length), generator=torch.Generator().manual_seed(seed))


def stepped(model: LanguageModel, tokens_BT: Tensor, chunks: list[int] | None = None) -> Tensor:
    """Nats of the tokens from begin and advance. With chunks, only those of each chunk's first token; others are NaN."""
    nats_BT = torch.full(tokens_BT.shape, torch.nan)
    logp_BV, state = model.begin(len(tokens_BT))
    at = 0
    for size in chunks or [1] * tokens_BT.shape[1]:
        nats_BT[:, at] = -logp_BV.gather(1, tokens_BT[:, at : at + 1])[:, 0]
        logp_BV, state = model.advance(tokens_BT[:, at : at + size], state)
        at += size
    return nats_BT


def same(actual: Tensor, expected: Tensor, what: str) -> None:
    """AssertionError that begins with `what` unless the two are equal up to rounding."""
    torch.testing.assert_close(actual, expected, atol=ATOL, rtol=RTOL, msg=lambda numbers: f"{what}\n{numbers}")


def advanced(model: LanguageModel, tokens_BT: Tensor) -> tuple[Tensor, State]:
    """What the model says after these tokens of a text."""
    return model.advance(tokens_BT, model.begin(len(tokens_BT))[1])


def check_prompts_are_begin_and_advance(model: LanguageModel) -> None:
    """begin_with is begin and advance, in what it says and in the state it leaves, also far beyond the context."""
    for length in (0, 1, 9, 2 * (model.policy.window or 0) + 17):
        tokens_BT = random_tokens(model, 3, length + 1)
        logp_BV, state = model.begin_with(tokens_BT[:, :-1])
        expected_BV, expected = advanced(model, tokens_BT[:, :-1]) if length else model.begin(3)
        same(logp_BV, expected_BV, f"begin_with of {length} tokens differs from begin and advance")
        after_BV, after = (model.advance(tokens_BT[:, -1:], s)[0] for s in (state, expected))
        same(after_BV, after, f"after begin_with of {length} tokens the next one differs")


def check_shapes_and_types(model: LanguageModel) -> None:
    """score is float32, B×T, the first token included; begin and advance are float32, B×V, in natural logarithms."""
    tokens_BT = random_tokens(model, 3, 7)
    nats_BT = model.score(tokens_BT)
    assert nats_BT.shape == (3, 7), f"score of 3×7 tokens has shape {tuple(nats_BT.shape)}"
    assert nats_BT.dtype == torch.float32, f"score is {nats_BT.dtype}"
    assert not nats_BT.requires_grad, "scores are numbers, not part of a graph"
    assert bool((nats_BT >= 0).all()), "a probability is above one, or not a number"
    for logp_BV, _ in (model.begin(3), advanced(model, tokens_BT)):
        assert logp_BV.shape == (3, model.vocab_size), f"log-probabilities have shape {tuple(logp_BV.shape)}"
        assert logp_BV.dtype == torch.float32, f"log-probabilities are {logp_BV.dtype}"
    same(nats_BT[:, 0], -model.begin(3)[0].gather(1, tokens_BT[:, :1])[:, 0], "the first token is not what begin says")
    assert model.score(tokens_BT[:, :1]).shape == (3, 1), "one token alone is scored too"


def check_probabilities_sum_to_one(model: LanguageModel) -> None:
    """At the beginning and after any history, over the whole vocabulary."""
    tokens_BT = random_tokens(model, 4, 25)
    logp_BV, state = model.begin(4)
    for t in range(tokens_BT.shape[1]):
        sums_B = logp_BV.double().exp().sum(-1)
        same(sums_B, torch.ones(4, dtype=torch.float64), f"probabilities after {t} tokens do not sum to one")
        logp_BV, state = model.advance(tokens_BT[:, t : t + 1], state)


def check_score_equals_steps(model: LanguageModel) -> None:
    """score is what begin and advance say, token by token and in chunks, also far beyond the context."""
    length = 3 * (model.policy.window or 0) + 29
    tokens_BT = random_tokens(model, 3, length)
    nats_BT = model.score(tokens_BT)
    same(stepped(model, tokens_BT), nats_BT, "score differs from begin and advance, token by token")
    same(stepped(model, tokens_BT[:1]), nats_BT[:1], "for a row alone score differs from begin and advance")
    for chunks in ([1, 2, 3, 5, 1, 7], [4] * 7, [11, 13]):
        chunks = [*chunks, length - sum(chunks)]
        by_chunk_BT = stepped(model, tokens_BT, chunks)
        seen = ~by_chunk_BT.isnan()
        assert int(seen[0].sum()) == len(chunks)
        same(by_chunk_BT[seen], nats_BT[seen], f"score differs from advance in chunks of {chunks}")


def check_long_texts_are_scored_like_short_ones(model: LanguageModel) -> None:
    """Models score thousands of tokens in stretches, to save memory; where they cut does not matter.

    The more rows, the shorter the stretches: one row is scored in other stretches than four.
    """
    chunks = [2000, 1, 1, 1000, 1, 297]
    tokens_BT = random_tokens(model, 4, sum(chunks))
    nats_BT = model.score(tokens_BT)
    same(model.score(tokens_BT[:1]), nats_BT[:1], "a long text has other scores beside others")
    by_chunk_BT = stepped(model, tokens_BT, chunks)
    seen = ~by_chunk_BT.isnan()
    same(by_chunk_BT[seen], nats_BT[seen], "the score of a long text differs from advance")


def check_rows_do_not_matter(model: LanguageModel) -> None:
    """Neither the other rows of a batch nor their order change a score, and asking again gives the same."""
    tokens_BT = random_tokens(model, 4, 23)
    nats_BT = model.score(tokens_BT)
    assert torch.equal(model.score(tokens_BT), nats_BT), "scoring twice gives two answers"
    order = [2, 0, 3, 1, 2]
    same(model.score(tokens_BT[order]), nats_BT[order], "the order of rows changes scores")
    alone_BT = torch.cat([model.score(tokens_BT[row : row + 1]) for row in range(4)])
    same(alone_BT, nats_BT, "a row alone has another score than in a batch")
    starts = torch.tensor([0, 5, 6, 29, 41])
    ends = [int(n) for n in starts[1:] - starts[:-1]]
    documents = torch.cat([row_T[:end] for row_T, end in zip(tokens_BT, ends, strict=True)])
    wanted = torch.cat([row_T[:end] for row_T, end in zip(nats_BT, ends, strict=True)])
    same(model.score_documents(documents, starts), wanted, "documents end to end have other scores than in rows")
    logp_BV, _ = advanced(model, tokens_BT)
    alone_BV = torch.cat([advanced(model, tokens_BT[row : row + 1])[0] for row in range(4)])
    same(alone_BV, logp_BV, "a row alone has another distribution than in a batch")


def check_the_future_does_not_leak(model: LanguageModel) -> None:
    """Other tokens later, or none at all, leave earlier scores as they are."""
    tokens_BT = random_tokens(model, 3, 26)
    nats_BT = model.score(tokens_BT)
    for cut in (1, 2, 5, 8, 13, 25):
        changed_BT = tokens_BT.clone()
        changed_BT[:, cut:] = (changed_BT[:, cut:] + 1) % model.vocab_size
        same(model.score(changed_BT)[:, :cut], nats_BT[:, :cut], f"tokens from {cut} on change scores before them")
        same(model.score(tokens_BT[:, :cut]), nats_BT[:, :cut], f"leaving out tokens from {cut} on changes scores")


def check_history_is_as_long_as_the_policy_says(model: LanguageModel) -> None:
    """Tokens further back than the policy says do not matter; where it knows no bound, even the first token does."""
    most = model.policy.most
    if most is None:
        tokens_BT = random_tokens(model, 3, 8)
        changed_BT = tokens_BT.clone()
        changed_BT[:, 0] = (changed_BT[:, 0] + 1) % model.vocab_size
        assert bool((model.score(changed_BT)[:, -1] != model.score(tokens_BT)[:, -1]).any()), "it forgets the beginning"
        return
    length = 2 * most + 6
    tokens_BT = random_tokens(model, 3, length)
    nats_BT = model.score(tokens_BT)
    for t in range(most + 1, length):
        changed_BT = tokens_BT.clone()
        changed_BT[:, : t - most] = (changed_BT[:, : t - most] + 1) % model.vocab_size
        same(model.score(changed_BT)[:, t], nats_BT[:, t], f"token {t} sees more than {most} tokens")


def check_select_commutes_with_advance(model: LanguageModel) -> None:
    """Selecting rows and then advancing is advancing and then selecting; rows may repeat and be left out."""
    before_BT = random_tokens(model, 4, 9)
    for length in (1, 3):  # after one token the history of even short-sighted models is mostly what was selected
        after_BT = random_tokens(model, 4, length, seed=1)
        expected_BV, _ = model.advance(after_BT, advanced(model, before_BT)[1])
        for rows in ([3, 1, 0, 2], [1, 1, 3], [2], [0, 1, 2, 3]):
            rows_B = torch.tensor(rows)
            state = advanced(model, before_BT)[1].select(rows_B)
            same(model.advance(after_BT[rows_B], state)[0], expected_BV[rows_B], f"rows {rows} do not commute")


def check_a_selected_state_is_a_copy(model: LanguageModel) -> None:
    """Two copies of a state, and the state itself, go on in turn with different tokens, and none disturbs another."""
    before_BT = random_tokens(model, 3, 6)
    _, state = advanced(model, before_BT)
    rows = ([0, 1, 2], [2, 0, 1], [0, 1, 2])
    states = [state.select(torch.tensor(rows[0])), state.select(torch.tensor(rows[1])), state]
    paths = [random_tokens(model, 3, 4, seed=seed) for seed in (1, 2, 3)]
    for t in range(4):
        for i, (order, path_BT) in enumerate(zip(rows, paths, strict=True)):
            logp_BV, states[i] = model.advance(path_BT[:, t : t + 1], states[i])
            alone_BV, _ = advanced(model, torch.cat([before_BT[order], path_BT[:, : t + 1]], dim=1))
            same(logp_BV, alone_BV, f"going on from a copy disturbed another ({t} tokens later)")


def check_a_spent_state_refuses(model: LanguageModel) -> None:
    """A state can be advanced once; selecting from it before that gives states that can be advanced too."""
    tokens_BT = random_tokens(model, 2, 2)
    _, state = model.begin(2)
    copy = state.select(torch.arange(2))
    model.advance(tokens_BT, state)
    try:
        model.advance(tokens_BT, state)
    except RuntimeError:
        pass
    else:
        raise AssertionError("a state was advanced twice")
    model.advance(tokens_BT, copy)


def check_confidence_is_the_same_however_it_reads(model: LanguageModel) -> None:
    """What a model says of how sure it is (if it does) is finite, and the same beside its scores and between its steps."""
    tokens_BT = random_tokens(model, 3, 3 * (model.policy.window or 0) + 9)
    nats_BT, features_BTS = model.score_with_confidence(tokens_BT)
    same(nats_BT, model.score(tokens_BT), "the scores beside the features are not the scores")
    assert features_BTS.shape == (*tokens_BT.shape, model.confidence_features), (
        f"features have shape {tuple(features_BTS.shape)}"
    )
    assert bool(features_BTS.isfinite().all()), "a feature is not finite"
    logp_BV, state = model.begin(3)
    for t in range(tokens_BT.shape[1]):
        same(
            model.confidence_after(logp_BV, state),
            features_BTS[:, t],
            f"other features after {t} steps than beside the scores",
        )
        logp_BV, state = model.advance(tokens_BT[:, t : t + 1], state)


def check_a_saved_model_is_the_same(model: LanguageModel) -> None:
    """What tensors() gives, through the bytes of a safetensors file, makes a model with bit-identical numbers."""
    stored = safetensors.torch.save({name: tensor.contiguous() for name, tensor in model.tensors().items()})
    loaded = type(model).from_tensors(model.config, model.vocab_size, safetensors.torch.load(stored))
    tokens_BT = random_tokens(model, 3, 31)
    assert torch.equal(loaded.score(tokens_BT), model.score(tokens_BT)), "scores changed by saving"
    assert torch.equal(advanced(loaded, tokens_BT)[0], advanced(model, tokens_BT)[0]), "steps changed by saving"
    assert loaded.parameters_count == model.parameters_count, "another number of parameters after saving"
    assert loaded.policy == model.policy, "another context policy after saving"


OF_A_MODEL: tuple[Check, ...] = (
    check_shapes_and_types,
    check_probabilities_sum_to_one,
    check_score_equals_steps,
    check_prompts_are_begin_and_advance,
    check_rows_do_not_matter,
    check_the_future_does_not_leak,
    check_history_is_as_long_as_the_policy_says,
    check_select_commutes_with_advance,
    check_a_selected_state_is_a_copy,
    check_a_spent_state_refuses,
    check_confidence_is_the_same_however_it_reads,
    check_a_saved_model_is_the_same,
)
