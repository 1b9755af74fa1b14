"""`attention`: a feed-forward language model behind one attention head; the last word attends.

With e_i the embedding of word i, the word at t is predicted from the N - 1 words before it:

    s_i = (W^q e_{t-1}) · (W^k e_i) / √d_k          i = t-N+1 .. t-1
    α   = softmax(s)
    a   = Σ_i α_i W^v e_i
    h   = σ(W a + b),   p = softmax(U h)

which makes |V| (d + d_h) + 2 d_k d + d_v d + (d_v + 1) d_h parameters (the head alone: 2 d_k d + d_v d), and d more
for the begin symbol that stands where there is no word yet. The last word alone is the query: N - 1 scores, not (N - 1)².

By these equations the model cannot tell where in the window a word stands: the order of the words before the last one makes no
difference (`positions="none"`). So a vector is added to e_i for each place in the window: the fixed sinusoids of
Vaswani 2017, which leave the count as it is, or learned ones, which make it (N - 1) d more.

W^q begins at zero, so that training starts from the plain average of the window. From random scores it often ends in a
corner: the softmax saturates within a few dozen steps, and one word of the window is never looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import a_share, at_least_one, one_of, within_text
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, divided_up, joined, linear, product, smaller
from lmlab.layers.activations import ACTIVATIONS, Activation
from lmlab.layers.heads import head_part
from lmlab.layers.looking import Looks
from lmlab.layers.positions import sinusoidal_table
from lmlab.models.families.windowed import WindowedModel
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

Positions = Literal["sinusoidal", "learned", "none"]

BATCH = (
    32,
    64,
)  # rows, tokens: much longer than the window, so that few windows reach back over the begin of their row
BLOCK = 64  # places whose windows are looked at together
WIDTHS = [32, 64, 128, 256, 512, 1024, 2048]
APPETITE = Appetite(batch_tokens=BATCH[0] * BATCH[1], tokens_per_weight=10.0, weights_per_token=2.0)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Settings of `attention`; None is filled in by what suits the text and the budget."""

    context: int | None = None  # words of history, N - 1
    embedding_width: int | None = None  # of the vector of a token, d
    key_width: int | None = None  # of queries and keys, d_k
    value_width: int | None = None  # of values, d_v
    width: int | None = None  # of the hidden layer, d_h
    activation: Activation = "gelu"  # of the hidden layer, σ
    positions: Positions = "sinusoidal"  # how the place of a token is marked
    dropout: float | None = None  # of hidden units

    def __post_init__(self) -> None:
        sizes = {"context": self.context, "embedding_width": self.embedding_width, "width": self.width}
        at_least_one("attention", **sizes, key_width=self.key_width, value_width=self.value_width)
        a_share("attention", dropout=self.dropout)
        one_of("attention", Activation, activation=self.activation)
        one_of("attention", Positions, positions=self.positions)


class Attention(WindowedModel):
    """One attention head over a window, a hidden layer, a softmax."""

    name = "attention"
    Config = AttentionConfig
    default_learning_rate: ClassVar[float] = 0.012
    batch_shape = BATCH
    logits_follow: ClassVar[tuple[str, ...]] = ("output_VH",)
    letters: ClassVar[dict[str, str]] = {
        "context": "N - 1",
        "embedding_width": "d",
        "key_width": "d_k",
        "value_width": "d_v",
        "width": "d_h",
    }

    def __init__(self, config: AttentionConfig, vocab_size: int) -> None:
        context, d, d_h = config.context, config.embedding_width, config.width
        d_k, d_v = config.key_width, config.value_width
        if not (context and d and d_h and d_k and d_v) or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, context)
        self.embedding_VD = nn.Parameter(torch.randn(self.vocab_size + 1, d))
        self.query_KD = nn.Parameter(torch.zeros(d_k, d))
        self.key_KD = nn.Parameter(torch.randn(d_k, d) * d**-0.5)
        self.value_XD = nn.Parameter(torch.randn(d_v, d) * d**-0.5)
        self.weight_HX = nn.Parameter(torch.randn(d_h, d_v) * d_v**-0.5)
        self.bias_H = nn.Parameter(torch.zeros(d_h))
        self.output_VH = nn.Parameter(torch.zeros(self.vocab_size, d_h))
        self.place_CD: Tensor | None
        if config.positions == "learned":
            self.place_CD = nn.Parameter(torch.randn(context, d))
        else:
            places = sinusoidal_table(context, d) if config.positions == "sinusoidal" else None
            self.register_buffer("place_CD", places, persistent=False)
        self.activation = ACTIVATIONS[config.activation]

    def hidden(self, inputs_BM: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
        """h, for the C words before each place."""
        a_BTX = self.attend(inputs_BM, dtype)[0]
        h_BTH = self.activation(F.linear(a_BTX, self.weight_HX.to(dtype), self.bias_H.to(dtype)))
        return F.dropout(h_BTH, dropout, training=dropout > 0)

    def attend(self, inputs_BM: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """The attention vectors a B×T×X and weights α B×T×C.

        Time is cut into blocks of S places, which see I = S + C - 1 words. Inside a block all scores come from one matrix
        product, S×I; those of the words in the windows are its diagonal band, the rest is thrown away.
        """
        rows, length = inputs_BM.shape[0], inputs_BM.shape[1] - self.context + 1
        block = min(length, BLOCK)
        padded_BM = F.pad(inputs_BM, (0, -length % block), value=self.vocab_size)
        inputs_NI = padded_BM.unfold(1, block + self.context - 1, block).flatten(0, 1)
        a_NSX, alpha_NSC = self._attend_block(inputs_NI, dtype)
        a_BTX, alpha_BTC = (x.view(rows, -1, x.shape[2])[:, :length] for x in (a_NSX, alpha_NSC))
        return a_BTX, alpha_BTC

    @torch.no_grad()
    def looks(self, tokens_T: Tensor) -> Iterator[Looks]:
        """What the one head looked at; these are the weights that were used, there is no other kernel."""
        alpha_1TC = self.attend(self.inputs(tokens_T[None]))[1]
        first_T = torch.arange(len(tokens_T), device=tokens_T.device) - self.context
        begins_T = torch.full_like(first_T, -1)
        yield Looks(name="the head", weights_HTC=alpha_1TC, first_T=first_T, begins_T=begins_T, difference=0.0)

    def _attend_block(self, inputs_NI: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        e_NID = F.embedding(inputs_NI, self.embedding_VD).to(dtype)
        query_KD, key_KD, value_XD = self.query_KD.to(dtype), self.key_KD.to(dtype), self.value_XD.to(dtype)
        last_NSD = e_NID[:, self.context - 1 :]
        k_NIK, v_NIX = F.linear(e_NID, key_KD), F.linear(e_NID, value_XD)
        place_CD = None if self.place_CD is None else self.place_CD.to(dtype)
        if place_CD is not None:
            last_NSD = last_NSD + place_CD[-1]
        q_NSK = F.linear(last_NSD, query_KD)
        all_NSI = (q_NSK @ k_NIK.mT).contiguous()
        blocks, places, words = all_NSI.shape
        band = ((blocks, places, self.context), (places * words, words + 1, 1))  # sizes and strides of the diagonals
        scores_NSC = all_NSI.as_strided(*band)
        if place_CD is not None:
            scores_NSC = scores_NSC + q_NSK @ F.linear(place_CD, key_KD).T
        alpha_NSC = (scores_NSC.float() * key_KD.shape[0] ** -0.5).softmax(-1)
        spread_NSI = torch.as_strided_scatter(torch.zeros_like(all_NSI), alpha_NSC.to(dtype), *band)
        a_NSX = spread_NSI @ v_NIX
        if place_CD is not None:
            a_NSX = a_NSX + alpha_NSC.to(dtype) @ F.linear(place_CD, value_XD)
        return a_NSX, alpha_NSC

    def head(self) -> tuple[Tensor, None]:
        """U, without a bias."""
        return self.output_VH, None

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """E, the head, W and b, U. A block of S places reads S + C - 1 words, and makes all scores and averages of them.

        With positions, each of the C places takes part in one score and one average more; its key and its value are made
        once for all rows (and where places are fixed, no gradient is wanted of them).
        """
        c = config
        d, d_k, d_v = c.embedding_width, c.key_width, c.value_width
        places = smaller(shape.tokens, BLOCK)
        blocks, words = shape.rows * divided_up(shape.tokens, places), places + c.context - 1
        made = [linear(blocks * places, d, d_k), linear(blocks * words, d, d_k), linear(blocks * words, d, d_v)]
        pairs = product(places, d_k, words).times(blocks) + product(places, words, d_v).times(blocks)
        if c.positions != "none":
            wanted = 2 if c.positions == "learned" else 1
            pairs += product(c.context, d, d_k, wanted) + product(c.context, d, d_v, wanted)
            pairs += product(blocks * places, d_k, c.context) + product(blocks * places, c.context, d_v)
        learned = [Part("positions", c.context * d)] if c.positions == "learned" else []
        return [
            Part(EMBEDDING, (vocab_size + 1) * d),
            *learned,
            joined("attention", *made, Part("pairs", work=pairs)),
            joined("hidden layer", linear(shape.places, d_v, c.width, bias=True)),
            head_part(vocab_size, c.width, shape),
        ]

    def hidden_matrices(self) -> dict[str, int]:
        """W^q, W^k, W^v and W."""
        return {"query_KD": 1, "key_KD": 1, "value_XD": 1, "weight_HX": 1}

    @classmethod
    def resolve(cls, config: AttentionConfig, facts: TextFacts, budget: Budget) -> AttentionConfig:
        """The widest layers that the budget can train and the text can fill; explicit settings are kept."""
        within_text("attention", facts.train_tokens, context=config.context)
        context = min(4, max(1, facts.train_tokens // 8))

        def at(width: int) -> AttentionConfig:
            d, d_k, d_v = (max(1, width // share) for share in (2, 4, 2))
            return AttentionConfig(
                context=context, embedding_width=d, key_width=d_k, value_width=d_v, width=width, dropout=0.0
            )

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        chosen = at(config.width or APPETITE.size(WIDTHS, at, cls.parts, facts, budget))
        return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)
