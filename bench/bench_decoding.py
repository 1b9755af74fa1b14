"""Decoding one sequence with `gpt` against transformers' generate: same size, greedy, both with a key-value cache, CPU.

Both sides run in this process, taking turns, from prompt to text, and the median counts. Every token needs every weight
once, so reading the weights is a floor that no implementation in the same precision can go below; how fast torch reads them, by
its products or by adding them up, whichever is quicker, is printed too. The larger the model, the nearer both sides are to that
floor, and the smaller a ratio can be.

Then what a token costs after 64, 256 and 1000 others, and how much of that is attention itself.
"""

from __future__ import annotations

import pydoc_data.topics
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import transformers
from torch.nn import functional as F

from lmlab.config import Budget, TextFacts
from lmlab.decode import generate
from lmlab.hardware.choice import choose
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.page.numbers import counted
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from table import add_row

CONTEXT, PROMPT_TOKENS, NEW_TOKENS, ROUNDS = 1024, 32, 96, 11
TEXT = "\n".join(pydoc_data.topics.topics.values())
CONTEXTS = (64, 256, 1000)


@dataclass(frozen=True)
class Size:
    """A model size and the tokenizer that goes with it; the first has the size that three minutes make of `gpt`."""

    layers: int
    width: int
    head_width: int
    tokenizer: str


SIZES = (Size(6, 192, 32, "char"), Size(8, 320, 32, "bpe:1024"), Size(6, 384, 64, "bpe:4096"))
WANTED = (4.0, 3.3, 3.0)  # times as fast, where a processor has units for bf16; elsewhere never slower


def our_model(size: Size, tokenizer: Tokenizer) -> GPT:
    config = GPTConfig(layers=size.layers, width=size.width, heads=size.width // size.head_width, context=CONTEXT)
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=tokenizer.vocab_size)
    model = GPT(GPT.resolve(config, facts, Budget(steps=1)), tokenizer.vocab_size)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
    return model.eval()


def their_model(size: Size, tokenizer: Tokenizer) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        vocab_size=tokenizer.vocab_size,
        n_layer=size.layers,
        n_embd=size.width,
        n_head=size.width // size.head_width,
        n_positions=CONTEXT,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def medians_ms(sides: dict[str, Callable[[], None]], repeats: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Median milliseconds of each side, divided by `repeats`; the sides take turns, so that a busy moment hits all."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(rounds):
        for name, side in sides.items():
            started = time.perf_counter()
            side()
            times[name].append((time.perf_counter() - started) * 1e3 / repeats)
    return {name: statistics.median(found) for name, found in times.items()}


def compare(size: Size) -> float:
    """Print milliseconds per token of both sides; returns how many times as fast ours is."""
    tokenizer = train_tokenizer(size.tokenizer, [TEXT])
    prompt = tokenizer.decode(tokenizer.encode(TEXT).ids[:PROMPT_TOKENS])
    ids_BT = torch.tensor([tokenizer.encode(prompt).ids.astype("int64").tolist()])
    ours, theirs = our_model(size, tokenizer), their_model(size, tokenizer)
    vectors = {w.shape[1]: torch.randn(w.shape[1]) for w in ours.parameters() if w.ndim == 2}
    matrices = [w.detach() for name, w in ours.named_parameters() if w.ndim == 2 and name != "embedding"]
    matrices += [ours.embedding.detach()] if ours.config.tie else []

    def run_ours() -> None:
        (found,) = generate(ours, tokenizer, prompt, method="greedy", max_tokens=NEW_TOKENS)
        assert len(found.ids) == NEW_TOKENS

    def run_theirs() -> None:
        found = theirs.generate(
            ids_BT,
            attention_mask=torch.ones_like(ids_BT),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=True,
            pad_token_id=0,
        )
        assert found.shape[1] == ids_BT.shape[1] + NEW_TOKENS

    together = torch.cat([matrix.flatten() for matrix in matrices])

    def multiply_weights() -> None:
        for matrix in matrices:
            torch.mv(matrix, vectors[matrix.shape[1]])

    def add_weights() -> None:
        together.sum()

    ms = medians_ms({"ours": run_ours, "theirs": run_theirs}, NEW_TOKENS)
    floor = min(medians_ms({"products": multiply_weights, "sum": add_weights}, 1, rounds=101).values())
    ratio = ms["theirs"] / ms["ours"]
    print(
        f"{size.layers} layers × {size.width}, vocabulary {tokenizer.vocab_size}, context {CONTEXT}:"
        f" ours {ms['ours']:.2f} ms a token, transformers {ms['theirs']:.2f}: {ratio:.2f} times as fast"
        f" (torch reads the weights in {floor:.2f}: {ms['theirs'] / floor:.1f} times as fast as transformers)"
    )
    return ratio


def by_context(size: Size) -> None:
    """Print what a token costs after so many others, and how much of it is attention."""
    model = our_model(size, train_tokenizer(size.tokenizer, [TEXT]))
    steps = 16
    heads = size.width // size.head_width
    kv = torch.randn(size.layers, 2, 1, heads, CONTEXT, size.head_width)
    query = torch.randn(1, heads, 1, size.head_width)

    def step_at(context: int) -> Callable[[], None]:
        """Steps after a prompt of that length; reading the prompt is not timed, so the state is copied."""
        with torch.inference_mode():
            _, start = model.advance(torch.randint(model.vocab_size, (1, context)), model.begin(1)[1])

        def run() -> None:
            with torch.inference_mode():
                state = copies.pop()
                for _ in range(steps):
                    _, state = model.advance(token_BT, state)

        token_BT = torch.zeros(1, 1, dtype=torch.long)
        copies = [start.select(torch.tensor([0])) for _ in range(ROUNDS + 1)]
        return run

    def attend_at(context: int) -> Callable[[], None]:
        def run() -> None:
            with torch.inference_mode():
                for _ in range(steps):
                    for keys, values in kv[..., :context, :].unbind(0):
                        F.scaled_dot_product_attention(query, keys, values)

        return run

    print(f"\na token after others, {size.layers} layers × {size.width}:")
    sides = {f"step {c}": step_at(c) for c in CONTEXTS} | {f"attend {c}": attend_at(c) for c in CONTEXTS}
    ms = medians_ms(sides, steps)
    for c in CONTEXTS:
        whole, attention = ms[f"step {c}"], ms[f"attend {c}"]
        print(f"  {c:5d}: {whole:.2f} ms, of which attention {attention:.2f} and the rest {whole - attention:.2f}")


def main() -> None:
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {counted(torch.get_num_threads(), 'thread')}"
    )
    ratios = [compare(size) for size in SIZES]
    has_units = choose("cpu").dtype == torch.bfloat16
    for size, ratio, wanted in zip(SIZES, ratios, WANTED, strict=True):
        least = wanted if has_units else 1
        add_row(f"gpt, decoding, {size.layers}×{size.width}, cpu", ratio, against="transformers", least=least)
    by_context(SIZES[0])


if __name__ == "__main__":
    main()
