"""How long should the n-grams be? Long enough that a longer history no longer helps on text that was held out.

Words have a customary answer. For characters, bytes and pieces of words the best order depends on the text far more
than on its length (plays stop gaining early, formulaic text goes on and on), so it is tried out on a sample.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from lmlab.models._ngram_blocks import Counts, Ids
from lmlab.models._ngram_count import count_ngrams
from lmlab.models._ngram_query import Tables
from lmlab.models._ngram_smooth import kneser_ney

CUSTOMARY_ORDER = 5  # for words, and for texts too short to try anything out
SHORT = 1000  # tokens
SURE_ORDER, MOST_ORDER = 7, 12  # tried in any case, as a gain may come late; and tried at most, as tables grow with it
SAMPLE = 1_000_000  # tokens from the start of the text that the choice rests on
HELD_OUT = 0.05  # of the sample, at its end
WORTH = 0.001  # a higher order must save this share of the nats to be worth its size


def of_any_place(
    ids: NDArray[np.unsignedinteger], starts: NDArray[np.int64]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
    """Return documents from all over a text, in random order, of about SAMPLE tokens: a list may be sorted.

    Args:
        ids: the tokens of all documents.
        starts: where each document starts in `ids`, then len(ids).

    Returns:
        Their tokens, and where each starts in them, then their number.
    """
    chosen = np.random.default_rng(0).permutation(len(starts) - 1)
    ends = np.cumsum(np.diff(starts)[chosen])
    count = int(np.searchsorted(ends, SAMPLE)) + 1
    found = [ids[starts[document] : starts[document + 1]] for document in chosen[:count].tolist()]
    return np.concatenate(found), np.concatenate([[0], ends[:count]])


def choose_order(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, text_tokens: int | None = None) -> int:
    """The smallest order whose held-out nats are within WORTH of the best; tokens are made by `with_begins`.

    text_tokens: of the text that `tokens` are a sample of; None: they are all of it.

    A text r times as long as the sample carries longer histories: at h nats a token, histories of k tokens are about
    exp(h k) in number, so the same evidence for each is reached with k + log(r) / h tokens.
    """
    if len(tokens) < SHORT:
        return CUSTOMARY_ORDER
    sample = tokens[:SAMPLE]
    cut = len(sample) - round(len(sample) * HELD_OUT)
    nats: list[float] = []
    counted: list[Counts] = []
    for counts in count_ngrams(sample[:cut], restarts_V, vocab_size, MOST_ORDER):
        counted.append(counts)
        nats.append(_held_out_nats(counted, sample[cut:], restarts_V, vocab_size))
        if len(nats) >= SURE_ORDER and nats[-1] > min(nats):
            break
    order = 1 + next(i for i, n in enumerate(nats) if n <= min(nats) * (1 + WORTH))
    tokens_held_out, longer = len(sample) - cut, (text_tokens or len(tokens)) / max(1, len(sample))
    if longer > 1 and min(nats) > 0:
        order += round(math.log(longer) * tokens_held_out / min(nats))
    return min(order, MOST_ORDER)


def _held_out_nats(counted: list[Counts], held_out: Ids, restarts_V: NDArray[np.bool_], vocab_size: int) -> float:
    """Total nats of the held-out tokens under the Kneser-Ney model of these orders."""
    orders = [dataclasses.replace(counts, counts=counts.counts.copy()) for counts in counted]
    levels, _ = kneser_ney(orders, vocab_size)
    tables = Tables(levels=levels, restarts_V=restarts_V, vocab_size=vocab_size, to_uniform=False)
    return float(tables.score(held_out)[held_out != vocab_size].sum(dtype=np.float64))
