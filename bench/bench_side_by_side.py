"""What lmlab and transformers can both do with a small Transformer on a CPU, float32 on both sides: nothing may be slower here.

    python bench/bench_side_by_side.py [--rounds 5]

Training steps of several shapes, texts written side by side, wide beams, a long prompt, and scores of a text by windows that
overlap. Both sides in this process, in turns, so that a busy moment hits both; the median of the ratios counts. Weights are
random. Steps by default have Muon here and AdamW there, which is more work here, and more learned by it (bench_training.py).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import transformers
from torch.nn import functional as F

from bench_decoding import NEW_TOKENS, PROMPT_TOKENS, TEXT, our_model, their_model
from bench_decoding import Size as Writing
from bench_training import Size, our_step, their_step
from lmlab.config import Budget, TextFacts
from lmlab.decode.generate import generate_many
from lmlab.hardware.memory import keep_memory
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.page.numbers import counted
from lmlab.text.tokenizers import train_tokenizer
from table import add_row

Side = Callable[[], object]

STEPS = (
    Size(layers=2, width=64, context=64, rows=32),
    Size(layers=4, width=128, context=128, rows=16),
    Size(),
    Size(rows=1),
    Size(vocabulary=4096, width=384),
    Size(vocabulary=50304, width=384, rows=4),
    Size(layers=4, width=256, context=1024, rows=2),
    Size(vocabulary=50304, layers=12, width=768, rows=2),
)
WRITING = (Writing(6, 192, 64, "char"), Writing(6, 384, 64, "bpe:4096"))
SIDE_BY_SIDE, BEAMS, LONG_PROMPT = (2, 4, 8, 16, 32, 64), (4, 16), 900
SCORED = (  # vocabulary, layers, width, context, tokens of the text
    (321, 6, 192, 256, 20_000),
    (321, 6, 192, 1024, 8_000),
    (4096, 6, 384, 256, 8_000),
    (50304, 4, 256, 256, 3_000),
    (321, 6, 192, 256, 30),
)


def times_as_fast(ours: Side, theirs: Side, rounds: int) -> float:
    """Their time by ours: the median over rounds, in each of which both ran one after the other."""
    ratios = []
    for turn in range(rounds + 1):
        seconds = []
        for side in (ours, theirs):
            started = time.perf_counter()
            side()
            seconds.append(time.perf_counter() - started)
        if turn:  # the first finds memory and chooses kernels
            ratios.append(seconds[1] / seconds[0])
    return statistics.median(ratios)


def steps(rounds: int) -> None:
    for size in STEPS:
        theirs = their_step(torch.float32, size)
        for muon in (False, True):
            ratio = times_as_fast(our_step(torch.float32, size, muon=muon), theirs, rounds)
            against = "transformers, AdamW here by default Muon" if muon else "transformers, AdamW on both sides"
            add_row(f"training step, {size}", ratio, against=against, least=None if muon else 1)


class Writers:
    """A model of each side, of one size, and prompts from one text."""

    def __init__(self, size: Writing) -> None:
        self.tokenizer = train_tokenizer(size.tokenizer, [TEXT])
        self.ours, self.theirs = our_model(size, self.tokenizer), their_model(size, self.tokenizer)
        self.ids = self.tokenizer.encode(TEXT).ids

    def ratio(
        self, rounds: int, *, rows: int = 1, prompt: int = PROMPT_TOKENS, new: int = NEW_TOKENS, beams: int = 1
    ) -> float:
        """How many times as fast ours continues so many prompts of so many tokens."""
        texts = [self.tokenizer.decode(self.ids[7 * i * prompt :][:prompt]) for i in range(rows)]
        encoded = [self.tokenizer.encode(text).ids.astype("int64").tolist() for text in texts]
        ids_BT = torch.tensor([one[: min(map(len, encoded))] for one in encoded])
        settings = {"method": "beam", "beam_width": beams} if beams > 1 else {"method": "greedy"}

        def ours() -> object:
            return generate_many(self.ours, self.tokenizer, texts, max_tokens=new, **settings)

        def theirs() -> object:
            return self.theirs.generate(
                ids_BT, attention_mask=torch.ones_like(ids_BT), max_new_tokens=new, min_new_tokens=new,
                do_sample=False, use_cache=True, pad_token_id=0, num_beams=beams,
            )  # fmt: skip

        return times_as_fast(ours, theirs, rounds)


def writing(rounds: int) -> None:
    for size in WRITING:
        writers, name = Writers(size), f"{size.layers}×{size.width}"
        for count in SIDE_BY_SIDE:
            ratio = writers.ratio(rounds, rows=count)
            add_row(f"{count} texts side by side, {name}", ratio, against="transformers", least=1)
        for beams in BEAMS:
            add_row(f"a beam of {beams}, {name}", writers.ratio(rounds, beams=beams), against="transformers", least=1)
        ratio = writers.ratio(rounds, prompt=LONG_PROMPT, new=8)
        add_row(f"8 tokens after {LONG_PROMPT}, {name}", ratio, against="transformers", least=1)


def scoring(rounds: int) -> None:
    for vocabulary, layers, width, context, length in SCORED:
        settings = GPTConfig(layers=layers, width=width, context=context, dropout=0.0)
        facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=vocabulary)
        ours = GPT(GPT.resolve(settings, facts, Budget(steps=1)), vocabulary).eval()
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_layer=layers, n_embd=width, n_head=width // 64, n_positions=context,
            bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        theirs, tokens_1T = transformers.GPT2LMHeadModel(config).eval(), torch.randint(vocabulary, (1, length))
        by_windows = partial(nats_by_windows, theirs, tokens_1T, context, ours.stride)
        what = f"scores of {length} tokens, {layers}×{width}, vocabulary {vocabulary}, context {context}"
        ratio = times_as_fast(partial(ours.score, tokens_1T), by_windows, rounds)
        add_row(what, ratio, against="transformers, window by window", least=1)


@torch.inference_mode()
def nats_by_windows(model: torch.nn.Module, tokens_1T: torch.Tensor, context: int, stride: int) -> float:
    """As it is usually done: a window a call, of which what is new counts."""
    nats, done, length = 0.0, 0, tokens_1T.shape[1]
    for begin in range(0, length, stride):
        end = min(begin + context, length)
        window_1C, new = tokens_1T[:, begin:end], end - done
        logits_CV = model(window_1C).logits[0, :-1]
        nats += float(F.cross_entropy(logits_CV[-new:], window_1C[0, 1:][-new:], reduction="sum"))
        if end == length:
            break
        done = end
    return nats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    keep_memory()  # for both sides, which share this process
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {counted(torch.get_num_threads(), 'thread')}"
    )
    writing(asked.rounds)
    scoring(asked.rounds)
    steps(asked.rounds)


if __name__ == "__main__":
    main()
