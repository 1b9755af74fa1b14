"""The one interface: every language model of the lab is a `LanguageModel`.

Measuring, decoding, compressing and explaining are written once, against this file alone.

Shape letters used across the lab: B rows (sequences side by side), T tokens, V vocabulary, D width, H heads,
N history length, L layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer


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


class LanguageModel(ABC):
    """A probability distribution over token sequences, one token after the other.

    A class is one kind of model. `Config` is its frozen dataclass of settings; an instance is a trained (or fresh) model.
    Ids run from 0 to vocab_size - 1. A begin-of-text symbol, where a model needs one, is the model's own business: it is
    never predicted and never appears in tokens_BT.
    """

    name: ClassVar[str]
    Config: ClassVar[type]

    tokenizer: Tokenizer
    config: Any
    vocab_size: int
    context: int | None  # tokens of history the model can use; None: unbounded

    @abstractmethod
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Nats of each token given everything before it in its row: -log p, float32, B×T, first token included."""

    @abstractmethod
    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Log-probabilities (natural log, float32, rows×V) of the first token, and the state before it."""

    @abstractmethod
    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B×V) of the token after these T >= 1 tokens. Spends `state`.

        Advancing T tokens at once or one by one gives the same result.
        """

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Everything the model has learned, by name; what a run saves as model.safetensors."""

    @classmethod
    @abstractmethod
    def from_tensors(cls, config: Any, tokenizer: Tokenizer, tensors: dict[str, Tensor]) -> Self:
        """The model whose `tensors()` these are. Exact: scores are bit-identical to those of the saved model."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know (a fallback that was used, a limit that was met), one line each."""
        return []

    @property
    def parameters_count(self) -> int:
        """Numbers the model has learned (for count tables: stored probabilities and weights)."""
        return sum(t.numel() for t in self.tensors().values())


class CountModel(LanguageModel):
    """A model that is fitted by counting, in one pass over the training tokens."""

    @classmethod
    @abstractmethod
    def fit(cls, config: Any, tokenizer: Tokenizer, train: TokenStream) -> Self:
        """Count the training tokens and estimate the model."""


class NeuralModel(nn.Module, LanguageModel):
    """A model that learns by gradient descent.

    `__init__(config, tokenizer)` takes a resolved config (no None left) and draws fresh weights from torch's global
    generator. Every training window begins with the model's own begin symbol, so that symbol means "nothing is known of
    what came before", and the first token of a text is predicted like the first token of a window.
    """

    carries_state: ClassVar[bool] = False  # True: trained by truncated back-propagation with `loss_carried`
    default_learning_rate: ClassVar[float] = 0.002  # of AdamW at the top of the schedule

    compute_dtype: torch.dtype = torch.float32  # precision of matrix products in training; scoring is always float32

    @property
    def batch_shape(self) -> tuple[int, int]:
        """(rows, tokens per row) of a training batch that suits this model."""
        return 32, 128

    @property
    def longest_window(self) -> int | None:
        """The most tokens a training window may have; None: any number."""
        return None

    @property
    def training_flops_per_token(self) -> float:
        """Floating-point operations of one training step per token, by formula.

        A matrix entry takes part in one multiplication and one addition forward and two of each backward. Rows that are
        looked up (embeddings) multiply nothing; activations and norms are left out.
        """
        matrices = (p for name, p in self.named_parameters() if p.ndim == 2 and "embedding" not in name)
        return 6.0 * sum(p.numel() for p in matrices)

    def hidden_matrices(self) -> dict[str, int]:
        """Parameters that map hidden vectors to hidden vectors, and how many matrices each packs; Muon steps these."""
        return {}

    @classmethod
    @abstractmethod
    def resolve(cls, config: Any, facts: TextFacts, budget: Budget) -> Any:
        """Fill the settings left at None with good ones for this text and budget."""

    @abstractmethod
    def loss(self, tokens_BT: Tensor, mask_BT: Tensor | None = None) -> tuple[Tensor, int]:
        """(total nats over the tokens where mask is true, their number). Differentiable; sum first, divide once."""

    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Tensor, int, Any]:
        """As `loss`, continuing from `carry` (None: a fresh start); the returned carry is detached from the graph.

        Only models with `carries_state` have this.
        """
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """The weights (tied weights once)."""
        return {name: value.detach() for name, value in self.named_parameters()}

    @classmethod
    def from_tensors(cls, config: Any, tokenizer: Tokenizer, tensors: dict[str, Tensor]) -> Self:
        """A model with these weights, in evaluation mode."""
        model = cls(config, tokenizer)
        missing, unexpected = model.load_state_dict(tensors, strict=False)
        known = {name for name, _ in model.named_parameters()}
        lacking = sorted(known & set(missing))
        if unexpected or lacking:
            raise ValueError(f"the weights do not fit a {cls.name}: missing {lacking}, unexpected {sorted(unexpected)}")
        return model.eval()
