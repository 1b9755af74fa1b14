"""What every language model of the lab promises, as functions that raise AssertionError when a model breaks a promise.

They take any model, so that they can be tried on models with planted bugs (test_planted_bugs.py). A check shares its
model with the others and leaves it as it was. Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
import torch
from cases import UNSEEN_TEXT, Case
from torch import Tensor

from lmlab.decode import generate
from lmlab.interface import LanguageModel, NeuralModel, State
from lmlab.measure import certify, score_part
from lmlab.text.parts import Document, Part

Check = Callable[[LanguageModel], None]

TOLERANCE = {"atol": 3e-5, "rtol": 1e-5}  # nats: float32 sums in another order; a planted bug moves tenths


def random_tokens(model: LanguageModel, rows: int, length: int, seed: int = 0) -> Tensor:
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
    torch.testing.assert_close(actual, expected, **TOLERANCE, msg=lambda numbers: f"{what}\n{numbers}")


def advanced(model: LanguageModel, tokens_BT: Tensor) -> tuple[Tensor, State]:
    return model.advance(tokens_BT, model.begin(len(tokens_BT))[1])


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
    length = 3 * (model.context or 0) + 29
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


def check_history_is_as_long_as_the_context(model: LanguageModel) -> None:
    """Tokens further back than `context` do not matter; where it is None, even the first token does."""
    if model.context is None:
        tokens_BT = random_tokens(model, 3, 8)
        changed_BT = tokens_BT.clone()
        changed_BT[:, 0] = (changed_BT[:, 0] + 1) % model.vocab_size
        assert bool((model.score(changed_BT)[:, -1] != model.score(tokens_BT)[:, -1]).any()), "it forgets the beginning"
        return
    length = 2 * model.context + 6
    tokens_BT = random_tokens(model, 3, length)
    nats_BT = model.score(tokens_BT)
    for t in range(model.context + 1, length):
        changed_BT = tokens_BT.clone()
        changed_BT[:, : t - model.context] = (changed_BT[:, : t - model.context] + 1) % model.vocab_size
        same(model.score(changed_BT)[:, t], nats_BT[:, t], f"token {t} sees more than {model.context} tokens")


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


def check_a_saved_model_is_the_same(model: LanguageModel) -> None:
    """What tensors() gives, through the bytes of a safetensors file, makes a model with bit-identical numbers."""
    stored = safetensors.torch.save({name: tensor.contiguous() for name, tensor in model.tensors().items()})
    loaded = type(model).from_tensors(model.config, model.tokenizer, safetensors.torch.load(stored))
    tokens_BT = random_tokens(model, 3, 31)
    assert torch.equal(loaded.score(tokens_BT), model.score(tokens_BT)), "scores changed by saving"
    assert torch.equal(advanced(loaded, tokens_BT)[0], advanced(model, tokens_BT)[0]), "steps changed by saving"
    assert loaded.parameters_count == model.parameters_count
    assert loaded.context == model.context


def check_beam_of_one_is_greedy(model: LanguageModel) -> None:
    """And greedy takes, at each place, the likeliest token."""
    for prompt in ("", "a b"):
        (greedy,) = generate(model, prompt, method="greedy", max_tokens=12)
        (narrow,) = generate(model, prompt, method="beam", beam_width=1, max_tokens=12)
        assert narrow.ids == greedy.ids, f"a beam of one finds {narrow.ids}, greedy {greedy.ids}"
        nats = _nats_after(model, prompt, torch.tensor([greedy.ids])).sum() + greedy.spelling_nats
        same(torch.tensor(greedy.nats), nats, "greedy decoding counts other nats than score")


def check_measuring_certifies_it(model: LanguageModel, folder: Path) -> None:
    """Every check of the certificate holds on a text with unknown words, and the number is a number of that text."""
    path = folder / "text.txt"
    path.write_text(UNSEEN_TEXT)
    part = Part("test", [Document(path, 0, len(UNSEEN_TEXT.encode()))])
    certificate = certify(model, score_part(model, part, folder=folder))
    assert certificate.passed, f"not certified: {[c for c in certificate.checks if not c.passed]}"


# --- only where all strings of three tokens can be listed ---


def all_strings(model: LanguageModel, length: int = 3) -> Tensor:
    assert model.vocab_size**length <= 1000, "only tiny vocabularies can be listed"
    return torch.tensor(list(itertools.product(range(model.vocab_size), repeat=length)))


def check_all_strings_of_three_tokens_total_one(model: LanguageModel) -> None:
    """The probabilities of all strings of one length sum to one: from the beginning, and after a prompt."""
    strings_NT = all_strings(model)
    for prompt in ("", "a b c"):
        total = _nats_after(model, prompt, strings_NT).double().sum(1).neg().exp().sum()
        same(total, torch.tensor(1.0, dtype=torch.float64), f"strings after {prompt!r} do not total one")


def check_a_full_beam_finds_the_best_of_all_strings(model: LanguageModel) -> None:
    """A beam as wide as there are strings, and exhaustive search, rank all strings as their scores do."""
    strings_NT = all_strings(model)
    spelling = model.tokenizer.spelling
    assert spelling is not None
    unknown_nats = float(spelling.nats(list(spelling.words)).min())
    for prompt in ("", "b a"):
        nats_N = _nats_after(model, prompt, strings_NT).double().sum(1)
        nats_N = nats_N + unknown_nats * (strings_NT == model.tokenizer.unknown_id).sum(1)
        expected = nats_N[nats_N.isfinite()].sort().values
        best = min(10, len(expected))
        options = {"max_tokens": 3, "n_best": best, "length_penalty": 0.0}
        for method in ({"method": "beam", "beam_width": len(strings_NT)}, {"method": "exhaustive"}):
            found = generate(model, prompt, **options, **method)
            same(torch.tensor([f.nats for f in found]).double(), expected[:best], f"{method} misses the best strings")
            assert len({f.ids for f in found}) == best, f"{method} finds a string twice"
            for f in found:
                index = (strings_NT == torch.tensor(f.ids)).all(1).nonzero()[0, 0]
                same(torch.tensor(f.nats).double(), nats_N[index], f"{method} counts other nats than score")


def _nats_after(model: LanguageModel, prompt: str, strings_NT: Tensor) -> Tensor:
    """Nats of the tokens of each string after the prompt, by `score`."""
    ids_P = torch.tensor(model.tokenizer.encode(prompt).ids.astype("int64"))
    return model.score(torch.cat([ids_P.expand(len(strings_NT), -1), strings_NT], dim=1))[:, len(ids_P) :]


# --- neural models only ---


def check_loss_is_the_sum_of_scores(model: LanguageModel) -> None:
    """In evaluation, over a window that starts afresh; under a mask, the sum and number of what it leaves."""
    assert isinstance(model, NeuralModel)
    tokens_BT = random_tokens(model, 5, min(model.context or 9, 9))
    nats_BT = model.score(tokens_BT)
    total, count = model.loss(tokens_BT)
    assert count == tokens_BT.numel(), f"{count} tokens counted of {tokens_BT.numel()}"
    same(total.detach(), nats_BT.sum(), "the loss is not the sum of the scores")
    mask_BT = torch.rand(tokens_BT.shape, generator=torch.Generator().manual_seed(3)) < 0.4
    mask_BT[0, 0] = True
    total, count = model.loss(tokens_BT, mask_BT)
    assert count == int(mask_BT.sum()), f"{count} tokens counted of {int(mask_BT.sum())} under the mask"
    same(total.detach(), nats_BT[mask_BT].sum(), "the loss is not the sum of the scores under the mask")


def check_carried_loss_is_the_sum_of_scores(model: LanguageModel) -> None:
    """A model that carries its state from stretch to stretch: the stretches of a text cost what the text costs."""
    assert isinstance(model, NeuralModel)
    tokens_BT = random_tokens(model, 3, 20)
    carry, total, count = None, torch.tensor(0.0), 0
    for stretch_BT in tokens_BT.split([7, 1, 12], dim=1):
        nats, number, carry = model.loss_carried(stretch_BT, carry)
        total, count = total + nats.detach(), count + number
    assert count == tokens_BT.numel()
    same(total, model.score(tokens_BT).sum(), "carried stretches cost another sum than the whole")


def check_decoding_leaves_training_possible(model: LanguageModel) -> None:
    """Nothing that decoding makes or keeps stands in the way of gradients afterwards."""
    assert isinstance(model, NeuralModel)
    generate(model, "a b", max_tokens=10, samples=2)
    tokens_BT = random_tokens(model, 2, min(model.context or 8, 8))
    model.zero_grad()
    model.loss(tokens_BT)[0].backward()
    gradients = [weight.grad for weight in model.parameters() if weight.requires_grad]
    model.zero_grad()
    assert all(g is not None and bool(g.isfinite().all()) for g in gradients), "a weight has no finite gradient"
    assert any(bool(g.any()) for g in gradients if g is not None), "all gradients are zero"


EVERY: tuple[Check, ...] = (
    check_shapes_and_types,
    check_probabilities_sum_to_one,
    check_score_equals_steps,
    check_rows_do_not_matter,
    check_the_future_does_not_leak,
    check_history_is_as_long_as_the_context,
    check_select_commutes_with_advance,
    check_a_selected_state_is_a_copy,
    check_a_spent_state_refuses,
    check_a_saved_model_is_the_same,
    check_beam_of_one_is_greedy,
)
TINY_ONLY: tuple[Check, ...] = (
    check_all_strings_of_three_tokens_total_one,
    check_a_full_beam_finds_the_best_of_all_strings,
)
NEURAL_ONLY: tuple[Check, ...] = (
    check_loss_is_the_sum_of_scores,
    check_decoding_leaves_training_possible,
)
CARRIED_ONLY: tuple[Check, ...] = (check_carried_loss_is_the_sum_of_scores,)


def checks_for(case: Case) -> tuple[Check, ...]:
    """The checks that apply to the model of a case."""
    # A random recurrent net may be chaotic, and then a rounding error grows with the text; the plain ones are not.
    long = (check_long_texts_are_scored_like_short_ones,) if case.tiny and not case.variant else ()
    return EVERY + long + TINY_ONLY * case.tiny + NEURAL_ONLY * case.neural + CARRIED_ONLY * case.carries_state
