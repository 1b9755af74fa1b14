"""The cost of every token of a measured text, as a CSV file."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmlab.disk.files import write_atomically
from lmlab.measure.tally import pieces

if TYPE_CHECKING:
    from lmlab.measure.scored import Scored
    from lmlab.text.tokenizers import Tokenizer

COLUMNS = ("token", "document", "byte", "bytes", "id", "piece", "bits", "unknown")


def write_per_token(scored: Scored, tokenizer: Tokenizer, path: str | Path) -> Path:
    """Write a line for each token: its number, its document, where it begins in the text, its size, id, piece and bits.

    Bits include the spelling of an unknown word, whose piece is the word. Their sum is that of the whole text.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    starts = np.concatenate([[0], scored.byte_ends[:-1]])
    document = np.searchsorted(scored.stream.starts, np.arange(len(scored.byte_ends)), side="right") - 1
    for piece in pieces(scored.stream, tokenizer.unknown_id):
        words = iter(piece.words)
        ids = piece.ids[piece.before : len(piece.ids) - piece.after].tolist()
        for place, token in enumerate(ids, start=piece.start):
            unknown = token == tokenizer.unknown_id
            written = next(words, "") if unknown else tokenizer.piece(token)
            size = int(scored.byte_ends[place] - starts[place])
            bits = float(scored.nats_per_token[place]) / math.log(2)
            row = (place, int(document[place]), int(starts[place]), size, token, written, f"{bits:.6g}", int(unknown))
            writer.writerow(row)
    write_atomically(Path(path), text.getvalue().encode("utf-8", "surrogateescape"))
    return Path(path)
