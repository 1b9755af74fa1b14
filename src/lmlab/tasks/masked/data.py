"""Texts with blanks: which tokens are hidden, and what is shown in their place (Devlin and others, 2019, section 3.1).

15% of the tokens are to be guessed. Of these 80% are shown as the mask, 10% as a token drawn at random and 10% as they are, so
that an encoder cannot tell which tokens it will be asked for.

Shapes: B texts, L tokens, T = L + 2 places, N places that are asked for.
"""

from __future__ import annotations

import numpy as np
import torch

from lmlab.interface import Windows
from lmlab.models.bert import MASKED_OF_20, Masked
from lmlab.models.families.encoder import EDGES, Symbols

HIDDEN, EXCHANGED = 0.8, 0.1  # of the tokens that are asked for; the rest is shown as it is


def framed(windows: Windows, symbols: Symbols) -> tuple[np.ndarray, np.ndarray | None]:
    """Texts between their symbols, B×T, and where they are; None: there is no padding."""
    tokens_BL = windows.tokens_BT.numpy()
    rows, length = tokens_BL.shape
    sizes_B = np.full(rows, length) if windows.mask_BT is None else windows.mask_BT.numpy().sum(1)
    inputs_BT = np.zeros((rows, length + EDGES), dtype=np.int64)
    inputs_BT[:, 0], inputs_BT[:, 1:-1] = symbols.begin, tokens_BL
    inputs_BT[np.arange(rows), sizes_B + 1] = symbols.end
    text_BT = np.arange(length + EDGES) < sizes_B[:, None] + EDGES
    return inputs_BT, None if text_BT.all() else text_BT


def masked(windows: Windows, symbols: Symbols, vocab_size: int, random: np.random.Generator) -> Masked:
    """A batch in which 15% of all tokens are asked for. Its shape depends on the shape of the windows alone."""
    inputs_BT, text_BT = framed(windows, symbols)
    rows, places = inputs_BT.shape
    most = _share(windows.tokens_BT.numel())
    is_token_BT = np.zeros((rows, places), dtype=bool)
    is_token_BT[:, 1:-1] = True if windows.mask_BT is None else windows.mask_BT.numpy()
    tokens = np.flatnonzero(is_token_BT)
    asked = _share(len(tokens))
    places_N, targets_N = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    places_N[:asked] = np.sort(random.choice(tokens, asked, replace=False, shuffle=False))
    targets_N[:asked] = inputs_BT.flat[places_N[:asked]]
    luck = random.random(asked)
    other = random.integers(0, vocab_size, asked)
    exchanged = np.where(luck < HIDDEN + EXCHANGED, other, targets_N[:asked])
    inputs_BT.flat[places_N[:asked]] = np.where(luck < HIDDEN, symbols.mask, exchanged)
    return Masked(
        torch.from_numpy(inputs_BT),
        torch.from_numpy(places_N),
        torch.from_numpy(targets_N),
        None if text_BT is None else torch.from_numpy(text_BT),
        None if asked == most else torch.arange(most) < asked,
        asked,
    )


def one_by_one(tokens_L: np.ndarray, symbols: Symbols) -> Masked:
    """A text as often as it has tokens, each time with another one hidden: what pseudo-log-likelihood asks for."""
    length = len(tokens_L)
    windows = Windows(torch.from_numpy(np.tile(tokens_L.astype(np.int64), (length, 1))))
    inputs_BT, _ = framed(windows, symbols)
    places_N = np.arange(length) * inputs_BT.shape[1] + np.arange(length) + 1
    inputs_BT.flat[places_N] = symbols.mask
    return Masked(torch.from_numpy(inputs_BT), torch.from_numpy(places_N), windows.tokens_BT[0])


def _share(tokens: int) -> int:
    """15%, rounded up, so that something is always asked for."""
    return -(-MASKED_OF_20 * tokens // 20)
