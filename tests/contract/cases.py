"""Small models of every registered kind, over tokenizers of every kind, for the contract suite.

Counted models are fitted to a small text. Neural ones get random weights, large enough that nothing they say is near
uniform: a contract that holds for any weights holds for trained ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, TextFacts
from lmlab.interface import CountModel, LanguageModel, NeuralModel
from lmlab.models.registry import MODELS, model_class
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

# Few words, so that all strings can be listed; and rare ones, so that there is something unknown. `ö` is two bytes.
TEXT = "a b a c b a\nb c a b b a\n" * 12 + "a bö b\nc d a\n" + "b a c\na a b c\n" * 8
UNSEEN_TEXT = "a b é c a\nb b a zebra c\n\nc a  b\n"  # unknown words, an empty line, two spaces

TOKENIZERS = {"words": "words:4", "char": "char", "byte": "byte", "bpe": "bpe:259"}
TINY = "words"  # the tokenizer whose strings can all be listed: four words and the unknown one

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
    },
}


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
    def neural(self) -> bool:
        return issubclass(model_class(self.name), NeuralModel)

    @property
    def carries_state(self) -> bool:
        cls = model_class(self.name)
        return issubclass(cls, NeuralModel) and cls.carries_state

    @property
    def tiny(self) -> bool:
        return self.tokenizer == TINY


def cases() -> list[Case]:
    """Every variant over the tiny vocabulary, and the first of each model over every other tokenizer."""
    found = []
    for name in MODELS:
        for i, (variant, settings) in enumerate(VARIANTS[name].items()):
            found += [Case(name, variant, t, settings) for t in TOKENIZERS if i == 0 or t == TINY]
    return found


@cache
def tokenizer(kind: str) -> Tokenizer:
    return train_tokenizer(TOKENIZERS[kind], [TEXT])


@cache
def build(case: Case) -> LanguageModel:
    """The model of a case. Checks share it: none of them may change it."""
    cls, tokens = model_class(case.name), tokenizer(case.tokenizer)
    if issubclass(cls, CountModel):
        return cls.fit(cls.Config(**case.settings), tokens, stream_of(TEXT, tokens))
    assert issubclass(cls, NeuralModel)
    facts = TextFacts(train_tokens=10_000, train_bytes=10_000, vocab_size=tokens.vocab_size)
    config = cls.resolve(cls.Config(**case.settings, dropout=0.5), facts, Budget(steps=10))
    torch.manual_seed(1)
    model = cls(config, tokens)
    randomise(model)
    return model.eval()


def randomise(model: NeuralModel) -> None:
    """Move all weights away from where they start, which for output layers is often zero."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.5)


def stream_of(text: str, tokens: Tokenizer) -> TokenStream:
    """The tokens of a text that is one document."""
    ids, spellings = tokens.encode(text)
    return TokenStream(
        ids=ids,
        starts=np.array([0, len(ids)]),
        bytes=len(text.encode()),
        chars=len(text),
        words=len(text.split()),
        spellings=spellings,
    )
