"""A network that must remember, trained with and without clipping, from several initialisations (Pascanu 2013).

The task: the first of T inputs is +1 or -1, the others are noise; after the last the network says which it was. A guess costs
one bit. The layer is the lab's own; the steps are plain gradient descent, because AdamW, which the lab trains with, divides a
gradient by its usual size, and so would hide half of what is to be seen.

Shapes: B rows, T steps, H state width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import nn
from torch.nn import functional as F

from lmlab.config import Mistake
from lmlab.inside.theory.cell_jacobians import FLOWS
from lmlab.inside.theory.gradients import INITIALISATIONS
from lmlab.layers.recurrent import RecurrentLayer
from lmlab.records import JsonRecord, in_json

ROWS, WIDTH, NOISE, RATE = 32, 16, 0.3, 0.5
LAST = 20  # steps over which the end of a run is averaged
LEARNED = 0.1  # bits: a run that ends below it has learned to remember
STARTS = (("xavier", 0.5), ("orthogonal", 1.0), ("he", 2.0))  # gradients that vanish, hold and explode at first


@dataclass(frozen=True, kw_only=True)
class Training(JsonRecord):
    """One run: bits of each step's batch (a guess is 1), and the norm of the gradient before it was clipped.

    It ends early where the loss is no number any more. clip: the norm that a gradient was shortened to; None: it was not.
    """

    init: str
    scale: float
    clip: float | None
    seed: int
    bits: tuple[float, ...]
    gradient_norms: tuple[float, ...]

    @property
    @in_json
    def start(self) -> str:
        """What it began from."""
        return f"{self.init} × {self.scale:g}"

    @property
    @in_json
    def end_bits(self) -> float:
        """The mean over its last steps."""
        return fmean(self.bits[-LAST:])

    @property
    @in_json
    def learned(self) -> bool:
        """Whether it remembers at the end."""
        return self.end_bits < LEARNED


def trainings(
    *,
    starts: Sequence[tuple[str, float]] = STARTS,
    clip: float = 1.0,
    length: int = 30,
    steps: int = 150,
    tries: int = 3,
    seed: int = 0,
) -> list[Training]:
    """Runs from each start (an initialisation and its scale), without clipping and with, as many times as there are tries.

    Tries differ in weights and data; with and without clipping they begin alike and read the same batches.
    """
    check_trainings(clip, steps, tries)
    return [
        _train(init, scale, limit, length, steps, seed + attempt)
        for init, scale in starts
        for limit in (None, clip)
        for attempt in range(tries)
    ]


def check_trainings(clip: float, steps: int, tries: int) -> None:
    """A Mistake for what no run can be made of."""
    if not 0 < clip < math.inf:
        raise Mistake(
            f"{{clip}} is a gradient norm, a number above 0; got {clip:g}", code="clip-not-positive", clip=1.0
        )
    if steps < 1 or tries < 1:
        raise Mistake(
            "{steps} and {tries} are whole numbers from 1 up", code="clipping-numbers-below-one", steps=None, tries=None
        )


def _train(init: str, scale: float, clip: float | None, length: int, steps: int, seed: int) -> Training:
    generator = torch.Generator().manual_seed(seed)
    kind = FLOWS["rnn"].cell
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = RecurrentLayer(kind, 1, WIDTH, bias=True)
    with torch.no_grad():
        blocks = [scale * INITIALISATIONS[init](WIDTH, generator) for _ in range(kind.gates)]
        layer.state_GH.copy_(torch.cat(blocks))
    readout_H = nn.Parameter(torch.randn(WIDTH, generator=generator) / math.sqrt(WIDTH))
    parameters = [*layer.parameters(), readout_H]
    bits, norms = [], []
    for _ in range(steps):
        sign_B = 2.0 * torch.randint(0, 2, (ROWS,), generator=generator) - 1
        x_BTX = NOISE * torch.randn(ROWS, length, 1, generator=generator)
        x_BTX[:, 0, 0] = sign_B
        _, state = layer(x_BTX, (torch.zeros(ROWS, WIDTH),) * kind.memories)
        loss = F.softplus(-sign_B * (state[0] @ readout_H)).mean() / math.log(2)
        gradients = torch.autograd.grad(loss, parameters)
        size = float(torch.stack([g.norm() for g in gradients]).norm())
        bits.append(float(loss.detach()))
        norms.append(size)
        if not math.isfinite(size) or not math.isfinite(bits[-1]):
            break
        shorter = 1.0 if clip is None else min(1.0, clip / size)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(RATE * shorter * gradient)
    return Training(init=init, scale=scale, clip=clip, seed=seed, bits=tuple(bits), gradient_norms=tuple(norms))
