"""A language model: a probability distribution over token sequences; and one that is fitted by counting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from lmlab.context import ContextPolicy
from lmlab.formulas import Part, Size
from lmlab.interface.saved import Saved
from lmlab.interface.state import State

if TYPE_CHECKING:
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream


class LanguageModel(Saved):
    """A probability distribution over token sequences, one token after the other.

    Ids run from 0 to vocab_size - 1. A begin-of-text symbol, where a model needs one, is the model's own business: it is
    never predicted and never appears in tokens_BT.
    """

    vocab_size: int
    policy: ContextPolicy
    end_id: int | None = None
    """The id that ends a text, where one is predicted; None: a text's length is given, as a file's is."""
    components: Sequence[LanguageModel] = ()  # the models that this model is made of
    same_everywhere: ClassVar[bool] = False  # whether begin and advance give the same bits on every machine
    writing_dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32,)  # that `writing_dtype` may be
    writing_dtype: torch.dtype = torch.float32  # to which `advance` rounds weights; `score` never does
    fills_rows: ClassVar[bool] = True  # whether `score_documents` costs least for documents of similar length
    signs: ClassVar[int] = 0  # how many confidence features the model gives for a token before it sees it

    @abstractmethod
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Return the nats of each token given everything before it in its row: -log p, float32, B×T, first token included."""

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """Return the scores of short documents that lie end to end in `tokens`.

        Here they are scored side by side, and the shorter rows are padded at their end. A model that needs no padding may
        override this.

        Args:
            tokens: ids of all documents.
            starts: where each document starts, and at last len(tokens).
        """
        lengths_B = starts[1:] - starts[:-1]
        is_text_BT = torch.arange(int(lengths_B.max()), device=tokens.device) < lengths_B[:, None]
        tokens_BT = torch.zeros(is_text_BT.shape, dtype=torch.long, device=tokens.device)
        tokens_BT[is_text_BT] = tokens
        return self.score(tokens_BT)[is_text_BT]

    @abstractmethod
    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Return the log-probabilities (natural log, float32, rows×V) of the first token, and the state before it."""

    @abstractmethod
    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the log-probabilities (B×V) of the token after these T >= 1 tokens, and the next state. Spends `state`.

        Advancing T tokens at once or one by one gives the same result.
        """

    def begin_with(self, tokens_BT: Tensor) -> tuple[Tensor, State]:
        """Return what `begin`, and then `advance` by a prompt of T >= 0 tokens on any device, give."""
        logp_BV, state = self.begin(len(tokens_BT))
        return self.advance(tokens_BT.to(logp_BV.device), state) if tokens_BT.shape[1] else (logp_BV, state)

    def replace(self, state: State, rows_N: Tensor, newcomers: State) -> State | None:
        """Return `state` with row rows_N[i] replaced by row i of `newcomers`; both are spent.

        None: all rows of the model's states have read equally many tokens.
        """
        return None

    def score_with_signs(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return `score`, and for every token its confidence features from before it was seen, B×T×`signs`."""
        nats_BT = self.score(tokens_BT)
        return nats_BT, nats_BT.new_zeros(*nats_BT.shape, 0)

    def signs_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """Return the confidence features of the next token, B×`signs`, from what `begin` or `advance` gave."""
        return logp_BV.new_zeros(len(logp_BV), 0)


class CountModel(LanguageModel):
    """A language model that is fitted by counting, in one pass over the training tokens."""

    @classmethod
    @abstractmethod
    def fit(cls, config: Any, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """Count the training tokens and estimate the model."""

    @classmethod
    def stored(cls, config: Any, vocab_size: Size, distinct: Sequence[Size]) -> list[Part]:
        """Return what a model of this config stores; nothing where the model does not say.

        Args:
            config: settings of the model.
            vocab_size: a number or a symbol.
            distinct: how many different n-grams of each length, from 1, the text has, begin symbols included; numbers or
                symbols.
        """
        return []
