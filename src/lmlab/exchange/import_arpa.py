"""An ARPA file as an `ngram` run: words, a line break for </s>, and one symbol for unknown words."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import torch

from lmlab.exchange.arpa import END
from lmlab.exchange.imported_model import ImportedModel
from lmlab.exchange.read_arpa import ArpaModel, read_arpa
from lmlab.models._ngram_query import Tables
from lmlab.models.ngram import NGram, NGramConfig
from lmlab.text.tokenizers import Tokenizer, words_tokenizer

ESCAPED = re.compile(r"(\\x[0-9a-f]{2}|\\u[0-9a-f]{4})+")
ENDINGS = (".arpa", ".arpa.gz", ".lm", ".lm.gz")


def is_arpa(path: Path) -> bool:
    """Return whether a file has a name that ARPA files have."""
    return path.name.lower().endswith(ENDINGS)


def arpa_as_ngram(path: Path, *, spaced: bool) -> ImportedModel:
    """Read an ARPA file.

    Args:
        path: the file.
        spaced: whether lines of text begin and end with a space, as in the Penn Treebank.
    """
    found = read_arpa(path)
    tokenizer = _tokenizer(found, spaced=spaced)
    size = len(found.words)
    restarts_V = np.zeros(size, dtype=bool)
    restarts_V[found.words.index(END)] = True
    config = NGramConfig(order=len(found.levels), restart="line")
    tables = Tables(levels=found.levels, restarts_V=restarts_V, vocab_size=size, to_uniform=False)
    counts = torch.zeros((0, 4), dtype=torch.int64)  # nothing was counted here
    message = "ARPA file: " + ", ".join(f"{n:,} of order {k}" for k, n in enumerate(found.counts, start=1))
    if not found.knows_unknown:
        message += "; it has no <unk>, so a text with an unknown word is impossible"
    return ImportedModel(NGram(config, tables, counts), tokenizer, dataclasses.asdict(config), message)


def _tokenizer(found: ArpaModel, *, spaced: bool) -> Tokenizer:
    """The `words` tokenizer of the file's words; white space that lmlab escaped for the format is white space again."""
    words = [(" \n " if spaced else "\n") if word == END else _unescaped(word) for word in found.words[:-1]]
    taken: set[str] = set()
    for i, word in enumerate(words):  # two words that read alike keep the spelling of the file
        words[i] = found.words[i] if word in taken else word
        taken.add(words[i])
    return words_tokenizer(words, spaced=spaced)


def _unescaped(word: str) -> str:
    if word == "\\e":
        return ""
    if not ESCAPED.fullmatch(word):
        return word
    text = re.sub(r"\\[xu]([0-9a-f]+)", lambda match: chr(int(match[1], 16)), word)
    return text if text.isspace() else word
