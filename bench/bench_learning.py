"""Does `gpt` learn more in the same seconds than transformers' GPT-2? And what does Muon bring beside AdamW?

    python bench/bench_learning.py [--seconds 20] [--write]

Nats per token of the validation part of python-docs (bpe:4096), scored by the same windows. lmlab trains as `lmlab train` does,
with its validations inside the seconds. Transformers has AdamW (0.9, 0.95), gradients clipped to 1, weight decay 0.1 of
matrices, a warm-up and a linear decay to zero, no validations, and the best of three rates on the very tokens it is measured
on, which flatters it. Size, tokenizer and rows are the same; one run each.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers

import lmlab
from bench_scoring import nats_by_windows
from lmlab.hardware.choice import choose
from lmlab.hardware.memory import keep_memory
from record import Recorder, arguments
from steps_gpt import Size, their_loss, their_model

TEXT, VOCABULARY, SCORED = "python-docs", 4096, 20_000  # tokens of the validation part
RATES = 0.0005, 0.001, 0.002
WARM_UP = 0.05  # of the seconds


def ours(corpus: lmlab.Corpus, size: Size, seconds: float, optimizer: str, folder: Path) -> lmlab.Run:
    """Train a run of the lab at its own rates."""
    settings = {"layers": size.layers, "width": size.width, "heads": size.width // 64, "context": size.context}
    return lmlab.train(
        "gpt", corpus, out=folder / f"{optimizer}-{seconds:g}", budget=f"{seconds:g}s",
        tokenizer=f"bpe:{size.vocabulary}", device="cpu", settings={**settings, "dropout": 0.0},
        learning={"rows": size.rows, "optimizer": optimizer},
    )  # fmt: skip


def theirs(train: torch.Tensor, valid_1T: torch.Tensor, size: Size, seconds: float, rate: float) -> float:
    """Return nats per token after learning for so many seconds at this highest rate."""
    torch.manual_seed(0)
    model, dtype = their_model(size), choose("cpu").dtype
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


def main() -> None:
    """Measure one size."""
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    seconds = 2.0 if asked.quick else asked.seconds
    size = Size(layers=1, width=64, vocabulary=VOCABULARY, rows=2) if asked.quick else Size(vocabulary=VOCABULARY)
    transformers.utils.logging.set_verbosity_error()
    keep_memory()  # for both sides, which share this process
    corpus = lmlab.read(TEXT)
    record = Recorder("learning", "accurate", asked, peers=("transformers",))
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            "": ours(corpus, size, seconds, "auto", Path(folder)),
            "-half": ours(corpus, size, seconds / 2, "auto", Path(folder)),
            "-adamw": ours(corpus, size, seconds, "adamw", Path(folder)),
        }
        encode = runs[""].tokenizer.encode
        train, valid = (
            torch.from_numpy(encode(corpus.parts[part].text()).ids.astype(np.int64)) for part in ("train", "valid")
        )
        valid_1T = valid[None, :SCORED]  # theirs begins with the second token
        found = {name: float(run.load("cpu").score(valid_1T)[:, 1:].mean()) for name, run in runs.items()}
        size = Size(size.layers, size.width, runs[""].tokenizer.vocab_size, size.context, size.rows)
    best = min(theirs(train, valid_1T, size, seconds, rate) for rate in RATES[: 1 if asked.quick else None])
    for name, nats in found.items():
        budget = f"{seconds / 2 if name == '-half' else seconds:g} s"
        how = "with AdamW" if name == "-adamw" else "as it trains by default"
        what = f"gpt {how}, {budget}, beside GPT-2 after {seconds:g} s ({size}, {TEXT}, bpe:{VOCABULARY})"
        record.compare(f"gpt{name}", what, [nats], [best], "nats per token", peer="transformers", least=1.0)


if __name__ == "__main__":
    main()
