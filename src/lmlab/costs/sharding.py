"""Where the numbers of a training run lie: what each device holds, and which way of sharing them out fits.

Training in 16 bits with AdamW keeps 16 bytes for each parameter: weight and gradient in 16 bits, and in 32 bits the weight and
two moments. The ways of sharing these out are those of Rajbhandari and others, ZeRO, 2020. Activations are kept at the entry of
each layer and made again in the backward pass: 2 bytes for each layer, token and unit of width, and inside the layer at work
34 bytes (Korthikanti and others, Reducing Activation Recomputation in Large Transformer Models, 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lmlab.config import Mistake

WEIGHT, GRADIENT, OPTIMIZER = 2, 2, 12  # bytes for each parameter
AT_ENTRY, AT_WORK = 2, 34  # bytes for each token and unit of width, of a layer
ROOM = 0.9  # of a device's memory; the rest is for buffers and what cannot be divided
WAYS = {
    "everything on every device": (),
    "moments shared out": (OPTIMIZER,),
    "moments and gradients shared out": (OPTIMIZER, GRADIENT),
    "everything shared out": (OPTIMIZER, GRADIENT, WEIGHT),
}


@dataclass(frozen=True, kw_only=True)
class Build:
    """What of a model's build memory depends on."""

    parameters: float
    layers: int
    width: int
    length: int  # tokens of a sequence
    assumed: bool = False  # whether layers and width were guessed from the parameters


def usual_build(parameters: float, length: int) -> Build:
    """A Transformer of so many parameters as they are usually built: 128 units of width for each layer, 12 L D² weights."""
    layers = max(1, round((parameters / (12 * 128**2)) ** (1 / 3)))
    width = max(64, round((parameters / (12 * layers)) ** 0.5 / 64) * 64)
    return Build(parameters=parameters, layers=layers, width=width, length=length, assumed=True)


def activation_bytes(build: Build) -> float:
    """Of one sequence, layers made again in the backward pass."""
    return float(build.length * build.width * (AT_ENTRY * build.layers + AT_WORK))


def held(build: Build, devices: int, shared: tuple[int, ...]) -> float:
    """Bytes on each device, with one sequence at a time."""
    whole = WEIGHT + GRADIENT + OPTIMIZER - sum(shared)
    layer = build.parameters / build.layers if whole == 0 else 0.0  # the one at work is put together
    divided = build.parameters * sum(shared) / devices
    return build.parameters * whole + divided + layer * (WEIGHT + GRADIENT) + activation_bytes(build)


def first_that_fits(build: Build, devices: int, memory: float) -> tuple[str, float]:
    """The simplest way that fits, and the bytes on each device; a Mistake that says what would if none does."""
    for way, shared in WAYS.items():
        if (need := held(build, devices, shared)) <= ROOM * memory:
            return way, need
    everything = WAYS["everything shared out"]
    least = held(build, 10**9, everything)
    if least > ROOM * memory:
        raise Mistake(
            f"{build.parameters:.3g} parameters fit on no number of such devices: activations and one layer alone take"
            f" {least / 1e9:,.0f} GB of each, and it has {memory / 1e9:,.0f}; take larger devices, or shorter sequences",
            code="fits-on-no-devices",
        )
    enough = math.ceil(build.parameters * sum(everything) / (ROOM * memory - least))
    raise Mistake(
        f"{build.parameters:.3g} parameters take {need / 1e9:,.0f} GB on each of {devices} devices with"
        f" {memory / 1e9:,.0f}, even with everything shared out; take {{devices}} or more",
        code="fits-on-more-devices",
        devices=enough,
    )
