"""Bugs of rows side by side, planted one by one: each must be caught by the check it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from cases import Case, build, variants

from lmlab.engine import certain_text
from lmlab.engine.batch import Batch
from lmlab.interface import HistoryState, LanguageModel, State
from lmlab.models._gpt_state import GPTMemory, GPTRows
from lmlab.models.families.recurrent import RecurrentState
from lmlab.models.ngram import NGramState
from lmlab.promises.side_by_side import (
    check_a_row_that_joins_takes_the_place_of_one_that_left,
    check_requests_side_by_side_are_what_they_are_alone,
    check_states_side_by_side_go_on_as_alone,
    check_states_that_were_joined_are_spent,
    check_text_is_shown_as_soon_as_it_is_certain,
)
from lmlab.promises.subjects import TINY, tokenizer

Check = Callable[..., None]
JOINED = check_states_side_by_side_go_on_as_alone
REPLACED = check_a_row_that_joins_takes_the_place_of_one_that_left
SPENT = check_states_that_were_joined_are_spent
REQUESTS = check_requests_side_by_side_are_what_they_are_alone
TEXT = check_text_is_shown_as_soon_as_it_is_certain


def sound(name: str) -> LanguageModel:
    return build(Case(name, "", TINY, variants(name)[""]))


def caught(check: Check, model: LanguageModel) -> None:
    with pytest.raises(AssertionError):
        tried(check, model)


def tried(check: Check, model: LanguageModel) -> None:
    if check in (REQUESTS, TEXT):
        check(model, tokenizer(TINY))
    else:
        check(model)


@pytest.mark.parametrize("check", [JOINED, REPLACED, REQUESTS])
def test_a_row_that_reads_the_cache_of_its_neighbour_is_caught(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    model, right = sound("gpt"), GPTRows.put
    tried(check, model)

    def careless(self: GPTRows, rows_N: torch.Tensor, state: GPTMemory, chosen_N: torch.Tensor | None = None) -> None:
        right(self, rows_N, state, chosen_N)
        if int(rows_N[0]):
            self.cache.cache_L2BKCE[:, :, rows_N] = self.cache.cache_L2BKCE[:, :, :1]

    monkeypatch.setattr(GPTRows, "put", careless)
    caught(check, model)


@pytest.mark.parametrize("check", [JOINED, REQUESTS])
@pytest.mark.parametrize("name", ["ngram", "lstm"])
def test_rows_that_are_joined_in_another_order_are_caught(
    name: str, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind: Any = {"ngram": NGramState, "lstm": RecurrentState}[name]
    right = kind.concat
    monkeypatch.setattr(kind, "concat", lambda states: right(list(states)[::-1]))
    caught(check, sound(name))


def test_a_state_that_can_be_spent_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(states: Sequence[HistoryState]) -> HistoryState:
        return HistoryState(torch.cat([state.history_BN for state in states]))

    tried(SPENT, sound("feedforward"))
    monkeypatch.setattr(HistoryState, "concat", careless)
    caught(SPENT, sound("feedforward"))


def test_rows_that_move_up_when_another_leaves_without_their_state_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Batch.shrink

    def careless(self: Batch, seldom: bool) -> torch.Tensor | None:
        first = self._state.select(torch.arange(self.busy)) if self.busy else None
        kept_B = right(self, seldom)
        if kept_B is not None and first is not None:
            self._state = first
        return kept_B

    monkeypatch.setattr(Batch, "shrink", careless)
    caught(REQUESTS, sound("ngram"))


@pytest.mark.parametrize("held", [lambda text, stop: min(len(text), len(stop) - 1), lambda text, stop: 0])
def test_a_stop_string_that_is_held_back_too_long_or_too_short_is_caught(
    held: Callable[[str, str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried(TEXT, sound("ngram"))
    monkeypatch.setattr(certain_text, "_overlap", held)
    caught(TEXT, sound("ngram"))


class OldState(State):
    """A state written when a contract had no `concat`."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def select(self, rows_B: torch.Tensor) -> OldState:
        return OldState(self.state.select(rows_B))


@pytest.mark.parametrize("check", [JOINED, REPLACED, SPENT, REQUESTS, TEXT])
def test_a_model_whose_states_know_no_concat_keeps_these_promises(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sound("ngram")

    class Old(type(model)):  # type: ignore[misc]
        def begin(self, rows: int) -> tuple[torch.Tensor, State]:
            logp_BV, state = super().begin(rows)
            return logp_BV, OldState(state)

        def advance(self, tokens_BT: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            assert isinstance(state, OldState)
            state.spend()
            logp_BV, after = super().advance(tokens_BT, state.state)
            return logp_BV, OldState(after)

    old = Old(model.config, model.tables, model.counts_of_counts)  # type: ignore[attr-defined]
    tried(check, old)
