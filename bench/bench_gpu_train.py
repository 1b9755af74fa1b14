"""Is training on a GPU fast? `lmlab train gpt` at GPT-2 size, from the file to the last step, beside nanoGPT's training step.

    python bench/bench_gpu_train.py [--nanogpt FOLDER] [--steps 240] [--write]

The text is the film reviews of LMLAB_BENCH_DATA (imdb/), in bpe:50304. Tokens a second are those from one
validation to the next, with it and the checkpoints in between; the first two stretches are left out, since they pay for
compiling and for the first sample. nanoGPT is a folder with a copy of its sources: its model, compiled, its AdamW, random
tokens, nothing else. Needs a CUDA device.
"""

from __future__ import annotations

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

from record import Recorder, arguments

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, ROWS = 12, 768, 12, 1024, 50_304, 64
STRETCHES, COLD = 6, 2
AIM = 600_000  # tokens a second
PEER_COLD, PEER_STEPS = 10, 60


def main() -> None:
    """Train with AdamW, then as `lmlab train` does by default."""
    parser = arguments(__doc__)
    parser.add_argument("--nanogpt", type=Path, help="a copy of its sources")
    parser.add_argument("--steps", type=int, default=240)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    reviews = Path(os.environ.get("LMLAB_BENCH_DATA", "")) / "imdb" / "train.tsv.gz"
    if not reviews.exists():
        print("LMLAB_BENCH_DATA names no folder with imdb/train.tsv.gz: nothing to train on")
        return
    record = Recorder("gpu-train", "fast", asked, gpu=torch.cuda.get_device_name())
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "words.txt"
        text.write_bytes(gzip.decompress(reviews.read_bytes()))
        peer = None if asked.nanogpt is None else nanogpt_tokens_per_second(asked.nanogpt)
        for optimizer in ("adamw", "auto"):
            steps = 12 if asked.quick else asked.steps
            rates = stretches(trained(text, Path(folder) / optimizer, optimizer, steps))
            how = "AdamW" if optimizer == "adamw" else "as it trains by default"
            what = f"`lmlab train gpt` at GPT-2 size, 64 windows of 1,024 tokens, {how}"
            record.add(f"gpt2-{optimizer}", what, rates, "tokens/s", least=AIM)
            if peer is not None:
                found = len(rates) / sum(1 / rate for rate in rates)  # all stretches have the same number of tokens
                what = f"{what}, beside nanoGPT's step, compiled, with AdamW"
                record.compare(
                    f"gpt2-{optimizer}-nanogpt", what, [found], [peer], "tokens/s", peer="nanoGPT", more_is_better=True
                )


def trained(text: Path, run: Path, optimizer: str, steps: int, device: str = "cuda") -> Path:
    """Run the command, and return the file of its metrics."""
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
    """Return tokens a second between validations, without the first of them."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    rates = [(b["tokens"] - a["tokens"]) / (b["seconds"] - a["seconds"]) for a, b in pairwise(lines)]
    return rates[COLD - 1 :]  # before the first line there is no stretch


def nanogpt_tokens_per_second(folder: Path) -> float:
    """Return tokens a second of its training step as its own benchmark takes it, without its data."""
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
