"""Counting n-grams of every order up to N.

An n-gram is named by its rank among all n-grams of its length, and is stored as one 64-bit key:

    key(w_1 .. w_k) = id(w_1 .. w_{k-1}) << bits | w_k

so that the n-grams that share a history lie side by side, sorted by their last token. The history of a token never
reaches back across a beginning: there it starts with the begin symbol, whose id is V and which is never predicted. V is
larger than any token, so the n-grams that start with it are the last of their order.

There are two ways, with the same result: by sorting keys, and for long texts in C, where that can be made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmlab.config import Mistake
from lmlab.models._ngram_blocks import Counts, Ids
from lmlab.models._ngram_count_by_sorting import count_by_sorting
from lmlab.models._ngram_count_in_c import count_in_c
from lmlab.models._ngram_in_c import worth_it

MOST_TOKENS = 2**31 - 1  # positions and n-gram ids are 32-bit; two of them must fit a 64-bit key


def with_begins(ids: NDArray[np.unsignedinteger], starts: NDArray[np.int64], vocab_size: int) -> Ids:
    """The tokens as int32 with the begin symbol V before each document."""
    firsts = np.asarray(starts[:-1])
    if len(ids) + len(firsts) > MOST_TOKENS:
        raise Mistake(
            f"an ngram model counts at most {MOST_TOKENS:,} tokens; got {len(ids):,}", code="ngram-too-many-tokens"
        )
    tokens = np.empty(len(ids) + len(firsts), dtype=np.int32)
    is_token = np.ones(len(tokens), dtype=bool)
    is_token[firsts + np.arange(len(firsts))] = False
    tokens[is_token] = ids
    tokens[~is_token] = vocab_size
    return tokens


def count_ngrams(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, order: int) -> Iterator[Counts]:
    """The n-grams of order 1, 2, .. `order` in `tokens` (made by `with_begins`).

    `restarts_V[w]`: token w ends a sentence, so that the history of the next token is the begin symbol alone. Counts are not
    to be changed before the next order has been counted.
    """
    V = vocab_size
    found = np.bincount(tokens, minlength=V + 1)
    if len(found) > V + 1:
        raise ValueError(f"token {len(found) - 1} is none of a vocabulary of {V}")
    yield Counts(
        keys=np.arange(V, dtype=np.int64),
        counts=found[:V].astype(np.int32),
        suffix=np.zeros(V, dtype=np.int32),
        begins=V,
    )
    if order > 1:
        counting = (count_in_c if worth_it(len(tokens)) else count_by_sorting)(tokens, restarts_V, V, order)
        del tokens  # so that it is gone as soon as counting needs it no more
        yield from counting
