"""What a model is: what a run keeps (`Saved`), what predicts tokens (`LanguageModel`), what learns by gradients (`Learner`).

Measuring, decoding, compressing and explaining are written once, against `LanguageModel` alone; the training loop knows
nothing but `Learner`. Models are made from (config, vocab_size): how tokens read is the business of the run's tokenizer.

Shape letters used across the lab: B rows (sequences side by side), T tokens, V vocabulary, D width, H heads,
N history length, L layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

from lmlab.config import Mistake, an, misfit
from lmlab.context import ContextPolicy as ContextPolicy
from lmlab.formulas import HEAD, ONE_TOKEN, Part, Shape, Size, weights, work

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a batch costs: a sum and how many things it is over. Sum first, divide once.

    parts: what the total is made of, by name (a reconstruction, a divergence), each a sum over the same things; empty
        where there is nothing to tell apart.
    """

    total: Tensor  # nats, differentiable
    count: int  # of what is predicted: tokens, examples
    parts: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def mean(self) -> Tensor:
        """Nats for each thing that is predicted."""
        return self.total / self.count


@dataclass(frozen=True)
class Windows:
    """A batch of token windows, each from its own begin; where the mask is False a token is not predicted."""

    tokens_BT: Tensor
    mask_BT: Tensor | None = None
    known: int | None = None  # tokens under the mask, where someone counted them before they went to another device

    @property
    def count(self) -> int:
        """Tokens that are predicted."""
        if self.known is not None:
            return self.known
        return self.tokens_BT.numel() if self.mask_BT is None else int(self.mask_BT.sum())

    def to(self, device: torch.device) -> Windows:
        """The same on another device; a GPU is not waited for: what is used there next waits."""
        if device.type != "cuda":
            return self._each(lambda t: t.to(device))
        return self._each(lambda t: t if t.is_cuda else t.pin_memory().to(device, non_blocking=True), self.count)

    @property
    def rows(self) -> int:
        """Windows in the batch."""
        return len(self.tokens_BT)

    def select(self, rows: slice) -> Self:
        """Return the batch of these rows."""
        mask_BT = None if self.mask_BT is None else self.mask_BT[rows]
        return replace(self, tokens_BT=self.tokens_BT[rows], mask_BT=mask_BT, known=None)

    def split(self, rows: int) -> Iterator[Self]:
        """The same in batches of at most so many rows."""
        for first in range(0, len(self.tokens_BT), rows):
            yield self.select(slice(first, first + rows))

    def _each(self, change: Callable[..., Tensor], known: int | None = None) -> Windows:
        return Windows(change(self.tokens_BT), None if self.mask_BT is None else change(self.mask_BT), known)


class State(ABC):
    """What a model remembers of the tokens so far, one row per sequence.

    A state may be advanced once and is then spent, so that a key-value cache can be written in place. Copy it first
    with `select` to go on from it twice.
    """

    def __init__(self) -> None:
        self._spent = False

    def spend(self) -> None:
        """Mark the state as used. Models call this first in `advance`; a second use is a programming mistake."""
        if self._spent:
            raise RuntimeError(
                "this State was advanced already; copy it with state.select(rows) before advancing twice"
            )
        self._spent = True

    @abstractmethod
    def select(self, rows_B: Tensor) -> State:
        """A new, unspent state whose row i is a copy of this state's row rows_B[i] (rows may repeat or be left out)."""


class HistoryState(State):
    """The last N token ids of each row, for models whose memory is a fixed window. Missing history is `begin_id`."""

    def __init__(self, history_BN: Tensor) -> None:
        super().__init__()
        self.history_BN = history_BN

    @classmethod
    def empty(cls, rows: int, length: int, begin_id: int, device: torch.device | None = None) -> HistoryState:
        """The state before any token: every slot holds `begin_id`."""
        return cls(torch.full((rows, length), begin_id, dtype=torch.long, device=device))

    def select(self, rows_B: Tensor) -> HistoryState:
        """Copy, repeat or reorder rows."""
        return HistoryState(self.history_BN[rows_B])

    def push(self, tokens_BT: Tensor) -> HistoryState:
        """The state after these tokens; this one is spent."""
        self.spend()
        length = self.history_BN.shape[1]
        joined = torch.cat([self.history_BN, tokens_BT], dim=1)
        return HistoryState(joined[:, joined.shape[1] - length :])


class Saved(ABC):
    """What a run keeps and brings back exactly.

    A class is one kind of model. `Config` is its frozen dataclass of settings; an instance is a trained (or fresh) model.
    """

    name: ClassVar[str]
    Config: ClassVar[type]

    config: Any

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Everything the model has learned, by name; what a run saves as model.safetensors."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The model whose `tensors()` these are. Exact: scores are bit-identical to those of the saved model."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know (a fallback that was used, a limit that was met), one line each."""
        return []

    @property
    def parameters_count(self) -> int:
        """Numbers the model has learned (for count tables: stored probabilities and weights)."""
        return sum(t.numel() for t in self.tensors().values())


class LanguageModel(Saved):
    """A probability distribution over token sequences, one token after the other.

    Ids run from 0 to vocab_size - 1. A begin-of-text symbol, where a model needs one, is the model's own business: it is
    never predicted and never appears in tokens_BT.
    """

    vocab_size: int
    policy: ContextPolicy
    end_id: int | None = None
    """The id that ends a text, where one is predicted; None: a text's length is given, as a file's is."""
    components: Sequence[LanguageModel] = ()  # the models that a model is made of, where it is
    same_everywhere: ClassVar[bool] = False  # whether begin and advance give the same bits on every machine
    writing_dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32,)  # that `writing_dtype` may be
    writing_dtype: torch.dtype = torch.float32  # to which `advance` rounds weights; `score` never does
    fills_rows: ClassVar[bool] = True  # whether `score_documents` costs least for documents of similar length
    signs: ClassVar[int] = 0  # how many numbers the model gives of how sure it is before it sees a token

    @abstractmethod
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given everything before it in its row: -log p, float32, B×T, first token included."""

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """`score` of short documents that lie end to end in `tokens`: where each starts, and at last len(tokens).

        Side by side, as here, the shorter rows are filled up after their end; a model that need not do so may say how.
        """
        lengths_B = starts[1:] - starts[:-1]
        is_text_BT = torch.arange(int(lengths_B.max()), device=tokens.device) < lengths_B[:, None]
        tokens_BT = torch.zeros(is_text_BT.shape, dtype=torch.long, device=tokens.device)
        tokens_BT[is_text_BT] = tokens
        return self.score(tokens_BT)[is_text_BT]

    @abstractmethod
    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Log-probabilities (natural log, float32, rows×V) of the first token, and the state before it."""

    @abstractmethod
    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B×V) of the token after these T >= 1 tokens. Spends `state`.

        Advancing T tokens at once or one by one gives the same result.
        """

    def begin_with(self, tokens_BT: Tensor) -> tuple[Tensor, State]:
        """`begin`, and `advance` by these T >= 0 tokens, wherever they lie: a prompt, which may be read at once."""
        logp_BV, state = self.begin(len(tokens_BT))
        return self.advance(tokens_BT.to(logp_BV.device), state) if tokens_BT.shape[1] else (logp_BV, state)

    def replace(self, state: State, rows_N: Tensor, newcomers: State) -> State | None:
        """`state` with row rows_N[i] replaced by row i of `newcomers`; both are spent. None: rows must be equally long."""
        return None

    def score_with_signs(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """`score`, and beside every token the signs that were there before it was seen, B×T×`signs`."""
        nats_BT = self.score(tokens_BT)
        return nats_BT, nats_BT.new_zeros(*nats_BT.shape, 0)

    def signs_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """The same signs of the next token, B×`signs`, from what `begin` or `advance` gave."""
        return logp_BV.new_zeros(len(logp_BV), 0)


class CountModel(LanguageModel):
    """A model that is fitted by counting, in one pass over the training tokens."""

    @classmethod
    @abstractmethod
    def fit(cls, config: Any, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """Count the training tokens and estimate the model."""

    @classmethod
    def stored(cls, config: Any, vocab_size: Size, distinct: Sequence[Size]) -> list[Part]:
        """What a model of this config stores; distinct: how many different n-grams of each length, from 1, the text has.

        Begin symbols are part of n-grams, and sizes may be symbols. Nothing: the model does not say.
        """
        return []


class Learner(nn.Module, Saved):
    """What learns by gradient descent.

    `__init__(config, vocab_size)` takes a resolved config (no None left) and draws fresh weights from torch's global
    generator.
    """

    default_optimizer: ClassVar[str] = "muon"  # one of `learn.settings.Method`
    default_learning_rate: ClassVar[float] = 0.002  # of AdamW at the top of the schedule
    default_matrix_learning_rate: ClassVar[float] = 0.02  # of Muon
    default_momentum: ClassVar[float] = 0.95  # of Muon
    default_weight_decay: ClassVar[float] = 0.1

    # Tables whose gradients are sparse, each row that a step read there once: only these rows move.
    read_by_row: ClassVar[tuple[str, ...]] = ()

    vocab_size: int
    letters: ClassVar[dict[str, str]] = {}  # what formulas call a setting, such as "d" or "N - 1"; else its name

    # what operations are counted of; without braces: whatever its length
    reads: ClassVar[str] = "a sequence of {} tokens"

    compute_dtype: torch.dtype = torch.float32  # precision of matrix products in training; scoring is always float32

    def __init__(self, config: Any, vocab_size: int) -> None:
        super().__init__()
        self.config, self.vocab_size = config, vocab_size

    @classmethod
    @abstractmethod
    def resolve(cls, config: Any, facts: TextFacts, budget: Budget) -> Any:
        """Fill the settings left at None with good ones for this text and budget."""

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """What a batch of its task costs. Differentiable."""

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Told once, before the first step, how the tokens read; for models that start from vectors of known words."""

    def hidden_matrices(self) -> dict[str, int]:
        """Parameters that map hidden vectors to hidden vectors, and how many matrices each packs; Muon steps these."""
        return {}

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """What a model of this config is made of, and what it multiplies in a pass over so many rows and tokens.

        Sizes may be symbols: `lmlab.formulas` says how. Nothing: the model does not say, and is counted by its tensors.
        """
        return []

    @property
    def parameters_count(self) -> int:
        """Numbers the model learns, by its formula where it has one."""
        parts = self.parts(self.config, self.vocab_size)
        return int(weights(parts)) if parts else super().parameters_count

    def training_flops(
        self, rows: int, tokens: int = 1, source: int = 0, *, past: int | None = None, filled: float = 1.0
    ) -> int | None:
        """Operations of a training step on a batch of this shape, by formula, the update apart; None: not known.

        source: tokens of a second sequence, if it reads one. past: tokens before these that there are to look back to; None:
        enough. filled: the share of the places that hold a token; the output layer reads these alone, the rest reads all.
        """
        seen = self.usual_past if past is None else min(past, self.usual_past)
        parts = self.parts(self.config, self.vocab_size, Shape(rows, tokens, seen, source))
        unread = (1 - filled) * work(part for part in parts if part.name == HEAD).both
        return int(work(parts).both - unread) if parts else None

    @property
    def usual_length(self) -> int:
        """Tokens of what operations are counted of, where nobody says it."""
        return 1

    def blank(self, rows: int, tokens: int) -> Any:
        """A batch of zeros of this shape, as `loss` takes it, to count operations with; None: there is none."""
        return None

    @property
    def usual_past(self) -> int:
        """Tokens before those of a training step to which it looks back, as a rule."""
        return 0

    @property
    def training_flops_per_token(self) -> float | None:
        """Operations of one training step per token, by formula, the update apart; None: not known."""
        return None

    def tensors(self) -> dict[str, Tensor]:
        """The weights (tied weights once)."""
        return {name: value.detach() for name, value in self.named_parameters()}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """A model with these weights, in evaluation mode."""
        model = cls(config, vocab_size)
        known = {name: t.shape for name, t in model.state_dict().items()}
        needed = {name for name, _ in model.named_parameters()}
        if wrong := misfit({k: s for k, s in known.items() if k in needed | set(tensors)}, tensors):
            raise Mistake(f"these are no weights of such {an(cls.name)}: {wrong}", code="weights-do-not-fit")
        model.load_state_dict(tensors, strict=False)
        return model.eval()


class TextLearner(Learner):
    """Learns by gradient descent from windows of plain text: what of them, its task says."""

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """What a text of so many bytes is divided into where nobody says it."""
        return "char"

    @property
    def batch_shape(self) -> tuple[int, int]:
        """(rows, tokens per row) of a training batch that suits this model."""
        return 32, 128

    @property
    def training_flops_per_token(self) -> float | None:
        """Operations of one training step per token, by formula, the update apart; None: not known."""
        rows, length = self.batch_shape
        known = self.training_flops(rows, length)
        return None if known is None else known / (rows * length)

    @property
    def usual_length(self) -> int:
        """What a training batch has."""
        return self.batch_shape[1]

    def blank(self, rows: int, tokens: int) -> Any:
        """Windows of one token again and again."""
        return Windows(torch.zeros(rows, tokens, dtype=torch.long))

    @property
    def longest_window(self) -> int | None:
        """The most tokens a training window may have; None: any number."""
        return None


class NeuralLanguageModel(TextLearner, LanguageModel):
    """A language model that learns by gradient descent.

    Every training window begins with the model's own begin symbol, so that symbol means "nothing is known of what came
    before", and the first token of a text is predicted like the first of a window. Its loss is of the tokens under the mask.
    """

    def calibrate(self, held_out: Iterable[Windows]) -> float | None:
        """Become as sure as is right on these windows; what all logits were multiplied by for it, None: nothing."""
        return None


class CarriedLanguageModel(NeuralLanguageModel):
    """A language model that is trained on long stretches, cut into pieces: it carries its state from one to the next."""

    @abstractmethod
    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        """As `loss`, continuing from `carry` (None: a fresh start); the returned carry is detached from the graph."""
