"""A training step of `translator` and one of torch.nn.Transformer: same size, same batch, AdamW on both sides.

Both read sources and targets of several lengths with their padding masked, and share one table of vectors between source,
target and output. On a GPU the step of lmlab is recorded and replayed, as `lmlab train` takes it; theirs has a fused optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from lmlab.hardware.kept_figures import PRECISIONS
from lmlab.learn.micro_batches import MicroBatch
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.learn.stepping import steps_for
from lmlab.models.translator import Translations, Translator, TranslatorConfig
from steps import Steps
from timing import Work

VOCABULARY, LAYERS, WIDTH, HEADS = 8000, 4, 256, 4
ROWS, SOURCE, TARGET = {"cpu": 16, "cuda": 256}, 18, 20  # pairs in a step, tokens of the longest


def cases(device: str, precisions: Sequence[str], quick: bool) -> Iterator[Steps]:
    """Yield a comparison for each precision."""
    rows = 2 if quick else ROWS[device]
    for precision in precisions[:1] if quick else precisions:
        yield Steps(
            key=f"translator-{precision}",
            what=f"Training step of translator, {LAYERS} + {LAYERS} layers of width {WIDTH}, {rows} pairs, {precision}",
            peer="torch.nn.Transformer",
            least=1.0 if device == "cpu" else 1.5,
            make=partial(both, rows, device, PRECISIONS[precision]),
            repeats=1 if device == "cpu" else 20,
        )


def both(rows: int, device: str, dtype: torch.dtype) -> tuple[Work, Work]:
    """Make both steps."""
    torch.manual_seed(0)
    return our_step(rows, device, dtype), their_step(rows, device, dtype)


def batch(rows: int, device: str) -> Translations:
    draw = torch.Generator().manual_seed(0)
    there_BS = torch.arange(SOURCE) < torch.randint(SOURCE // 2, SOURCE + 1, (rows, 1), generator=draw)
    mask_BKT = torch.arange(TARGET) < torch.randint(TARGET // 2, TARGET + 1, (rows, 1, 1), generator=draw)
    source_BS = torch.randint(VOCABULARY, (rows, SOURCE), generator=draw)
    targets_BKT = torch.randint(VOCABULARY, (rows, 1, TARGET), generator=draw)
    return Translations(source_BS, there_BS, targets_BKT, mask_BKT).to(torch.device(device))


def our_step(rows: int, device: str, dtype: torch.dtype) -> Work:
    config = TranslatorConfig(
        languages=1, layers=LAYERS, width=WIDTH, heads=HEADS, context=32, dropout=0.0, smoothing=0.0
    )
    model = Translator(config, VOCABULARY).to(device).train()
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig())
    way = "captured" if device == "cuda" else "eager"
    steps = steps_for(
        way, model, lambda learner, piece, _: (learner.loss(piece), None), optimizer, torch.device(device)
    )
    data = batch(rows, device)
    return lambda: steps.take([MicroBatch(piece=data)], data.count, 1.0)


class Theirs(nn.Module):
    """This class is torch.nn.Transformer between one table of vectors and itself."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY + 2, WIDTH)
        self.position = nn.Parameter(torch.zeros(32, WIDTH))
        self.body = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True, bias=False
        )

    def loss(self, data: Translations) -> torch.Tensor:
        targets_BT, mask_BT = data.targets_BKT[:, 0], data.mask_BKT[:, 0]
        inputs_BT = F.pad(targets_BT[:, :-1], (1, 0), value=VOCABULARY + 1)
        hidden_BTD = self.body(
            self.table(data.source_BS) + self.position[:SOURCE],
            self.table(inputs_BT) + self.position[:TARGET],
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(TARGET, device=inputs_BT.device),
            tgt_is_causal=True,
            src_key_padding_mask=~data.there_BS,
            memory_key_padding_mask=~data.there_BS,
        )
        logits_BTV = hidden_BTD @ self.table.weight[: VOCABULARY + 1].T
        wanted_BT = targets_BT.masked_fill(~mask_BT, -100)
        return F.cross_entropy(logits_BTV.flatten(0, 1).float(), wanted_BT.flatten())


def their_step(rows: int, device: str, dtype: torch.dtype) -> Work:
    model = Theirs().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=device == "cuda")
    data = batch(rows, device)

    def step() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = model.loss(data)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
