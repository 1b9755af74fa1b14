"""Small models to hold to the contract, over tokenizers of every kind.

Counted models are fitted to a small text. Those that learn get random weights, large enough that nothing they say is near
uniform: a contract that holds for any weights holds for trained ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.interface import CountModel, LanguageModel, NeuralLanguageModel
from lmlab.learn.memory_needed import refuse_what_memory_cannot_hold
from lmlab.models.mix import Mix, MixConfig
from lmlab.models.registry import model_class
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

# Few words, so that all strings can be listed; and rare ones, so that there is something unknown. `ö` is two bytes.
TEXT = "a b a c b a\nb c a b b a\n" * 12 + "a bö b\nc d a\n" + "b a c\na a b c\n" * 8
UNSEEN_TEXT = "a b é c a\nb b a zebra c\n\nc a  b\n"  # unknown words, an empty line, two spaces

TOKENIZERS = {"words": "words:4", "char": "char", "byte": "byte", "bpe": "bpe:259"}
IN_A_MIX: dict[str, dict[str, Any]] = {
    "ngram": {"order": 3},
    "lstm": {"layers": 1, "width": 8, "embedding_width": 6, "tie": False},
    "gpt": {"layers": 1, "width": 16, "heads": 2, "context": 8, "stride": 3},
}
TINY = "words"  # the tokenizer whose strings can all be listed: four words and the unknown one


@cache
def tokenizer(kind: str) -> Tokenizer:
    """One of `TOKENIZERS`."""
    return train_tokenizer(TOKENIZERS[kind], [TEXT])


def build(cls: type[Any], settings: Mapping[str, Any], tokens: Tokenizer) -> LanguageModel:
    """A small model of this class."""
    config: Any = make(cls.Config, settings, cls.name)
    train = stream_of(TEXT, tokens)
    if issubclass(cls, Mix):
        return _mixed(config, tokens)
    if issubclass(cls, CountModel):
        return cls.fit(config, tokens.vocabulary, train)
    if not issubclass(cls, NeuralLanguageModel):
        raise Mistake(
            f"{cls.name} is no language model, and the contract is of language models",
            code="contract-of-no-language-model",
        )
    facts = TextFacts(train_tokens=train.tokens, train_bytes=train.bytes, vocab_size=tokens.vocab_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        whole = cls.resolve(config, facts, Budget(steps=10))
        refuse_what_memory_cannot_hold(cls, whole, tokens.vocab_size, tokens=0)
        model = cls(whole, tokens.vocab_size)
    randomise(model)
    return model.eval()


def _mixed(config: MixConfig, tokens: Tokenizer) -> Mix:
    """A mix of three small models, its weights drawn at random."""
    parts = [(name, build(model_class(name), settings, tokens)) for name, settings in IN_A_MIX.items()]
    features, generator = sum(part.confidence_features for _, part in parts), torch.Generator().manual_seed(3)
    shapes: dict[str, tuple[int, ...]] = {"logits_K": (len(parts),)}
    if config.weighting == "gate":
        shapes |= {"inner_SH": (features, 4), "inner_H": (4,), "outer_HK": (4, len(parts)), "mean_S": (features,)}
    gate = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    if config.weighting == "gate":
        gate["spread_S"] = torch.full((features,), 2.0)
    return Mix.of(parts, gate, weighting=config.weighting, adapt=config.adapt)


def randomise(model: NeuralLanguageModel) -> None:
    """Move all weights away from where they start, which for output layers is often zero."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator) * 0.5 * _size(weight))


def _size(weight: torch.Tensor) -> float:
    """Wide matrices get smaller changes, or everything saturates."""
    return min(1.0, (8 / weight.shape[-1]) ** 0.5) if weight.ndim > 1 else 1.0


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
