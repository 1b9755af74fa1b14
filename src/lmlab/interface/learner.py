"""Base classes of models that are trained by gradient descent."""

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
    """A model that is trained by gradient descent.

    `__init__(config, vocab_size)` takes a resolved config (no None left) and initializes the weights from torch's global
    generator.
    """

    default_optimizer: ClassVar[str] = "muon"  # a value of `learn.settings.Method`
    default_learning_rate: ClassVar[float] = 0.002  # of AdamW, the maximum of the schedule
    default_matrix_learning_rate: ClassVar[float] = 0.02  # of Muon, the maximum of the schedule
    default_momentum: ClassVar[float] = 0.95  # of Muon
    default_weight_decay: ClassVar[float] = 0.1

    # Embedding tables with sparse gradients: a step updates only the rows that it read.
    read_by_row: ClassVar[tuple[str, ...]] = ()

    compute_dtype: torch.dtype = torch.float32  # precision of matrix products in training; scoring is always float32

    def __init__(self, config: Any, vocab_size: int) -> None:
        super().__init__()
        self.config, self.vocab_size = config, vocab_size

    @classmethod
    @abstractmethod
    def resolve(cls, config: Any, facts: TextFacts, budget: Budget) -> Any:
        """Return the config with every setting that is None replaced by a value that suits this text and budget."""

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """Return the differentiable loss of a batch of the model's task."""

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Initialize weights that depend on the strings of the vocabulary, such as pretrained word vectors.

        A newly constructed model receives this call once, before training. The default does nothing.
        """

    def hidden_matrices(self) -> dict[str, int]:
        """Return the parameters that Muon updates: those that map hidden vectors to hidden vectors.

        Returns:
            By parameter name, the number of matrices that the parameter packs along its rows.
        """
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights by name. Tied weights appear once."""
        return {name: value.detach() for name, value in self.named_parameters()}

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Return a model with these weights, in evaluation mode.

        Raises:
            Mistake: a weight is missing or has another shape.
        """
        model = cls(config, vocab_size)
        known = {name: t.shape for name, t in model.state_dict().items()}
        needed = {name for name, _ in model.named_parameters()}
        if wrong := misfit({k: s for k, s in known.items() if k in needed | set(tensors)}, tensors):
            raise Mistake(f"these are no weights of such {an(cls.name)}: {wrong}", code="weights-do-not-fit")
        model.load_state_dict(tensors, strict=False)
        return model.eval()


class TextLearner(Learner):
    """A model that is trained on windows of plain text. Its task defines the training objective."""

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """Return the default tokenizer for a training part of `train_bytes` bytes."""
        return "char"

    @property
    def batch_shape(self) -> tuple[int, int]:
        """The default (rows, tokens per row) of a training batch of this model."""
        return 32, 128

    @property
    def training_flops_per_token(self) -> float | None:
        """The forward and backward FLOPs of training per token, by formula, without the optimizer. None: unknown."""
        rows, length = self.batch_shape
        known = self.training_flops(rows, length)
        return None if known is None else known / (rows * length)

    @property
    def usual_length(self) -> int:
        """The number of tokens in a row of a training batch."""
        return self.batch_shape[1]

    def blank(self, rows: int, tokens: int) -> Any:
        """Return a batch of windows that hold only token 0, for counting FLOPs."""
        return Windows(torch.zeros(rows, tokens, dtype=torch.long))

    @property
    def longest_window(self) -> int | None:
        """The maximum number of tokens in a training window. None: unlimited."""
        return None


class NeuralLanguageModel(TextLearner, LanguageModel):
    """A language model that is trained by gradient descent.

    Every training window starts with the model's own begin symbol, so the symbol means "the context is unknown". The first
    token of a text is therefore predicted like the first token of a window. The loss covers the tokens whose mask is True.
    """

    def calibrate(self, held_out: Iterable[Windows]) -> float | None:
        """Multiply all logits by the factor (an inverse temperature) that minimizes the loss on these windows.

        Returns:
            The factor; None if the logits are unchanged.
        """
        return None


class CarriedLanguageModel(NeuralLanguageModel):
    """A language model that is trained by truncated backpropagation through time.

    Its state is carried from one piece of a long sequence to the next.
    """

    @abstractmethod
    def loss_carried(self, tokens_BT: Tensor, carry: Any) -> tuple[Loss, Any]:
        """Return the loss of these tokens, continuing from a carried state, and the next state to carry.

        Args:
            tokens_BT: the next tokens of each sequence.
            carry: the state that the previous call returned. None: the start of a sequence.

        Returns:
            The loss, and the state detached from the graph.
        """
