"""`bigram`: the word-level neural bigram model: a word vector in, one sigmoid layer, a softmax.

With x the vector of the previous word (a row),

    h = σ(x W₁ + b₁)            x ∈ R^{1×D_x},  h ∈ R^{1×D_h}
    ŷ = softmax(h W₂ + b₂)      ŷ ∈ R^{1×|V|}

The vectors are learned, or start from a file of word vectors (`vectors=FILE`, GloVe text format). Then a piece of the
vocabulary takes the vector of its text, or else of its text in lower case; a piece the file has neither of (a line break,
the unknown word), and the begin symbol, get a vector of their own, drawn with the mean and spread of those found. Those
are learned even when `freeze_vectors` keeps the given ones as they are.

The same model with its backward pass written out by hand is `bigram_numpy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one, misfit
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.interface import Loss, Windows
from lmlab.layers import fast
from lmlab.layers.heads import cross_entropy_nats, head_part, log_probabilities
from lmlab.models.families.windowed import WindowedModel, chosen

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.pieces import Vocabulary

BATCH = (32, 64)  # rows, tokens: none sees beyond the one before it, so only their product matters
TABLE_ELEMENTS = 1 << 23
"""Up to this many probabilities (32 MiB of float32), what follows a word is worked out once however often it occurs."""


@dataclass(frozen=True, kw_only=True)
class BigramConfig:
    """Settings of `bigram`; None is filled in by what suits the text and the budget."""

    embedding_width: int | None = None  # of the vector of a token, D_x; where there are `vectors`, theirs
    width: int | None = None  # of the hidden layer, D_h
    vectors: str | None = None  # a file of word vectors in the GloVe text format; none: all are learned
    freeze_vectors: bool = False  # keep the vectors of the file as they are
    dropout: float | None = None  # of hidden units

    def __post_init__(self) -> None:
        at_least_one("bigram", embedding_width=self.embedding_width, width=self.width)
        a_share("bigram", dropout=self.dropout)
        if self.freeze_vectors and self.vectors is None:
            raise Mistake(
                "bigram: freeze_vectors needs vectors, a file of word vectors to keep as they are",
                code="freeze-without-vectors",
            )


class Bigram(WindowedModel):
    """A word vector in, one sigmoid layer, a softmax."""

    name = "bigram"
    Config = BigramConfig
    default_learning_rate: ClassVar[float] = 0.012
    batch_shape = BATCH
    logits_follow: ClassVar[tuple[str, ...]] = ("output_VH", "bias_V")
    letters: ClassVar[dict[str, str]] = {"embedding_width": "D_x", "width": "D_h"}

    def __init__(self, config: BigramConfig, vocab_size: int) -> None:
        d_x, d_h = config.embedding_width, config.width
        if not (d_x and d_h) or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, context=1)
        self.table = VectorTable(vocab_size, d_x)
        self.input_XH = nn.Parameter(torch.randn(d_x, d_h) * d_x**-0.5)  # W₁
        self.bias_H = nn.Parameter(torch.zeros(d_h))
        self.output_VH = nn.Parameter(torch.zeros(vocab_size, d_h))  # W₂, transposed
        self.bias_V = nn.Parameter(torch.zeros(vocab_size))

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Look the pieces up in the file of word vectors, if there is one."""
        if self.config.vectors is not None:
            given_FX, found_V = _read_given(self.config.vectors, vocabulary.pieces, self.config.embedding_width)
            self.table.take(given_FX, found_V, learn=not self.config.freeze_vectors)

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        """h, for each previous token."""
        x_BTX = self.table(inputs_BM).to(dtype)
        h_BTH = torch.sigmoid(F.linear(x_BTX, self.input_XH.T.to(dtype), self.bias_H.to(dtype)))
        return F.dropout(h_BTH, dropout, training=dropout > 0)

    def head(self) -> tuple[Tensor, Tensor]:
        """W₂, transposed, and b₂."""
        return self.output_VH, self.bias_V

    def loss(self, batch: Windows) -> Loss:
        """Nats and number of the tokens under the mask."""
        if batch.tokens_BT.is_cuda:  # where it is cheaper to compute every token than to find out which are the same
            return super().loss(batch)
        previous_N1, targets_N = chosen(self.inputs(batch.tokens_BT)[..., None], batch)
        dropout = self.config.dropout if self.training else 0.0
        nats_N = self._nats(previous_N1[:, 0], targets_N, dropout, self.compute_dtype)
        return Loss(total=nats_N.sum(), count=targets_N.numel())

    def training_flops(
        self, rows: int, tokens: int = 1, source: int = 0, *, past: int | None = None, filled: float = 1.0
    ) -> int | None:
        """As of others, but what is no token is left out from the beginning."""
        known = super().training_flops(rows, tokens)
        return None if known is None else round(filled * known)

    @torch.no_grad()
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given the one before it, B×T."""
        nats_N = self._nats(self.inputs(tokens_BT).flatten(), tokens_BT.flatten(), 0.0, torch.float32)
        return nats_N.view(tokens_BT.shape)

    def _nats(self, previous_N: Tensor, targets_N: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        if not fast.enabled:  # the plain twin: every token by itself
            return cross_entropy_nats(self.hidden(previous_N[None], dropout, dtype)[0], *self.head(), targets_N)
        words_U, which_N = previous_N.unique(return_inverse=True)
        hidden_UH = self.hidden(words_U[None], dropout, dtype)[0]
        if len(words_U) * self.vocab_size > TABLE_ELEMENTS:
            return cross_entropy_nats(hidden_UH[which_N], *self.head(), targets_N)
        logp_UV = log_probabilities(hidden_UH, self.output_VH.to(dtype), self.bias_V.to(dtype))
        return -logp_UV[which_N, targets_N]

    @property
    def notes(self) -> list[str]:
        """How many pieces have a vector from the file."""
        if self.table.found_V is None:
            return []
        found = int(self.table.found_V.sum())
        return [
            f"{found} of {self.vocab_size} pieces have a vector in {self.config.vectors}; the others learn their own"
        ]

    def tensors(self) -> dict[str, Tensor]:
        """The weights, and which pieces have a given vector."""
        found = {} if self.table.found_V is None else {"table.found_V": self.table.found_V}
        return super().tensors() | found

    @classmethod
    def from_tensors(cls, config: BigramConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """A model with these weights, in evaluation mode. The file of word vectors is not needed any more."""
        model = cls(config, vocab_size)
        weights = dict(tensors)
        if config.vectors is not None and "table.found_V" in weights and "table.given_embedding_FX" in weights:
            found_V = weights.pop("table.found_V").to(torch.bool)
            model.table.take(weights["table.given_embedding_FX"], found_V, learn=not config.freeze_vectors)
        if wrong := misfit({name: t.shape for name, t in model.state_dict().items()}, weights):
            raise Mistake(f"these are no weights of such a bigram: {wrong}", code="bigram-weights-do-not-fit")
        model.load_state_dict(weights)
        return model.eval()

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Vectors, W₁ and W₂ with their biases, for every token; where few different words precede them, less is done."""
        c = config
        return [
            Part(EMBEDDING, (vocab_size + 1) * c.embedding_width),
            joined("hidden layer", linear(shape.places, c.embedding_width, c.width, bias=True)),
            head_part(vocab_size, c.width, shape, bias=True),
        ]

    @classmethod
    def resolve(cls, config: BigramConfig, facts: TextFacts, budget: Budget) -> BigramConfig:
        """Widths that one token of history can use, whatever the text and the budget; explicit settings are kept."""
        d_x = config.embedding_width
        if d_x is None and config.vectors is not None:
            from lmlab.text.vectors import read_vectors

            d_x = read_vectors(config.vectors, [])[0].shape[1]
        d_x = d_x or 64
        d_h = config.width or 128
        dropout = config.dropout if config.dropout is not None else 0.0
        return replace(config, embedding_width=d_x, width=d_h, dropout=dropout)


class VectorTable(nn.Module):
    """A vector for each piece of the vocabulary and the begin symbol: learned, or given for the pieces that were found.

    Shapes: V pieces, W = V + 1 with the begin symbol, F pieces found, O others, X width.
    """

    def __init__(self, vocab: int, width: int) -> None:
        super().__init__()
        self.given_embedding_FX: nn.Parameter | None = None
        self.own_embedding_OX = nn.Parameter(torch.randn(vocab + 1, width))
        self.found_V: Tensor | None = None
        self.row_W: Tensor | None = None  # where a piece's vector stands, the given ones first

    def take(self, given_FX: Tensor, found_V: Tensor, *, learn: bool) -> None:
        """Use these vectors for the pieces that were found, and draw those of the others with their mean and spread."""
        others = len(found_V) - len(given_FX) + 1
        spread_X, mean_X = given_FX.std(0, correction=0), given_FX.mean(0)
        self.own_embedding_OX = nn.Parameter(self.own_embedding_OX.detach()[:others] * spread_X + mean_X)
        self.given_embedding_FX = nn.Parameter(given_FX.clone(), requires_grad=learn)
        self.found_V = found_V
        found_W = F.pad(found_V, (0, 1), value=False)
        self.row_W = torch.where(found_W, found_W.cumsum(0), (~found_W).cumsum(0) + len(given_FX)) - 1

    def forward(self, ids_BT: Tensor) -> Tensor:
        """The vectors of these ids, B×T×X."""
        if self.given_embedding_FX is None or self.row_W is None:
            return F.embedding(ids_BT, self.own_embedding_OX)
        rows_BT = self.row_W.to(ids_BT.device)[ids_BT]
        return F.embedding(rows_BT, torch.cat([self.given_embedding_FX, self.own_embedding_OX]))


def _read_given(path: str, pieces: Sequence[str], width: int) -> tuple[Tensor, Tensor]:
    """Vectors F×X of the pieces that the file has, and which these are (V)."""
    from lmlab.text.vectors import read_vectors

    words = [piece.strip(" ") for piece in pieces]
    lower = [word.lower() for word in words]
    vectors, found = read_vectors(path, words + lower)
    if vectors.shape[1] != width:
        raise Mistake(
            f"{path} has vectors of width {vectors.shape[1]}; embedding_width is {width}: leave it out",
            code="bigram-vectors-width",
        )
    as_written, as_lower = found[: len(words)], found[len(words) :]
    if not (as_written | as_lower).any():
        raise Mistake(
            f"{path} has a vector for none of the {len(words)} pieces; word vectors want the tokenizer words",
            code="bigram-vectors-lack-words",
        )
    chosen_rows = torch.where(
        torch.from_numpy(as_written)[:, None],
        torch.from_numpy(vectors[: len(words)]),
        torch.from_numpy(vectors[len(words) :]),
    )
    found_V = torch.from_numpy(as_written | as_lower)
    return chosen_rows[found_V], found_V
