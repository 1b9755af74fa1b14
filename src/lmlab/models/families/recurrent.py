"""What models with an unbounded memory share: reading on from a state, truncated back-propagation, scoring in stretches.

Shapes: B rows, T tokens, V vocabulary, W = V + 1 inputs with the begin symbol, X embedding width, H state width,
L layers, G = gates × H.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size
from lmlab.interface import CarriedLanguageModel, ContextPolicy, Loss, State, Windows, spend
from lmlab.layers.cells import Cell
from lmlab.layers.gating import Gating, gating
from lmlab.layers.heads import (
    Head,
    cross_entropy_nats,
    head_part,
    log_probabilities,
    summed_nats,
)
from lmlab.layers.recurrent import RecurrentLayer, recurrent_part
from lmlab.models.families.softmax import SoftmaxModel
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

POSITIONS_AT_ONCE = 1 << 13
"""Inputs read in one go while scoring, so that a long text needs no more memory than a short one."""

BATCH = (32, 64)  # rows, and tokens through which gradients flow back

SIZES = [(1, 32), (1, 64), (1, 96), (1, 128), (1, 192), (1, 256), (1, 384), (1, 512), (2, 512), (2, 768), (2, 1024)]
"""(layers, width), small to large."""

APPETITE = Appetite(batch_tokens=BATCH[0] * BATCH[1], tokens_per_weight=8.0, weights_per_token=2.0)

TIE_FROM = 2048
"""Vocabulary from which one matrix serves as embedding and output: two would hold most of the weights."""

Memory = tuple[Tensor, ...]
"""What a model remembers: tensors whose first dimension is the rows."""


class RecurrentState(State):
    """The memory after the tokens so far."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def select(self, rows_B: Tensor) -> RecurrentState:
        """Copy, repeat or reorder rows."""
        return RecurrentState(tuple(m[rows_B] for m in self.memory))

    @classmethod
    def concat(cls, states: Sequence[RecurrentState]) -> RecurrentState | None:
        """Return one state with the rows of all states; None if their memories differ in shape. Spends them."""
        if len({tuple(m.shape[1:] for m in state.memory) for state in states}) > 1:
            return None
        spend(states)
        return RecurrentState(tuple(torch.cat(parts) for parts in zip(*(s.memory for s in states), strict=True)))


class CarriedModel(SoftmaxModel, CarriedLanguageModel):
    """A model that reads tokens one after the other into a memory and predicts the next from a hidden vector.

    A model of this kind says what a fresh memory is (`fresh`) and how inputs change it (`read`). Embedding and output
    layer are here: logits = O h + c, where O is the embedding itself when tied.
    """

    logits_follow: ClassVar[tuple[str, ...]] = ("output_VH", "bias_V")

    policy = ContextPolicy.everything()

    def __init__(self, config: Any, vocab_size: int, embedding_width: int, width: int, tie: bool) -> None:
        super().__init__(config, vocab_size)
        if tie and embedding_width != width:
            raise Mistake(
                f"{self.name}: tie needs embedding_width equal to width; got {embedding_width} and {width}",
                code="tie-needs-equal-widths",
            )
        self.tied_scale = width**0.5 if tie else 1.0
        self.embedding_WX = nn.Parameter(torch.randn(self.vocab_size + 1, embedding_width) / self.tied_scale)
        self.output_VH = None if tie else nn.Parameter(torch.zeros(self.vocab_size, width))
        self.bias_V = nn.Parameter(torch.zeros(self.vocab_size))

    @abstractmethod
    def fresh(self, rows: int) -> Memory:
        """The memory before any input."""

    @abstractmethod
    def read(self, x_BTX: Tensor, memory: Memory, dropout: float) -> tuple[Tensor, Memory]:
        """(hidden vectors B×T×H after each input, the memory after the last), in the precision of x."""

    def loss(self, batch: Windows) -> Loss:
        """Nats and number of the tokens under the mask, each row from its own begin."""
        tokens_BT = batch.tokens_BT
        total, _ = self._learn(self.begin_inputs(tokens_BT), batch, self.fresh(len(tokens_BT)))
        return Loss(total=total, count=batch.count)

    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        """Nats of the next stretch of each row, and what to carry on to the one after it.

        The carry is the last token, which is the first input of the next stretch, and the memory before that token is
        read. Gradients stop there: back-propagation through time is truncated to the stretch.
        """
        if carry is None:
            inputs_BT, memory = self.begin_inputs(tokens_BT), self.fresh(len(tokens_BT))
        else:
            last_B1, memory = carry
            inputs_BT = torch.cat([last_B1, tokens_BT[:, :-1]], dim=1)
        total, memory = self._learn(inputs_BT, Windows(tokens_BT), memory)
        loss = Loss(total=total, count=tokens_BT.numel())
        return loss, (tokens_BT[:, -1:], tuple(m.detach() for m in memory))

    @torch.no_grad()
    def said_by(self, head: Head, numbers: int, tokens_BT: Tensor) -> Tensor:
        """What the head says of each token given all before it, so many numbers, B×T×F, a stretch of time after the other."""
        rows, length = tokens_BT.shape
        inputs_BT, memory = self.begin_inputs(tokens_BT), self.fresh(rows)
        stretch = max(1, POSITIONS_AT_ONCE // max(rows, 1))
        found_BTF = torch.empty(rows, length, numbers, device=tokens_BT.device)
        for start in range(0, length, stretch):
            part = slice(start, start + stretch)
            hidden_BTH, memory = self.read(self.embed(inputs_BT[:, part], torch.float32), memory, 0.0)
            found_NF = head(hidden_BTH.flatten(0, 1), self.output(), self.bias_V, tokens_BT[:, part].flatten())
            found_BTF[:, part] = found_NF.view(rows, -1, numbers)
        return found_BTF

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Log-probabilities of the first token: those after the begin symbol."""
        begin_B1 = torch.full((rows, 1), self.vocab_size, device=self.bias_V.device)
        return self._next(begin_B1, self.fresh(rows))

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these."""
        assert isinstance(state, RecurrentState)
        state.spend()
        return self._next(tokens_BT, state.memory)

    @torch.no_grad()
    def _next(self, inputs_BT: Tensor, memory: Memory) -> tuple[Tensor, State]:
        hidden_BTH, memory = self.read(self.embed(inputs_BT, torch.float32), memory, 0.0)
        return log_probabilities(hidden_BTH[:, -1], self.output(), self.bias_V), RecurrentState(memory)

    def _learn(self, inputs_BT: Tensor, batch: Windows, memory: Memory) -> tuple[Tensor, Memory]:
        """Nats of the tokens under the mask together, and the memory after them."""
        dropout = self.config.dropout if self.training else 0.0
        x_BTX = F.dropout(self.embed(inputs_BT, self.compute_dtype), dropout, training=dropout > 0)
        hidden_BTH, memory = self.read(x_BTX, memory, dropout)
        hidden_NH = F.dropout(hidden_BTH, dropout, training=dropout > 0).flatten(0, 1)
        keep_N = None if batch.mask_BT is None else batch.mask_BT.flatten()
        return summed_nats(hidden_NH, self.output(), self.bias_V, batch.tokens_BT.flatten(), keep_N), memory

    def _nats(self, hidden_BTH: Tensor, tokens_BT: Tensor) -> Tensor:
        nats_N = cross_entropy_nats(hidden_BTH.flatten(0, 1), self.output(), self.bias_V, tokens_BT.flatten())
        return nats_N.view(tokens_BT.shape)

    def embed(self, inputs_BT: Tensor, dtype: torch.dtype) -> Tensor:
        """The vectors of tokens, or of the begin symbol, B×T×X."""
        # Looked up in float32 and then rounded, so that the gradients of a frequent token are summed in float32.
        return (F.embedding(inputs_BT, self.embedding_WX) * self.tied_scale).to(dtype)

    def output(self) -> Tensor:
        """O, V×H: the embedding itself where the two are tied."""
        return self.embedding_WX[: self.vocab_size] if self.output_VH is None else self.output_VH

    def begin_inputs(self, tokens_BT: Tensor) -> Tensor:
        """The begin symbol, then all tokens but the last, which predicts nothing."""
        return F.pad(tokens_BT[:, :-1], (1, 0), value=self.vocab_size)


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Settings of `rnn`, `gru` and `lstm`; None is filled in by what suits the text and the budget."""

    layers: int | None = None  # of cells, one above the other
    width: int | None = None  # of the state
    embedding_width: int | None = None  # of the vector of a token
    bias: bool = True  # whether cells add one
    tie: bool | None = None  # one matrix for embedding and output
    dropout: float | None = None  # of everything that enters or leaves a layer; never inside the recurrence

    def __post_init__(self) -> None:
        at_least_one("recurrent model", layers=self.layers, width=self.width, embedding_width=self.embedding_width)
        a_share("recurrent model", dropout=self.dropout)


class RecurrentModel(CarriedModel):
    """Layers of one kind of cell; a final class names the cell."""

    Config = RecurrentConfig
    cell: ClassVar[Cell]
    batch_shape = BATCH
    letters: ClassVar[dict[str, str]] = {"layers": "L", "width": "H", "embedding_width": "X"}

    def __init__(self, config: RecurrentConfig, vocab_size: int) -> None:
        layers, width, x, tie = config.layers, config.width, config.embedding_width, config.tie
        if not (layers and width and x) or tie is None or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, x, width, tie)
        self.layers = nn.ModuleList(
            RecurrentLayer(self.cell, width if i else x, width, bias=config.bias) for i in range(layers)
        )

    def _stack(self) -> Iterator[RecurrentLayer]:
        for layer in self.layers:
            assert isinstance(layer, RecurrentLayer)
            yield layer

    def fresh(self, rows: int) -> Memory:
        """All zero; one B×L×H tensor for each thing the cell remembers."""
        zeros_BLH = self.bias_V.new_zeros(rows, len(self.layers), self.config.width)
        return (zeros_BLH,) * self.cell.memories

    def read(self, x_BTX: Tensor, memory: Memory, dropout: float) -> tuple[Tensor, Memory]:
        """Layer upon layer, each over the whole stretch at once."""
        after: list[Memory] = []
        for i, layer in enumerate(self.layers):
            if i:
                x_BTX = F.dropout(x_BTX, dropout, training=dropout > 0)
            x_BTX, state = layer(x_BTX, tuple(m[:, i].to(x_BTX.dtype) for m in memory))
            after.append(state)
        return x_BTX, tuple(torch.stack(kind, dim=1) for kind in zip(*after, strict=True))

    @property
    def gate_names(self) -> tuple[str, ...]:
        """Of the gates of its cells; nothing where they have none."""
        return self.cell.gate_names

    @torch.no_grad()
    def gates(self, tokens_T: Tensor) -> Iterator[Gating]:
        """What the gates of each layer did after each token was read, one layer after the other."""
        x_1TX = self.embed(F.pad(tokens_T[None], (1, 0), value=self.vocab_size), torch.float32)
        for i, layer in enumerate(self._stack()):
            h_1TH, _ = layer(x_1TX, tuple(m[:, i] for m in self.fresh(1)))
            found = gating(self.cell, x_1TX[0], h_1TH[0], layer.weights(torch.float32))
            yield found.after(1)  # what the begin symbol did is no token's
            x_1TX = h_1TH

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The embedding, W, U and b of every layer, and the output layer, which a tied embedding is too."""
        c, gates = config, cls.cell.gates
        first = recurrent_part("first layer", gates, c.embedding_width, c.width, shape, bias=c.bias)
        other = recurrent_part("further layers", gates, c.width, c.width, shape, bias=c.bias, times=c.layers - 1)
        return [
            Part(EMBEDDING, (vocab_size + 1) * c.embedding_width),
            first,
            other,
            head_part(vocab_size, c.width, shape, bias=True, tied=c.tie),
        ]

    def hidden_matrices(self) -> dict[str, int]:
        """W and U of every layer, a matrix for each gate."""
        names = [f"layers.{i}.{name}" for i in range(len(self.layers)) for name in ("input_GX", "state_GH")]
        return dict.fromkeys(names, self.cell.gates)

    @classmethod
    def resolve(cls, config: RecurrentConfig, facts: TextFacts, budget: Budget) -> RecurrentConfig:
        """The largest size that the budget can train and the text can fill; explicit settings are kept."""
        tie = config.tie
        if tie is None:
            tie = tie_by_default(facts.vocab_size, config.embedding_width, config.width)

        def inner_width(width: int) -> int:
            return width if tie else min(width, 64)

        def at(size: tuple[int, int]) -> RecurrentConfig:
            layers, width = size
            return RecurrentConfig(layers=layers, width=width, embedding_width=inner_width(width), tie=tie, dropout=0.0)

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        layers, width = APPETITE.size(SIZES, at, cls.parts, facts, budget)
        chosen = with_settings(at((config.layers or layers, config.width or width)), config)
        return APPETITE.with_dropout(chosen, config.dropout, facts, budget)


def tie_by_default(vocab_size: int, embedding_width: int | None, width: int | None) -> bool:
    """For a large vocabulary, unless widths were chosen that differ."""
    return vocab_size >= TIE_FROM and embedding_width in (None, width)
