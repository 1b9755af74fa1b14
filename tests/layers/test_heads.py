"""The shared output layer against torch's own cross-entropy, by both of its paths."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from lmlab.layers import heads
from lmlab.layers.fast import cross_entropy
from lmlab.layers.heads import cross_entropy_nats, log_probabilities


def _case(
    positions: int, vocab: int, width: int, *, bias: bool = True, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    generator = torch.Generator().manual_seed(7)
    hidden_ND = torch.randn(positions, width, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    weight_VD = torch.randn(vocab, width, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    bias_V = torch.randn(vocab, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() if bias else None
    return hidden_ND, weight_VD, bias_V, torch.randint(vocab, (positions,), generator=generator)


@pytest.fixture
def chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even tiny cases go through the chunked path, with a ragged last chunk."""
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 3)


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("bias", [True, False])
def test_the_chunked_gradient_is_the_numerical_gradient_for_any_incoming_gradient(bias: bool) -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(7, 5, 4, bias=bias, dtype=torch.float64)
    inputs = (hidden_ND, weight_VD, bias_V, targets_N)
    assert torch.autograd.gradcheck(cross_entropy_nats, inputs)  # each nat by itself: incoming gradients differ
    assert torch.autograd.gradcheck(lambda *args: 0.3 * cross_entropy_nats(*args).sum(), inputs)  # all the same


@pytest.mark.parametrize(("positions", "vocab", "width"), [(40, 65, 16), (300, 20_000, 8)])  # plain; chunked
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_equal_torch_cross_entropy(positions: int, vocab: int, width: int, weighted: bool) -> None:
    inputs = _case(positions, vocab, width)
    hidden_ND, weight_VD, bias_V, targets_N = inputs
    scale_N = torch.linspace(0.0, 1.0, positions) if weighted else torch.full((positions,), 0.25)
    expected_N = F.cross_entropy(F.linear(hidden_ND, weight_VD, bias_V), targets_N, reduction="none")
    expected = torch.autograd.grad((expected_N * scale_N).sum(), inputs[:3])
    nats_N = cross_entropy_nats(*inputs)
    assert nats_N.dtype == torch.float32
    torch.testing.assert_close(nats_N, expected_N)
    actual = torch.autograd.grad((nats_N * scale_N).sum(), inputs[:3])
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("chunked")
def test_frozen_inputs_get_no_gradient_and_the_others_the_right_one() -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(7, 5, 4)
    assert bias_V is not None
    expected = F.cross_entropy(F.linear(hidden_ND, weight_VD, bias_V), targets_N, reduction="sum")
    (expected_grad,) = torch.autograd.grad(expected, weight_VD)
    nats_N = cross_entropy_nats(hidden_ND.detach(), weight_VD, bias_V.detach(), targets_N)
    nats_N.sum().backward()
    torch.testing.assert_close(weight_VD.grad, expected_grad)
    assert hidden_ND.grad is None
    assert bias_V.grad is None


class Watch(TorchDispatchMode):
    """How many numbers the largest tensor has that is made."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor):
            self.largest = max(self.largest, out.numel())
        return out


def test_no_tensor_as_large_as_positions_times_vocabulary_is_ever_made() -> None:
    inputs = _case(1024, 20_000, 4)
    with Watch() as watch:
        cross_entropy_nats(*inputs).sum().backward()
    assert 0 < watch.largest <= max(cross_entropy.CHUNK_ROWS * 20_000, cross_entropy.CHUNK_ELEMENTS)


def test_nor_without_gradients() -> None:
    inputs = _case(1024, 200_000, 4)
    with torch.no_grad(), Watch() as watch:
        cross_entropy_nats(*inputs)
    assert 0 < watch.largest <= max(cross_entropy.CHUNK_ROWS_WITHOUT_GRADIENTS * 200_000, cross_entropy.CHUNK_ELEMENTS)


def test_without_gradients_nothing_is_computed_for_them() -> None:
    """Weights that could learn are scored with as well: the product of the logits is all there is."""
    inputs = _case(300, 20_000, 4)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        cross_entropy_nats(*inputs)
    assert counter.get_total_flops() == 2 * 300 * 20_000 * 4


@pytest.mark.parametrize("vocab", [65, 20_000])
def test_bf16_inputs_give_float32_nats_near_the_exact_ones(vocab: int) -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(200, vocab, 16, dtype=torch.bfloat16)
    assert bias_V is not None
    exact = [t.detach().double().requires_grad_() for t in (hidden_ND, weight_VD, bias_V)]
    exact_N = F.cross_entropy(F.linear(*exact), targets_N, reduction="none")
    exact_N.mean().backward()
    nats_N = cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N)
    nats_N.mean().backward()
    assert nats_N.dtype == torch.float32
    # A bf16 logit near 16 is rounded to a multiple of 1/16; over many tokens the roundings cancel.
    assert (nats_N - exact_N).abs().max() < 0.2
    assert abs(nats_N.mean().item() - exact_N.mean().item()) < 0.01
    for leaf, reference in zip((hidden_ND, weight_VD, bias_V), exact, strict=True):
        assert leaf.grad is not None
        assert reference.grad is not None
        assert leaf.grad.dtype == torch.bfloat16
        error = (leaf.grad.double() - reference.grad).norm() / reference.grad.norm()
        assert error < 0.02


@pytest.mark.parametrize("vocab", [65, 20_000])
def test_autocast_takes_the_bf16_products_and_still_sums_in_float32(vocab: int) -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(200, vocab, 16)
    assert bias_V is not None
    halves = [t.detach().bfloat16() for t in (hidden_ND, weight_VD, bias_V)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        nats_N = cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N)
    assert torch.equal(nats_N, cross_entropy_nats(*halves, targets_N))
    nats_N.sum().backward()
    assert weight_VD.grad is not None
    assert weight_VD.grad.dtype == torch.float32


def test_no_positions_cost_nothing() -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(0, 5, 4)
    assert cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N).shape == (0,)


def test_log_probabilities_sum_to_one_and_agree_with_the_nats() -> None:
    hidden_ND, weight_VD, bias_V, targets_N = _case(30, 65, 8)
    logp_NV = log_probabilities(hidden_ND, weight_VD, bias_V)
    assert logp_NV.dtype == torch.float32
    torch.testing.assert_close(logp_NV.exp().sum(-1), torch.ones(30))
    nats_N = cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N)
    torch.testing.assert_close(nats_N, -logp_NV.gather(1, targets_N[:, None])[:, 0])


@pytest.mark.parametrize("positions", [0, 1, 10])
def test_rows_that_are_looked_at_a_few_at_a_time_cost_the_same(positions: int) -> None:
    hidden, weight, bias = torch.randn(positions, 6), torch.randn(7, 6), torch.randn(7)
    targets = torch.arange(positions) % 7
    expected = F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="none")
    with Watch() as watch:
        found = heads.nats_by_pieces(hidden, weight, bias, targets, rows=3)
    torch.testing.assert_close(found, expected)
    assert watch.largest <= max(3 * 7, weight.numel())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_validation_on_a_gpu_costs_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "PLAIN_ELEMENTS", 70)
    hidden, weight, targets = torch.randn(100, 6).cuda(), torch.randn(7, 6).cuda(), torch.arange(100).cuda() % 7
    expected = F.cross_entropy(F.linear(hidden, weight), targets, reduction="sum")
    with torch.no_grad():
        found = heads.summed_nats(hidden, weight, None, targets, None)
    torch.testing.assert_close(found, expected)
