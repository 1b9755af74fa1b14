"""Language models: probability distributions over token sequences, and the subclass that is fitted by counting."""

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
    """A probability distribution over token sequences that predicts one token after the other.

    Ids run from 0 to vocab_size - 1. A begin-of-text symbol, if the model needs one, is internal to the model: it is never
    predicted and never appears in tokens_BT.
    """

    vocab_size: int
    policy: ContextPolicy
    end_id: int | None = None
    """The id of the end-of-text token that the model predicts; None: the length of a text is given, as for a file."""
    library: str = ""  # another library that computes the predictions, with its version; empty: there is none
    components: Sequence[LanguageModel] = ()
    """The models that this model mixes or combines."""
    portable: ClassVar[bool] = False
    """Whether `begin` and `advance` return the same bits on all machines: what is compressed here then opens everywhere."""
    pads_documents: ClassVar[bool] = True
    """Whether `score_documents` pads short documents, so that measuring hands it documents of similar length."""
    confidence_features: ClassVar[int] = 0
    """The number of features per token that say how sure the model is before it sees it. A mix weighs its parts by them."""
    decoding_dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32,)
    """The precisions that `for_decoding` accepts."""

    @abstractmethod
    def score(self, tokens_BT: Tensor) -> Tensor:
        """Return -log p of each token given all tokens before it in its row: nats, float32, B×T, first token included."""

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """Return the nats of each token of several short documents that are concatenated in `tokens`.

        The default scores the documents as one padded batch. A model that needs no padding may override it.

        Args:
            tokens: ids of all documents.
            starts: the index in `tokens` at which each document starts, followed by len(tokens).
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
        """Return the log-probabilities of the token after a prompt, and the state after the prompt.

        Args:
            tokens_BT: prompts of T >= 0 tokens, on any device.
        """
        logp_BV, state = self.begin(len(tokens_BT))
        return self.advance(tokens_BT.to(logp_BV.device), state) if tokens_BT.shape[1] else (logp_BV, state)

    def for_decoding(self, dtype: torch.dtype) -> LanguageModel:
        """Return a model with the same weights for one engine, which may keep caches and buffers from one text to the next.

        The default is the model itself. The weights must not change while the returned model is used.

        Args:
            dtype: precision of the weights in `begin` and `advance`, one of `decoding_dtypes`; `score` is always float32.
        """
        return self

    def score_with_confidence(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return `score`, and the confidence features of each token before it was seen, B×T×`confidence_features`."""
        nats_BT = self.score(tokens_BT)
        return nats_BT, nats_BT.new_zeros(*nats_BT.shape, 0)

    def confidence_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """Return the confidence features of the next token (B×`confidence_features`).

        Args:
            logp_BV: the log-probabilities that `begin` or `advance` returned.
            state: the state that was returned with them.
        """
        return logp_BV.new_zeros(len(logp_BV), 0)


class CountModel(LanguageModel):
    """A language model that is fitted by counting n-grams in one pass over the training tokens."""

    @classmethod
    @abstractmethod
    def fit(cls, config: Any, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """Count the training tokens and return the estimated model."""

    @classmethod
    def stored(cls, config: Any, vocab_size: Size, distinct: Sequence[Size]) -> list[Part]:
        """Return the tables that a model of this config stores; an empty list if the model has no formula.

        Args:
            config: the settings of the model.
            vocab_size: a number or a symbol.
            distinct: the number of distinct n-grams of each length from 1 in the text, begin symbols included. Each is a
                number or a symbol.
        """
        return []
