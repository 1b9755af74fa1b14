"""The lab's own models, made small for a check: built by size, without any text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from lmlab.models.attention import Attention
    from lmlab.models.feedforward import FeedForward
    from lmlab.models.gpt import GPT
    from lmlab.models.rnn_attention import RNNAttention


def feedforward(V: int, d: int, N: int, d_h: int, activation: Any = "tanh") -> FeedForward:
    """The feed-forward model of week2 E1, in the document's letters."""
    from lmlab.models.feedforward import FeedForward, FeedForwardConfig

    config = FeedForwardConfig(context=N - 1, embedding_width=d, width=d_h, activation=activation, dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return FeedForward(config, V).eval()


def attention(V: int, d: int, N: int, d_h: int, d_k: int, d_v: int, positions: Any = "none") -> Attention:
    """The model with one attention head of week2 E2 to E4, with query and output matrices that are not zero."""
    from lmlab.models.attention import Attention, AttentionConfig

    config = AttentionConfig(
        context=N - 1,
        embedding_width=d,
        key_width=d_k,
        value_width=d_v,
        width=d_h,
        activation="tanh",
        positions=positions,
        dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Attention(config, V).eval()
        torch.nn.init.normal_(model.output_VH)
        torch.nn.init.normal_(model.query_KD, std=d**-0.5)
    return model


def gpt(V: int, layers: int, width: int, heads: int, context: int, positions: Any = "rotary") -> GPT:
    """A decoder Transformer of the lab."""
    from lmlab.models.gpt import GPT, GPTConfig

    config = GPTConfig(
        layers=layers, width=width, heads=heads, context=context, stride=1, positions=positions, tie=False, dropout=0.0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT(config, V).eval()


def recurrent_attention(width: int, attend_to: Any = "combined") -> RNNAttention:
    """The recurrent network with attention over its earlier states (lab11 problem 5), in the lab's repaired form."""
    from lmlab.models.rnn_attention import RNNAttention, RNNAttentionConfig

    config = RNNAttentionConfig(
        width=width,
        embedding_width=width,
        score_function="dot",
        score_width=width,
        attend_to=attend_to,
        memory=64,
        bias=False,
        tie=False,
        dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return RNNAttention(config, 10).double().eval()


def two_token_searches(table: dict[str, float]) -> tuple[str, str]:
    """What the lab's greedy and exhaustive decoding return for the joint table of two tokens, keyed by their letters ("AB")."""
    from lmlab.decode import generate
    from lmlab.ledger.tablemodel import TwoTokens

    model = TwoTokens(table)
    greedy = generate(model, model.tokenizer, method="greedy", max_tokens=2)[0].text
    best = generate(model, model.tokenizer, method="exhaustive", max_tokens=2, length_penalty=0.0)[0].text
    return greedy, best
