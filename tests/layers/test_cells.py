"""Each recurrent cell: printed equations, fused kernel and torch's own module are the same function."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lmlab.layers.cells import Cell, CellState, CellWeights, GRUCell, LSTMCell, TanhCell

ROWS, STEPS, X, H = 3, 17, 5, 6  # steps enough for the lab's own kernel
CELLS = [TanhCell(), GRUCell(), LSTMCell()]
each_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)


def draw(cell: Cell, *, bias: bool, dtype: torch.dtype) -> tuple[Tensor, CellState, CellWeights]:
    generator = torch.Generator().manual_seed(5)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    weights = CellWeights(
        normal(cell.gates * H, X), normal(cell.gates * H, H), normal(cell.gates * H) if bias else None
    )
    return normal(ROWS, STEPS, X), tuple(normal(ROWS, H) for _ in range(cell.memories)), weights


def stepped(cell: Cell, x_BTX: Tensor, state: CellState, weights: CellWeights) -> tuple[Tensor, CellState]:
    outputs = []
    for x_BX in x_BTX.unbind(1):
        state = cell.step(x_BX, state, weights)
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state


@each_cell
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # float32 takes another kernel for the LSTM
def test_the_fused_kernel_is_the_printed_equations_and_so_are_its_gradients(
    cell: Cell, bias: bool, dtype: torch.dtype
) -> None:
    x_BTX, state, weights = draw(cell, bias=bias, dtype=dtype)
    leaves = [x_BTX, *state, *(w for w in weights if w is not None)]
    results = [function(x_BTX, state, weights) for function in (cell.run, lambda *args: stepped(cell, *args))]
    (fused_BTH, fused_after), (printed_BTH, printed_after) = results
    torch.testing.assert_close(fused_BTH, printed_BTH)
    torch.testing.assert_close(fused_after, printed_after)
    gradients = [
        torch.autograd.grad((h_BTH**2).sum() + sum(s.sum() for s in after), leaves) for h_BTH, after in results
    ]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-4)


@each_cell
def test_the_printed_equations_are_torch_modules_with_their_weights(cell: Cell) -> None:
    x_BTX, state, weights = draw(cell, bias=True, dtype=torch.float64)
    module: nn.RNNBase = {TanhCell: nn.RNN, GRUCell: nn.GRU, LSTMCell: nn.LSTM}[type(cell)](X, H, batch_first=True)
    module.double()

    def to_torch(weight: Tensor) -> Tensor:
        if not isinstance(cell, GRUCell):
            return weight
        z, r, candidate = weight.split(H)
        return torch.cat([r, -z, candidate])  # torch's update gate is one minus ours

    with torch.no_grad():
        assert weights.bias_G is not None
        module.weight_ih_l0.copy_(to_torch(weights.input_GX))
        module.weight_hh_l0.copy_(to_torch(weights.state_GH))
        module.bias_ih_l0.copy_(to_torch(weights.bias_G))
        module.bias_hh_l0.zero_()
    begin = tuple(s[None] for s in state)
    expected_BTH, _ = module(x_BTX, begin if len(begin) > 1 else begin[0])
    torch.testing.assert_close(stepped(cell, x_BTX, state, weights)[0], expected_BTH)


def test_a_closed_update_gate_keeps_the_state_of_a_gru_and_open_gates_make_it_an_rnn() -> None:
    """z near 0 keeps h; with z and r near 1, h_t = tanh(W x_t + U h_{t-1})."""
    x_BTX, (h_BH,), weights = draw(GRUCell(), bias=True, dtype=torch.float64)
    assert weights.bias_G is not None
    closed, opened = weights.bias_G.detach().clone(), weights.bias_G.detach().clone()
    closed[:H], opened[: 2 * H] = -100.0, 100.0
    (kept_BH,) = GRUCell().step(x_BTX[:, 0], (h_BH,), weights._replace(bias_G=closed))
    torch.testing.assert_close(kept_BH, h_BH)
    (plain_BH,) = GRUCell().step(x_BTX[:, 0], (h_BH,), weights._replace(bias_G=opened))
    last = CellWeights(*(w[2 * H :] for w in weights if w is not None))
    torch.testing.assert_close(plain_BH, TanhCell().step(x_BTX[:, 0], (h_BH,), last)[0])


def test_the_reset_gate_of_a_gru_acts_after_u_not_before() -> None:
    """The cell has r ∘ (U h); U (r ∘ h) is another model."""
    x_BTX, (h_BH,), weights = draw(GRUCell(), bias=False, dtype=torch.float64)
    w_z, w_r, w = weights.input_GX.split(H)
    u_z, u_r, u = weights.state_GH.split(H)
    x_BX = x_BTX[:, 0]
    z_BH, r_BH = torch.sigmoid(x_BX @ w_z.T + h_BH @ u_z.T), torch.sigmoid(x_BX @ w_r.T + h_BH @ u_r.T)
    after_BH = (1 - z_BH) * h_BH + z_BH * torch.tanh(x_BX @ w.T + r_BH * (h_BH @ u.T))
    before_BH = (1 - z_BH) * h_BH + z_BH * torch.tanh(x_BX @ w.T + (r_BH * h_BH) @ u.T)
    (actual_BH,) = GRUCell().step(x_BX, (h_BH,), weights)
    torch.testing.assert_close(actual_BH, after_BH)
    assert (actual_BH - before_BH).abs().max() > 0.01


def test_the_memory_of_an_lstm_keeps_its_gradient_where_the_forget_gate_is_open() -> None:
    """∂c_t/∂c_{t-1} = f_t, whatever h does."""
    x_BTX, (h_BH, c_BH), weights = draw(LSTMCell(), bias=False, dtype=torch.float64)
    _, after_BH = LSTMCell().step(x_BTX[:, 0], (h_BH, c_BH), weights)
    (slope_BH,) = torch.autograd.grad(after_BH.sum(), c_BH)
    w_f, u_f = weights.input_GX.split(H)[1], weights.state_GH.split(H)[1]
    torch.testing.assert_close(slope_BH, torch.sigmoid(x_BTX[:, 0] @ w_f.T + h_BH @ u_f.T))


def test_an_lstm_starts_by_remembering() -> None:
    bias_G = LSTMCell().first_bias(H)
    assert bias_G.tolist() == [0.0] * H + [1.0] * H + [0.0] * 2 * H
