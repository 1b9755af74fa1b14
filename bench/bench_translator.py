"""Training steps of `translator` against torch.nn.Transformer: same size, same batch, AdamW, in one run; CPU, and CUDA if any.

    python bench/bench_translator.py [cpu|cuda]

Both read sources and targets of several lengths with their padding masked, share one table of vectors between source, target
and output, and take turns, so that a busy moment hits both; the median of the ratios counts. On a GPU ours is recorded and
replayed, as it trains there; theirs is asked for kernel by kernel with a fused optimizer, as it is used. At last, ours with
two languages for each source against twice one language: what the shared encoder saves.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from lmlab.hardware.choice import choose
from lmlab.hardware.memory import keep_memory
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.learn.stepping import steps_for
from lmlab.models.translator import Translations, Translator, TranslatorConfig
from table import add_row

VOCABULARY, LAYERS, WIDTH, HEADS = 8000, 4, 256, 4
ROWS, SOURCE, TARGET = {"cpu": 64, "cuda": 256}, 18, 20  # pairs in a step, tokens of the longest
PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
Step = Callable[[], None]


def batch(rows: int, languages: int, device: str) -> Translations:
    draw = torch.Generator().manual_seed(0)
    there_BS = torch.arange(SOURCE) < torch.randint(SOURCE // 2, SOURCE + 1, (rows, 1), generator=draw)
    mask_BKT = torch.arange(TARGET) < torch.randint(TARGET // 2, TARGET + 1, (rows, languages, 1), generator=draw)
    source_BS = torch.randint(VOCABULARY, (rows, SOURCE), generator=draw)
    targets_BKT = torch.randint(VOCABULARY, (rows, languages, TARGET), generator=draw)
    return Translations(source_BS, there_BS, targets_BKT, mask_BKT).to(torch.device(device))


def our_step(rows: int, languages: int, device: str, dtype: torch.dtype) -> Step:
    config = TranslatorConfig(
        languages=languages, layers=LAYERS, width=WIDTH, heads=HEADS, context=32, dropout=0.0, smoothing=0.0
    )
    model = Translator(config, VOCABULARY).to(device).train()
    model.compute_dtype = dtype
    optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig())
    way = "captured" if device == "cuda" else "eager"
    steps = steps_for(
        way, model, lambda learner, piece, _: (learner.loss(piece), None), optimizer, torch.device(device)
    )
    data = batch(rows, languages, device)
    return lambda: steps.take(data, None, 1.0, 0) and None


class Theirs(nn.Module):
    """torch.nn.Transformer between one table of vectors and itself."""

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


def their_step(rows: int, device: str, dtype: torch.dtype) -> Step:
    model = Theirs().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=device == "cuda")
    data = batch(rows, 1, device)

    def step() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            loss = model.loss(data)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def seconds(step: Step, device: str, times: int) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        step()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / times


def compare(
    what: str, names: tuple[str, str], sides: tuple[Step, Step], device: str, least: float | None = None
) -> None:
    """One line: how long each takes, and how many times as fast the second is."""
    rounds, times = (11, 1) if device == "cpu" else (12, 20)
    for side in sides:
        seconds(side, device, 5)
    taken = [[seconds(side, device, times) for side in sides] for _ in range(rounds)]
    ratio = statistics.median(first / second for first, second in taken)
    first, second = (1e3 * statistics.median(column) for column in zip(*taken, strict=True))
    print(f"  {names[0]} {first:.1f} ms, {names[1]} {second:.1f} ms")
    add_row(what, ratio, against=names[0], least=least)


def main() -> None:
    keep_memory()
    wanted = sys.argv[1:] or ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in wanted:
        rows = ROWS[device]
        print(
            f"{device}: {LAYERS} + {LAYERS} layers, width {WIDTH}, {rows} pairs of up to {SOURCE} and {TARGET} tokens"
        )
        choose(device)
        for name, dtype in PRECISIONS.items():
            torch.manual_seed(0)
            print(f" {name}, one language")
            sides = their_step(rows, device, dtype), our_step(rows, 1, device, dtype)
            what = f"translator, training step, {LAYERS}+{LAYERS}×{WIDTH}, {device} {name}"
            compare(what, ("torch.nn.Transformer", "lmlab"), sides, device, 1.0 if device == "cpu" else 1.5)
            one, two = our_step(rows, 1, device, dtype), our_step(rows, 2, device, dtype)

            def twice(one: Step = one) -> None:
                one()
                one()

            print(f" {name}, two languages of each source")
            compare(f"{what}, two languages", ("each by itself", "together"), (twice, two), device)


if __name__ == "__main__":
    main()
