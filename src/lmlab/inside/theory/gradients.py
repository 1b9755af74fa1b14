"""Gradients through time: how much of the last state still depends on each earlier one (Bengio 1994).

Shapes: H state width, S = memories × H, T steps, X = H inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from lmlab.config import Mistake, nearest
from lmlab.inside.theory.cell_jacobians import FLOWS, Flow, Step, norm
from lmlab.layers.cells import CellState, CellWeights
from lmlab.records import JsonRecord, in_json

GONE, WILD = 1e-4, 1e4  # a derivative below this has vanished, one above that has exploded
FADED = 1e-3  # what is left of a derivative when it has faded to a thousandth
MOST_WIDTH, MOST_LENGTH = 256, 1000


@dataclass(frozen=True, kw_only=True)
class Through(JsonRecord):
    """The norm of ∂(last state)/∂(state k steps before) of one cell, for k = 0, 1, …, with what theory says of it.

    Norms are spectral: the most that a small change can be stretched. An LSTM's state is h and c together.
    """

    cell: str
    init: str
    scale: float
    forget_bias: float | None  # only an LSTM has one
    norms: tuple[float, ...]
    upper: tuple[float, ...]  # no norm exceeds it: the product over steps of what the gates and the ‖U‖ allow
    lower: tuple[float, ...]  # no norm falls below it: |det|^(1/S) of the product
    blind: tuple[float, ...] | None  # (max|tanh'| ‖U‖)^k, known before anything is read; plain cells only
    kept: tuple[float, ...] | None  # what reaches past all weights: the product of 1 - z, or of f, of the best unit
    weight_norm: float  # ‖U‖ of the weights that the state itself is made with
    spectral_radius: float  # ρ(U): at rest ‖U^k‖ goes like ρ^k, and is never below it

    @property
    @in_json
    def name(self) -> str:
        """Short, to tell it from the others."""
        bias = "" if self.forget_bias is None else f", forget bias {self.forget_bias:g}"
        return f"{self.cell}, {self.init} × {self.scale:g}{bias}"

    @property
    @in_json("factor_a_step")
    def factor(self) -> float:
        """By which the norm changes in one step, on the average over all of them."""
        return float(self.norms[-1] ** (1 / (len(self.norms) - 1)))

    @property
    @in_json
    def verdict(self) -> str:
        """What has become of the derivative at the far end."""
        return "vanishes" if self.norms[-1] < GONE else "explodes" if self.norms[-1] > WILD else "does not vanish"

    @property
    @in_json
    def steps_to_a_thousandth(self) -> int | None:
        """Steps back after which the norm is below a thousandth for the first time; None: it never is."""
        return next((back for back, size in enumerate(self.norms) if size < FADED), None)


def flows(
    *,
    cells: Sequence[str],
    scales: Sequence[float],
    inits: Sequence[str],
    forget_biases: Sequence[float],
    width: int,
    length: int,
    inputs: float,
    seed: int = 0,
) -> list[Through]:
    """The derivative of the last state by each earlier one, for every cell at every scale, initialisation and forget bias.

    scales: what the recurrent weights of the initialisation are multiplied by. inputs: the spread of the entries of W x.
    """
    _check(cells, scales, inits, forget_biases, width, length, inputs)
    found = []
    for cell in cells:
        flow = FLOWS[cell]
        for init in inits:
            for scale in scales:
                for bias in forget_biases if flow.cell.memories > 1 else (None,):
                    # every line sees the same inputs and the same draw of U
                    generator = torch.Generator().manual_seed(seed)
                    inputs_TX = inputs * torch.randn(length, width, generator=generator, dtype=torch.float64)
                    weights = draw_weights(flow, init, scale, width, generator, bias)
                    steps = walk(flow, inputs_TX, weights)
                    found.append(_through(steps, weights, flow, cell, init, scale, bias))
    return found


def draw_weights(
    flow: Flow, init: str, scale: float, width: int, generator: Generator, forget_bias: float | None = None
) -> CellWeights:
    """Weights before training: W adds x to every gate as it is, biases are those the lab begins with.

    forget_bias: of an LSTM; None: as the lab sets it.
    """
    gates = flow.cell.gates
    blocks = [INITIALISATIONS[init](width, generator) for _ in range(gates)]
    input_GX = torch.eye(width, dtype=torch.float64).repeat(gates, 1)
    bias_G = flow.cell.first_bias(width).double()
    if forget_bias is not None:
        bias_G[width : 2 * width] = forget_bias
    return CellWeights(input_GX, scale * torch.cat(blocks), bias_G)


def walk(flow: Flow, inputs_TX: Tensor, weights: CellWeights) -> list[Step]:
    """Every step through a sequence, from a state of zeros."""
    state: CellState = (torch.zeros(inputs_TX.shape[1], dtype=inputs_TX.dtype),) * flow.cell.memories
    steps = []
    for x_X in inputs_TX:
        steps.append(flow.step(x_X, state, weights))
        state = steps[-1].state
    return steps


def products(steps: Sequence[Step]) -> list[float]:
    """Norms of J_T, J_T J_{T-1}, …: the first is of no step at all, which is 1. Kept as a direction and a logarithm, so
    that neither a vanishing nor an exploding product leaves the range of numbers before its norm does."""
    product_SS = torch.eye(len(steps[0].jacobian_SS), dtype=torch.float64)
    log_norm, found = 0.0, [1.0]
    for step in reversed(steps):
        product_SS = product_SS @ step.jacobian_SS
        size = norm(product_SS)
        log_norm += _log(size)
        found.append(_exp(log_norm))
        product_SS = product_SS / (size or 1.0)
    return found


def _through(
    steps: list[Step],
    weights: CellWeights,
    flow: Flow,
    cell: str,
    init: str,
    scale: float,
    forget_bias: float | None,
) -> Through:
    backwards = list(reversed(steps))
    size = len(backwards[0].jacobian_SS)
    U_HH = weights.state_GH.chunk(flow.cell.gates)[flow.candidate]
    logs_of_det = [float(torch.linalg.slogdet(step.jacobian_SS)[1]) / size for step in backwards]
    kept = [step.kept_H for step in backwards if step.kept_H is not None]
    plain = not kept
    return Through(
        cell=cell,
        init=init,
        scale=scale,
        forget_bias=forget_bias,
        norms=tuple(products(steps)),
        upper=_running([_log(step.bound) for step in backwards]),
        lower=_running(logs_of_det),
        blind=_running([_log(norm(U_HH))] * len(steps)) if plain else None,
        kept=None if plain else (1.0, *(float(p) for p in torch.stack(kept).log().cumsum(0).exp().amax(1))),
        weight_norm=norm(U_HH),
        spectral_radius=float(torch.linalg.eigvals(U_HH).abs().max()),
    )


def _running(logs: Sequence[float]) -> tuple[float, ...]:
    """1 and the running products of what these are logarithms of."""
    total, found = 0.0, [1.0]
    for log in logs:
        total += log
        found.append(_exp(total))
    return tuple(found)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _exp(log: float) -> float:
    return math.inf if log > 700 else math.exp(log)


def _orthogonal(width: int, generator: Generator) -> Tensor:
    return nn.init.orthogonal_(torch.empty(width, width, dtype=torch.float64), generator=generator)


def _normal(variance: float) -> Callable[[int, Generator], Tensor]:
    """Independent entries of this variance over the width."""
    return lambda width, generator: (
        torch.randn(width, width, generator=generator, dtype=torch.float64) * math.sqrt(variance / width)
    )


INITIALISATIONS: dict[str, Callable[[int, Generator], Tensor]] = {
    "orthogonal": _orthogonal,  # as the lab's own layers begin
    "xavier": _normal(1.0),
    "he": _normal(2.0),
    "identity": lambda width, generator: torch.eye(width, dtype=torch.float64),
}


def _check(
    cells: Sequence[str],
    scales: Sequence[float],
    inits: Sequence[str],
    forget_biases: Sequence[float],
    width: int,
    length: int,
    inputs: float,
) -> None:
    for name in cells:
        if name not in FLOWS:
            raise Mistake(f"{name!r} is no recurrent cell; {nearest(name, FLOWS)}", code="cell-unknown")
    for name in inits:
        if name not in INITIALISATIONS:
            raise Mistake(
                f"{name!r} is no initialisation; {nearest(name, INITIALISATIONS)}", code="initialisation-unknown"
            )
    if not (cells and scales and inits and forget_biases):
        raise Mistake("name at least one cell, scale, initialisation and forget bias", code="nothing-to-flow")
    if not all(0 < scale < math.inf for scale in scales):
        raise Mistake(
            "{scales} multiply the recurrent weights: numbers above 0, such as 0.5,1,2",
            code="scales-not-positive",
            scales=None,
        )
    if not all(math.isfinite(bias) for bias in forget_biases):
        raise Mistake("{forget_biases} are numbers, such as 0,3", code="forget-biases-not-numbers", forget_biases=None)
    if not 1 <= width <= MOST_WIDTH:
        raise Mistake(
            f"{{width}} is a whole number from 1 to {MOST_WIDTH}; got {width}",
            code="cell-width-out-of-range",
            width=None,
        )
    if not 1 <= length <= MOST_LENGTH:
        raise Mistake(
            f"{{length}} is a whole number of steps from 1 to {MOST_LENGTH}; got {length}",
            code="cell-length-out-of-range",
            length=None,
        )
    if not 0 <= inputs < math.inf:
        raise Mistake(
            f"{{inputs}} is the spread of the inputs, a number from 0 up; got {inputs:g}",
            code="inputs-below-zero",
            inputs=None,
        )
