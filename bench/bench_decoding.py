"""Is writing text fast? `gpt` beside transformers' generate: one text, several side by side, beams, a long prompt.

    python bench/bench_decoding.py [--device cuda] [--write]

Both sides write as many tokens after the same prompts, with a key-value cache and random weights, in turns in this process,
from prompt to text. On a CPU both compute in float32. On a GPU the model has the size of GPT-2, transformers writes in bf16,
and lmlab in bf16 and in float32.
"""

from __future__ import annotations

import pydoc_data.topics
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from lmlab.config import Budget, TextFacts
from lmlab.engine import Engine, Options, continued
from lmlab.hardware.choice import choose
from lmlab.hardware.memory import keep_memory
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from record import Recorder, arguments
from timing import Work, in_turns

CONTEXT, LIMIT_S = 1024, 12.0
TEXT = "\n".join(pydoc_data.topics.topics.values())


@dataclass(frozen=True)
class Size:
    """This class is the size of a model and the tokenizer that goes with it."""

    layers: int
    width: int
    head_width: int
    tokenizer: str
    aim: float  # how many times as fast one text should be, on a processor with units for bf16


@dataclass(frozen=True)
class Task:
    """This class is what is written: so many texts, tokens of a prompt, new tokens, and beams."""

    key: str
    what: str
    rows: int = 1
    prompt: int = 32
    new: int = 96
    beams: int = 1


SIZES = (Size(6, 192, 32, "char", 4.0), Size(6, 384, 64, "bpe:4096", 3.0))
ONE = Task("one", "one text")
TASKS = (
    ONE,
    Task("16rows", "16 texts side by side", rows=16, new=48),
    Task("beam4", "a beam of 4", beams=4, new=48),
    Task("long", "8 tokens after 900", prompt=900, new=8),
)
GPT2 = Size(12, 768, 64, "bpe:4096", 1.0)
GPT2_VOCABULARY = 50_304
GPU_TASKS = (Task("one", "one text", new=256), Task("64rows", "64 texts side by side", rows=64, new=256))


def our_model(size: Size, vocabulary: int) -> GPT:
    """A `gpt` with random weights that write varied text."""
    config = GPTConfig(layers=size.layers, width=size.width, heads=size.width // size.head_width, context=CONTEXT)
    facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=vocabulary)
    model = GPT(GPT.resolve(config, facts, Budget(steps=1)), vocabulary)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
    return model.eval()


def their_model(size: Size, vocabulary: int) -> transformers.GPT2LMHeadModel:
    """A GPT-2 of the same size."""
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_layer=size.layers, n_embd=size.width, n_head=size.width // size.head_width,
        n_positions=CONTEXT, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


class WideTokenizer:
    """This class is a tokenizer with a string for every token of a larger vocabulary; the weights are random anyway."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def piece(self, id: int) -> str:
        return self._tokenizer.piece(id % self._tokenizer.vocab_size)

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        return self._tokenizer.bytes_of(id % self._tokenizer.vocab_size, first=first)


def prompts_of(tokenizer: Tokenizer, task: Task) -> tuple[list[str], torch.Tensor]:
    """Return prompts of equally many tokens, and these tokens: transformers reads them as one tensor."""
    ids = tokenizer.encode(TEXT).ids
    texts: list[str] = []
    rows: list[list[int]] = []
    for start in range(0, len(ids) - task.prompt, task.prompt):
        text = tokenizer.decode(ids[start : start + task.prompt])
        again = tokenizer.encode(text).ids.astype("int64").tolist()
        if len(again) == task.prompt:  # cut at a token, a text may be divided otherwise
            texts.append(text)
            rows.append(again)
        if len(texts) == task.rows:
            return texts, torch.tensor(rows)
    raise AssertionError(f"the text has fewer than {task.rows} such prompts")


def our_work(model: GPT, tokenizer: Any, texts: list[str], task: Task, precision: str = "float32") -> Work:
    method: dict[str, Any] = {"method": "beam", "beam_width": task.beams} if task.beams > 1 else {"method": "greedy"}
    options = Options(max_tokens=task.new, **method)
    engine = Engine(model, tokenizer, precision=precision)
    return lambda: continued(engine, texts, options)


def their_work(model: transformers.GPT2LMHeadModel, ids_BT: torch.Tensor, task: Task) -> Work:
    def write() -> object:
        return model.generate(
            ids_BT, attention_mask=torch.ones_like(ids_BT), max_new_tokens=task.new, min_new_tokens=task.new,
            do_sample=False, use_cache=True, pad_token_id=0, num_beams=task.beams,
        )  # fmt: skip

    return write


def on_cpu(record: Recorder, quick: bool) -> None:
    """Measure every task at every size."""
    has_bf16 = choose("cpu").dtype == torch.bfloat16
    for size in SIZES[:1] if quick else SIZES:
        tokenizer = train_tokenizer(size.tokenizer, [TEXT])
        ours, theirs = our_model(size, tokenizer.vocab_size), their_model(size, tokenizer.vocab_size)
        for task in TASKS[:2] if quick else TASKS:
            texts, ids_BT = prompts_of(tokenizer, task)
            works = {
                "ours": our_work(ours, tokenizer, texts, task),
                "theirs": their_work(theirs, ids_BT, task),
            }
            times = in_turns(works, rounds=2 if quick else 11, limit_s=LIMIT_S)
            per_s = {name: [task.rows * task.new / s for s in found] for name, found in times.items()}
            record.compare(
                f"{size.layers}x{size.width}-{task.key}",
                f"Greedy decoding with gpt, {size.layers} layers of width {size.width}, {task.what}".replace(
                    "Greedy decoding", "Beam search" if task.beams > 1 else "Greedy decoding"
                ),
                per_s["ours"], per_s["theirs"], "tokens/s", peer="transformers", more_is_better=True,
                least=size.aim if task is ONE and has_bf16 else 1.0,
            )  # fmt: skip


def on_gpu(record: Recorder, quick: bool) -> None:
    """Measure one text and many at GPT-2 size, and how far bf16 text agrees with float32 text."""
    tokenizer = train_tokenizer(GPT2.tokenizer, [TEXT])
    wide = WideTokenizer(tokenizer)
    ours = our_model(GPT2, GPT2_VOCABULARY).cuda()
    theirs = their_model(GPT2, GPT2_VOCABULARY).to("cuda", torch.bfloat16)
    for task in GPU_TASKS:
        texts, ids_BT = prompts_of(tokenizer, task)
        works = {
            "bf16": our_work(ours, wide, texts, task, "bf16"),
            "float32": our_work(ours, wide, texts, task),
            "theirs": their_work(theirs, ids_BT.cuda(), task),
        }
        times = in_turns(works, rounds=1 if quick else 5, limit_s=60, device="cuda")
        per_s = {name: [task.rows * task.new / s for s in found] for name, found in times.items()}
        for precision in ("bf16", "float32"):
            record.compare(
                f"gpt2-{task.key}-{precision}",
                f"Greedy decoding with gpt at GPT-2 size, {task.what}, {precision} (peer in bf16)",
                per_s[precision], per_s["theirs"], "tokens/s", peer="transformers", more_is_better=True, least=1.0,
            )  # fmt: skip
    agreement(record, works["bf16"], works["float32"], task)


def agreement(record: Recorder, rounded: Work, exact: Work, task: Task) -> None:
    """Record how many greedy texts are the same in both precisions."""
    pairs = zip(rounded(), exact(), strict=True)  # type: ignore[call-overload]
    same = sum(a[0].ids == b[0].ids for a, b in pairs)
    record.add(
        f"gpt2-{task.key}-same", "Share of greedy texts that are the same in bf16 and float32", same / task.rows, ""
    )


def main() -> None:
    """Measure on the device that was asked for."""
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA device here: nothing to measure")
        return
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    keep_memory()  # for both sides, which share this process
    if asked.device == "cpu":
        on_cpu(Recorder("decoding", "fast", asked, peers=("transformers",)), asked.quick)
    else:
        gpu = torch.cuda.get_device_name()
        on_gpu(Recorder("decoding-gpu", "fast", asked, peers=("transformers",), gpu=gpu), asked.quick)


if __name__ == "__main__":
    main()
