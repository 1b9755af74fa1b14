"""The validation loss of a finished model, on windows like those of the validation curves of learned models.

The report draws count models, which have no curve, beside the curves of the others. Both must be of the same part of the text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from lmlab.learn.fit import stream_folder
from lmlab.learn.next_token import VALIDATION_TOKENS
from lmlab.learn.unit import Unit
from lmlab.measure.score import device_of, evaluating
from lmlab.text.batches import even_windows
from lmlab.text.stream import tokenize

if TYPE_CHECKING:
    from lmlab.learn.run import Run

WINDOW = 256  # tokens: the longest default context, so that models with a shorter one lose nothing
ROWS = 32


@torch.no_grad()
def validation_bits(run: Run, device: str) -> float | None:
    """Return the bits per byte on at most `VALIDATION_TOKENS` tokens, spread evenly over the validation part.

    Returns:
        None if there is no validation part, or the model gives some of it probability zero.
    """
    valid = run.corpus.valid
    stream = tokenize(valid, run.tokenizer, stream_folder()) if valid.bytes else None
    if stream is None or not stream.tokens:
        return None
    model, length = run.load(device), min(WINDOW, stream.tokens)
    total_nats, tokens = 0.0, 0
    with evaluating(model):
        for batch in even_windows(stream, max(1, VALIDATION_TOKENS // length), length).split(ROWS):
            nats_BT = model.score(batch.tokens_BT.to(device_of(model))).cpu()
            nats_N = nats_BT.flatten() if batch.mask_BT is None else nats_BT[batch.mask_BT]
            total_nats += float(nats_N.sum(dtype=torch.float64))
            tokens += len(nats_N)
    bits = Unit.of(stream, run.tokenizer).bits_per_byte(total_nats / tokens)
    return bits if math.isfinite(bits) else None
