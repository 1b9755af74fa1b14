"""The lab as the checks use it: its models by their sizes, counted on a text or taught for a moment, measured and decoded.

Claims about text run on the documentation that comes with Python, so that the ledger needs no data; where the environment
variable LMLAB_BENCH_DATA names a folder of corpora, some claims measure on those as well.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from lmlab.coursework.shared_tools import descend, seeded

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel, NeuralLanguageModel
    from lmlab.models.attention import Attention
    from lmlab.models.feedforward import FeedForward
    from lmlab.models.gpt import GPT
    from lmlab.models.rnn_attention import RNNAttention
    from lmlab.text.stream import TokenStream
    from lmlab.text.tokenizers import Tokenizer


def _made(name: str, vocabulary: int | Tokenizer, settings: Mapping[str, Any]) -> Any:
    """The lab's model of this name, with fresh weights that are the same on every run."""
    from lmlab.models.registry import model_class

    kind = cast("Any", model_class(name))
    size = vocabulary if isinstance(vocabulary, int) else vocabulary.vocab_size
    return seeded(lambda: kind(kind.Config(**settings), size)).eval()


def feedforward(V: int | Tokenizer, d: int, N: int, h: int, activation: str = "tanh") -> FeedForward:
    """The feed-forward model of week2 E1, in the document's letters."""
    settings = {"context": N - 1, "embedding_width": d, "width": h, "activation": activation, "dropout": 0.0}
    return cast("FeedForward", _made("feedforward", V, settings))


def attention(V: int | Tokenizer, d: int, N: int, h: int, k: int, v: int, positions: str = "none") -> Attention:
    """The model with one attention head of week2 E2 to E4, with query and output matrices that are not zero."""
    sizes = {"context": N - 1, "embedding_width": d, "width": h, "key_width": k, "value_width": v}
    model = _made("attention", V, {**sizes, "activation": "tanh", "positions": positions, "dropout": 0.0})

    def drawn() -> Attention:
        torch.nn.init.normal_(model.output_VH)
        torch.nn.init.normal_(model.query_KD, std=d**-0.5)
        return cast("Attention", model)

    return cast("Attention", seeded(drawn, 1))


def gpt(V: int, layers: int, width: int, heads: int, context: int, positions: str = "rotary") -> GPT:
    """A decoder Transformer of the lab."""
    sizes = {"layers": layers, "width": width, "heads": heads, "context": context, "stride": 1}
    return cast("GPT", _made("gpt", V, {**sizes, "positions": positions, "tie": False, "dropout": 0.0}))


def recurrent_attention(width: int) -> RNNAttention:
    """The recurrent network with attention over its earlier states (lab11 problem 5), in the lab's repaired form."""
    widths = {"width": width, "embedding_width": width, "score_width": width, "score_function": "dot", "memory": 64}
    more = {"attend_to": "combined", "bias": False, "tie": False, "dropout": 0.0}
    return cast("RNNAttention", _made("rnn-attention", 10, {**widths, **more}).double())


def stream(tokenizer: Tokenizer, texts: Sequence[str]) -> TokenStream:
    """Documents as tokens, in memory."""
    from lmlab.text.stream import TokenStream

    encoded = [tokenizer.encode(text) for text in texts]
    spellings = [word for each in encoded for word in each.spellings]
    return TokenStream(
        ids=np.concatenate([each.ids for each in encoded]),
        starts=np.cumsum([0] + [len(each.ids) for each in encoded]),
        bytes=sum(len(text.encode()) for text in texts),
        chars=sum(map(len, texts)),
        words=sum(len(text.split()) for text in texts),
        spellings=spellings,
        spelling_starts=np.cumsum([0] + [len(each.spellings) for each in encoded]),
    )


def tokenizer_of(spec: str, text: str) -> Tokenizer:
    """The lab's tokenizer of this kind for a text."""
    from lmlab.text.tokenizers import train_tokenizer

    return train_tokenizer(spec, [text])


@dataclass(frozen=True)
class Cost:
    """What a text costs under a model."""

    nats: float  # of the tokens
    spelling_nats: float  # of the words the model does not know
    tokens: int
    unknown: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """Per token of the model, unknown words counted as one symbol: what is usually reported."""
        return math.exp(self.nats / self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Bits of the text itself, spelling included, a byte."""
        return (self.nats + self.spelling_nats) / math.log(2) / self.bytes

    @property
    def unknown_share(self) -> float:
        """Share of tokens that are the unknown symbol."""
        return self.unknown / self.tokens

    def __str__(self) -> str:
        unknown = f", {100 * self.unknown_share:.0f} % unknown" if self.unknown else ""
        return f"perplexity {self.perplexity:.1f} a token{unknown}, {self.bits_per_byte:.2f} bits a byte"


@dataclass(frozen=True)
class Measured:
    """A language model of the lab beside its tokenizer, ready to be measured."""

    tokenizer: Tokenizer
    model: LanguageModel

    def nats(self, text: str) -> NDArray[np.float32]:
        """-log p of every token of a text, unknown words as one symbol."""
        from lmlab.measure.score import score_rows

        nats: NDArray[np.float32] = score_rows(self.model, self.tokenizer.encode(text).ids[None].astype(np.int64))[0]
        return nats

    def cost(self, text: str) -> Cost:
        """The cost of a text, its unknown words spelled."""
        from lmlab.measure.tally import tally

        tokens = stream(self.tokenizer, [text])
        sums = tally(self.tokenizer, tokens, self.nats(text).copy(), np.zeros(tokens.tokens, dtype=np.int64))
        return Cost(sums.model_nats, sums.spelling_nats, tokens.tokens, sums.unknown_tokens, tokens.bytes)

    def written(self, samples: int, tokens: int) -> list[str]:
        """Texts of so many tokens drawn from the model, each beginning a word."""
        from lmlab.engine import generate

        drawn = generate(self.model, self.tokenizer, " ", method="sample", max_tokens=tokens, samples=samples, seed=2)
        return [text.text for text in drawn]

    def known(self, text: str) -> NDArray[np.bool_]:
        """Which tokens of a text are not the unknown symbol."""
        return np.asarray(self.tokenizer.encode(text).ids != self.tokenizer.unknown_id)


def ngram(spec: str, order: int, texts: Sequence[str], smoothing: str = "kneser-ney") -> Measured:
    """The lab's n-gram model counted on documents, over tokens of this kind."""
    from lmlab.models.ngram import NGram, NGramConfig

    tokenizer = tokenizer_of(spec, "".join(texts))
    config = NGramConfig(order=order, smoothing=cast("Any", smoothing), restart="never")
    return Measured(tokenizer, NGram.fit(config, tokenizer.vocabulary, stream(tokenizer, texts)))


@cache
def of_documentation(spec: str, order: int = 2) -> Measured:
    """The n-gram model of the training part of Python's documentation."""
    return ngram(spec, order, [documentation()[0]])


def taught(
    model: NeuralLanguageModel,
    tokens: TokenStream,
    steps: int,
    rate: float,
    *,
    rows: int = 64,
    length: int = 32,
    after_step: Callable[[], None] | None = None,
) -> list[float]:
    """Train a model of the lab in place, plainly, on windows of a text; returns nats a token, step by step."""
    from lmlab.text.batches import draw_windows

    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    curve = []
    for step in range(steps):
        loss = model.loss(draw_windows(tokens, rows, length, 0, step))
        curve.append(float(loss.mean.detach()))
        descend(optimizer, loss.mean)
        if after_step is not None:
            after_step()
    return curve


def two_token_searches(table: Mapping[str, Fraction]) -> tuple[str, str]:
    """What the lab's greedy and exhaustive decoding return for a table of two tokens, keyed by their letters ("AB").

    The model is the lab's bigram of relative frequencies, counted on as many texts of two letters as the table demands.
    """
    from lmlab.engine import generate

    whole = math.lcm(*(Fraction(weight).denominator for weight in table.values()))
    texts = [pair for pair, weight in table.items() for _ in range(int(weight * whole))]
    counted = ngram("char", 2, texts, smoothing="ml")
    model, tokenizer = counted.model, counted.tokenizer
    greedy = generate(model, tokenizer, method="greedy", max_tokens=2)[0].text
    best = generate(model, tokenizer, method="exhaustive", max_tokens=2, length_penalty=0.0)[0].text
    return greedy, best


def plain(text: str) -> str:
    """The text with every run of white space as one space, so that words and spaces tell all of it."""
    return re.sub(r"\s+", " ", text).strip()


@cache
def documentation() -> tuple[str, str]:
    """Python's own documentation, (training part, held-out part): every seventh topic is held out.

    Topics quote each other by the page, more so in some versions than in others: a paragraph is taken once.
    """
    from pydoc_data import topics

    parts: tuple[list[str], list[str]] = [], []
    taken = set[str]()
    for number, name in enumerate(sorted(topics.topics)):
        new = [p for p in topics.topics[name].split("\n\n") if p not in taken]
        taken.update(new)
        parts[number % 7 == 6].extend(new)
    train, held = (plain("\n\n".join(part)) for part in parts)
    return train, held


def small_letters(text: str) -> str:
    """The text in small letters and spaces alone."""
    return re.sub(r"[^a-z ]", "", text.lower())


def bench_file(*parts: str) -> Path | None:
    """A file of the bench corpora, or None where they are not at hand."""
    folder = os.environ.get("LMLAB_BENCH_DATA")
    return path if folder and (path := Path(folder, *parts)).exists() else None


def bench(*parts: str) -> str | None:
    """The text of a file of the bench corpora, or None where they are not at hand."""
    path = bench_file(*parts)
    return None if path is None else path.read_text(encoding="utf-8")


def passages() -> dict[str, str]:
    """The two passages of assignment2 as they are in their files; empty where the bench corpora are not at hand."""
    found = {name: bench("passages", f"{name}_for_perplexity.txt") for name in ("shakespeare", "wikipedia")}
    return {name: text for name, text in found.items() if text}
