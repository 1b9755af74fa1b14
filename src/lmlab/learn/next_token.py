"""Predicting the next token: the task of every language model.

Batches are windows of a token stream, each from its own begin; a model that carries a state reads long stretches instead,
a piece at a time, and starts afresh after a few pieces, so that the state that is carried need never be saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import torch

from lmlab.config import Mistake
from lmlab.interface import CarriedLanguageModel, Loss, NeuralLanguageModel, TextLearner, Windows
from lmlab.learn.task import PartName, Task
from lmlab.learn.unit import Unit
from lmlab.text.batches import draw_stretches, draw_windows, even_windows, filled

if TYPE_CHECKING:
    from lmlab.interface import Learner
    from lmlab.learn.settings import TrainConfig
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

CARRIED_CHUNKS = 16  # of truncated back-propagation; then a carried state starts afresh, and may be checkpointed
VALIDATION_TOKENS = 16_384  # at most: enough to rank weights, few enough to look at often
SAMPLE_TOKENS = 100
TIMES_READ = 2  # and less: nothing is known by heart, and looking would take a part of a short budget
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly


@dataclass(frozen=True, kw_only=True)
class NextToken(Task):
    """Next-token prediction on one text, in batches of `rows` windows of `length` tokens."""

    name = "next-token"
    thing = "token"
    unit = "bits per byte"

    train: TokenStream
    valid: TokenStream | None
    units: dict[PartName, Unit]
    vocab_size: int
    rows: int
    length: int
    tokenizer: Tokenizer
    chunks: int | None  # pieces of `length` tokens in a stretch, for models that carry a state; None: windows

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
        """The task with batches that suit the model. larger: how many times its rows, where a machine takes that as easily."""
        most = model.longest_window
        if most is not None and config.length is not None and config.length > most:
            raise Mistake(
                f"{model.name}: a training window of {config.length} tokens is longer than the context, {most};"
                f" set length to {most} or less, or a longer context",
                code="window-longer-than-context",
            )
        rows, length = model.batch_shape
        length = min(config.length or length, train.tokens)
        carries = isinstance(model, CarriedLanguageModel)
        valid = valid if valid is not None and valid.tokens else None
        return cls(
            train=train,
            valid=valid,
            units={"train": Unit.of(train, tokenizer), "valid": Unit.of(valid or train, tokenizer)},
            vocab_size=tokenizer.vocab_size,
            tokenizer=tokenizer,
            rows=config.rows or rows * larger,
            length=length,
            chunks=min(CARRIED_CHUNKS, max(1, train.tokens // length)) if carries else None,
        )

    def batch(self, seed: int, step: int) -> Windows:
        """Windows, or stretches across document bounds, drawn from (seed, step)."""
        if self.chunks is None:
            return draw_windows(self.train, self.rows, self.length, seed, step)
        return Windows(draw_stretches(self.train, self.rows, self.length * self.chunks, seed, step))

    def pieces(self, batch: Any) -> Sequence[Windows]:
        """The windows; of stretches, a few tokens of each at a time."""
        if self.chunks is None:
            return (batch,)
        return [Windows(piece_BT) for piece_BT in batch.tokens_BT.split(self.length, dim=1)]

    def loss(self, model: Learner, piece: Any, carry: Any) -> tuple[Loss, Any]:
        """The loss of the windows; of stretches with the state carried from one piece to the next."""
        if self.chunks is None:
            return model.loss(piece), None
        assert isinstance(model, CarriedLanguageModel)
        return model.loss_carried(piece.tokens_BT, carry)

    def validation(self) -> Iterable[Windows]:
        """Windows spread evenly over the validation part."""
        if self.valid is None:
            return ()
        length = min(self.length, self.valid.tokens)
        return even_windows(self.valid, VALIDATION_TOKENS // length, length).split(self.rows)

    def measured(self, nats: float, part: PartName) -> dict[str, float]:
        """Bits per byte, what spelling unknown words costs included; and nats per token."""
        return {"bits_per_byte": self.units[part].bits_per_byte(nats), "nats_per_token": nats}

    def training_flops(self, model: Learner) -> float | None:
        """For each token of a batch: on average over a stretch, whose first piece has nothing to look back to, or over windows,
        of which documents that are shorter leave a part empty.
        """
        pieces = self.chunks or 1
        share = filled(self.train, self.length) if self.chunks is None else 1.0
        known = [
            model.training_flops(self.rows, self.length, past=k * self.length, filled=share) for k in range(pieces)
        ]
        return None if None in known else sum(filter(None, known)) / (pieces * self.rows * self.length * share)

    def calibrated(self, model: Learner, read: float) -> float | None:
        """A text that was read a few times is partly known by heart, which makes a model too sure of others."""
        if not isinstance(model, NeuralLanguageModel) or read < TIMES_READ * self.train.tokens:
            return None
        return model.calibrate(self.validation())

    def sample(self, model: Learner) -> str:
        """A few tokens drawn from the model, always with the same luck."""
        assert isinstance(model, NeuralLanguageModel)
        luck = torch.Generator().manual_seed(0)
        logp_BV, state = model.begin(1)
        ids: list[int] = []
        for _ in range(SAMPLE_TOKENS):
            ids.append(int(torch.multinomial(logp_BV[0].float().exp().cpu(), 1, generator=luck)))
            logp_BV, state = model.advance(torch.tensor([ids[-1:]], device=logp_BV.device), state)
        return self.tokenizer.decode(ids)

    @property
    def worst_nats(self) -> float:
        """Somewhat above what guessing costs."""
        return math.log(self.vocab_size) + DIVERGED_NATS
