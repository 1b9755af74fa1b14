"""Models that learn by gradient descent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

from lmlab.config import Mistake, an, misfit
from lmlab.interface.batch import Loss, Windows
from lmlab.interface.cost import CostFormula
from lmlab.interface.language_model import LanguageModel

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.pieces import Vocabulary


class Learner(nn.Module, CostFormula):
    """A model that learns by gradient descent.

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
        """Return the loss of a batch of its task. Differentiable."""

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Look at how the tokens read, once, before the first step: for models that start from vectors of known words."""

    def hidden_matrices(self) -> dict[str, int]:
        """Return the parameters that map hidden vectors to hidden vectors, with how many matrices each packs, for Muon."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights (tied weights once)."""
        return {name: value.detach() for name, value in self.named_parameters()}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Make a model with these weights, in evaluation mode."""
        model = cls(config, vocab_size)
        known = {name: t.shape for name, t in model.state_dict().items()}
        needed = {name for name, _ in model.named_parameters()}
        if wrong := misfit({k: s for k, s in known.items() if k in needed | set(tensors)}, tensors):
            raise Mistake(f"these are no weights of such {an(cls.name)}: {wrong}", code="weights-do-not-fit")
        model.load_state_dict(tensors, strict=False)
        return model.eval()


class TextLearner(Learner):
    """A model that learns from windows of plain text. Its task says what it learns of them."""

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """Return the tokenizer for a text of so many bytes, if nobody names one."""
        return "char"

    @property
    def batch_shape(self) -> tuple[int, int]:
        """(rows, tokens per row) of a training batch that suits this model."""
        return 32, 128

    @property
    def training_flops_per_token(self) -> float | None:
        """Operations of one training step per token, by formula, without the optimizer's; None: not known."""
        rows, length = self.batch_shape
        known = self.training_flops(rows, length)
        return None if known is None else known / (rows * length)

    @property
    def usual_length(self) -> int:
        """Tokens in a row of a training batch."""
        return self.batch_shape[1]

    def blank(self, rows: int, tokens: int) -> Any:
        """Return windows of one token again and again."""
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
        """Multiply all logits by the factor (the inverse of a temperature) that fits these windows best.

        Returns:
            The factor; None where the logits stay as they are.
        """
        return None


class CarriedLanguageModel(NeuralLanguageModel):
    """A language model that is trained on long stretches, cut into pieces: it carries its state from one to the next."""

    @abstractmethod
    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        """As `loss`, continuing from `carry` (None: a fresh start); the returned carry is detached from the graph."""
