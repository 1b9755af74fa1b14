"""`rnn-attention`: a recurrent network that attends over its own past states (scores: Bahdanau 2015, Luong 2015).

The recipe, with l running over the steps before t:

    e_{t,l} = score(h_t, h_l),   α_{t,l} = softmax_l(e_{t,l}),   a_t = Σ_l α_{t,l} h_l,   h_t = RNN(x_t, h_{t-1}) + a_t

    dot        score(q, k) = qᵀ k
    scaled     score(q, k) = qᵀ k / √d
    additive   score(q, k) = vᵀ tanh(W₁ q + W₂ k)

It cannot be computed as it stands: e_{t,l} needs h_t, h_t needs a_t, and a_t needs e_{t,l}. The circle is opened where the
recipe leaves a choice, at the query. The network's own state, before anything is attended to, asks:

    ĥ_t = RNN(x_t, h_{t-1}) = tanh(W x_t + U h_{t-1}),   e_{t,l} = score(ĥ_t, m_l),   a_t = Σ_l α_{t,l} m_l,   h_t = ĥ_t + a_t

and a_1 = 0, since there is nothing before the first step. What is attended over, m_l, is a second choice:

- `attend_to="rnn"`, m_l = ĥ_l (the default). A state then lies between -2 and 2, however long the text.
- `attend_to="combined"`, m_l = h_l, to the letter. Nothing bounds that: h_t is ĥ_t plus an average of earlier h, so if the
  ĥ_t agree in sign h grows for ever: constant ĥ and equal weights give h_t = ĥ (1 + 1 + 1/2 + ... + 1/(t-1)).

The last `memory` states are attended over, so that a state is of bounded size. The memory is part of what is carried from
one training stretch to the next: later stretches attend over states of earlier ones, but send no gradient into them.
The scan itself is in `layers/attentive.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import a_share, at_least_one, one_of
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size
from lmlab.layers.attentive import attended, attentive_part, attentive_scan
from lmlab.layers.fast.attentive import Additive, Rule
from lmlab.layers.heads import head_part
from lmlab.layers.looking import Looks
from lmlab.layers.recurrent import recurrent_part
from lmlab.models.families.recurrent import CarriedModel, Memory, tie_by_default
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

ScoreFunction = Literal["scaled", "dot", "additive"]
AttendTo = Literal["rnn", "combined"]

BATCH = (32, 64)  # rows, and tokens through which gradients flow back
MEMORY = 64  # states attended over, where nothing is set
WIDTHS = [32, 64, 96, 128, 192, 256, 384, 512, 768]
APPETITE = Appetite(batch_tokens=BATCH[0] * BATCH[1], tokens_per_weight=30.0, weights_per_token=2.0)


@dataclass(frozen=True, kw_only=True)
class RNNAttentionConfig:
    """Settings of `rnn-attention`; None is filled in by what suits the text and the budget."""

    width: int | None = None  # of the state
    embedding_width: int | None = None  # of the vector of a token
    score_function: ScoreFunction = "scaled"  # how a state and a remembered one are compared
    score_width: int | None = None  # rows of W₁ and W₂, for the additive score
    attend_to: AttendTo = "rnn"  # what is remembered: the states of the rnn, or what attention made of them
    memory: int | None = None  # states attended over
    bias: bool = True  # whether the RNN adds one
    tie: bool | None = None  # one matrix for embedding and output
    dropout: float | None = None  # of embeddings and of what the output layer reads

    def __post_init__(self) -> None:
        sizes = {"width": self.width, "embedding_width": self.embedding_width, "score_width": self.score_width}
        at_least_one("rnn-attention", **sizes, memory=self.memory)
        a_share("rnn-attention", dropout=self.dropout)
        one_of("rnn-attention", ScoreFunction, score_function=self.score_function)
        one_of("rnn-attention", AttendTo, attend_to=self.attend_to)


class RNNAttention(CarriedModel):
    """A recurrent network that attends to its past, the circle opened at the query."""

    name = "rnn-attention"
    Config = RNNAttentionConfig
    default_learning_rate: ClassVar[float] = 0.012
    batch_shape = BATCH
    letters: ClassVar[dict[str, str]] = {"width": "H", "embedding_width": "X", "score_width": "A", "memory": "M"}

    def __init__(self, config: RNNAttentionConfig, vocab_size: int) -> None:
        width, x, a, tie = config.width, config.embedding_width, config.score_width, config.tie
        if not (width and x and a and config.memory) or tie is None or config.dropout is None:
            raise AssertionError("resolve first")
        super().__init__(config, vocab_size, x, width, tie)
        self.input_HX = nn.Parameter(torch.randn(width, x) * x**-0.5)
        self.state_HH = nn.Parameter(nn.init.orthogonal_(torch.empty(width, width)))
        self.bias_H = nn.Parameter(torch.zeros(width)) if config.bias else None
        if config.score_function == "additive":
            self.query_AH = nn.Parameter(torch.randn(a, width) * width**-0.5)
            self.key_AH = nn.Parameter(torch.randn(a, width) * width**-0.5)
            self.v_A = nn.Parameter(torch.randn(a) * a**-0.5)

    def fresh(self, rows: int) -> Memory:
        """A state of zeros, and no past states."""
        width = self.state_HH.shape[0]
        return self.bias_V.new_zeros(rows, width), self.bias_V.new_zeros(rows, 0, width)

    def read(self, x_BTX: Tensor, memory: Memory, dropout: float) -> tuple[Tensor, Memory]:
        """h_t for every input; the memory is h and the states that the next input may attend over."""
        h_BH, past_BPH = memory
        drive_BTH, additive, rule = self._asked(x_BTX, h_BH.dtype)
        h_BTH, past_BPH = attentive_scan(drive_BTH, h_BH, past_BPH, self.state_HH, additive, rule)
        return h_BTH.to(x_BTX.dtype), (h_BTH[:, -1], past_BPH)

    @torch.no_grad()
    def looks(self, tokens_T: Tensor) -> Iterator[Looks]:
        """Which of its past states each step attended to; a state is named by the token that was read into it."""
        x_1TX = self.embed(self.begin_inputs(tokens_T[None]), torch.float32)
        h_1TH, _ = self.read(x_1TX, self.fresh(1), 0.0)
        drive_1TH, additive, rule = self._asked(x_1TX, torch.float32)
        alpha_TR, difference = attended(drive_1TH[0], h_1TH[0], self.state_HH, additive, rule)
        first_T = torch.arange(len(tokens_T), device=tokens_T.device) - rule.reach - 1
        begins_T = torch.full_like(first_T, -1)
        yield Looks(
            name="the memory", weights_HTC=alpha_TR[None], first_T=first_T, begins_T=begins_T, difference=difference
        )

    def _asked(self, x_BTX: Tensor, dtype: torch.dtype) -> tuple[Tensor, Additive | None, Rule]:
        """What the inputs contribute, B×T×H, and how states are compared."""
        bias_H = None if self.bias_H is None else self.bias_H.to(x_BTX.dtype)
        drive_BTH = F.linear(x_BTX, self.input_HX.to(x_BTX.dtype), bias_H).to(dtype)
        scale = self.state_HH.shape[0] ** -0.5 if self.config.score_function == "scaled" else 1.0
        rule = Rule(self.config.memory, scale, self.config.attend_to == "combined")
        additive = None
        if self.config.score_function == "additive":
            additive = Additive(self.query_AH, self.key_AH, self.v_A)
        return drive_BTH, additive, rule

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The embedding, W, U and b, the score and the average over the states in memory, and the output layer."""
        c = config
        return [
            Part(EMBEDDING, (vocab_size + 1) * c.embedding_width),
            recurrent_part("cell", 1, c.embedding_width, c.width, shape, bias=c.bias),
            attentive_part(c.width, c.memory, c.score_width if c.score_function == "additive" else None, shape),
            head_part(vocab_size, c.width, shape, bias=True, tied=c.tie),
        ]

    @property
    def usual_past(self) -> int:
        """In the middle of a stretch: the memory is full."""
        return int(self.config.memory)

    def hidden_matrices(self) -> dict[str, int]:
        """W and U, and W₁ and W₂ where there are any."""
        return {
            name: 1 for name, p in self.named_parameters() if name in ("input_HX", "state_HH", "query_AH", "key_AH")
        }

    @classmethod
    def resolve(cls, config: RNNAttentionConfig, facts: TextFacts, budget: Budget) -> RNNAttentionConfig:
        """The widest state that the budget can train and the text can fill; explicit settings are kept."""
        tie = (
            tie_by_default(facts.vocab_size, config.embedding_width, config.width) if config.tie is None else config.tie
        )

        def at(width: int) -> RNNAttentionConfig:
            narrow = min(width, 64)
            x = width if tie else narrow
            return RNNAttentionConfig(
                width=width, embedding_width=x, score_width=narrow, memory=MEMORY, tie=tie, dropout=0.0
            )

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        chosen = at(config.width or APPETITE.size(WIDTHS, at, cls.parts, facts, budget))
        return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)
