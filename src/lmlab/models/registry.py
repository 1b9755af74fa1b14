"""The names of the models. A model's file is imported only when the model is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from lmlab.config import nearest

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel

MODELS: dict[str, str] = {
    "uniform": "lmlab.models.uniform:Uniform",
    "bag": "lmlab.models.bag:Bag",
    "ngram": "lmlab.models.ngram:NGram",
    "bigram": "lmlab.models.bigram:Bigram",
    "feedforward": "lmlab.models.feedforward:FeedForward",
    "attention": "lmlab.models.attention:Attention",
    "rnn": "lmlab.models.rnn:RNN",
    "gru": "lmlab.models.gru:GRU",
    "lstm": "lmlab.models.lstm:LSTM",
    "rnn-attention": "lmlab.models.rnn_attention:RNNAttention",
    "gpt": "lmlab.models.gpt:GPT",
}


def model_class(name: str) -> type[LanguageModel]:
    """The class of that name; an unknown name is a ValueError that names the nearest one."""
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; {nearest(name, MODELS)}")
    module, _, attribute = MODELS[name].partition(":")
    cls: type[LanguageModel] = getattr(importlib.import_module(module), attribute)
    return cls
