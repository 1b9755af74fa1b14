"""ARPA files: n-gram models for KenLM, SRILM and everything else that reads them.

An ARPA file lists, for each order, log10 p(w | h) of every n-gram h w, and log10 of the back-off weight of every
history. An interpolated model is written in that form by giving the n-grams their interpolated probabilities and the
histories their interpolation weights; readers then compute exactly the same probabilities.

Words in an ARPA file cannot hold white space, and `<s>`, `</s>` and `<unk>` have meanings of their own. `arpa_words`
says how each token is written.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmlab.config import Mistake
from lmlab.disk.files import atomic_file
from lmlab.models._ngram_blocks import key_bits

if TYPE_CHECKING:
    from lmlab.models.ngram import NGram
    from lmlab.text.pieces import Vocabulary

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
ZERO_LOG10 = -99.0  # what the format writes for log 0
BLOCK = 1 << 17  # n-grams turned into text at once


def arpa_words(model: NGram, vocabulary: Vocabulary) -> list[str]:
    r"""How each token is written, by id: a word without white space, a different one for every token.

    The unknown symbol is `<unk>`. The end of a document is `</s>`, if the model predicts it; else the line break, where it
    is the one token that ends a sentence (restart="line"). So a line can be scored with its begin and end. Any other
    token is its piece, or if that cannot be a word, an escaped form of it: `\x20` or `\u2028` for white space and what
    cannot be printed, `\e` for the empty piece, `\<s>` for a piece that reads like a symbol; and `word\#7` for token 7 if
    another token has its word.
    """
    symbols = {}
    if vocabulary.unknown_id is not None:
        symbols[vocabulary.unknown_id] = UNKNOWN
    ends = np.flatnonzero(model.tables.restarts_V).tolist()
    if model.end_id is not None:
        symbols[model.end_id] = END
    elif len(ends) == 1:
        symbols[ends[0]] = END
    words: dict[str, None] = {}
    for i, piece in enumerate(vocabulary.pieces):
        word = symbols.get(i) or _escape(piece)
        while word in words:
            word += f"\\#{i}"
        words[word] = None
    return list(words)


def write_arpa(model: NGram, vocabulary: Vocabulary, path: str | Path) -> list[int]:
    """Write the model as an ARPA file that gives the same log-probabilities (to the 7 digits written).

    Returns how many n-grams of each order the file holds, its special symbols among them.

    Where the model has more than one token that ends a sentence, begin a new sentence after each of them when reading.
    """
    if model.config.smoothing == "add-k":
        raise Mistake(
            "an ARPA file cannot hold add-k smoothing, which has no back-off; use smoothing=kneser-ney, absolute or"
            " witten-bell",
            code="arpa-of-add-k",
        )
    words = [*arpa_words(model, vocabulary), BEGIN]
    unsaid = [symbol for symbol in (UNKNOWN, END) if symbol not in words]  # readers insist on having them
    levels = model.tables.levels
    counts = [len(level.logp) for level in levels]
    counts[0] += 1 + len(unsaid)  # 1: the begin symbol
    with atomic_file(Path(path)) as binary:
        file = codecs.getwriter("utf-8")(binary)
        file.write("\\data\\\n")
        file.writelines(f"ngram {k}={count}\n" for k, count in enumerate(counts, start=1))
        for k in range(1, len(levels) + 1):
            file.write(f"\n\\{k}-grams:\n")
            if k == 1:
                file.writelines(f"{ZERO_LOG10}\t{symbol}\n" for symbol in unsaid)
            _write_order(file, model, k, np.array(words, dtype=object))
        file.write("\n\\end\\\n")
    return counts


def _write_order(file: codecs.StreamWriter, model: NGram, k: int, words: NDArray[np.object_]) -> None:
    """The lines of one order: log10 p, the words, and below the highest order log10 of the weight."""
    level = model.tables.levels[k - 1]
    logp = np.append(level.logp, -np.inf) if k == 1 else level.logp  # the begin symbol is never predicted
    for start in range(0, len(logp), BLOCK):
        ids = np.arange(start, min(start + BLOCK, len(logp)))
        columns: list[Iterator[str]] = [
            _numbers(logp[ids]),
            map(" ".join, zip(*_spelled(model, k, ids, words), strict=True)),
        ]
        if k < model.tables.order:
            columns.append(_numbers(level.weight[ids]))
        file.writelines("\t".join(line) + "\n" for line in zip(*columns, strict=True))


def _spelled(model: NGram, k: int, ids: NDArray[np.int64], words: NDArray[np.object_]) -> list[NDArray[np.object_]]:
    """The k words of each n-gram, first to last: each key names the last word and the n-gram before it."""
    bits = key_bits(model.vocab_size)
    spelled = []
    for order in range(k, 1, -1):
        keys = model.tables.levels[order - 1].keys[ids]
        spelled.append(words[keys & ((1 << bits) - 1)])
        ids = keys >> bits
    return [words[ids], *reversed(spelled)]


def _numbers(natural_logs: NDArray[np.float32]) -> Iterator[str]:
    log10 = np.maximum(natural_logs.astype(np.float64) / math.log(10), ZERO_LOG10)
    return (f"{x:.7g}" for x in log10.tolist())


def _escape(piece: str) -> str:
    if piece in (BEGIN, END, UNKNOWN):
        return "\\" + piece
    return "".join(_escape_character(c) for c in piece) or "\\e"


def _escape_character(c: str) -> str:
    if not c.isspace() and c.isprintable():
        return c
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
