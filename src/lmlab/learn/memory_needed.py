"""The memory that training a model takes at least, from the parts of the model, before anything is allocated.

It is a lower bound, so that nothing is refused that would fit. For every learned language model it lies between a quarter and
all of what `lmlab.costs.memory` predicts by a pretended step, with one more copy of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from lmlab.config import Mistake
from lmlab.formulas import Part
from lmlab.hardware.memory import available_bytes

FLOAT_BYTES = 4
COPIES = 4  # of every weight: itself, its gradient, a moment of the optimizer, and the best weights so far
# Floats that a step keeps per token for the backward pass, as a multiple of the root of the weights that a token is multiplied
# with in a part: a matrix of n² weights keeps its input of n numbers, and a block several. The least of all kinds is taken.
ACTIVATIONS = 1.5


def training_bytes(parts: Sequence[Part], tokens: int) -> int:
    """Return the bytes that training takes at least.

    Args:
        parts: the parts of the model.
        tokens: the tokens of a step.
    """
    weights = sum(int(part.all_weights) for part in parts)
    per_token = sum(int(part.times) * math.sqrt(int(part.multiplied)) for part in parts)
    return FLOAT_BYTES * (COPIES * weights + int(ACTIVATIONS * per_token * tokens))


def refuse_what_memory_cannot_hold(
    cls: type[Any], config: Any, vocab_size: int, tokens: int, device: torch.device | None = None
) -> None:
    """Raise a Mistake if training a model takes more memory than is free.

    Args:
        cls: the class of the model.
        config: its resolved settings.
        vocab_size: the tokens of its vocabulary.
        tokens: the tokens of a step.
        device: the device that it is trained on; None: the CPU.
    """
    parts = cls.parts(config, vocab_size)
    needed, free = training_bytes(parts, tokens), _free_bytes(device)
    if free is None or needed <= free:
        return
    weights = sum(int(part.all_weights) for part in parts)
    raise Mistake(
        f"{cls.name}: to train {weights:,} parameters takes at least {needed / 1e9:,.0f} GB of memory, and {free / 1e9:,.0f} GB"
        " are free; take a smaller model",
        code="model-exceeds-memory",
    )


def _free_bytes(device: torch.device | None) -> int | None:
    if device is not None and device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return available_bytes()
