"""Small models of every registered kind, over tokenizers of every kind, for the contract suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lmlab.interface import LanguageModel
from lmlab.models.registry import Way, kind_of, model_class, names
from lmlab.promises import subjects
from lmlab.promises.subjects import TINY, TOKENIZERS

RECURRENT = {"layers": 2, "width": 8, "embedding_width": 6, "tie": False}
TIED = {"layers": 1, "width": 8, "embedding_width": 8, "tie": True, "bias": False}
RECALL = {"width": 8, "embedding_width": 6, "memory": 5, "score_width": 4, "tie": False}

# Settings worth telling apart, the plain ones first. Each neural model drops hidden units in training, and must not here.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "uniform": {"": {}},
    "bag": {"": {}, "ml": {"smoothing": "ml"}},
    "ngram": {
        "": {"order": 3},
        "unigram": {"order": 1},
        "long": {"order": 6, "restart": "never"},
        "add-k": {"order": 3, "smoothing": "add-k", "k": 0.1},
        "ml": {"order": 3, "smoothing": "ml"},
        "absolute": {"order": 3, "smoothing": "absolute"},
        "witten-bell": {"order": 3, "smoothing": "witten-bell", "prune": 1},
        "pruned": {"order": 4, "prune": 1},
    },
    "bigram": {"": {"embedding_width": 6, "width": 8}},
    "feedforward": {"": {"context": 3, "embedding_width": 6, "width": 8}},
    "attention": {
        "": {"context": 4, "embedding_width": 6, "key_width": 4, "value_width": 4, "width": 8},
        "learned": {
            "context": 2,
            "embedding_width": 6,
            "key_width": 3,
            "value_width": 5,
            "width": 8,
            "positions": "learned",
        },
    },
    "rnn": {"": RECURRENT, "tied": TIED},
    "gru": {"": RECURRENT, "tied": TIED},
    "lstm": {"": RECURRENT, "tied": TIED},
    "rnn-attention": {
        "": RECALL,
        "dot": RECALL | {"score_function": "dot", "attend_to": "combined"},
        "additive": RECALL | {"score_function": "additive"},
    },
    "gpt": {
        "": {"layers": 2, "width": 16, "heads": 2, "context": 8, "stride": 3},
        "learned": {"layers": 1, "width": 16, "heads": 2, "context": 6, "positions": "learned", "tie": True},
        "sinusoidal": {"layers": 1, "width": 16, "heads": 4, "context": 5, "stride": 5, "positions": "sinusoidal"},
        "sliding": {"layers": 1, "width": 16, "heads": 1, "context": 4, "stride": 1, "activation": "gelu"},
        "composed": {
            **{"layers": 1, "width": 16, "heads": 4, "kv_heads": 2, "context": 8, "stride": 3, "window": 3},
            **{"norm": "rms", "activation": "swiglu", "biases": "qkv"},
        },
    },
    "mix": {
        "": {"weighting": "gate"},
        "constant": {},
        "adaptive": {"weighting": "gate", "adapt": True},
    },
}


def variants(name: str) -> dict[str, dict[str, Any]]:
    """The settings of a kind to try; one that is not mentioned above is tried as it comes."""
    found = VARIANTS.get(name, {"": {}})
    if kind_of(name).way is not Way.LEARNS:
        return found
    return {variant: {"dropout": 0.5, **settings} for variant, settings in found.items()}


@dataclass(frozen=True)
class Case:
    """A model to check: its name, the variant of its settings, and the tokenizer."""

    name: str
    variant: str
    tokenizer: str
    settings: dict[str, Any] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.name}{':' * bool(self.variant)}{self.variant}-{self.tokenizer}"

    @property
    def tiny(self) -> bool:
        return self.tokenizer == TINY


def cases() -> list[Case]:
    """Every variant over the tiny vocabulary, and the first of each model over every other tokenizer."""
    found = []
    for name in names():
        for i, (variant, settings) in enumerate(variants(name).items()):
            found += [Case(name, variant, t, settings) for t in TOKENIZERS if i == 0 or t == TINY]
    return found


@cache
def build(case: Case) -> LanguageModel:
    """The model of a case. Checks share it: none of them may change it."""
    return subjects.build(model_class(case.name), case.settings, subjects.tokenizer(case.tokenizer))
