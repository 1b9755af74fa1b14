"""N-gram models: the next token depends on the last N - 1 tokens, and is predicted from how often they were seen.

The default is interpolated modified Kneser-Ney (Chen & Goodman 1999), the strongest way of counting; maximum likelihood,
add-k, absolute discounting and Witten-Bell are here to be compared with it. Equations: `_ngram_smooth`; counting:
`_ngram_count`.

Maximum likelihood gives whatever it never saw probability zero, and the score says so (inf nats, never NaN).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmlab.config import Aside, Mistake
from lmlab.formulas import Part, Size, weights
from lmlab.interface import ContextPolicy, CountModel, State, spend
from lmlab.models._ngram_count import count_ngrams, with_begins
from lmlab.models._ngram_order import CUSTOMARY_ORDER, choose_order, of_any_place
from lmlab.models._ngram_query import Tables
from lmlab.models._ngram_smooth import (
    Level,
    absolute_discounting,
    discounts,
    kneser_ney,
    relative_frequencies,
    witten_bell,
)
from lmlab.models.bag import LEAST_K, MOST_K

if TYPE_CHECKING:
    from lmlab.text.pieces import Vocabulary
    from lmlab.text.stream import TokenStream

MOST_ORDER = 256  # each takes a table of its own, as large as the text
Smoothing = Literal["kneser-ney", "absolute", "witten-bell", "add-k", "ml"]
BYTES_PER_TOKEN = (
    16  # the least that counting holds at once (tokens, their order, two sets of ids); most texts take far more
)


@dataclass(frozen=True, kw_only=True)
class NGramConfig:
    """Settings of an n-gram model."""

    order: int | None = None  # length of the longest n-grams; by itself 5 for words, else what helps on held-out text
    smoothing: Smoothing = "kneser-ney"  # how what was never seen gets its share; ml: it gets none
    k: float = 0.01  # sightings imagined of every token after every history (add-k only)
    restart: Literal["auto", "line", "never"] = "auto"  # where history begins afresh; auto: line for words, else never
    prune: int = 0  # n-grams of two tokens or more that occur so often or less are left out

    def __post_init__(self) -> None:
        if self.order is not None and not 1 <= self.order <= MOST_ORDER:
            raise Mistake(
                f"ngram order is a whole number from 1 to {MOST_ORDER}; got {self.order}",
                code="ngram-order-out-of-range",
            )
        if self.smoothing not in get_args(Smoothing):
            raise Mistake(
                f"ngram smoothing is one of {', '.join(get_args(Smoothing))}; got {self.smoothing!r}",
                code="ngram-smoothing-unknown",
            )
        if self.prune < 0:
            raise Mistake(f"ngram prune is a count from 0 up; got {self.prune}", code="ngram-prune-below-zero")
        if self.prune and self.smoothing in ("add-k", "ml"):
            raise Mistake(
                f"ngram prune leaves what is cut to shorter histories, which smoothing={self.smoothing} does not ask; use"
                " kneser-ney, absolute or witten-bell",
                code="ngram-prune-without-back-off",
            )
        if self.restart not in ("auto", "line", "never"):
            raise Mistake(f"ngram restart is auto, line or never; got {self.restart!r}", code="ngram-restart-unknown")
        if not LEAST_K <= self.k <= MOST_K:
            usual = f"such as 0.01, from {LEAST_K:g} to {MOST_K:g}"
            raise Mistake(
                f"ngram k is a positive number {usual} (for k = 0 set smoothing=ml); got {self.k}",
                code="ngram-k-not-positive",
            )


class NGramState(State):
    """Which histories of 1 .. N - 1 tokens each row is in (ids of `_ngram_query`)."""

    def __init__(self, history_BN: Tensor) -> None:
        super().__init__()
        self.history_BN = history_BN

    def select(self, rows_B: Tensor) -> NGramState:
        """Copy, repeat or reorder rows."""
        return NGramState(self.history_BN[rows_B.cpu()])

    @classmethod
    def concat(cls, states: Sequence[NGramState]) -> NGramState:
        """Return one state with the rows of all states. Spends them."""
        spend(states)
        return NGramState(torch.cat([state.history_BN for state in states]))


class NGram(CountModel):
    """p(token | the last N - 1 tokens), from counts."""

    name: ClassVar[str] = "ngram"
    Config: ClassVar[type] = NGramConfig
    portable: ClassVar[bool] = True  # tables, and sums of what stands in them
    pads_documents: ClassVar[bool] = False
    confidence_features: ClassVar[int] = 2

    def __init__(self, config: NGramConfig, tables: Tables, counts_of_counts: Tensor) -> None:
        self.config, self.tables, self.counts_of_counts = config, tables, counts_of_counts
        self.vocab_size, self.policy = tables.vocab_size, ContextPolicy.last(tables.order - 1)

    @classmethod
    def fit(cls, config: NGramConfig, vocabulary: Vocabulary, train: TokenStream) -> Self:
        """Count every n-gram of the training tokens up to the order, and estimate."""
        config = _with_restart(config, vocabulary)
        V = vocabulary.size
        restarts_V = np.zeros(V, dtype=bool)
        if config.restart == "line":
            restarts_V[[i for i, piece in enumerate(vocabulary.pieces) if "\n" in piece]] = True
        _require_memory(len(train.ids))
        tokens = with_begins(train.ids, train.starts, V)
        train.put_away()
        if config.order is None:
            chosen = CUSTOMARY_ORDER if vocabulary.words else _chosen_order(train, tokens, restarts_V, V)
            config = dataclasses.replace(config, order=chosen)
        assert config.order is not None
        counting = count_ngrams(tokens, restarts_V, V, config.order)
        del tokens  # so that it is gone as soon as counting needs it no more
        orders = list(counting)
        n_of_n = np.zeros((0, 4), dtype=np.int64)
        if config.smoothing == "kneser-ney":
            levels, n_of_n = kneser_ney(orders, V, config.prune)
        elif config.smoothing == "absolute":
            levels, n_of_n = absolute_discounting(orders, V, config.prune)
        elif config.smoothing == "witten-bell":
            levels = witten_bell(orders, V, config.prune)
        elif config.smoothing == "add-k":
            levels = relative_frequencies(orders, V, config.k)
        else:
            if not len(train.ids):
                raise Mistake(
                    "a maximum-likelihood n-gram needs at least one training token; use smoothing=kneser-ney",
                    code="ngram-without-tokens",
                )
            levels = relative_frequencies(orders, V, 0.0)
        return cls(config, _tables(config, levels, restarts_V), torch.from_numpy(n_of_n))

    def score(self, tokens_BT: Tensor) -> Tensor:
        """-log p of each token given the N - 1 before it in its row; inf where maximum likelihood says impossible."""
        return self._score(tokens_BT, None)

    def score_with_confidence(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """And which order could answer, and how much it left to the shorter ones."""
        rows, length = tokens_BT.shape
        features_T2 = np.zeros((rows * (length + 1), self.confidence_features), dtype=np.float32)
        nats_BT = self._score(tokens_BT, features_T2)
        return nats_BT, torch.from_numpy(features_T2).view(rows, length + 1, self.confidence_features)[:, 1:]

    def confidence_after(self, logp_BV: Tensor, state: State) -> Tensor:
        """Which order can answer, and how much it leaves to the shorter ones."""
        assert isinstance(state, NGramState)
        return torch.from_numpy(self.tables.confidence(state.history_BN.numpy()))

    def orders(self, tokens_T: Tensor) -> Tensor:
        """For each token of a text: how long the longest n-gram is that ends with it and was counted, at least 1."""
        return torch.from_numpy(self.tables.orders(tokens_T.cpu().numpy()))

    def _score(self, tokens_BT: Tensor, features_T2: NDArray[np.float32] | None) -> Tensor:
        rows, length = tokens_BT.shape
        begun_BT = torch.full((rows, length + 1), self.vocab_size, dtype=torch.int32)
        begun_BT[:, 1:] = tokens_BT
        nats_BT = self.tables.score(begun_BT.flatten().numpy(), features_T2).reshape(rows, length + 1)
        return torch.from_numpy(nats_BT)[:, 1:].contiguous()

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """As `score`: only a begin symbol has to stand between two documents."""
        begun = with_begins(tokens.numpy(), starts.numpy(), self.vocab_size)
        return torch.from_numpy(self.tables.score(begun)[begun != self.vocab_size])

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """log p of the first token of a text."""
        return self._given(self.tables.begin(rows))

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """log p of the token after these."""
        assert isinstance(state, NGramState)
        state.spend()
        return self._given(self.tables.after(state.history_BN.numpy(), tokens_BT.cpu().numpy().astype(np.int64)))

    def _given(self, history_BN: NDArray[np.int64]) -> tuple[Tensor, State]:
        return torch.from_numpy(self.tables.distribution(history_BN)), NGramState(torch.from_numpy(history_BN))

    def tensors(self) -> dict[str, Tensor]:
        """Per order: keys (from order 2), natural log-probabilities, log-weights (below the highest order)."""
        named = {"counts_of_counts": self.counts_of_counts}
        named["restarts"] = torch.from_numpy(np.flatnonzero(self.tables.restarts_V))
        for k, level in enumerate(self.tables.levels, start=1):
            named[f"order{k}.logp"] = torch.from_numpy(level.logp)
            if k > 1:
                named[f"order{k}.keys"] = torch.from_numpy(level.keys)
            if k < self.tables.order:
                named[f"order{k}.weight"] = torch.from_numpy(level.weight)
        return named

    @classmethod
    def from_tensors(cls, config: NGramConfig, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """The model with these tables."""
        order = sum(name.endswith(".logp") for name in tensors)
        config = dataclasses.replace(config, order=order)
        levels = [
            Level(
                keys=tensors[f"order{k}.keys"].numpy() if k > 1 else np.arange(vocab_size),
                logp=tensors[f"order{k}.logp"].numpy(),
                weight=tensors[f"order{k}.weight"].numpy() if k < order else np.zeros(0, dtype=np.float32),
            )
            for k in range(1, order + 1)
        ]
        restarts_V = np.zeros(vocab_size, dtype=bool)
        restarts_V[tensors["restarts"].numpy()] = True
        return cls(config, _tables(config, levels, restarts_V), tensors["counts_of_counts"])

    @classmethod
    def stored(cls, config: NGramConfig, vocab_size: Size, distinct: Sequence[Size]) -> list[Part]:
        """A probability for every token and every longer n-gram that occurs; a weight for each that may be a history.

        The begin symbol is a history too, but has no probability. Smoothing changes the numbers, not how many there are.
        """
        assert config.order is not None
        found = [Part("order 1: probabilities", vocab_size)]
        if config.order > 1:
            found.append(Part("order 1: weights", vocab_size + 1))
        for k in range(2, config.order + 1):
            found.append(Part(f"order {k}: probabilities", distinct[k - 1]))
            if k < config.order:
                found.append(Part(f"order {k}: weights", distinct[k - 1]))
        return found

    @property
    def parameters_count(self) -> int:
        """Stored probabilities and weights."""
        return int(weights(self.stored(self.config, self.vocab_size, self.distinct)))

    @property
    def distinct(self) -> list[int]:
        """How many different n-grams of each length were seen; of length 1, how many tokens there are."""
        return [len(level.logp) for level in self.tables.levels]

    @property
    def notes(self) -> list[str]:
        """Which orders had to fall back to fixed discounts; what maximum likelihood cannot do."""
        if self.config.smoothing == "ml":
            return ["maximum likelihood: a token never seen after a known history costs infinitely many nats"]
        if self.config.smoothing != "kneser-ney":
            return []
        found = [discounts(row) for row in self.counts_of_counts.numpy()]
        orders = [k for k, (_, why) in enumerate(found, start=1) if why]
        if not orders:
            return []
        used, why = found[orders[0] - 1]
        in_a_row = len(orders) > 2 and orders == list(range(orders[0], orders[-1] + 1))
        listed = f"{orders[0]} to {orders[-1]}" if in_a_row else ", ".join(map(str, orders))
        fixed = f"usual discounts ({', '.join(map(str, used))}) at order {listed}"
        which = "" if len(orders) == 1 else f"of order {orders[0]} "
        few = "where the text has too few kinds of n-grams to estimate them"
        return [Aside(f"{fixed}, {few}: {which}{why}; nothing to mend")]


def _chosen_order(train: TokenStream, tokens: NDArray[np.int32], restarts_V: NDArray[np.bool_], vocab_size: int) -> int:
    """The order that predicts a held-out piece of the text best: its end, or documents from all over it."""
    if not train.has_ends:
        return choose_order(tokens, restarts_V, vocab_size)
    sample = with_begins(*of_any_place(train.ids, train.starts), vocab_size)
    return choose_order(sample, restarts_V, vocab_size, max(len(sample), len(tokens)))


def _with_restart(config: NGramConfig, vocabulary: Vocabulary) -> NGramConfig:
    """Lines of words are sentences, each beginning afresh; for other tokens a line break is like any of them."""
    if config.restart != "auto":
        return config
    return dataclasses.replace(config, restart="line" if vocabulary.words else "never")


def _require_memory(tokens: int) -> None:
    """Refuse at once what could only end in the machine running out of memory."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", ()):  # Windows has no sysconf
        return
    needed, present = tokens * BYTES_PER_TOKEN, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > present:
        raise Mistake(
            f"counting {tokens:,} tokens takes at least {needed / 1e9:.0f} GB of memory and this machine has"
            f" {present / 1e9:.0f}; give a part of the text, or fewer tokens for it (tokenizer words or bpe)",
            code="ngram-exceeds-memory",
        )


def _tables(config: NGramConfig, levels: list[Level], restarts_V: NDArray[np.bool_]) -> Tables:
    return Tables(
        levels=levels,
        restarts_V=restarts_V,
        vocab_size=len(restarts_V),
        to_uniform=config.smoothing == "add-k",
    )
