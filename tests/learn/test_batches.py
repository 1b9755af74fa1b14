"""Training windows."""

from __future__ import annotations

import numpy as np
import torch

from lmlab.text.batches import draw_stretches, draw_windows, even_windows
from lmlab.text.stream import TokenStream


def stream(*sizes: int) -> TokenStream:
    """Documents whose tokens count up across the whole stream, so that a window's place can be read off it."""
    starts = np.cumsum([0, *sizes])
    return TokenStream(ids=np.arange(starts[-1], dtype=np.uint16), starts=starts, bytes=0, chars=0, words=0)


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    text = stream(1000)
    again = [draw_windows(text, 4, 16, seed, step).tokens_BT for seed, step in ((0, 7), (0, 7), (0, 8), (1, 7))]
    assert torch.equal(again[0], again[1])
    assert not torch.equal(again[0], again[2])
    assert not torch.equal(again[0], again[3])


def test_windows_never_cross_a_document_bound() -> None:
    text = stream(50, 70, 30)
    for step in range(50):
        windows = draw_windows(text, 8, 20, 0, step)
        assert windows.mask_BT is None
        document_BT = torch.searchsorted(torch.from_numpy(text.starts[1:]), windows.tokens_BT, right=True)
        assert (document_BT == document_BT[:, :1]).all()


def test_a_short_document_is_masked_behind_its_end() -> None:
    windows = draw_windows(stream(5), 2, 8, 0, 0)
    assert windows.mask_BT is not None
    assert windows.mask_BT.tolist() == [[True] * 5 + [False] * 3] * 2
    assert windows.tokens_BT[:, :5].tolist() == [[0, 1, 2, 3, 4]] * 2


def test_every_token_is_drawn_sooner_or_later() -> None:
    text = stream(40, 25)
    seen = set()
    for step in range(200):
        seen.update(draw_windows(text, 4, 8, 0, step).tokens_BT.flatten().tolist())
    assert seen == set(range(65))


def test_a_round_reads_the_whole_text_once_and_the_next_one_in_another_order() -> None:
    text, rows, length = stream(1000), 4, 10
    rounds = [
        [draw_windows(text, rows, length, 0, step).tokens_BT for step in range(first, first + 25)] for first in (0, 25)
    ]
    for windows in rounds:
        seen, times = torch.cat(windows).unique(return_counts=True)
        assert len(seen) >= 1000 - length
        assert times.max() <= 2  # where the last window reaches back
    assert not torch.equal(*(torch.cat(windows)[:, 0] for windows in rounds))


def test_stretches_are_contiguous() -> None:
    tokens_BT = draw_stretches(stream(30, 30), 5, 24, 0, 3)
    assert (tokens_BT.diff(dim=1) == 1).all()


def test_even_windows_spread_over_the_text_and_repeat_exactly() -> None:
    text = stream(1000)
    first = even_windows(text, 10, 16).tokens_BT
    assert first[:, 0].tolist() == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]
    assert torch.equal(first, even_windows(text, 10, 16).tokens_BT)
