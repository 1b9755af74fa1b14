"""Makes tests/golden/runs: runs, a mix, comparisons and a sweep of this version, small, kept so that later versions open them.

`python tests/golden/make_runs.py` makes all of them anew, which is right only when nobody has to open the old ones any more.
Pages and figures are left out. What they were trained on stands in texts/, and is made by `golden_texts`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden_places import ROOT, RUNS, plain_machine, replace_in_texts
from golden_texts import write_texts

import lmlab
from interrupts import InterruptAt
from lmlab.comparison.display import EntryProgress
from lmlab.models.registry import Way, kind_of

LEFT_OUT = ("*.html", "*.svg", ".lock", "cache")
FINGERPRINTED = ("ngram-words", "mix-words")  # each takes as much as a small model
BLOCK = {"layers": 1, "width": 8, "heads": 2}
RECURRENT = {"layers": 1, "width": 8, "embedding_width": 8}
GPT = {"layers": 2, "width": 8, "heads": 2, "context": 12, "stride": 6, "dropout": 0.1}
STEPS = 40
LONGER = {"gpt-words": 400}  # so that it is worth something in a mix
WHOLE = "gpt-stopped-whole.json"  # what gpt-stopped comes to
STOPPED_AT = 20  # of the steps of gpt-stopped
COMPARED = ["ngram", "bigram"]
INTERRUPTED = [*COMPARED, "feedforward"]  # before the last
EXCERPT = 10  # tokens of it that comparison.json keeps
TINY = {
    "ngram": {"order": 3},
    "bigram": {"width": 8, "embedding_width": 4},
    "feedforward": {"width": 8, "context": 2, "embedding_width": 4},
}
OVER = {"context": [2, 3]}

# Of every run: the kind, the tokenizer, and settings.
LANGUAGE_MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "uniform-words": ("uniform", "words", {}),
    "bag-bpe": ("bag", "bpe:270", {}),
    "ngram-words": ("ngram", "words:40", {"order": 3}),
    "ngram-char": ("ngram", "char", {"order": 3}),
    "bigram-words": ("bigram", "words:40", {"width": 8, "embedding_width": 8}),
    "feedforward-words": ("feedforward", "words:40", {"width": 8, "context": 3, "embedding_width": 8}),
    "attention-words": ("attention", "words:40", {"width": 8, "context": 6, "embedding_width": 8}),
    "cnn-words": ("cnn", "words:40", {"layers": 2, "width": 8}),
    "rnn-words": ("rnn", "words:40", RECURRENT),
    "gru-words": ("gru", "words:40", RECURRENT),
    "lstm-byte": ("lstm", "byte", {"layers": 1, "width": 4, "embedding_width": 4}),
    "rnn-attention-words": ("rnn-attention", "words:40", {"width": 8, "embedding_width": 8, "memory": 6}),
    "gpt-char": ("gpt", "char", GPT),
    "gpt-words": ("gpt", "words:40", {**GPT, "layers": 1, "positions": "learned", "tie": False}),
    "variational-words": ("variational", "words:40", {"layers": 1, "width": 8, "latent": 2, "segment": 8}),
    "bert-words": ("bert", "words:40", {**BLOCK, "context": 12}),
}
OTHERS: dict[str, tuple[str, str, str | None, dict[str, Any]]] = {  # and the text
    "classifier-words": ("classifier", "films.tsv", "words", {**BLOCK, "context": 12}),
    "dan-words": ("dan", "films.tsv", None, {"width": 8, "hidden": 8}),
    "translator": ("translator", "pairs.tsv", None, {"layers": 1, "width": 4, "heads": 2}),
    "glove": ("glove", "neighbours.txt", None, {"width": 4, "window": 5, "held_out": 0.1}),
    "autoencoder": ("autoencoder", "neighbours.txt", None, {"width": 4}),
}


class StopAtTheSecond:
    """A display that stops a comparison when its second learned model begins to train."""

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        if doing == f"training {INTERRUPTED[-1]}":
            raise KeyboardInterrupt

    def say(self, line: str) -> None:
        pass


def parts(texts: Path) -> dict[str, Any]:
    """What keeps a run free of how one file is divided."""
    return {"valid": texts / "valid.txt", "test": texts / "test.txt"}


def learning(model: str) -> dict[str, Any]:
    """Settings of the loop, for what has one."""
    return {"learning_rate": 0.01, "calibrate": False, "validations": 2} if kind_of(model).way is Way.LEARNS else {}


def train_all(root: Path, texts: Path) -> None:
    common: dict[str, Any] = {"budget": f"{STEPS}steps", "device": "cpu", "precision": "float32"}
    for name, (model, tokenizer, settings) in LANGUAGE_MODELS.items():
        budget = f"{LONGER.get(name, STEPS)}steps"
        lmlab.train(
            model, texts / "train.txt", out=root / name, tokenizer=tokenizer, settings=settings,
            learning=learning(model), **parts(texts), **common | {"budget": budget},
        )  # fmt: skip
    for name, (model, text, tokenizer, settings) in OTHERS.items():
        lmlab.train(
            model, texts / text, out=root / name, tokenizer=tokenizer, settings=settings,
            learning=learning(model), **common,
        )  # fmt: skip
    gpt = {"settings": {**GPT, "layers": 1, "width": 4, "heads": 1}, "learning": learning("gpt"), **common}
    lmlab.train("bag", "markov:order=2,alphabet=4,length=2000,seed=1", out=root / "bag-markov")
    stopped = lmlab.train(
        "gpt", texts / "train.txt", out=root / "gpt-stopped", watch=InterruptAt(STOPPED_AT), **parts(texts), **gpt
    )
    assert stopped.status == "unfinished"
    whole = lmlab.train("gpt", texts / "train.txt", out=root / "cache" / "whole", **parts(texts), **gpt)
    bits = lmlab.score(whole, (texts / "test.txt").read_text(encoding="utf-8"), device="cpu").bits
    (root / WHOLE).write_text(json.dumps({"test_bits": bits, "steps": STEPS}) + "\n")
    lmlab.mix([root / "ngram-words", root / "gpt-words"], out=root / "mix-words", device="cpu")  # of constant weights
    lmlab.mix([root / "attention-words", root / "rnn-words"], out=root / "mix-gate", device="cpu")


def asked_of_a_comparison(models: list[str]) -> dict[str, Any]:
    """What it was asked for, apart from texts."""
    few = {model: {"validations": 2} for model in models[1:]}
    tiny = {model: TINY[model] for model in models}
    return {
        "each": "1s", "models": models, "tokenizers": ["words:40"], "settings": tiny, "learning": few, "device": "cpu",
    }  # fmt: skip


def asked_of_a_sweep() -> dict[str, Any]:
    """Likewise."""
    settings, few = {"width": 8, "embedding_width": 4}, {"validations": 2}
    return {
        "over": OVER, "seeds": 2, "budget": "10steps", "tokenizer": "words:40", "settings": settings, "learning": few,
    }  # fmt: skip


def compare_again(texts: Path, out: Path, models: list[str], **more: Any) -> Any:
    """One of the comparisons, from its beginning or where its folder has come to."""
    return lmlab.compare(texts / "train.txt", out=out, **asked_of_a_comparison(models), **parts(texts), **more)


def sweep_again(texts: Path, out: Path) -> Any:
    """Likewise the sweep."""
    return lmlab.sweep("feedforward", texts / "train.txt", out=out, **asked_of_a_sweep(), **parts(texts))


def compare_and_sweep(root: Path, texts: Path) -> None:
    compare_again(texts, root / "compare", COMPARED)
    stopped = compare_again(texts, root / "compare-stopped", INTERRUPTED, watch=StopAtTheSecond())
    assert stopped.stopped
    shutil.rmtree(
        root / "compare-stopped" / "models" / f"{INTERRUPTED[-1]}-words40"
    )  # as after a kill between two models
    (root / "compare-stopped" / "comparison.json").unlink()
    sweep_again(texts, root / "sweep")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="lmlab-golden-") as scratch:
        root = Path(scratch).resolve()
        with plain_machine(root / "cache"):
            write_texts(root / "texts")
            train_all(root, root / "texts")
            compare_and_sweep(root, root / "texts")
        for path in root.rglob("training_text*"):
            if path.parent.name not in FINGERPRINTED:
                path.unlink()
        for path in sorted((root / "sweep").glob("*/run"))[1:]:  # results are what a sweep goes on with
            shutil.rmtree(path)
        replace_in_texts(root, str(root), ROOT)
        comparison = root / "compare" / "comparison.json"  # which says of which machine it is
        found = json.loads(comparison.read_text())
        found["versions"] |= {"system": "Linux", "processor": "x86_64"}
        for entry in found["entries"]:
            entry["excerpt"] = entry["excerpt"][:EXCERPT]
        comparison.write_text(json.dumps(found))
        shutil.rmtree(root / "cache")
        left = [path for path in root.rglob("*") if path.is_file() and str(root).encode() in path.read_bytes()]
        assert all(path.suffix in (".html", ".svg") for path in left), left
        shutil.rmtree(RUNS, ignore_errors=True)
        shutil.copytree(root, RUNS, ignore=shutil.ignore_patterns(*LEFT_OUT))
    size = sum(path.stat().st_size for path in RUNS.rglob("*") if path.is_file())
    print(f"{RUNS}: {size:,} bytes")


if __name__ == "__main__":
    main()
