"""`lmlab train gpt` itself at GPT-2 size on a GPU, from the file to the last step, and nanoGPT's training step beside it.

    python bench/bench_gpu_train.py [--text FILE] [--nanogpt FOLDER] [--steps 240]

Without a file the text is the reviews of a folder that LMLAB_BENCH_DATA names (imdb/train.tsv.gz). What counts is the time from
one validation to the next, with it and the checkpoints in between; the first two stretches are left out, since they pay for
compiling and for the first sample. nanoGPT is a folder with a copy of its sources: its model, compiled, its AdamW, tokens by
chance, nothing else. Needs a CUDA device; says so where there is none.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import torch

from table import add_row

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, ROWS = 12, 768, 12, 1024, 50_304, 64
STRETCHES, COLD = 6, 2
WANTED = 600_000  # tokens a second
PEER_COLD, PEER_STEPS = 10, 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="a file, read as it is")
    parser.add_argument("--nanogpt", type=Path, help="a copy of its sources")
    parser.add_argument("--steps", type=int, default=240)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    with tempfile.TemporaryDirectory() as folder:
        text = asked.text or reviews(Path(folder))
        if text is None:
            print("no text: name one with --text, or set LMLAB_BENCH_DATA to a folder with imdb/train.tsv.gz")
            return
        peer = None if asked.nanogpt is None else nanogpt_tokens_per_second(asked.nanogpt)
        if peer is not None:
            print(f"nanoGPT's step, compiled, AdamW: {peer:,.0f} tokens/s")
        for optimizer in ("adamw", "muon"):
            rates = stretches(trained(text, Path(folder) / optimizer, optimizer, asked.steps))
            found = len(rates) / sum(1 / rate for rate in rates)  # all have the same number of tokens
            print(f"{optimizer}: {', '.join(f'{rate:,.0f}' for rate in rates)} tokens/s in stretches")
            add_row(f"lmlab train gpt, {optimizer}, GPT-2 size", found, unit="tokens/s", least=WANTED)
            if peer is not None:
                add_row(f"lmlab train gpt, {optimizer}, GPT-2 size", found / peer, against="nanoGPT's step with AdamW")


def reviews(folder: Path) -> Path | None:
    """A file of reviews, a line each; None where they are not here."""
    packed = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere")) / "imdb" / "train.tsv.gz"
    if not packed.exists():
        return None
    text = folder / "reviews.txt"
    with gzip.open(packed, "rt", encoding="utf-8") as rows, text.open("w", encoding="utf-8") as file:
        file.writelines(row.split("\t", 1)[1] for row in rows)
    return text


def trained(text: Path, run: Path, optimizer: str, steps: int, device: str = "cuda") -> Path:
    """The metrics of a run of the command."""
    settings = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "context": CONTEXT, "stride": CONTEXT // 2}
    settings |= {"tie": "true", "dropout": 0.0}
    learning = {"rows": ROWS, "validations": STRETCHES, "optimizer": optimizer}
    learning |= {"stepping": "compiled"} if device == "cuda" else {}
    command = [sys.executable, "-m", "lmlab", "train", "gpt", str(text), "--out", str(run), "--budget", f"{steps}steps"]
    command += ["--device", device, "--tokenizer", f"bpe:{VOCABULARY}"]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command += [word for name, value in learning.items() for word in ("--learn", f"{name}={value}")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return run / "metrics.jsonl"


def stretches(metrics: Path) -> list[float]:
    """Tokens a second between validations, without the first of them."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    rates = [(b["tokens"] - a["tokens"]) / (b["seconds"] - a["seconds"]) for a, b in pairwise(lines)]
    return rates[COLD - 1 :]  # before the first line there is no stretch


def nanogpt_tokens_per_second(folder: Path) -> float:
    """Of its training step as its own benchmark takes it, without its data."""
    sys.path.insert(0, str(folder))
    theirs = importlib.import_module("model")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    config = theirs.GPTConfig(
        block_size=CONTEXT, vocab_size=VOCABULARY, n_layer=LAYERS, n_head=HEADS, n_embd=WIDTH, dropout=0.0, bias=False
    )
    model = theirs.GPT(config).cuda()
    optimizer = model.configure_optimizers(weight_decay=1e-2, learning_rate=1e-4, betas=(0.9, 0.95), device_type="cuda")
    step_model = torch.compile(model)
    tokens, targets = torch.randint(VOCABULARY, (2, ROWS, CONTEXT), device="cuda").unbind(0)
    started = 0.0
    for step in range(PEER_COLD + PEER_STEPS):
        if step == PEER_COLD:
            torch.cuda.synchronize()
            started = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            _, loss = step_model(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    found = PEER_STEPS * ROWS * CONTEXT / (time.perf_counter() - started)
    del model, step_model, optimizer, loss
    torch.cuda.empty_cache()  # the command that is timed next has the GPU to itself
    return found


if __name__ == "__main__":
    main()
