"""Ends of documents are paid for: who leaves them out, or takes them for free, gets no certificate."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from lmlab.interface import State
from lmlab.measure import Result, evaluate
from lmlab.models.ngram import NGram
from lmlab.text.corpus import Corpus, read
from lmlab.text.document_coding import DocumentCoding
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer, tokenizer_for
from some_documents import list_of_names


class FreeEnds(NGram):
    """Charges nothing for an end where it scores, and says otherwise where it is asked."""

    def score(self, tokens_BT: Tensor) -> Tensor:
        return super().score(tokens_BT) * (tokens_BT != self.vocab_size - 1)

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        return super().score_documents(tokens, starts) * (tokens != self.vocab_size - 1)


class IgnoresEnds(FreeEnds):
    """A distribution over all tokens but the end, which is certain besides."""

    def begin(self, rows: int) -> tuple[Tensor, State]:
        logp_BV, state = super().begin(rows)
        return self._without_end(logp_BV), state

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        logp_BV, state = super().advance(tokens_BT, state)
        return self._without_end(logp_BV), state

    def score(self, tokens_BT: Tensor) -> Tensor:
        logp_BV, state = self.begin(len(tokens_BT))
        nats = []
        for t in range(tokens_BT.shape[1]):
            nats.append(-logp_BV.gather(1, tokens_BT[:, t : t + 1]))
            logp_BV, state = self.advance(tokens_BT[:, t : t + 1], state)
        return torch.cat(nats, dim=1)

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        return torch.cat([self.score(tokens[a:b][None])[0] for a, b in itertools.pairwise(starts)])

    def _without_end(self, logp_BV: Tensor) -> Tensor:
        rest_BV = torch.log_softmax(logp_BV[:, :-1], dim=-1)
        return torch.cat([rest_BV, torch.zeros(len(rest_BV), 1)], dim=1)


class NoEnds(DocumentCoding):
    """Leaves out the end of every document."""

    def encode_documents(self, texts):  # type: ignore[no-untyped-def]
        return self._same_dtype(*self.inner.encode_documents(texts))


class WideEnds(DocumentCoding):
    """Takes an end for more bytes than the separator has."""

    extra: ClassVar[int] = 3

    def token_bytes(self, ids, spellings):  # type: ignore[no-untyped-def]
        return super().token_bytes(ids, spellings) + self.extra * (np.asarray(ids) == self.end_id)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return read(list_of_names(tmp_path, 600), documents="lines")


def measured(
    corpus: Corpus, folder: Path, kind: type[NGram] = NGram, coding: type[DocumentCoding] | None = None
) -> Result:
    """The result of a fitted model, perhaps one that cheats, on the test part."""
    tokenizer = tokenizer_for(corpus, "char")
    model = kind.fit(NGram.Config(), tokenizer.vocabulary, tokenize(corpus.train, tokenizer, folder / "streams"))
    if coding is not None:
        tokenizer = Tokenizer(tokenizer.spec, tokenizer.backend, coding(tokenizer._text_coding, "\n"))
    return evaluate(model, tokenizer, corpus.test)


def test_an_honest_model_of_documents_passes(corpus: Corpus, tmp_path: Path) -> None:
    found = measured(corpus, tmp_path)
    assert not found.certificate.failures
    assert found.scored.bytes == corpus.test.bytes == found.scored.tokens


def test_free_ends_are_caught(corpus: Corpus, tmp_path: Path) -> None:
    found = measured(corpus, tmp_path, FreeEnds)
    assert found.bits_per_byte < measured(corpus, tmp_path).bits_per_byte
    assert "score_is_probability" in found.certificate.failures


def test_ignored_ends_are_caught(corpus: Corpus, tmp_path: Path) -> None:
    assert "normalised" in measured(corpus, tmp_path, IgnoresEnds).certificate.failures


@pytest.mark.parametrize(
    ("coding", "check"), [(NoEnds, "bytes_counted"), (NoEnds, "lossless"), (WideEnds, "bytes_counted")]
)
def test_tokens_without_ends_or_with_wide_ones_are_caught(
    corpus: Corpus, tmp_path: Path, coding: type[DocumentCoding], check: str
) -> None:
    assert check in measured(corpus, tmp_path, coding=coding).certificate.failures
