"""The contract suite, tried on models and measurements with a planted bug: each must be caught, by the check it is for.

A bug is planted by giving a copy of a sound model another class. The sound models pass every check (test_contract.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from cases import Case, build, variants
from torch import Tensor

from lmlab.engine.reader import Reader
from lmlab.hardware.c_kernels import no_c_kernels
from lmlab.interface import ContextPolicy, HistoryState, LanguageModel, Loss, State, Windows
from lmlab.layers.fast.one_row import OneRow
from lmlab.measure import score as measure_score
from lmlab.measure.tally import Tally
from lmlab.models._gpt_state import GPTState
from lmlab.models.feedforward import FeedForward
from lmlab.models.gpt import GPT
from lmlab.models.lstm import LSTM
from lmlab.models.ngram import NGram, NGramState
from lmlab.promises.checks import (
    check_a_saved_model_is_the_same,
    check_a_selected_state_is_a_copy,
    check_a_spent_state_refuses,
    check_history_is_as_long_as_the_policy_says,
    check_long_texts_are_scored_like_short_ones,
    check_probabilities_sum_to_one,
    check_prompts_are_begin_and_advance,
    check_rows_do_not_matter,
    check_score_equals_steps,
    check_select_commutes_with_advance,
    check_shapes_and_types,
    check_the_future_does_not_leak,
)
from lmlab.promises.learning import (
    check_a_repeating_text_is_learned,
    check_carried_loss_is_the_sum_of_scores,
    check_decoding_leaves_training_possible,
    check_every_weight_learns,
    check_loss_is_the_sum_of_scores,
    check_rougher_products_give_nearly_the_same_gradients,
    check_the_whole_context_is_used,
    check_training_mode_does_not_change_scores,
    check_weights_that_do_not_fit_are_refused,
)
from lmlab.promises.subjects import TINY, tokenizer
from lmlab.promises.uses import (
    OF_ALL_STRINGS,
    OF_USING_IT,
    check_a_full_beam_finds_the_best_of_all_strings,
    check_all_strings_of_three_tokens_total_one,
    check_beam_of_one_is_greedy,
    check_measuring_certifies_it,
)
from lmlab.text.codings import Encoded
from lmlab.text.tokenizers import Tokenizer


def sound(name: str, variant: str = "") -> Any:
    """A copy of a model of the suite that shares its weights."""
    return copy.copy(build(Case(name, variant, TINY, variants(name)[variant])))


def planted(bug: type, variant: str = "") -> Any:
    """A sound model of the class that the bug is derived from, with the bug."""
    model = sound(bug.__mro__[1].name, variant)
    model.__class__ = bug
    return model


def tried(check: Callable[..., None], model: LanguageModel) -> None:
    """Some checks need to know how the tokens read."""
    if check in OF_USING_IT + OF_ALL_STRINGS:
        check(model, tokenizer(TINY))
    else:
        check(model)


class LeaksTheFuture(GPT):
    """Its attention is not causal: a little of the next position comes through when a text is scored at once."""

    def _hidden(self, inputs_BT: Tensor, dtype: torch.dtype, dropout: float) -> Tensor:
        hidden_BTD = super()._hidden(inputs_BT, dtype, dropout)
        return torch.cat([hidden_BTD[:, :-1] + 0.1 * hidden_BTD[:, 1:], hidden_BTD[:, -1:]], dim=1)


class Unnormalised(NGram):
    """Its probabilities sum to 1.01, in scores as in steps."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) - 0.01

    def begin(self, rows: int) -> tuple[Tensor, State]:
        logp_BV, state = super().begin(rows)
        return logp_BV + 0.01, state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        return logp_BV + 0.01, state


class ScoresFlatter(NGram):
    """Its scores are one percent lower than its probabilities allow."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * 0.99


class FirstTokenIsFree(NGram):
    """It does not charge for the first token."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        nats_BT[:, 0] = 0.0
        return nats_BT


class WindowScoredTwice(GPT):
    """Windows overlap, and what lies in two of them is added up from both."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        for start in range(self.stride, tokens_BT.shape[1], self.stride):
            again = slice(start, start + self.context - self.stride)
            nats_BT[:, again] += super().score(tokens_BT[:, again])
        return nats_BT


class CacheOffByOne(GPT):
    """After each read the keys and values lie one position too far."""

    def _read(self, state: GPTState) -> tuple[Tensor, GPTState]:
        logp_BV, after = super()._read(state)
        after.kv_L2BHCD = after.kv_L2BHCD.roll(1, dims=4)
        return logp_BV, after


class PositionsOffByOne(GPT):
    """One position at a time is taken for the position before it; several at once are right."""

    def _embed(self, inputs_BT: Tensor, first: int) -> Any:
        return super()._embed(inputs_BT, first - 1 if first and inputs_BT.shape[1] == 1 else first)


class ARowAloneIsOffByOne(GPT):
    """The same mistake, where a single row has a way of its own."""

    def begin(self, rows: int) -> tuple[Tensor, GPTState]:
        with no_c_kernels():
            logp_BV, state = super().begin(rows)
        row = state.decoder._row
        if isinstance(row, OneRow):
            cos, sin = row.turns
            row.turns = np.roll(cos, 1, axis=0), np.roll(sin, 1, axis=0)
        return logp_BV, state


class PromptsForgetTheBeginning(GPT):
    """A prompt longer than the window is cut where the window ends, not where windows begin."""

    def begin_with(self, tokens_BT: Tensor) -> tuple[Tensor, GPTState]:
        return super().begin_with(tokens_BT[:, -(self.context - 1) :])


class HistoryOffByOne(FeedForward):
    """It remembers everything but the newest token."""

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        assert isinstance(state, HistoryState)
        older_BN = torch.cat([state.history_BN, tokens_BT], dim=1)[:, :-1][:, -self.context :]
        _, after = super().advance(tokens_BT, state)
        return self._after(HistoryState(older_BN)), after


class ForgetsBetweenChunks(LSTM):
    """Each call of advance reads its tokens as if they were the first."""

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, after = super().advance(tokens_BT, state)
        if tokens_BT.shape[1] > 1:
            return super().advance(tokens_BT, self.begin(len(tokens_BT))[1])
        return logp_BV, after


class NeverSpent(NGram):
    """Its states can be advanced twice."""

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        return super().advance(tokens_BT, state.select(torch.arange(len(tokens_BT))))


class RowsMatter(FeedForward):
    """Scores are compared with the mean of the batch."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        nats_BT = super().score(tokens_BT)
        return nats_BT + 0.01 * (nats_BT.mean(0) - nats_BT)


class SeesMoreThanItSays(NGram):
    """Its history is one token longer than it claims."""

    @property
    def policy(self) -> ContextPolicy:  # type: ignore[override]
        return ContextPolicy.last(self.tables.order - 2)


class SavedInHalfPrecision(GPT):
    """What it saves is rounded."""

    def tensors(self) -> dict[str, Tensor]:
        return {name: tensor.bfloat16().float() for name, tensor in super().tensors().items()}


class AveragesItsLoss(FeedForward):
    """Its loss is a mean."""

    def loss(self, batch: Windows) -> Loss:
        loss = super().loss(batch)
        return Loss(total=loss.mean, count=loss.count)


class IgnoresItsMask(FeedForward):
    """It counts the tokens under the mask and adds up all."""

    def loss(self, batch: Windows) -> Loss:
        return Loss(total=super().loss(Windows(batch.tokens_BT)).total, count=super().loss(batch).count)


class CarriesNothing(LSTM):
    """Every stretch of a text starts from nothing."""

    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        return super().loss_carried(tokens_BT, None)


class CarriesTheGraph(LSTM):
    """What it carries is not cut off."""

    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        memory = self.fresh(len(tokens_BT)) if carry is None else carry[1]
        inputs_BT = self.begin_inputs(tokens_BT)
        if carry is not None:
            inputs_BT[:, :1] = carry[0]
        total, memory = self._learn(inputs_BT, Windows(tokens_BT), memory)
        return Loss(total=total, count=tokens_BT.numel()), (tokens_BT[:, -1:], memory)


class DropsWhileScoring(FeedForward):
    """Its dropout does not know that it is being asked for a score."""

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        return super().hidden(inputs_BM, 0.5 if self.training else 0.0, dtype)


class ScoresRoughly(FeedForward):
    """The precision of training is that of its scores too."""

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        return super().hidden(inputs_BM, dropout, self.compute_dtype)


class HasAWeightNobodyUses(FeedForward):
    """Its bias is left out."""

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        return super().hidden(inputs_BM, dropout, dtype) + 0 * self.bias_H.detach()

    def loss(self, batch: Windows) -> Loss:
        bias, self.bias_H.requires_grad = self.bias_H, False
        loss = super().loss(batch)
        bias.requires_grad = True
        return loss


class SaysItSeesMore(FeedForward):
    """Its history is one token shorter than it claims."""

    @property
    def policy(self) -> ContextPolicy:  # type: ignore[override]
        return ContextPolicy.last(self.context + 1)


class TakesAnyWeights(FeedForward):
    """What is lacking stays as it was drawn."""

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Any) -> Any:
        model = FeedForward(config, vocab_size)
        model.load_state_dict(tensors, strict=False)
        return model


class LosesItsPrecision(FeedForward):
    """In rough products even the loss is rough."""

    def loss(self, batch: Windows) -> Loss:
        loss = super().loss(batch)
        return Loss(total=loss.total.to(self.compute_dtype), count=loss.count)


class NeverLearns(FeedForward):
    """Its gradients point uphill."""

    def loss(self, batch: Windows) -> Loss:
        loss = super().loss(batch)
        return Loss(total=-loss.total, count=loss.count)


class KeepsInferenceTensors(FeedForward):
    """What it keeps from decoding cannot be trained with."""

    kept: Tensor | None = None

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        if KeepsInferenceTensors.kept is None:
            KeepsInferenceTensors.kept = torch.ones(())
        return super().hidden(inputs_BM, dropout, dtype) * KeepsInferenceTensors.kept


class LongTextsLoseTheirMemory(LSTM):
    """After a stretch of scoring it starts afresh."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        stretches = tokens_BT.split(8192 // len(tokens_BT), dim=1)
        return torch.cat([super(LongTextsLoseTheirMemory, self).score(stretch) for stretch in stretches], dim=1)


BUGS: list[tuple[type, Callable[..., None]]] = [
    (LeaksTheFuture, check_the_future_does_not_leak),
    (LeaksTheFuture, check_score_equals_steps),
    (Unnormalised, check_probabilities_sum_to_one),
    (Unnormalised, check_all_strings_of_three_tokens_total_one),
    (ScoresFlatter, check_score_equals_steps),
    (ScoresFlatter, check_all_strings_of_three_tokens_total_one),
    (FirstTokenIsFree, check_shapes_and_types),
    (FirstTokenIsFree, check_score_equals_steps),
    (WindowScoredTwice, check_score_equals_steps),
    (CacheOffByOne, check_score_equals_steps),
    (CacheOffByOne, check_a_full_beam_finds_the_best_of_all_strings),
    (PositionsOffByOne, check_score_equals_steps),
    (ARowAloneIsOffByOne, check_score_equals_steps),
    (PromptsForgetTheBeginning, check_prompts_are_begin_and_advance),
    (HistoryOffByOne, check_score_equals_steps),
    (HistoryOffByOne, check_beam_of_one_is_greedy),
    (ForgetsBetweenChunks, check_score_equals_steps),
    (NeverSpent, check_a_spent_state_refuses),
    (RowsMatter, check_rows_do_not_matter),
    (SeesMoreThanItSays, check_history_is_as_long_as_the_policy_says),
    (SaysItSeesMore, check_the_whole_context_is_used),
    (TakesAnyWeights, check_weights_that_do_not_fit_are_refused),
    (LosesItsPrecision, check_rougher_products_give_nearly_the_same_gradients),
    (DropsWhileScoring, check_training_mode_does_not_change_scores),
    (ScoresRoughly, check_training_mode_does_not_change_scores),
    (HasAWeightNobodyUses, check_every_weight_learns),
    (NeverLearns, check_a_repeating_text_is_learned),
    (SavedInHalfPrecision, check_a_saved_model_is_the_same),
    (AveragesItsLoss, check_loss_is_the_sum_of_scores),
    (IgnoresItsMask, check_loss_is_the_sum_of_scores),
    (CarriesNothing, check_carried_loss_is_the_sum_of_scores),
    (LongTextsLoseTheirMemory, check_long_texts_are_scored_like_short_ones),
]


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=[f"{b.__name__}-{c.__name__}" for b, c in BUGS])
def test_a_bug_in_a_model_is_caught(bug: type, check: Callable[..., None]) -> None:
    tried(check, sound(bug.__mro__[1].name))
    with pytest.raises(AssertionError):
        tried(check, planted(bug))


def test_decoding_that_stands_in_the_way_of_training_is_caught() -> None:
    with pytest.raises(RuntimeError, match="nference tensor"):
        check_decoding_leaves_training_possible(planted(KeepsInferenceTensors))


def test_a_carry_that_holds_the_graph_is_caught() -> None:
    with pytest.raises(RuntimeError, match="second time"):
        check_carried_loss_is_the_sum_of_scores(planted(CarriesTheGraph))


def test_scores_that_change_from_one_time_to_the_next_are_caught() -> None:
    model = copy.deepcopy(planted(DropsWhileScoring)).train()
    with pytest.raises(AssertionError, match="two answers"):
        check_rows_do_not_matter(model)


def rows_as_they_are(history_BN: Tensor, rows_B: Tensor) -> Tensor:
    return history_BN[torch.arange(len(rows_B)) % len(history_BN)]


@pytest.mark.parametrize("check", [check_select_commutes_with_advance, check_a_full_beam_finds_the_best_of_all_strings])
def test_a_state_that_does_not_reorder_its_beams_is_caught(
    check: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sound("ngram")
    tried(check, model)
    monkeypatch.setattr(
        NGramState, "select", lambda state, rows_B: NGramState(rows_as_they_are(state.history_BN, rows_B))
    )
    with pytest.raises(AssertionError):
        tried(check, model)


@pytest.mark.parametrize("name", ["ngram", "gpt", "lstm"])
def test_a_search_that_does_not_reorder_its_beams_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Reader.select

    def forgetful(self: Reader, logp_BV: Tensor, state: State, rows: list[int]) -> tuple[Tensor, State]:
        return right(self, logp_BV, state, [i % len(logp_BV) for i in range(len(rows))])

    monkeypatch.setattr(Reader, "select", forgetful)
    with pytest.raises(AssertionError):
        check_a_full_beam_finds_the_best_of_all_strings(sound(name), tokenizer(TINY))


def test_copies_of_a_state_that_share_memory_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = GPTState.select

    def careless(state: GPTState, rows_B: Tensor) -> GPTState:
        if rows_B.tolist() == list(range(len(state.window_BT))):
            return GPTState(state.kv_L2BHCD, state.window_BT, state.filled, state.decoder)
        return right(state, rows_B)

    monkeypatch.setattr(GPTState, "select", careless)
    with pytest.raises(AssertionError, match="disturbed another"):
        check_a_selected_state_is_a_copy(sound("gpt"))


# --- bugs of measuring: the model is sound, and what is made of its scores is not ---


def not_certified(check_name: str, model: LanguageModel, tokens: Tokenizer | None = None) -> None:
    with pytest.raises(AssertionError, match=check_name):
        check_measuring_certifies_it(model, tokens or tokenizer(TINY))


def test_a_tokenizer_that_drops_unknown_words_is_caught() -> None:
    right = tokenizer(TINY)

    def dropping(pieces: Iterable[str]) -> Iterator[Encoded]:
        for ids, _ in right.encode_pieces(pieces):
            yield Encoded(ids[ids != right.unknown_id], [])

    planted_tokenizer = copy.copy(right)
    planted_tokenizer.encode_pieces = dropping  # type: ignore[method-assign]
    not_certified("lossless", sound("ngram"), planted_tokenizer)


def test_unknown_words_that_are_not_paid_for_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Tally] = measure_score.tally

    def free_of_charge(tokenizer: Tokenizer, stream: Any, nats: Any, byte_ends: Any) -> Tally:
        only_symbols = nats.copy()
        found = vars(right(tokenizer, stream, nats, byte_ends))
        nats[:] = only_symbols
        return Tally(**found | {"total_nats": found["model_nats"], "spelling_nats": 0.0})

    monkeypatch.setattr(measure_score, "tally", free_of_charge)
    not_certified("unknown_words_paid", sound("ngram"))


def test_a_window_that_is_measured_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(measure_score._Calls):
        """Long documents go in pieces, and the history given to a piece is counted again."""

        def _one(self, document: int) -> None:
            start, end = (int(s) for s in self.starts[document : document + 2])
            for first in range(0, end - start, 12):
                given, last = self.policy.resume(max(first - 1, 0)), min(start + first + 12, end)
                tokens_BT = self.ids[None, start + given : last]
                places = slice(start + given, last)
                self._set(places, measure_score.score_rows(self.model, tokens_BT)[0], [[start + given, last]])

    monkeypatch.setattr(measure_score, "_Calls", Twice)
    not_certified("each_token_once", sound("gpt"))
