"""What `gpt` learns by itself in the seconds that GPT2LMHeadModel of transformers has: nats per token of validation text.

    python bench/bench_learning.py [--seconds 90] [TEXT]

A step of Muon takes longer than one of AdamW; this is about what steps are for. Size, text, tokenizer (bpe:4096) and rows of a
batch are the same. Here: the lab's own rates, with its looks at the validation part in the time. There: AdamW (0.9, 0.95),
gradients clipped to 1, weight decay 0.1 of matrices, a warm-up and a straight way down to zero, windows by chance, no looks,
and the best of three rates on the very tokens it is measured on, which flatters it. Half of the seconds here beside all there
says whether it learns as much in half the time. Both are scored by the same windows. Some ten minutes a size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import transformers

import lmlab
from bench_side_by_side import nats_by_windows
from bench_training import Size, their_loss, their_model
from lmlab.hardware.choice import choose, precision_name
from lmlab.hardware.memory import keep_memory
from lmlab.page.numbers import counted
from table import add_row

VOCABULARY, SCORED = 4096, 20_000  # tokens of the validation part
RATES = 0.0005, 0.001, 0.002
WARM_UP = 0.05  # of the seconds
SIZES = Size(vocabulary=VOCABULARY), Size(vocabulary=VOCABULARY, width=384), Size(vocabulary=VOCABULARY, rows=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="python-docs")
    parser.add_argument("--seconds", type=float, default=90)
    asked = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    keep_memory()  # for both sides, which share this process
    dtype = choose("cpu").dtype
    print(f"{asked.text}, {counted(torch.get_num_threads(), 'thread')}, {precision_name(dtype)} on both sides")
    corpus = lmlab.read(asked.text)
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            runs = [ours(corpus, size, seconds, Path(folder)) for seconds in (asked.seconds, asked.seconds / 2)]
            train, valid = (
                torch.from_numpy(runs[0].tokenizer.encode(corpus.parts[part].text()).ids.astype(np.int64))
                for part in ("train", "valid")
            )
            valid_1T = valid[None, :SCORED]
            found = [
                float(run.load("cpu").score(valid_1T)[:, 1:].mean()) for run in runs
            ]  # theirs begins with the second
            size = replace(size, vocabulary=runs[0].tokenizer.vocab_size)
        peers = {rate: theirs(train, valid_1T, size, asked.seconds, rate, dtype) for rate in RATES}
        for rate, nats in peers.items():
            print(f"  transformers at {rate:g}: {nats:.4f} nats per token after {asked.seconds:g} s")
        best = min(peers.values())
        for nats, seconds in zip(found, (asked.seconds, asked.seconds / 2), strict=True):
            print(f"  lmlab: {nats:.4f} after {seconds:g} s")
            add_row(
                f"gpt, {size}, learned in {seconds:g} s, less than by transformers in {asked.seconds:g} s",
                best - nats,
                unit="nats per token",
                least=0,
            )


def ours(corpus: lmlab.Corpus, size: Size, seconds: float, folder: Path) -> lmlab.Run:
    """A run of the lab, with its own rates."""
    settings = {"layers": size.layers, "width": size.width, "heads": size.width // 64, "context": size.context}
    return lmlab.train(
        "gpt",
        corpus,
        out=folder / f"{seconds:g}",
        budget=f"{seconds:g}s",
        tokenizer=f"bpe:{size.vocabulary}",
        device="cpu",
        settings={**settings, "dropout": 0.0},
        learning={"rows": size.rows},
    )


def theirs(
    train: torch.Tensor, valid_1T: torch.Tensor, size: Size, seconds: float, rate: float, dtype: torch.dtype
) -> float:
    """Nats per token after learning for so many seconds at this highest rate."""
    torch.manual_seed(0)
    model = their_model(size)
    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) == matrices], "weight_decay": 0.1 * matrices}
        for matrices in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95))
    started = time.perf_counter()
    while (done := (time.perf_counter() - started) / seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))
        begins = torch.randint(len(train) - size.context, (size.rows,))
        tokens_BT = torch.stack([train[begin : begin + size.context] for begin in begins])
        their_loss(model, tokens_BT, dtype).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    nats = nats_by_windows(model.eval(), valid_1T, size.context, size.context // 2)
    return nats / (valid_1T.numel() - 1)


if __name__ == "__main__":
    main()
