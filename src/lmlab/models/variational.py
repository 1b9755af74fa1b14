"""`variational`: a language model with a latent variable, trained on a bound (Kingma & Welling 2014; of text: Bowman 2016).

The text is cut into segments. A segment x has a hidden cause z, K numbers drawn from a standard normal, and is then written
token by token by a `gru` whose hidden vectors z scales and shifts:

    z ~ N(0, I),   h_t = GRU(x_<t, everything before the segment),   p(x_t | x_<t, z) = softmax(O (h_t ∘ (1 + S z) + B z) + c)

What a segment costs is -log ∫ p(z) p(x | z) dz, which nobody can compute. An approximate posterior q(z | x) = N(μ, σ²), read
off the segment, bounds it from above; the gap is exactly KL(q(z | x) || p(z | x)):

    -log p(x)  ≤  E_q[-log p(x | z)] + KL(q(z | x) || p(z))

The GRU itself never sees z. So what comes after a segment does not depend on its z, each segment has its own bound, and the
bounds of a text add up.

Two things keep z in use, which training would otherwise learn to ignore: the KL's weight rises from 0 to 1 in the first steps,
and z is not pushed below `free_nats` of information. Both are of training alone: what is reported is the bound. Free are the
numbers of z together: each by itself would keep what it has by being sure of nothing, which costs as much as telling something.

Shapes: B rows, T tokens, H state width, K latent numbers, V vocabulary, P width of the posterior, S draws.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one
from lmlab.formulas import ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.interface import Loss, TextLearner, Windows
from lmlab.layers.heads import cross_entropy_nats, log_probabilities
from lmlab.models.families.recurrent import Memory, RecurrentConfig
from lmlab.models.gru import GRU
from lmlab.models.sizing import tokens_in_budget

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

ROWS = 32
SMALL = 0.1  # of what z does at first: while it tells nothing, it is noise
WARM_UP_SHARE = 0.1  # of the steps that the budget is planned to take


@dataclass(frozen=True, kw_only=True)
class VariationalConfig(RecurrentConfig):
    """Settings of `variational`: those of the `gru` that writes, and those of the latent variable."""

    latent: int = 8  # numbers in z
    segment: int = 64  # tokens that one z is behind
    free_nats: float = 0.3  # of information in the z of a segment that training does not charge for
    warm_up: int | None = None  # steps in which the weight of the KL rises from 0 to 1
    word_dropout: float = 0.0  # share of the tokens that the gru is not shown in training, so that z must say more

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("variational", latent=self.latent, segment=self.segment)
        a_share("variational", word_dropout=self.word_dropout)
        if not 0.0 <= self.free_nats < float("inf"):
            raise Mistake(
                f"variational: free_nats is a number of nats from 0 up; got {self.free_nats}",
                code="free-nats-below-zero",
            )
        if self.warm_up is not None and self.warm_up < 0:
            raise Mistake(
                f"variational: warm_up is a number of steps from 0 up; got {self.warm_up}", code="warm-up-below-zero"
            )

    @property
    def writer(self) -> RecurrentConfig:
        """Those of the `gru`."""
        return RecurrentConfig(**{f.name: getattr(self, f.name) for f in fields(RecurrentConfig)})


@dataclass(frozen=True)
class Segments(Windows):
    """Windows of one segment each, and how much the KL weighs in this step."""

    kl_weight: Tensor | None = None  # one number; None: 1, the bound itself


@dataclass(frozen=True)
class Posterior:
    """q(z | x) of every row: a normal with a mean and a log variance for each number of z."""

    mean_BK: Tensor
    log_variance_BK: Tensor

    def draw(self, noise_SBK: Tensor) -> Tensor:
        """z = μ + σ ε, S×B×K: differentiable in μ and σ."""
        return self.mean_BK + (0.5 * self.log_variance_BK).exp() * noise_SBK

    @property
    def kl_BK(self) -> Tensor:
        """KL(q || N(0, 1)) of each number, in nats."""
        return 0.5 * (self.mean_BK**2 + self.log_variance_BK.exp() - 1.0 - self.log_variance_BK)

    def log_prior_over_posterior(self, z_SBK: Tensor) -> Tensor:
        """log p(z) - log q(z | x), S×B. The constants of the two normals cancel."""
        noise_SBK = (z_SBK - self.mean_BK) * (-0.5 * self.log_variance_BK).exp()
        return 0.5 * (noise_SBK**2 + self.log_variance_BK - z_SBK**2).sum(-1)


class Variational(TextLearner):
    """A `gru` with a latent variable behind every segment."""

    name = "variational"
    Config = VariationalConfig
    default_learning_rate: ClassVar[float] = GRU.default_learning_rate
    letters: ClassVar[dict[str, str]] = {**GRU.letters, "latent": "K", "segment": "T_s"}

    def __init__(self, config: VariationalConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        width, x, latent = config.width, config.embedding_width, config.latent
        if not (width and x):
            raise AssertionError("resolve first")
        self.writer = GRU(config.writer, vocab_size)
        self.read_hidden = nn.Linear(width, width, bias=True)
        self.read_token = nn.Linear(x, width, bias=False)
        self.posterior = nn.Linear(width, 2 * latent)
        self.scale_HK = nn.Parameter(torch.zeros(width, latent))
        self.shift_HK = nn.Parameter(torch.randn(width, latent) * (SMALL * latent**-0.5))
        with torch.no_grad():
            self.posterior.weight.mul_(0.1)  # q begins near p
            self.posterior.bias.zero_()

    # -- the loss

    def loss(self, batch: Windows) -> Loss:
        """The bound of segments that each begin a text; in training with what keeps z in use (see `loss_carried`)."""
        rows = len(batch.tokens_BT)
        return self._bound(self.writer.begin_inputs(batch.tokens_BT), batch, self.writer.fresh(rows))[0]

    def loss_carried(self, piece: Windows, carry: Any) -> tuple[Loss, Any]:
        """The bound of the next segment of each row, and what to carry on: the last token and the memory before it."""
        tokens_BT = piece.tokens_BT
        if carry is None:
            inputs_BT, memory = self.writer.begin_inputs(tokens_BT), self.writer.fresh(len(tokens_BT))
        else:
            last_B1, memory = carry
            inputs_BT = torch.cat([last_B1, tokens_BT[:, :-1]], dim=1)
        loss, memory = self._bound(inputs_BT, piece, memory)
        return loss, (tokens_BT[:, -1:], tuple(m.detach() for m in memory))

    def _bound(self, inputs_BT: Tensor, batch: Windows, memory: Memory) -> tuple[Loss, Memory]:
        """The loss has the value of the bound and, in training, the gradient of what is minimised in its stead."""
        tokens_BT, mask_BT = batch.tokens_BT, batch.mask_BT
        hidden_BTH, memory = self.hidden(inputs_BT, memory)
        q = self.posterior_of(hidden_BTH, tokens_BT, mask_BT)
        noise_BK = torch.randn_like(q.mean_BK) if self.training else _fixed_noise(q.mean_BK)
        nats_BT = self.nats_given(q.draw(noise_BK[None])[0], hidden_BTH, tokens_BT)
        reconstruction = (nats_BT if mask_BT is None else nats_BT * mask_BT).sum()
        kl = q.kl_BK.sum()
        bound = reconstruction + kl
        total = bound
        if self.training:
            free = self.config.free_nats * len(tokens_BT)
            weight = getattr(batch, "kl_weight", None)
            charged = kl.clamp(min=free)
            minimised = reconstruction + (charged if weight is None else weight * charged)
            total = minimised + (bound - minimised).detach()
        parts = {"reconstruction": reconstruction.detach(), "kl": kl.detach()}
        return Loss(total=total, count=batch.count, parts=parts), memory

    # -- its parts, which measuring and writing use too

    def hidden(self, inputs_BT: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """h_t, B×T×H, float32, and the memory after the last input."""
        writer, config = self.writer, self.config
        dropout = config.dropout if self.training else 0.0
        if self.training and config.word_dropout:
            unseen_BT = torch.rand(inputs_BT.shape, device=inputs_BT.device) < config.word_dropout
            inputs_BT = inputs_BT.masked_fill(unseen_BT, self.vocab_size)
        dtype = self.compute_dtype if self.training else torch.float32
        x_BTX = F.dropout(writer.embed(inputs_BT, dtype), dropout, training=dropout > 0)
        hidden_BTH, memory = writer.read(x_BTX, memory, dropout)
        return F.dropout(hidden_BTH, dropout, training=dropout > 0).float(), memory

    def posterior_of(self, hidden_BTH: Tensor, tokens_BT: Tensor, mask_BT: Tensor | None = None) -> Posterior:
        """q(z | x): from the mean of what each token is beside what was expected of it."""
        seen_BTX = self.writer.embed(tokens_BT, torch.float32)
        read_BTP = torch.tanh(self.read_hidden(hidden_BTH) + self.read_token(seen_BTX))
        if mask_BT is None:
            mean_BP = read_BTP.mean(1)
        else:
            mean_BP = (read_BTP * mask_BT[..., None]).sum(1) / mask_BT.sum(1).clamp(min=1)[:, None]
        mean_BK, log_variance_BK = self.posterior(mean_BP).chunk(2, dim=-1)
        return Posterior(mean_BK, log_variance_BK)

    def given(self, z_BK: Tensor, hidden_BTH: Tensor) -> Tensor:
        """The hidden vectors as z scales and shifts them."""
        scale_B1H, shift_B1H = (F.linear(z_BK, w)[:, None] for w in (self.scale_HK, self.shift_HK))
        return hidden_BTH * (1.0 + scale_B1H) + shift_B1H

    def nats_given(self, z_BK: Tensor, hidden_BTH: Tensor, tokens_BT: Tensor) -> Tensor:
        """-log p(x_t | x_<t, z), B×T."""
        hidden_NH = self.given(z_BK, hidden_BTH).flatten(0, 1)
        if self.training:
            hidden_NH = hidden_NH.to(self.compute_dtype)
        writer = self.writer
        return cross_entropy_nats(hidden_NH, writer.output(), writer.bias_V, tokens_BT.flatten()).view(tokens_BT.shape)

    @torch.no_grad()
    def next_token(self, inputs_BT: Tensor, memory: Memory, z_BK: Tensor) -> tuple[Tensor, Memory]:
        """Log-probabilities of the token after these inputs, B×V, and the memory after them."""
        hidden_BTH, memory = self.hidden(inputs_BT, memory)
        last_BH = self.given(z_BK, hidden_BTH[:, -1:])[:, 0]
        return log_probabilities(last_BH, self.writer.output(), self.writer.bias_V), memory

    # -- what it is made of

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The `gru`, the posterior, and what z does."""
        c = config
        posterior = joined(
            "posterior",
            linear(shape.places, c.width, c.width, bias=True),
            linear(shape.places, c.embedding_width, c.width),
            linear(shape.rows, c.width, 2 * c.latent, bias=True),
        )
        steering = joined("z", linear(shape.rows, c.latent, c.width), linear(shape.rows, c.latent, c.width))
        return [*GRU.parts(config, vocab_size, shape), posterior, steering]

    @property
    def batch_shape(self) -> tuple[int, int]:
        """Rows, and tokens of a segment."""
        return ROWS, self.config.segment

    @property
    def longest_window(self) -> int:
        """A segment."""
        return int(self.config.segment)

    def hidden_matrices(self) -> dict[str, int]:
        """Those of the `gru`."""
        return {f"writer.{name}": number for name, number in self.writer.hidden_matrices().items()}

    @classmethod
    def resolve(cls, config: VariationalConfig, facts: TextFacts, budget: Budget) -> VariationalConfig:
        """The `gru` as large as the budget can train and the text can fill; explicit settings are kept."""

        def whole(writer: RecurrentConfig) -> VariationalConfig:
            return replace(config, **{f.name: getattr(writer, f.name) for f in fields(writer)}, warm_up=0)

        of_the_whole = replace(facts, tokens_per_second=lambda writer: facts.tokens_per_second(whole(writer)))
        chosen = whole(GRU.resolve(config.writer, of_the_whole, budget))
        if config.warm_up is not None:
            return replace(chosen, warm_up=config.warm_up)
        segments = ROWS * config.segment
        steps = tokens_in_budget(budget, facts, chosen, segments) / segments
        return replace(chosen, warm_up=int(WARM_UP_SHARE * steps))


def _fixed_noise(like: Tensor) -> Tensor:
    """Always the same draw, so that one set of weights has one validation."""
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(0)).to(like)
