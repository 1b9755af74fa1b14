"""The kernels in C that training takes on a CPU, against their plain twins, forward and backward."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lmlab.hardware.c_kernels import compiler_here, no_c_kernels, why_not
from lmlab.interface import Windows
from lmlab.layers import fast
from lmlab.layers.attention import causal_self_attention, self_attention
from lmlab.layers.blocks import squared_relu_network
from lmlab.layers.fast import attention_in_c
from lmlab.layers.positions import rotary_tables
from lmlab.models.gpt import GPT, GPTConfig

TROUBLE = why_not(attention_in_c.SOURCE, shared=True)
pytestmark = pytest.mark.skipif(bool(TROUBLE), reason=TROUBLE)

PRECISIONS = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2}  # of the largest number


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def agrees(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    apart = (found.float() - expected.float()).abs().max() / expected.float().abs().max()
    assert apart < TOLERANCE[dtype], apart


def counted(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[str]:
    """Every forward pass of a kernel from now on."""
    calls: list[str] = []
    honest = kind.forward  # type: ignore[attr-defined]
    monkeypatch.setattr(kind, "forward", staticmethod(lambda *a: calls.append(kind.__name__) or honest(*a)))
    return calls


def with_gradients(compute: Callable[..., Tensor], leaves: list[Tensor], grad: Tensor) -> list[Tensor]:
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    out = compute(*leaves)
    return [out, *torch.autograd.grad(out, leaves, grad.to(out.dtype))]


def in_both_ways(compute: Callable[..., Tensor], leaves: list[Tensor], grad: Tensor, dtype: torch.dtype) -> None:
    """In C, and the plain way in float32 throughout: the kernel is to be near what is true, not near another rounding."""
    found = with_gradients(compute, leaves, grad)
    with fast.plain():
        expected = with_gradients(compute, [leaf.float() for leaf in leaves], grad.float())
    for one, other in zip(found, expected, strict=True):
        agrees(one, other, dtype)


SHAPES = [(2, 33, 3, 16), (1, 256, 2, 64), (3, 70, 1, 48), (2, 1, 2, 32), (1, 32, 1, 80), (2, 31, 5, 32)]


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_causal_attention(
    shape: tuple[int, ...], rotary: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, length, heads, width = shape
    rotation = rotary_tables(length, width) if rotary else None
    calls = counted(monkeypatch, attention_in_c._Attention)
    qkv, grad = drawn(rows, length, 3, heads, width, dtype=dtype), drawn(rows, length, heads * width, dtype=dtype)
    in_both_ways(lambda x: causal_self_attention(x, rotation), [qkv], grad, dtype)
    assert len(calls) == 1


@pytest.fixture(scope="module")
def emulated_tiles(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernel as it is made for processors with units for tiles, and those units in plain C."""
    compiler, path = compiler_here(), tmp_path_factory.mktemp("tiles") / "attention.so"
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if compiler is None or "avx512bw" not in flags:
        pytest.skip("needs a processor with AVX-512, on which the units are emulated")
    made_with = ["-O2", "-std=gnu11", "-march=native", "-fPIC", "-fopenmp", "-shared"]
    header = Path(__file__).with_name("emulated_tiles.h")
    command = [*compiler, *made_with, "-include", str(header), str(attention_in_c.SOURCE), "-o", str(path), "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    library = ctypes.CDLL(str(path))
    assert library.lmlab_attention_by_tiles()
    return library


@pytest.mark.parametrize("kind", ["rotary", "plain", "both ways", "padded"])
@pytest.mark.parametrize("shape", [(1, 70, 2, 64), (2, 32, 1, 32), (1, 1, 1, 32), (2, 33, 2, 96)], ids=str)
def test_attention_by_tiles(
    kind: str, shape: tuple[int, ...], emulated_tiles: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a processor with the units, `test_causal_attention` tries them; here they are emulated."""
    rows, length, heads, width = shape
    monkeypatch.setattr(attention_in_c, "decided_on", lambda source: emulated_tiles)
    text_BT = torch.arange(length).expand(rows, length) % 3 != 1
    rotation = rotary_tables(length, width) if kind == "rotary" else None

    def compute(x: Tensor) -> Tensor:
        if kind in ("rotary", "plain"):
            return causal_self_attention(x, rotation)
        return self_attention(x, text_BT if kind == "padded" else None)

    qkv = drawn(rows, length, 3, heads, width, dtype=torch.bfloat16)
    in_both_ways(compute, [qkv], drawn(rows, length, heads * width, dtype=torch.bfloat16), torch.bfloat16)


@pytest.mark.parametrize("width", [32, 64, 96])
def test_attention_by_tiles_is_as_exact_as_that_of_torch(
    width: int, emulated_tiles: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores far apart, of heads whose scale is a power of two and of others: held against float64, beside torch in bf16."""
    monkeypatch.setattr(attention_in_c, "decided_on", lambda source: emulated_tiles)
    qkv = (drawn(1, 70, 3, 2, width) * 8).to(torch.bfloat16)
    grad = drawn(1, 70, 2 * width, dtype=torch.bfloat16)
    found = with_gradients(lambda x: causal_self_attention(x, None), [qkv], grad)
    with fast.plain():
        torchs = with_gradients(lambda x: causal_self_attention(x, None), [qkv], grad)
        truth = with_gradients(lambda x: causal_self_attention(x, None), [qkv.double()], grad.double())
    for one, other, true in zip(found, torchs, truth, strict=True):
        assert (one - true).norm() < 1.5 * (other - true).norm()


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("padded", [True, False])
def test_attention_both_ways(padded: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    text_BT = torch.ones(3, 45, dtype=torch.bool)
    text_BT[0, 20:] = False
    text_BT[1, ::2] = False
    calls = counted(monkeypatch, attention_in_c._Attention)
    qkv, grad = drawn(3, 45, 3, 2, 32, dtype=dtype), drawn(3, 45, 64, dtype=dtype)
    in_both_ways(lambda x: self_attention(x, text_BT if padded else None), [qkv], grad, dtype)
    assert len(calls) == 1


def test_no_position_feels_what_comes_after_it() -> None:
    """Not even numbers that are none: a weight of nothing times infinity would be noticed."""
    qkv = drawn(1, 70, 3, 2, 32).requires_grad_()
    changed = qkv.detach().clone()
    changed[:, 50:] = torch.nan
    rotation = rotary_tables(70, 32)
    before, after = causal_self_attention(qkv, rotation), causal_self_attention(changed.requires_grad_(), rotation)
    assert torch.equal(before[:, :32], after[:, :32])
    assert after[:, 50:].isnan().all()
    assert not after[:, :32].isnan().any()


def test_scores_far_apart_are_as_exact_as_those_of_torch() -> None:
    """A thousand apart, so that most weights vanish: held against float64, beside what torch makes of it in float32."""
    qkv, grad = drawn(1, 64, 3, 1, 32) * 12, drawn(1, 64, 32)
    found = with_gradients(lambda x: causal_self_attention(x, None), [qkv], grad)
    with fast.plain():
        torchs = with_gradients(lambda x: causal_self_attention(x, None), [qkv], grad)
        truth = with_gradients(lambda x: causal_self_attention(x, None), [qkv.double()], grad.double())
    for one, other, true in zip(found, torchs, truth, strict=True):
        # Beside a thousand, float32 holds no more than four places after the point.
        assert (one - true).abs().max() <= 3 * (other - true).abs().max() + 3e-5 * true.abs().max()


def test_the_bits_are_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    qkv, grad = drawn(3, 70, 3, 3, 32), drawn(3, 70, 96)
    found = []
    for threads in (1, 2, 3, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(with_gradients(lambda x: causal_self_attention(x, rotary_tables(70, 32)), [qkv], grad))
    assert all(torch.equal(*pair) for other in found[1:] for pair in zip(found[0], other, strict=True))


def test_a_mask_of_one_text_serves_all_rows() -> None:
    """A kernel that took it as it lies would read what is not its own."""
    text_1T = torch.tensor([[True] * 20 + [False] * 13])
    qkv = drawn(2, 33, 3, 1, 16).requires_grad_()

    def found() -> list[Tensor]:
        both_ways = self_attention(qkv, text_1T)
        return [both_ways, *torch.autograd.grad(both_ways.sum(), qkv)]

    in_c = found()
    with fast.plain():
        for one, other in zip(in_c, found(), strict=True):
            torch.testing.assert_close(one, other, atol=2e-6, rtol=2**-7)


@pytest.mark.parametrize("usual", [torch.bfloat16, torch.float64], ids=str)
def test_what_torch_makes_by_default_is_not_what_the_kernels_write_into(usual: torch.dtype) -> None:
    """They write float32: in numbers of half the size they would write into what is not theirs."""
    qkv = drawn(2, 256, 3, 2, 64)

    def found() -> list[Tensor]:
        return with_gradients(lambda x: causal_self_attention(x, None), [qkv], qkv[:, :, 0].flatten(2))

    expected = found()
    before = torch.get_default_dtype()
    torch.set_default_dtype(usual)
    try:
        in_c = found()
    finally:
        torch.set_default_dtype(before)
    for one, other in zip(in_c, expected, strict=True):
        assert torch.equal(one, other)


def test_nothing_at_all_is_computed() -> None:
    """No rows, no positions: as torch does it."""
    for rows, length in ((0, 5), (2, 0)):
        qkv, x = drawn(rows, length, 3, 2, 16).requires_grad_(), drawn(rows, length, 32).requires_grad_()
        attended = causal_self_attention(qkv, rotary_tables(length, 16))
        network = squared_relu_network(x, drawn(64, 32), drawn(48, 64))
        assert (attended.shape, network.shape) == ((rows, length, 32), (rows, length, 48))
        (attended.sum() + network.sum()).backward()
        assert (qkv.grad.shape, x.grad.shape) == (qkv.shape, x.shape)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_the_network(dtype: torch.dtype) -> None:
    x, up, down = drawn(2, 37, 48, dtype=dtype), drawn(80, 48, dtype=dtype), drawn(32, 80, dtype=dtype)
    in_both_ways(squared_relu_network, [x, up, down], drawn(2, 37, 32, dtype=dtype), dtype)
    wrong = x.clone()
    wrong[0, 0, 0] = torch.nan
    assert squared_relu_network(wrong.requires_grad_(), up, down)[0, 0].isnan().all(), "it was hidden"


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_whole_model(dtype: torch.dtype, dropout: float) -> None:
    """Loss and all gradients, in C and without: they differ by rounding alone."""
    config = GPTConfig(layers=2, width=64, heads=2, context=40, stride=20, dropout=dropout, tie=False)
    torch.manual_seed(0)
    model = GPT(config, 50).train()
    model.compute_dtype = dtype
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    tokens = torch.randint(50, (3, 40))

    def gradients() -> dict[str, Tensor]:
        torch.manual_seed(1)
        loss = model.loss(Windows(tokens)).mean
        names, weights = zip(*model.named_parameters(), strict=True)
        return {"loss": loss, **dict(zip(names, torch.autograd.grad(loss, weights), strict=True))}

    found = gradients()
    with no_c_kernels():
        expected = gradients()
    for name, other in expected.items():
        apart = (found[name] - other).norm() / other.norm()
        assert apart < (1e-5 if dtype == torch.float32 else 0.05), (name, apart)


@pytest.mark.parametrize("in_c", [True, False])
def test_a_second_derivative_is_refused(in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel leaves no trace to go back along: what a penalty on gradients would get of it is a part of the truth."""
    if not in_c:
        monkeypatch.setenv("LMLAB_C_KERNELS", "off")
    x = drawn(2, 5, 48, dtype=torch.bfloat16).requires_grad_()
    up, down = drawn(64, 48, dtype=torch.bfloat16), drawn(32, 64, dtype=torch.bfloat16)
    ways: list[Callable[[], Tensor]] = [
        lambda: causal_self_attention(x.view(2, 5, 3, 1, 16), None),
        lambda: squared_relu_network(x, up, down),
    ]
    for way in ways:
        loss = way().float().square().sum() + x.float().square().sum()
        with pytest.raises(RuntimeError, match="no second derivatives"):
            torch.autograd.grad(loss, x, create_graph=True)


def test_what_began_in_c_is_finished_in_c() -> None:
    """Somebody may do without in between, such as a codec between two pieces of a gradient."""
    x = drawn(2, 5, 48).requires_grad_()
    loss = causal_self_attention(x.view(2, 5, 3, 1, 16), None).sum()
    loss = loss + squared_relu_network(x, drawn(64, 48), drawn(32, 64)).sum()
    with no_c_kernels():
        loss.backward()
    assert x.grad.isfinite().all()


def test_a_backward_pass_under_autocast_reads_what_the_forward_pass_left() -> None:
    """That pass was in float32, this one is in bf16."""
    x, up, down = drawn(3, 32).requires_grad_(), drawn(64, 32), drawn(32, 64)
    (expected,) = torch.autograd.grad(squared_relu_network(x, up, down).sum(), x)
    loss = squared_relu_network(x, up, down).sum()
    with torch.autocast("cpu", torch.bfloat16):
        (found,) = torch.autograd.grad(loss, x)
    agrees(found, expected, torch.bfloat16)


def test_without_gradients_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are those of torch, whoever has a compiler."""
    calls = counted(monkeypatch, attention_in_c._Attention)
    with torch.no_grad():
        causal_self_attention(drawn(1, 20, 3, 2, 32), None)
    assert not calls


@pytest.mark.parametrize("shape", [(1, 20, 3, 2, 24), (1, 20, 3, 1, 528), (1, 5000, 3, 1, 16)], ids=str)
def test_what_the_kernel_does_not_take_torch_does(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, attention_in_c._Attention)
    causal_self_attention(drawn(*shape).requires_grad_(), None).sum().backward()
    assert not calls
