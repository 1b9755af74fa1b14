"""Learning to fill blanks: windows of a text, some of whose tokens are hidden, drawn from (seed, step) alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.learn.next_token import VALIDATION_TOKENS, NextToken
from lmlab.learn.prepare_text import prepare_text
from lmlab.models.bert import BERT, masked_of
from lmlab.models.families.encoder import Symbols
from lmlab.tasks.masked.data import masked
from lmlab.text.batches import draw_windows, even_windows, filled

if TYPE_CHECKING:
    from lmlab.interface import Learner, TextLearner
    from lmlab.learn.prepared import Prepared
    from lmlab.learn.request import TrainingRequest
    from lmlab.learn.settings import TrainConfig
    from lmlab.learn.task import PartName
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

# Sentences that are to be filled are shorter than the windows of a text: of ten steps three read more and shorter ones, by
# these divisors of the usual length. Of one shorter length, because a GPU compiles a step for every shape.
SHORTER = (1, 1, 1, 1, 1, 1, 1, 4, 4, 4)
SAMPLE_TOKENS, SAMPLED = 40, 7  # of a sample, and which of them are filled in: every seventh


def prepare(request: TrainingRequest) -> Prepared:
    """Read a text, and construct a masked encoder."""
    return prepare_text(request, Masking)


@dataclass(frozen=True, kw_only=True)
class Masking(NextToken):
    """Guessing masked tokens of one text, in batches of about `rows` windows of `length` tokens."""

    name = "masked-token"
    thing = "masked token"
    unit = "bits per masked token"

    @classmethod
    def of(
        cls,
        model: TextLearner,
        tokenizer: Tokenizer,
        train: TokenStream,
        valid: TokenStream | None,
        config: TrainConfig,
        larger: int = 1,
    ) -> Self:
        """The task with batches that suit the model, which must have symbols that no text has."""
        if not model.config.symbols:
            raise Mistake(
                f"{model.name}: a text leaves no ids to begin, end and mask with; set symbols=true",
                code="symbols-needed",
            )
        return super().of(model, tokenizer, train, valid, config, larger)

    def batch(self, seed: int, step: int) -> Any:
        """Windows and what is hidden in them."""
        random = np.random.default_rng([seed, step, 1])
        divisor = min(self.length, int(random.choice(SHORTER)))
        windows = draw_windows(self.train, self.rows * divisor, self.length // divisor, seed, step)
        return masked(windows, Symbols.beside(self.vocab_size), self.vocab_size, random)

    def validation(self) -> Iterable[Any]:
        """Windows spread evenly over the validation part, always with the same blanks."""
        if self.valid is None:
            return []
        length = min(self.length, self.valid.tokens)
        windows = even_windows(self.valid, VALIDATION_TOKENS // length, length).split(self.rows)
        random, symbols = np.random.default_rng(0), Symbols.beside(self.vocab_size)
        return [masked(part, symbols, self.vocab_size, random) for part in windows]

    def measured(self, nats: float, part: PartName) -> dict[str, float]:
        """Bits and nats that a masked token costs."""
        return {"bits_per_masked_token": nats / math.log(2), "nats_per_masked_token": nats}

    def training_flops(self, model: Learner) -> float:
        """For each masked token, over windows of all lengths as often as they are drawn."""
        shapes = [(self.rows * n, self.length // n) for n in (min(self.length, n) for n in SHORTER)]
        share = {length: filled(self.train, length) for _, length in shapes}
        operations = sum(model.training_flops(rows, length, filled=share[length]) or 0 for rows, length in shapes)
        return operations / sum(masked_of(rows * length) * share[length] for rows, length in shapes)

    def sample(self, model: Learner) -> str:
        """The beginning of the validation part, with what the model puts in place of some tokens in brackets."""
        assert isinstance(model, BERT)
        symbols, device = model.symbols, next(model.parameters()).device
        shown = np.asarray((self.valid or self.train).ids[: min(SAMPLE_TOKENS, self.length)]).astype(np.int64)
        places = np.arange(SAMPLED // 2, len(shown), SAMPLED)
        if not len(places):
            return ""
        hidden = shown.copy()
        hidden[places] = symbols.mask
        inputs_BT = torch.tensor([[symbols.begin, *hidden.tolist(), symbols.end]], device=device)
        guessed = model.guesses(inputs_BT, torch.from_numpy(places + 1).to(device)).argmax(-1).tolist()
        text, done = "", 0
        for place, token in zip(places.tolist(), guessed, strict=True):
            text += f"{self.tokenizer.decode(shown[done:place])} [{self.tokenizer.piece(token).strip(' ')}]"
            done = place + 1
        return text + self.tokenizer.decode(shown[done:])
