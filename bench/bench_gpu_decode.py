"""Greedy decoding on a GPU at GPT-2 size against transformers' generate: one row and 64, from prompt to text, in one run.

    python bench/bench_gpu_decode.py [RUN]

Prints tokens a second of ours in bf16 and float32 and of transformers in bf16, and where the texts in bf16 and in float32 part:
there the two best tokens were nearly tied, by how many nats is shown. With a trained gpt RUN that is asked of its weights too.
Needs a CUDA device; says so where there is none.
"""

from __future__ import annotations

import pydoc_data.topics
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from lmlab.decode import Generated, generate_many
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from table import add_row

LAYERS, WIDTH, CONTEXT, VOCABULARY = 12, 768, 1024, 50_304
PROMPT_CHARACTERS, PROMPT_TOKENS, NEW_TOKENS, ROUNDS = 120, 32, 256, 5
WANTED = {1: 2_000, 64: 100_000}  # tokens a second in bf16, for so many rows
TEXT = "\n".join(pydoc_data.topics.topics.values())


def our_model() -> GPT:
    config = GPTConfig(
        layers=LAYERS, width=WIDTH, heads=WIDTH // 64, context=CONTEXT, stride=CONTEXT // 2, tie=True, dropout=0.0
    )
    model = GPT(config, VOCABULARY)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
    return model.eval().cuda()


def seconds(work: Callable[[], Any]) -> float:
    """The median of a few rounds, after one that is not counted."""
    taken = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])


class WideTokenizer:
    """A byte tokenizer that has a string for every token of a large vocabulary: the model's weights are random anyway."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def piece(self, id: int) -> str:
        return self._tokenizer.piece(id % self._tokenizer.vocab_size)

    def token_bytes(self, ids: list[int]) -> Any:
        return self._tokenizer.token_bytes([id % self._tokenizer.vocab_size for id in ids])


def write(model: GPT, tokenizer: Any, prompts: list[str], dtype: torch.dtype) -> list[Generated]:
    model.writing_dtype = dtype
    found = generate_many(model, tokenizer, prompts, method="greedy", max_tokens=NEW_TOKENS)
    model.writing_dtype = torch.float32
    return [texts[0] for texts in found]


def show_parting(model: GPT, tokenizer: Any, prompts: list[str]) -> None:
    """Where the text in bf16 leaves the one in float32, and how near the two tokens were there."""
    exact = write(model, tokenizer, prompts, torch.float32)
    rounded = write(model, tokenizer, prompts, torch.bfloat16)
    gaps, lengths = [], []
    for prompt, a, b in zip(prompts, exact, rounded, strict=True):
        same = next((i for i, (x, y) in enumerate(zip(a.ids, b.ids, strict=True)) if x != y), len(a.ids))
        lengths.append(same)
        if same < len(a.ids):
            before = [*map(int, tokenizer.encode(prompt).ids), *a.ids[:same]]
            logp_V = model.advance(torch.tensor([before], device="cuda"), model.begin(1)[1])[0][0]
            gaps.append(float(logp_V[a.ids[same]] - logp_V[b.ids[same]]))
    print(
        f"  bf16 and float32 write the same {statistics.median(lengths):.0f} tokens (median; least {min(lengths)}) of"
        f" {NEW_TOKENS}; {len(gaps)} of {len(prompts)} texts part, at tokens that float32 holds"
        f" {statistics.median(gaps):.4f} nats apart (median; most {max(gaps):.4f})"
        if gaps
        else f"  bf16 and float32 write the same {NEW_TOKENS} tokens in all {len(prompts)} texts"
    )


def their_speed(prompts: list[list[int]]) -> float:
    """Tokens a second of transformers' generate in bf16."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_layer=LAYERS,
        n_embd=WIDTH,
        n_head=WIDTH // 64,
        n_positions=CONTEXT,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config).eval().to("cuda", torch.bfloat16)
    ids_BT = torch.tensor(prompts, device="cuda")

    def work() -> None:
        found = model.generate(
            ids_BT,
            attention_mask=torch.ones_like(ids_BT),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=True,
            pad_token_id=0,
        )
        assert found.shape[1] == ids_BT.shape[1] + NEW_TOKENS

    return len(prompts) * NEW_TOKENS / seconds(work)


def main() -> None:
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    torch.manual_seed(0)
    tokenizer = train_tokenizer("bpe:4096", [TEXT])
    wide, model = WideTokenizer(tokenizer), our_model()
    # Of one length, since transformers reads them as one tensor.
    pieces = (TEXT[start : start + PROMPT_CHARACTERS] for start in range(0, len(TEXT), PROMPT_CHARACTERS))
    even = [piece for piece in pieces if len(tokenizer.encode(piece).ids) == PROMPT_TOKENS]
    print(f"{LAYERS} layers × {WIDTH}, vocabulary {VOCABULARY}, context {CONTEXT}, {NEW_TOKENS} tokens after a prompt")
    for rows in WANTED:
        prompts = even[:rows]
        theirs = their_speed([[int(id) for id in tokenizer.encode(prompt).ids] for prompt in prompts])
        for name, dtype in (("bf16", torch.bfloat16), ("float32", torch.float32)):
            ours = rows * NEW_TOKENS / seconds(lambda: write(model, wide, prompts, dtype))  # noqa: B023
            print(
                f"  {rows} rows, {name}: {ours:,.0f} tokens/s; transformers in bf16 {theirs:,.0f}: {ours / theirs:.1f} times",
                flush=True,
            )
            add_row(f"gpt, decoding, GPT-2 size, {rows} rows, {name}", ours / theirs, against="transformers in bf16")
            if name == "bf16":
                add_row(f"gpt, decoding, GPT-2 size, {rows} rows", ours, unit="tokens/s", least=WANTED[rows])
    show_parting(model, wide, prompts)
    if sys.argv[1:]:
        import lmlab

        run = lmlab.load(sys.argv[1])
        trained = run.load("cuda")
        assert isinstance(trained, GPT)
        print(f"trained weights, {sys.argv[1]}:")
        show_parting(trained, run.tokenizer, prompts)


if __name__ == "__main__":
    main()
