"""The model as decoding sees it: a prompt, then `begin`, `advance` and `select`, and nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from lmlab.config import Mistake
from lmlab.decode.continuation import Continuation, Spelled, likeliest_spelling
from lmlab.interface import LanguageModel, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmlab.text.tokenizers import Tokenizer


@final
class Reader:
    """A model that has read a prompt; rows: so many times, where it begins otherwise in each row (a source a row).

    The prompt is encoded by itself and read at once. A tokenizer may divide the whole text otherwise than prompt and
    continuation one after the other; that is how all language models over pieces of words are used, but it means that a
    `bpe` prompt should not end inside a word or in a space, and a `words` prompt not in a space.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, prompt: str, rows: int = 1) -> None:
        if isinstance(model, nn.Module) and model.training:
            raise ValueError(f"this {model.name} is in training, where dropout disturbs it; call model.eval() first")
        if not isinstance(prompt, str):
            raise Mistake(f"a prompt is a text; got {type(prompt).__name__}", code="prompt-not-text")
        self.model, self.tokenizer, self.rows = model, tokenizer, rows
        try:
            prompt.encode()
        except UnicodeEncodeError as error:  # half a surrogate pair, or a byte of a command line that is not UTF-8
            at = error.start
            raise Mistake(
                f"the prompt is not valid Unicode at character {at}; give text in UTF-8", code="prompt-not-unicode"
            ) from None
        encoded = tokenizer.encode(prompt)
        self.prompt_ids, self.prompt_spellings = [int(id) for id in encoded.ids], encoded.spellings
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
