"""Recurrent cells, each twice: one step by the equations, and many steps by a fused kernel.

The kernel is torch's where it has one: on a GPU, and of the LSTM on a CPU. On a CPU the other cells take the lab's own
(`layers/fast/recurrence.py`), whose plain twin is torch's way of one operation after the other.

Shapes: B rows, T steps, X input width, H state width, G = gates × H. The blocks of the G rows of W, U and b are, in
order, the gates named in each cell. Each block may have a bias, added to W x.
Tests hold the two ways equal, and both to torch.nn.{RNN,GRU,LSTM}.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.fast.recurrence import can_scan, scan

CellState = tuple[Tensor, ...]
"""One B×H tensor for each thing a cell remembers; the first is h, its output."""


class CellWeights(NamedTuple):
    """W, U and b of one cell."""

    input_GX: Tensor
    state_GH: Tensor
    bias_G: Tensor | None


class Cell(ABC):
    """One kind of recurrence. It holds no weights: those are passed in."""

    gates: ClassVar[int]
    memories: ClassVar[int]  # tensors in its state
    gate_names: ClassVar[tuple[str, ...]]  # of what `opened` gives
    state_names: ClassVar[tuple[str, ...]]

    def step(self, x_BX: Tensor, state: CellState, weights: CellWeights) -> CellState:
        """The state after one input, by the printed equations."""
        return self.closed(self.opened(x_BX, state[0], weights), state)

    @abstractmethod
    def opened(self, x_BX: Tensor, h_BH: Tensor, weights: CellWeights) -> tuple[Tensor, ...]:
        """The gates, and what is offered to the state, for an input and the output before it."""

    @abstractmethod
    def closed(self, opened: tuple[Tensor, ...], state: CellState) -> CellState:
        """The state that these gates make of the one before."""

    def kept(self, opened: tuple[Tensor, ...]) -> Tensor:
        """The share of its memory that each unit keeps."""
        return torch.zeros_like(opened[0])

    @abstractmethod
    def run(self, x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
        """(h after every input B×T×H, the state after the last), by a fused kernel."""

    def first_bias(self, width: int) -> Tensor:
        """b before training."""
        return torch.zeros(self.gates * width)


class TanhCell(Cell):
    """h_t = tanh(W x_t + U h_{t-1}): the ĥ_t of a GRU with its reset gate open, and nothing kept (Elman 1990)."""

    gates = 1
    memories = 1
    gate_names = ()
    state_names = ("state h",)

    def opened(self, x_BX: Tensor, h_BH: Tensor, weights: CellWeights) -> tuple[Tensor, ...]:
        """The new state: there is no gate before it."""
        return (torch.tanh(F.linear(x_BX, weights.input_GX, weights.bias_G) + F.linear(h_BH, weights.state_GH)),)

    def closed(self, opened: tuple[Tensor, ...], state: CellState) -> CellState:
        """Nothing is kept."""
        return opened

    def run(self, x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
        """torch's recurrence has the same equation."""
        if can_scan(x_BTX, state[0], *weights):
            return _scanned(x_BTX, state, weights)
        h_BTH, *last = _kernel(torch.rnn_tanh, x_BTX, state[0][None], weights)
        return h_BTH, (last[0][0],)


class GRUCell(Cell):
    """The gated recurrent unit (Cho 2014); gates z, r, ĥ.

    z_t = σ(W_z x_t + U_z h_{t-1})
    r_t = σ(W_r x_t + U_r h_{t-1})
    ĥ_t = tanh(W x_t + r_t ∘ U h_{t-1})
    h_t = (1 - z_t) ∘ h_{t-1} + z_t ∘ ĥ_t
    """

    gates = 3
    memories = 1
    gate_names = ("update gate z", "reset gate r", "candidate ĥ")
    state_names = ("state h",)

    def opened(self, x_BX: Tensor, h_BH: Tensor, weights: CellWeights) -> tuple[Tensor, ...]:
        """z, r and ĥ of the equations above."""
        wz_BH, wr_BH, wh_BH = F.linear(x_BX, weights.input_GX, weights.bias_G).chunk(3, dim=-1)
        uz_BH, ur_BH, uh_BH = F.linear(h_BH, weights.state_GH).chunk(3, dim=-1)
        z_BH, r_BH = torch.sigmoid(wz_BH + uz_BH), torch.sigmoid(wr_BH + ur_BH)
        return z_BH, r_BH, torch.tanh(wh_BH + r_BH * uh_BH)

    def closed(self, opened: tuple[Tensor, ...], state: CellState) -> CellState:
        """h of the equations above."""
        (h_BH,), (z_BH, _, candidate_BH) = state, opened
        return ((1 - z_BH) * h_BH + z_BH * candidate_BH,)

    def kept(self, opened: tuple[Tensor, ...]) -> Tensor:
        """1 - z."""
        return 1 - opened[0]

    def run(self, x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
        """torch's recurrence has gates r, z', ĥ with h_t = (1 - z') ∘ ĥ_t + z' ∘ h_{t-1}.

        Its z' is 1 - z, and 1 - σ(a) = σ(-a): the same model, with the weights of z negated.
        """
        if can_scan(x_BTX, state[0], *weights):
            return _scanned(x_BTX, state, weights)
        h_BTH, *last = _kernel(torch.gru, x_BTX, state[0][None], _to_torch_gru(weights))
        return h_BTH, (last[0][0],)


class LSTMCell(Cell):
    """The long short-term memory (Hochreiter & Schmidhuber 1997); gates i, f, c̃, o.

    i_t = σ(W_i x_t + U_i h_{t-1}),   f_t and o_t alike
    c̃_t = tanh(W_c x_t + U_c h_{t-1})
    c_t = f_t ∘ c_{t-1} + i_t ∘ c̃_t
    h_t = o_t ∘ tanh(c_t)
    """

    gates = 4
    memories = 2
    gate_names = ("input gate i", "forget gate f", "candidate c̃", "output gate o")
    state_names = ("state h", "cell c")

    def opened(self, x_BX: Tensor, h_BH: Tensor, weights: CellWeights) -> tuple[Tensor, ...]:
        """i, f, c̃ and o of the equations above."""
        sums_BG = F.linear(x_BX, weights.input_GX, weights.bias_G) + F.linear(h_BH, weights.state_GH)
        i_BH, f_BH, candidate_BH, o_BH = sums_BG.chunk(4, dim=-1)
        return torch.sigmoid(i_BH), torch.sigmoid(f_BH), torch.tanh(candidate_BH), torch.sigmoid(o_BH)

    def closed(self, opened: tuple[Tensor, ...], state: CellState) -> CellState:
        """c and h of the equations above."""
        i_BH, f_BH, candidate_BH, o_BH = opened
        c_BH = f_BH * state[1] + i_BH * candidate_BH
        return o_BH * torch.tanh(c_BH), c_BH

    def kept(self, opened: tuple[Tensor, ...]) -> Tensor:
        """f."""
        return opened[1]

    def run(self, x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
        """torch's kernel has the same equations and order of gates."""
        h_BTH, *last = _kernel(torch.lstm, x_BTX, [s[None] for s in state], weights)
        return h_BTH, (last[0][0], last[1][0])

    def first_bias(self, width: int) -> Tensor:
        """Zero, but one for the forget gate: ∂c_t/∂c_{t-1} = f_t should start near one."""
        return torch.cat([torch.zeros(width), torch.ones(width), torch.zeros(2 * width)])


def _scanned(x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
    """By the lab's own kernel: on a CPU torch has a fused one for the LSTM alone."""
    h_BTH = scan(x_BTX, state[0], *weights)
    return h_BTH, (h_BTH[:, -1].clone(),)  # its own memory: what goes on from it keeps no whole stretch


def _kernel(
    kernel: Callable[..., tuple[Tensor, ...]], x_BTX: Tensor, begin: Tensor | list[Tensor], weights: CellWeights
) -> tuple[Tensor, ...]:
    """Call one of torch's recurrences for a single layer, one direction, batch first, without its dropout.

    With biases torch has a second one, on U h; it is zero here, since ours is on W x.
    """
    flat = [weights.input_GX, weights.state_GH]
    if weights.bias_G is not None:
        flat += [weights.bias_G, torch.zeros_like(weights.bias_G)]
    learning = torch.is_grad_enabled()  # kernels keep what the backward pass needs only when told so
    with _quiet():
        return kernel(x_BTX, begin, flat, weights.bias_G is not None, 1, 0.0, learning, False, True)


def _to_torch_gru(weights: CellWeights) -> CellWeights:
    """Blocks z, r, ĥ to torch's r, z' = 1 - z, ĥ."""

    def blocks(weight: Tensor) -> Tensor:
        z, r, candidate = weight.chunk(3)
        return torch.cat([r, -z, candidate])

    bias_G = None if weights.bias_G is None else blocks(weights.bias_G)
    return CellWeights(blocks(weights.input_GX), blocks(weights.state_GH), bias_G)


@contextmanager
def _quiet() -> Iterator[None]:
    """On a GPU torch remarks that the weights are not one block of memory. They cannot be, and it copies them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        yield
