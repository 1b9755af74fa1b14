"""Next-token prediction: the task of every language model.

Batches are windows of a token stream. A model that carries a state reads long sequences instead, one piece at a time. It
starts from a fresh state after `CARRIED_CHUNKS` pieces, so that a checkpoint never holds a carried state.

Where the ends of documents are predicted, all models learn from windows of documents (`text/document_windows.py`), so that no
prediction sees another document.
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
from lmlab.text.document_windows import DocumentWindows

if TYPE_CHECKING:
    from lmlab.interface import Learner
    from lmlab.learn.settings import TrainConfig
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer

CARRIED_WINDOW = 4  # pieces in a window of a document, for models that carry a state
CARRIED_CHUNKS = 16  # pieces of truncated backpropagation between fresh states; checkpoints are written there
VALIDATION_TOKENS = 16_384  # at most: enough to rank weights, few enough to evaluate often
SAMPLE_TOKENS = 100
TIMES_READ = 2  # epochs; with fewer nothing is memorized, and calibrating would cost part of a short budget
DIVERGED_NATS = 2.0  # above the loss of a uniform guess


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
    chunks: int | None  # pieces of `length` tokens per sequence, for models that carry a state; None: windows
    documents: DocumentWindows | None = None  # windows of the training part, if the ends of its documents are predicted

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
        """Create the task with the batch size of the model, or that of `config`.

        Args:
            model: the model in training.
            tokenizer: the tokenizer of both streams.
            train: the training tokens.
            valid: the validation tokens; None: no validation.
            config: the settings of the training loop.
            larger: factor on the model's default rows, for hardware on which larger batches are faster.

        Raises:
            Mistake: `config.length` exceeds the context of the model.
        """
        most = model.longest_window
        if most is not None and config.length is not None and config.length > most:
            raise Mistake(
                f"{model.name}: a training window of {config.length} tokens is longer than the context, {most};"
                f" set length to {most} or less, or a longer context",
                code="window-longer-than-context",
            )
        documents = document_windows(model, train, config.length)
        rows, length = usual_shape(model, documents)
        length = min(config.length or length, train.tokens) if documents is None else length
        carries = isinstance(model, CarriedLanguageModel) and documents is None
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
            documents=documents,
        )

    def batch(self, seed: int, step: int) -> Windows:
        """Draw windows, or sequences that may cross document boundaries for models that carry a state."""
        if self.documents is not None:
            return self.documents.draw(self.rows, seed, step)
        if self.chunks is None:
            return draw_windows(self.train, self.rows, self.length, seed, step)
        return Windows(draw_stretches(self.train, self.rows, self.length * self.chunks, seed, step))

    def pieces(self, batch: Any) -> Sequence[Windows]:
        """Return the windows as one piece, or split sequences into pieces of `length` tokens."""
        if self.chunks is None:
            return (batch,)
        return [Windows(piece_BT) for piece_BT in batch.tokens_BT.split(self.length, dim=1)]

    def loss(self, model: Learner, piece: Any, carry: Any) -> tuple[Loss, Any]:
        """Return the loss of a piece and the state for the next piece, which is None for windows."""
        if self.chunks is None:
            return model.loss(piece), None
        assert isinstance(model, CarriedLanguageModel)
        return model.loss_carried(piece.tokens_BT, carry)

    def validation(self) -> Iterable[Windows]:
        """Return windows that are spread evenly over the validation part."""
        if self.valid is None:
            return ()
        length = min(self.length, self.valid.tokens)
        return even_windows(self.valid, VALIDATION_TOKENS // length, length).split(self.rows)

    def measured(self, nats: float, part: PartName) -> dict[str, float]:
        """Convert nats per token to bits per byte, including the cost of spelling unknown words, and to nats per token."""
        return {"bits_per_byte": self.units[part].bits_per_byte(nats), "nats_per_token": nats}

    def training_flops(self, model: Learner) -> float | None:
        """Return the average forward and backward FLOPs per token of a batch; None: unknown.

        The first piece of a sequence has no context before it, so FLOPs are averaged over the pieces. Windows of short
        documents are partly empty, so FLOPs are divided by the filled positions alone.
        """
        pieces = self.chunks or 1
        share = filled(self.train, self.length) if self.chunks is None else 1.0
        share = share if self.documents is None else self.documents.filled
        known = [
            model.training_flops(self.rows, self.length, past=k * self.length, filled=share) for k in range(pieces)
        ]
        return None if None in known else sum(filter(None, known)) / (pieces * self.rows * self.length * share)

    def calibrated(self, model: Learner, read: float) -> float | None:
        """Calibrate the logits on the validation part if the training text was read `TIMES_READ` times or more.

        Repeated epochs make a model overconfident on other texts.
        """
        if not isinstance(model, NeuralLanguageModel) or read < TIMES_READ * self.train.tokens:
            return None
        return model.calibrate(self.validation())

    def sample(self, model: Learner) -> str:
        """Return `SAMPLE_TOKENS` tokens drawn from the model, always with the same seed."""
        assert isinstance(model, NeuralLanguageModel)
        luck = torch.Generator().manual_seed(0)
        logp_BV, state = model.begin(1)
        ids: list[int] = []
        for _ in range(SAMPLE_TOKENS):
            ids.append(int(torch.multinomial(logp_BV[0].float().exp().cpu(), 1, generator=luck)))
            if ids[-1] == self.tokenizer.end_id:  # another document
                logp_BV, state = model.begin(1)
                continue
            logp_BV, state = model.advance(torch.tensor([ids[-1:]], device=logp_BV.device), state)
        return self.tokenizer.decode(ids)

    @property
    def worst_nats(self) -> float:
        """The nats per token above which training has diverged: the loss of a uniform guess plus `DIVERGED_NATS`."""
        return math.log(self.vocab_size) + DIVERGED_NATS


def document_windows(model: TextLearner, train: TokenStream, length: int | None = None) -> DocumentWindows | None:
    """Return the windows of the documents that a model learns from; None if the ends of documents are not predicted.

    Args:
        model: the model in training.
        train: the training tokens.
        length: tokens of a window at most; None: as the model usually has.
    """
    if not train.has_ends:
        return None
    carries = isinstance(model, CarriedLanguageModel)
    return DocumentWindows(train, length or model.batch_shape[1] * (CARRIED_WINDOW if carries else 1))


def usual_shape(model: TextLearner, documents: DocumentWindows | None) -> tuple[int, int]:
    """Return the default rows of a batch and the tokens of a row. Batches of documents have as many tokens as others."""
    rows, length = model.batch_shape
    return (rows, length) if documents is None else (documents.rows_of(rows * length), documents.length)
