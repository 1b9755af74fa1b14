"""The model as decoding sees it: a prompt, then `begin`, `advance` and `select`, and nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from lmlab.engine.continuation import Continuation, Spelled, likeliest_spelling
from lmlab.engine.prompt import encoded_prompt
from lmlab.interface import LanguageModel, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmlab.text.tokenizers import Tokenizer


@final
class Reader:
    """A model that has read a prompt; rows: so many times, where it begins otherwise in each row (a source a row).

    Searches use it: they go on from several copies of one state.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, prompt: str, rows: int = 1) -> None:
        self.model, self.tokenizer, self.rows = model, tokenizer, rows
        self.prompt_ids, self.prompt_spellings = encoded_prompt(tokenizer, prompt, model.vocab_size)
        spelling = tokenizer.spelling
        self.likeliest = None if spelling is None else likeliest_spelling(spelling)

    def empty(self, stop: Sequence[str]) -> Continuation:
        """The continuation that has no token yet."""
        return Continuation.after(self.tokenizer, self.prompt_ids, self.prompt_spellings, stop, self.model.end_id)

    @torch.inference_mode()
    def start(self) -> tuple[Tensor, State]:
        """log p of the first token after the prompt."""
        return self.model.begin_with(torch.tensor([self.prompt_ids] * self.rows, dtype=torch.long))

    @torch.inference_mode()
    def advance(self, ids_B: Tensor, state: State) -> tuple[Tensor, State]:
        """log p after one more token in each row."""
        return self.model.advance(ids_B[:, None], state)

    @torch.inference_mode()
    def select(self, logp_BV: Tensor, state: State, rows: list[int]) -> tuple[Tensor, State]:
        """These rows, which may repeat; the rows as they are cost nothing."""
        if rows == list(range(len(logp_BV))):
            return logp_BV, state
        rows_B = torch.tensor(rows, device=logp_BV.device)
        return logp_BV[rows_B], state.select(rows_B)

    @torch.inference_mode()
    def charged(self, logp_BV: Tensor) -> Tensor:
        """log p for searches, in which the unknown symbol stands with its likeliest spelling and pays for it."""
        if self.likeliest is None:
            return logp_BV
        logp_BV = logp_BV.clone()
        logp_BV[:, self.tokenizer.unknown_id] -= self.likeliest.nats
        return logp_BV

    @property
    def has_unknown(self) -> bool:
        """Whether there is a symbol for unknown words, which are spelled."""
        return self.tokenizer.unknown_id is not None

    def spelled(self, id: int) -> Spelled | None:
        """The likeliest spelling if this is the unknown symbol."""
        return self.likeliest if id == self.tokenizer.unknown_id else None
