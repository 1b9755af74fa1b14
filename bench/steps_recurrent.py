"""A training step of `gru` and of `rnn`, by the lab's recurrence and by torch's own kernel, on a CPU: 32 rows of 64 tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from unittest.mock import patch

import torch

from lmlab.hardware.kept_figures import PRECISIONS
from lmlab.interface import Windows
from lmlab.layers import cells
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.models.families.recurrent import BATCH, RecurrentConfig, RecurrentModel
from lmlab.models.gru import GRU
from lmlab.models.rnn import RNN
from steps import Steps
from timing import Work

WIDTHS, VOCABULARY = (128, 512), 100


def cases(device: str, precisions: Sequence[str], quick: bool) -> Iterator[Steps]:
    """Yield a comparison for each model and width, in the precision that the lab would train in."""
    if device != "cpu":
        return
    precision = precisions[-1]
    for kind in (GRU, RNN):
        for width in WIDTHS[:1] if quick or kind is RNN else WIDTHS:
            yield Steps(
                key=f"{kind.name}-1x{width}-{precision}",
                what=f"Training step of {kind.name}, 1 layer of width {width}, {precision}",
                peer="torch's own kernel",
                least=1.0,
                make=partial(both, kind, width, PRECISIONS[precision]),
            )


def both(kind: type[RecurrentModel], width: int, dtype: torch.dtype) -> tuple[Work, Work]:
    """Make both steps; they share the weights."""
    torch.manual_seed(0)
    config = RecurrentConfig(layers=1, width=width, embedding_width=64, tie=False, dropout=0.0)
    model = kind(config, VOCABULARY).train()
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig(), model.hidden_matrices())
    windows = Windows(torch.randint(VOCABULARY, BATCH))

    def step() -> None:
        model.loss(windows).mean.backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    def by_torch() -> None:
        with patch.object(cells, "can_scan", lambda *_: False):
            step()

    return step, by_torch
