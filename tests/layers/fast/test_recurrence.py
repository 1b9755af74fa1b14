"""Recurrent layers on a CPU: the steps in C, the steps by torch, and torch's own recurrence are the same function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from lmlab.hardware.c_kernels import no_c_kernels, why_not
from lmlab.interface import Windows
from lmlab.layers import fast
from lmlab.layers.cells import Cell, CellWeights, GRUCell, TanhCell
from lmlab.layers.fast import recurrence, recurrence_by_steps, recurrence_in_c
from lmlab.layers.recurrent import RecurrentLayer
from lmlab.models.families.recurrent import RecurrentConfig, RecurrentModel
from lmlab.models.gru import GRU
from lmlab.models.rnn import RNN

TROUBLE = why_not(recurrence_in_c.SOURCE, shared=True)
needs_c = pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE)
each_cell = pytest.mark.parametrize("cell", [GRUCell(), TanhCell()], ids=lambda cell: type(cell).__name__)

X = 20
SHAPES = [(32, 9, 64), (3, 7, 16), (13, 5, 48), (1, 33, 32), (2, 1, 80), (7, 4, 96), (1, 2, 160)]  # rows, steps, width
PRECISIONS = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.bfloat16: 3e-2}  # of the largest number

Inputs = tuple[Tensor, Tensor, CellWeights]


def drawn(cell: Cell, shape: tuple[int, int, int], *, bias: bool = True, dtype: torch.dtype = torch.float32) -> Inputs:
    rows, steps, width = shape
    generator = torch.Generator().manual_seed(sum(shape))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    weights = [normal(cell.gates * width, X) * X**-0.5, normal(cell.gates * width, width) * width**-0.5]
    weights += [normal(cell.gates * width)] if bias else []
    tensors = [t.to(dtype) for t in (normal(rows, steps, X), normal(rows, width), *weights)]
    return tensors[0], tensors[1], CellWeights(tensors[2], tensors[3], tensors[4] if bias else None)


def with_gradients(cell: Cell, given: Inputs) -> list[Tensor]:
    x_BTX, begin_BH, weights = given
    leaves = [t.detach().requires_grad_() for t in (x_BTX, begin_BH, *weights) if t is not None]
    given_weights = CellWeights(*leaves[2:], *[None] * (5 - len(leaves)))
    if fast.enabled:
        h_BTH = recurrence.scan(leaves[0], leaves[1], *given_weights)
        last_BH = h_BTH[:, -1]
    else:
        h_BTH, (last_BH,) = cell.run(leaves[0], (leaves[1],), given_weights)
    generator = torch.Generator().manual_seed(9)
    wanted = [torch.randn(t.shape, generator=generator).to(t.dtype) for t in (h_BTH, last_BH)]
    return [h_BTH, last_BH, *torch.autograd.grad([h_BTH, last_BH], leaves, wanted)]


def in_precision(given: Inputs, dtype: torch.dtype) -> Inputs:
    x_BTX, begin_BH, weights = given
    return x_BTX.to(dtype), begin_BH.to(dtype), CellWeights(*(None if w is None else w.to(dtype) for w in weights))


def agree(found: list[Tensor], expected: list[Tensor], dtype: torch.dtype) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        apart = (one.double() - other.double()).abs().max() / other.double().abs().max()
        assert apart < TOLERANCE[dtype], apart


@contextmanager
def counted(way: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is asked of one way while this lasts."""
    calls: list[str] = []

    def counting(name: str) -> Callable[..., object]:
        honest = getattr(way, name)
        return lambda *given: calls.append(name) or honest(*given)

    with monkeypatch.context() as patch:
        for name in ("forward", "backward"):
            patch.setattr(way, name, counting(name))
        yield calls


@needs_c
@each_cell
@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_in_c(
    shape: tuple[int, int, int], bias: bool, dtype: torch.dtype, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near what is true, not near another rounding: the plain way is in float64 throughout."""
    given = drawn(cell, shape, bias=bias, dtype=dtype)
    with counted(recurrence_in_c, monkeypatch) as calls:
        found = with_gradients(cell, given)
    assert calls == ["forward", "backward"]
    with fast.plain():
        agree(found, with_gradients(cell, in_precision(given, torch.float64)), dtype)


@each_cell
@pytest.mark.parametrize("dtype", [torch.float64, *PRECISIONS], ids=str)
@pytest.mark.parametrize("shape", [(5, 7, 24), (1, 3, 16), (2, 1, 8)], ids=str)
def test_by_steps(shape: tuple[int, int, int], dtype: torch.dtype, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    given = drawn(cell, shape, dtype=dtype)
    with counted(recurrence_by_steps, monkeypatch) as calls, no_c_kernels():
        found = with_gradients(cell, given)
    assert calls == ["forward", "backward"]
    with fast.plain():
        agree(found, with_gradients(cell, in_precision(given, torch.float64)), dtype)


@each_cell
def test_the_written_out_derivative_is_the_slope_of_the_forward_pass(cell: Cell) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (2, 3, 4), dtype=torch.float64)
    leaves = [t.requires_grad_() for t in (x_BTX, begin_BH, *weights)]
    assert torch.autograd.gradcheck(recurrence.scan, leaves)


@each_cell
@pytest.mark.parametrize("in_c", [pytest.param(True, marks=needs_c), False])
def test_only_the_gradients_that_are_wanted(cell: Cell, in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_c:
        monkeypatch.setenv("LMLAB_C_KERNELS", "off")
    x_BTX, begin_BH, weights = drawn(cell, (3, 4, 16))
    given = [x_BTX, begin_BH, *weights]
    everything = torch.autograd.grad(recurrence.scan(*(g.requires_grad_() for g in given)).sum(), given)
    for i, expected in enumerate(everything):
        alone = [g.detach().requires_grad_(i == j) for j, g in enumerate(given)]
        torch.testing.assert_close(torch.autograd.grad(recurrence.scan(*alone).sum(), alone[i])[0], expected)


@needs_c
@each_cell
def test_without_gradients_the_numbers_are_the_same(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (5, 18, 32))
    learning_BTH = recurrence.scan(x_BTX.requires_grad_(), begin_BH, *weights)
    with torch.no_grad(), counted(recurrence_in_c, monkeypatch) as calls:
        assert torch.equal(cell.run(x_BTX, (begin_BH,), weights)[0], learning_BTH)
    assert calls == ["forward"]


@each_cell
def test_forward_alone_and_without_a_compiler_torch_does_it(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are as fast as ours there; and what a codec computes stays what it was."""
    x_BTX, begin_BH, weights = drawn(cell, (5, 18, 32))
    with fast.plain():
        expected_BTH = cell.run(x_BTX, (begin_BH,), weights)[0]
    monkeypatch.setattr("lmlab.layers.cells.scan", None)
    with no_c_kernels():
        assert torch.equal(cell.run(x_BTX, (begin_BH,), weights)[0], expected_BTH)


@needs_c
@each_cell
def test_the_bits_are_the_same_with_any_number_of_threads(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    given, found = drawn(cell, (13, 5, 48)), []
    for threads in (1, 2, 3, 5, 40):  # asked of the kernel alone: products by torch are its own affair
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(with_gradients(cell, given))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@needs_c
def test_rows_do_not_meet() -> None:
    x_BTX, begin_BH, weights = drawn(GRUCell(), (13, 5, 48))
    with torch.no_grad():
        together_BTH = recurrence.scan(x_BTX, begin_BH, *weights)
        x_BTX[3] = torch.nan
        alone_BTH = recurrence.scan(x_BTX, begin_BH, *weights)
    others = [b for b in range(13) if b != 3]
    assert torch.equal(alone_BTH[others], together_BTH[others])
    assert alone_BTH[3].isnan().all(), "it was hidden"


EXTREMES = [0.0, -0.0, 1e-45, -1e-40, 1e-20, 1e-4, -0.6, 0.62, 0.63, 8.0, -9.5, 44.0, -88.5, 89.0, 1e4, -1e4, 3e38]
EXTREMES += [torch.inf, -torch.inf, torch.nan]


def asked_of_gates(cell: Cell, sums: Tensor) -> Tensor:
    """tanh of these sums, or σ of them: a gated unit that began with 0 and whose candidate is 1."""
    gates_1NG, states_2NH = torch.zeros(1, len(sums), 16 * cell.gates), torch.zeros(2, len(sums), 16)
    gates_1NG[..., :16] = sums[:, None]
    if cell.gates > 1:
        gates_1NG[..., 32:] = 100.0
    recurrence_in_c.forward(recurrence_by_steps.Stretch(gates_1NG, states_2NH, torch.zeros(16 * cell.gates, 16), None))
    return states_2NH[1, :, 0]


@needs_c
@each_cell
def test_gates_are_exact_and_saturate(cell: Cell) -> None:
    sums_N = torch.cat([torch.linspace(-20, 20, 4001), torch.tensor(EXTREMES), torch.logspace(-30, 1, 400)])
    exact_N = (torch.tanh if cell.gates == 1 else torch.sigmoid)(sums_N.double())
    found_N = asked_of_gates(cell, sums_N)
    assert torch.equal(found_N.isnan(), exact_N.isnan())
    known = ~exact_N.isnan()
    apart_N = (found_N.double() - exact_N)[known].abs()
    units = torch.finfo(torch.float32).eps * exact_N[known].abs()
    assert (apart_N <= 3 * units + 1e-37).all(), (apart_N / units.clamp_min(1e-37)).max()
    assert found_N[sums_N == torch.inf] == 1
    if cell.gates == 1:
        assert found_N[sums_N == -torch.inf] == -1
        small = sums_N.abs() < 1e-8
        assert torch.equal(found_N[small], sums_N[small])


@needs_c
@pytest.mark.parametrize("usual", [torch.float64, torch.bfloat16])
def test_what_torch_makes_by_default_is_not_what_the_kernel_writes_into(usual: torch.dtype) -> None:
    given = drawn(GRUCell(), (3, 7, 32))
    expected = with_gradients(GRUCell(), given)
    torch.set_default_dtype(usual)
    try:
        found = recurrence.scan(given[0].requires_grad_(), given[1], *given[2])
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, expected[0])


@needs_c
@each_cell
def test_inputs_that_lie_otherwise_in_memory(cell: Cell) -> None:
    given = drawn(cell, (4, 6, 32))
    expected = with_gradients(cell, given)

    def otherwise(tensor: Tensor) -> Tensor:
        return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor.repeat_interleave(2)[::2]

    x_BTX, begin_BH, weights = given
    found = with_gradients(cell, (otherwise(x_BTX), otherwise(begin_BH), CellWeights(*map(otherwise, weights))))
    agree(found, expected, torch.float32)
    x_BTX.requires_grad_()
    slopes = [torch.autograd.grad(h.sum() * 2, x_BTX)[0] for h in (recurrence.scan(x_BTX, begin_BH, *weights),)]
    with fast.plain():
        expected_BTX = torch.autograd.grad(cell.run(x_BTX, (begin_BH,), weights)[0].sum() * 2, x_BTX)[0]
    agree(slopes, [expected_BTX], torch.float32)


@each_cell
def test_what_is_not_for_these_kernels_torch_does(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (2, recurrence.LEAST_STEPS, 16))
    assert recurrence.can_scan(x_BTX.requires_grad_(), begin_BH, *weights)
    assert not recurrence.can_scan(x_BTX[:, 1:], begin_BH, *weights), "too short"
    assert not recurrence.can_scan(x_BTX[:0], begin_BH[:0], *weights)
    assert not recurrence.can_scan(x_BTX, begin_BH.double(), *weights)
    assert not recurrence.can_scan(*(t.to("meta") for t in (x_BTX, begin_BH, *weights)))
    for others in (begin_BH[:1], begin_BH.repeat(2, 1), begin_BH[:, :8], begin_BH[0]):
        assert not recurrence.can_scan(x_BTX, others, *weights), "the kernel would write beyond the end"
    for w, u, b in (
        (weights.input_GX[1:], *weights[1:]),
        (weights.input_GX, weights.state_GH[:, :8], weights.bias_G),
        (weights.input_GX, weights.state_GH[:8], weights.bias_G),
        (*weights[:2], torch.zeros(3)),
    ):
        assert not recurrence.can_scan(x_BTX, begin_BH, w, u, b)
    with torch.autocast("cpu", torch.bfloat16):
        assert not recurrence.can_scan(x_BTX, begin_BH, *weights)
        assert cell.run(x_BTX, (begin_BH,), weights)[0].isfinite().all()
    with fast.plain():
        assert not recurrence.can_scan(x_BTX, begin_BH, *weights)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not recurrence.can_scan(x_BTX, begin_BH, *weights)


@needs_c
def test_a_large_u_is_shared_among_cores_where_each_has_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    small_GH, large_GH = torch.zeros(3 * 512, 512), torch.zeros(3 * 768, 768)
    found = []
    for cores in (1, 2, 16):
        monkeypatch.setattr(recurrence_in_c, "usable_cores", lambda cores=cores: cores)
        found.append([recurrence_in_c.fits(u_GH, rows) for u_GH in (small_GH, large_GH) for rows in (1, 32)])
    assert found == [[True, True, False, True], [True, True, False, True], [True, True, False, False]]


@pytest.mark.parametrize("in_c", [pytest.param(True, marks=needs_c), False])
def test_a_second_derivative_is_refused(in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_c:
        monkeypatch.setenv("LMLAB_C_KERNELS", "off")
    x_BTX, begin_BH, weights = drawn(GRUCell(), (2, 20, 16))
    h_BTH, _ = GRUCell().run(x_BTX.requires_grad_(), (begin_BH,), weights)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(h_BTH.square().sum(), x_BTX, create_graph=True)


@needs_c
def test_what_began_in_c_is_finished_in_c_and_can_be_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    x_BTX, begin_BH, weights = drawn(GRUCell(), (2, 3, 16))
    loss = recurrence.scan(x_BTX.requires_grad_(), begin_BH, *weights).sum()
    (expected_BTX,) = torch.autograd.grad(loss, x_BTX, retain_graph=True)
    with no_c_kernels(), counted(recurrence_in_c, monkeypatch), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(torch.autograd.grad(loss, x_BTX)[0], expected_BTX)


@each_cell
def test_a_stretch_that_is_only_pretended(cell: Cell) -> None:
    with FakeTensorMode():
        layer = RecurrentLayer(cell, X, 32, bias=True)
        x_BTX = torch.zeros(3, 25, X, requires_grad=True)
        h_BTH, (last_BH,) = layer(x_BTX, (torch.zeros(3, 32),))
        (h_BTH.sum() + last_BH.sum()).backward()
        assert (h_BTH.shape, last_BH.shape, x_BTX.grad.shape) == ((3, 25, 32), (3, 32), x_BTX.shape)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("kind", [GRU, RNN])
def test_a_whole_model(kind: type[RecurrentModel], dtype: torch.dtype) -> None:
    """Loss and all gradients of two layers in all three ways: they differ by rounding alone."""
    torch.manual_seed(0)
    model = kind(RecurrentConfig(layers=2, width=32, embedding_width=16, tie=False, dropout=0.0), 50).train()
    model.compute_dtype = dtype
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    tokens_BT = torch.randint(50, (3, 40))

    def gradients() -> dict[str, Tensor]:
        loss, carry = model.loss_carried(tokens_BT, None)
        total = loss.mean + model.loss_carried(tokens_BT, carry)[0].mean + model.loss(Windows(tokens_BT)).mean
        names, weights = zip(*model.named_parameters(), strict=True)
        return {"loss": total, **dict(zip(names, torch.autograd.grad(total, weights), strict=True))}

    with fast.plain():
        expected = gradients()
    in_c = gradients()
    with no_c_kernels():
        by_steps = gradients()
    for name, other in expected.items():
        for found in (in_c, by_steps):
            apart = (found[name] - other).norm() / other.norm()
            assert apart < (1e-5 if dtype == torch.float32 else 0.05), (name, apart)


@each_cell
def test_a_state_of_other_rows_is_refused_by_torch(cell: Cell) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (3, recurrence.LEAST_STEPS, 16))
    for others_BH in (begin_BH[:1], begin_BH.repeat(2, 1)):
        with pytest.raises(RuntimeError):
            cell.run(x_BTX, (others_BH,), weights)


def test_widths_that_the_kernel_does_not_take_whole_are_not_for_it() -> None:
    """It reads sixteen numbers at once, and would read those of the next row."""
    assert not any(recurrence_in_c.fits(torch.zeros(3 * width, width), 5) for width in (1, 8, 15, 17, 24, 40))


@each_cell
def test_derivatives_by_torch_func_are_those_of_torch(cell: Cell) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (2, recurrence.LEAST_STEPS, 16))

    def total(w_GX: Tensor) -> Tensor:
        return cell.run(x_BTX, (begin_BH,), weights._replace(input_GX=w_GX))[0].sum()

    found = torch.func.grad(total)(weights.input_GX)
    w_GX = weights.input_GX.detach().requires_grad_()
    agree([found], [torch.autograd.grad(total(w_GX), w_GX)[0]], torch.float32)


@each_cell
def test_the_state_after_the_last_input_may_be_written_over(cell: Cell) -> None:
    x_BTX, begin_BH, weights = drawn(cell, (2, recurrence.LEAST_STEPS, 16))
    h_BTH, (last_BH,) = cell.run(x_BTX.requires_grad_(), (begin_BH,), weights)
    last = h_BTH[:, -1].detach().clone()
    last_BH.detach().zero_()
    assert torch.equal(h_BTH[:, -1], last)
