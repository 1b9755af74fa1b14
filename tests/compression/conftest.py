"""Real text, and small models of every kind on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

from lmlab.config import Budget, TextFacts
from lmlab.interface import CountModel, LanguageModel, NeuralLanguageModel
from lmlab.models.mix import Mix
from lmlab.models.registry import model_class, names
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer, train_tokenizer
from thinning import thinned

COMMON = ["ngram", "gpt", "lstm", "rnn-attention", "mix"]  # one of each way to compute; the others where there is time
MakeModel = Callable[..., tuple[LanguageModel, Tokenizer]]

# Small enough for a test; a model takes those of its settings that it has.
SMALL = {"layers": 1, "width": 32, "heads": 2, "context": 16, "stride": 8, "dropout": 0.0}
SMALL |= {"embedding_width": 16, "key_width": 16, "value_width": 16, "tie": False}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`model_name`: every registered model, some of them only by `make test-all`."""
    if "model_name" in metafunc.fixturenames:
        metafunc.parametrize("model_name", thinned(names(), COMMON))


@pytest.fixture(scope="session")
def learned() -> str:
    """About 60 kB of English, from the language reference inside CPython."""
    return "".join(topics[name] for name in sorted(topics)[:12])[:60_000]


@pytest.fixture(scope="session")
def held_out() -> str:
    """About 3 kB of it that no model here was fitted to, without a line end at its end."""
    return topics["types"][:3_000].rstrip() + " the end"


@pytest.fixture(scope="session")
def make_model(learned: str) -> MakeModel:
    """(model name, tokenizer spec, settings) -> a small model with opinions, fitted or drawn and shaken; and its tokenizer."""

    @cache
    def tokenizer(spec: str) -> Tokenizer:
        return train_tokenizer(spec, [learned])

    @cache
    def make(name: str, spec: str = "char", **settings: object) -> tuple[LanguageModel, Tokenizer]:
        cls, tokens = model_class(name), tokenizer(spec)
        ids, spellings = tokens.encode(learned)
        size = len(learned.encode())
        if issubclass(cls, CountModel):
            stream = TokenStream(
                ids=ids,
                starts=np.array([0, len(ids)]),
                bytes=size,
                chars=len(learned),
                words=len(learned.split()),
                spellings=spellings,
            )
            return cls.fit(cls.Config(**settings), tokens.vocabulary, stream), tokens
        if issubclass(cls, Mix):
            parts = [(kind, make(kind, spec)[0]) for kind in ("ngram", "gru", "gpt")]
            return Mix.of(parts, {"logits_K": torch.zeros(3)}, weighting="constant", adapt=True), tokens
        assert issubclass(cls, NeuralLanguageModel)
        fields = {field.name for field in dataclasses.fields(cls.Config)}
        config = cls.Config(**{key: value for key, value in SMALL.items() if key in fields} | settings)
        facts = TextFacts(train_tokens=len(ids), train_bytes=size, vocab_size=tokens.vocab_size)
        torch.manual_seed(0)
        model = cls(cls.resolve(config, facts, Budget(steps=1)), tokens.vocab_size)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model.eval(), tokens

    return make
