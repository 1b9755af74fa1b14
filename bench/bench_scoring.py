"""Is scoring fast? Long texts with `gpt` beside transformers, and many short lines with `ngram` beside kenlm.

    python bench/bench_scoring.py [--write]

Transformers scores a text window by window, as its documentation shows; every token has as much history on both sides. kenlm
reads the ARPA file that lmlab exports, and both sides must give the same log-probabilities; the lines are stretches of 3 to 12
words that the model has not seen. The text is the Penn Treebank where LMLAB_BENCH_DATA names a folder with ptb/, else the
documentation inside CPython. Without kenlm the second half is skipped.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
from functools import partial
from pathlib import Path

import torch
import transformers
from torch.nn import functional as F

try:
    import kenlm
except ImportError:
    kenlm = None

import lmlab
from lmlab.config import Budget, TextFacts
from lmlab.models.gpt import GPT, GPTConfig
from record import Recorder, arguments
from timing import in_turns, seconds_of

LIMIT_S, LINES, ORDER = 12.0, 100_000, 5
AGREE = 1e-4  # log10 units
SCORED = (  # vocabulary, layers, width, context, tokens of the text
    (321, 6, 192, 256, 20_000),
    (4096, 6, 384, 256, 8_000),
)


@torch.inference_mode()
def nats_by_windows(model: torch.nn.Module, tokens_1T: torch.Tensor, context: int, stride: int) -> float:
    """Score a window a call, and count what is new in each."""
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


def long_texts(record: Recorder, quick: bool) -> None:
    """Measure tokens a second of one long text."""
    for vocabulary, layers, width, context, length in SCORED[:1] if quick else SCORED:
        settings = GPTConfig(layers=layers, width=width, context=context, dropout=0.0)
        facts = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=vocabulary)
        ours = GPT(GPT.resolve(settings, facts, Budget(steps=1)), vocabulary).eval()
        config = transformers.GPT2Config(
            vocab_size=vocabulary, n_layer=layers, n_embd=width, n_head=width // 64, n_positions=context,
            bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        length = 1_000 if quick else length
        theirs, tokens_1T = transformers.GPT2LMHeadModel(config).eval(), torch.randint(vocabulary, (1, length))
        works = {
            "ours": partial(ours.score, tokens_1T),
            "theirs": partial(nats_by_windows, theirs, tokens_1T, context, ours.stride),
        }
        times = in_turns(works, rounds=2 if quick else 7, limit_s=LIMIT_S)
        rates = {name: [length / s for s in found] for name, found in times.items()}
        record.compare(
            f"gpt-{layers}x{width}", f"Scoring {length:,} tokens with gpt, {layers} layers of width {width}",
            rates["ours"], rates["theirs"], "tokens/s", peer="transformers", more_is_better=True, least=1.0,
        )  # fmt: skip


def short_lines(text: str, known: set[str], count: int, seed: int = 0) -> list[str]:
    """Draw lines of known words from a text."""
    rng = random.Random(seed)
    sentences = [words for line in text.splitlines() if len(words := line.split()) > 3]
    found: list[str] = []
    while len(found) < count:
        words = rng.choice(sentences)
        length = rng.randint(3, 12)
        start = rng.randrange(max(1, len(words) - length))
        piece = words[start : start + length]
        if known.issuperset(piece):
            found.append(" ".join(piece))
    return found


def many_lines(record: Recorder, quick: bool) -> None:
    """Measure seconds for many short lines, and hold the log-probabilities of both sides against each other."""
    data = Path(os.environ.get("LMLAB_BENCH_DATA", "nowhere")) / "ptb"
    with tempfile.TemporaryDirectory() as folder:
        run_folder, arpa = Path(folder) / "run", Path(folder) / "model.arpa"
        text, parts = (
            (data / "ptb.train.txt", {"test": data / "ptb.test.txt"}) if data.is_dir() else ("python-docs", {})
        )
        order = 3 if quick else ORDER
        run = lmlab.train("ngram", text, out=run_folder, tokenizer="words", settings={"order": order}, **parts)
        lmlab.export(run, out=arpa)
        held_out = "\n".join(piece for _, piece in run.corpus.test.pieces())
        reserved = {"<s>", "</s>", "<unk>"}  # kenlm has meanings of its own for these
        lines = short_lines(held_out, set(run.tokenizer.vocabulary.pieces) - reserved, LINES // 100 if quick else LINES)
        config = kenlm.Config()
        config.show_progress = False
        theirs, ours = kenlm.Model(str(arpa), config), lmlab.load(run_folder)
        log10 = [theirs.score(line, bos=True, eos=False) for line in lines]
        bits = lmlab.score(ours, lines).bits
        apart = max(abs(t + b * math.log10(2)) for t, b in zip(log10, bits, strict=True))
        works = {
            "ours": lambda: lmlab.score(ours, lines),
            "theirs": lambda: [theirs.score(line, bos=True, eos=False) for line in lines],
        }
        times = in_turns(works, rounds=2 if quick else 5, limit_s=LIMIT_S)
        loading = seconds_of(lambda: lmlab.score(lmlab.load(run_folder), ["a"]))
    what = f"{len(lines):,} short lines with ngram of order {order}"
    record.compare("ngram-lines", f"Scoring {what}", times["ours"], times["theirs"], "s", peer="kenlm", least=1.0)
    record.add("ngram-load", f"Loading that model before the first line ({what})", loading, "s")
    record.add("ngram-apart", f"Largest difference from kenlm, {what}", apart, "log10", most=AGREE)


def main() -> None:
    """Measure both halves."""
    asked = arguments(__doc__).parse_args()
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    record = Recorder("scoring", "fast", asked, peers=("transformers", "kenlm"))
    long_texts(record, asked.quick)
    if kenlm is None:
        print("kenlm is not installed: short lines are skipped")
    else:
        many_lines(record, asked.quick)


if __name__ == "__main__":
    main()
