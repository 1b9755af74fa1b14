"""Every hand-written kernel against its plain twin, forward and backward; one switch chooses between them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from lmlab.layers import fast, heads
from lmlab.layers.attention import causal_self_attention, packed, self_attention, split_heads
from lmlab.layers.attentive import attentive_scan
from lmlab.layers.blocks import Block, squared_relu_network
from lmlab.layers.composition import Composition
from lmlab.layers.fast import adamw, attentive, cross_entropy, networks, triton_here
from lmlab.layers.fast import attention as products
from lmlab.layers.fast import products as on_gpu
from lmlab.layers.fast.attentive import Additive, Rule
from lmlab.layers.fast.rotation import can_turn, turned_heads
from lmlab.layers.positions import rotary_tables
from lmlab.learn.optimizer import Optimizer, OptimizerConfig


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).requires_grad_()


def both(compute: Callable[[], Tensor], leaves: list[Tensor], monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    """Compute with and without the kernel; results and gradients must agree, and the kernel must have been called once."""
    calls: list[str] = []
    module, name = kernel.rsplit(".", 1)
    owner = {m.__name__.rsplit(".", 1)[1]: m for m in (products, networks, cross_entropy, attentive)}[module]
    honest = getattr(owner, name).forward

    def counted(*arguments: object) -> object:
        calls.append(name)
        return honest(*arguments)

    monkeypatch.setattr(getattr(owner, name), "forward", staticmethod(counted))
    found = []
    for way in ("fast", "plain"):
        for leaf in leaves:
            leaf.grad = None
        if way == "plain":
            with fast.plain():
                out = compute()
        else:
            out = compute()
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(5)).to(out.dtype)
        (out * weights).sum().backward()
        found.append([out.detach(), *(leaf.grad for leaf in leaves)])
    assert calls == [name], "the switch does not choose between the kernel and its twin"
    loose = {"atol": 0.06, "rtol": 0.06} if leaves[0].dtype == torch.bfloat16 else {"atol": 2e-5, "rtol": 1e-4}
    for mine, plain in zip(*found, strict=True):
        torch.testing.assert_close(mine, plain, **loose)


@pytest.mark.parametrize("rotary", [True, False])
def test_attention_by_products(rotary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "BLOCK", 5)
    qkv = drawn(2, 12, 3, 2, 8, dtype=torch.bfloat16)
    rotation = rotary_tables(12, 8) if rotary else None
    both(lambda: causal_self_attention(qkv, rotation), [qkv], monkeypatch, "attention._MatrixProductAttention")


@pytest.mark.parametrize("padded", [True, False])
def test_attention_by_products_to_both_sides(padded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "BLOCK", 5)
    qkv = drawn(2, 12, 3, 2, 8, dtype=torch.bfloat16)
    text_BT = torch.arange(12) < torch.tensor([[7], [12]]) if padded else None
    both(lambda: self_attention(qkv, text_BT), [qkv], monkeypatch, "attention._MatrixProductAttention")


def test_the_softmax_of_attention_has_its_derivative_without_a_private_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = drawn(3, 4, 6)
    weights, grad = scores.softmax(-1).detach(), drawn(3, 4, 6).detach() + 1
    expected = torch.autograd.grad(scores.softmax(-1), scores, grad)[0]
    by_kernel, by_formula = grad.clone(), grad.clone()
    products._softmax_back(weights, by_kernel)
    monkeypatch.setattr(products, "_PRIVATE_SOFTMAX", None)
    products._softmax_back(weights, by_formula)
    torch.testing.assert_close(by_kernel, expected)
    torch.testing.assert_close(by_formula, expected)


def test_the_squared_relu_network(monkeypatch: pytest.MonkeyPatch) -> None:
    x, up, down = drawn(2, 5, 6), drawn(12, 6), drawn(4, 12)
    both(lambda: squared_relu_network(x, up, down), [x, up, down], monkeypatch, "networks._SquaredReLUNetwork")


@pytest.mark.parametrize(("width", "hidden", "fits"), [(64, 256, True), (68, 256, False), (64, 260, False)])
def test_what_a_gpu_cannot_copy_by_tiles_is_left_to_the_twin(
    width: int, hidden: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that do not begin at multiples of 16 bytes. The GPU is imagined: whether it is asked needs none."""
    monkeypatch.setattr(on_gpu, "has_trades", lambda: True)
    with FakeTensorMode():
        x, up = (torch.empty(rows, width, dtype=torch.bfloat16, device="cuda") for rows in (1 << 16, hidden))
        assert on_gpu.fills_a_gpu(x, up) == fits
        wide, down = (torch.empty(12, width, dtype=d, device="cuda") for d in (torch.float32, torch.bfloat16))
        assert not on_gpu.fills_a_gpu(x, wide)
        assert not on_gpu.fills_a_gpu(x, up, down)


@pytest.mark.parametrize(
    ("heads", "width", "fits"),
    [(12, 64, True), (6, 64, True), (3, 64, False), (16, 8, False), (8, 48, False), (1, 256, False)],
)
def test_heads_that_do_not_fill_tiles_are_turned_by_the_twin(
    heads: int, width: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tile is 256 outputs: whole heads, and all of them turned or none."""
    monkeypatch.setattr(on_gpu, "has_trades", lambda: True)
    with FakeTensorMode():
        x = torch.empty(64, 1024, heads * width, dtype=torch.bfloat16, device="cuda")
        weight = torch.empty(3 * heads * width, heads * width, dtype=x.dtype, device="cuda")
        assert can_turn(x, weight, heads) == fits
        with torch.no_grad():
            assert not can_turn(x, weight, heads)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # which the compiler does
def test_queries_and_keys_that_a_gpu_turns_where_it_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but its two kernels, which are held against theirs on a GPU: derivatives, compiled or not, and no second ones."""
    kernels, back = ModuleType("lmlab.layers.fast._products_gluon"), ModuleType("lmlab.layers.fast._rotation_triton")

    def turned(x_NI: Tensor, weight_OI: Tensor, cos: Tensor, sin: Tensor, tile: tuple[int, int]) -> Tensor:
        qkv = packed(x_NI.view(2, 5, 8), weight_OI, 2)
        return torch.stack([part.transpose(1, 2) for part in split_heads(qkv, (cos, sin))], 2).view(10, 24).clone()

    def joined(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        back = [(part * cos + (part * sin).roll(2, -1)).transpose(1, 2) for part in (q, k)]
        return torch.stack([*back, v.transpose(1, 2)], 2)

    kernels.turned, back.launch = turned, joined  # type: ignore[attr-defined]
    for module in (kernels, back):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    x, weight, tables = drawn(2, 5, 8), drawn(24, 8), rotary_tables(5, 4)

    def found(made: tuple[Tensor, ...]) -> Tensor:
        return sum((part * (i + 1) * torch.arange(4.0)).sum() for i, part in enumerate(made))  # type: ignore[return-value]

    def nats() -> Tensor:
        return found(turned_heads(x, weight, tables, 2))

    expected = torch.autograd.grad(found(split_heads(packed(x, weight, 2), tables)), [x, weight])
    torch.testing.assert_close(torch.autograd.grad(nats(), [x, weight]), expected)
    compiled = torch.compile(nats, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(), [x, weight]), expected)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(nats() + x.square().sum(), x, create_graph=True)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # which the compiler does
def test_the_squared_relu_network_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but its two kernels, which are held against theirs on a GPU: derivatives, compiled or not, and no second ones."""
    kernels = ModuleType("lmlab.layers.fast._products_gluon")
    kernels.squares = lambda x, up, tile: (x @ up.T).relu().square()  # type: ignore[attr-defined]
    kernels.grown = lambda grad, down, squared, tile: 2 * squared.sqrt() * (grad @ down)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, kernels.__name__, kernels)
    x, up, down = leaves = drawn(2, 5, 8), drawn(16, 8), drawn(8, 16)

    def nats() -> Tensor:
        return networks.squared_relu_on_gpu(x, up, down).sum()

    with fast.plain():
        expected = torch.autograd.grad(squared_relu_network(x, up, down).sum(), leaves)
    torch.testing.assert_close(torch.autograd.grad(nats(), leaves), expected)
    compiled = torch.compile(nats, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(), leaves), expected)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(nats() + x.square().sum(), x, create_graph=True)


@pytest.mark.parametrize(("rows", "length"), [(0, 5), (2, 0)])
def test_a_block_of_nothing_gives_nothing(rows: int, length: int) -> None:
    block, x = Block(Composition.of(16, 1, 2, "relu2")), drawn(rows, length, 16)
    assert block(x, rotary_tables(length, 8), torch.float32, 0.0).shape == x.shape
    cache = torch.zeros(2, rows, 2, 9, 8)
    with torch.no_grad():
        assert block.step(x, rotary_tables(length, 8), cache, 0, torch.float32).shape == x.shape


@pytest.mark.parametrize("with_bias", [True, False])
def test_the_chunked_cross_entropy(with_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", 1)
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 3)
    hidden, weight, bias = drawn(10, 6), drawn(7, 6), drawn(7)
    targets = torch.arange(10) % 7
    leaves = [hidden, weight, bias] if with_bias else [hidden, weight]
    both(
        lambda: heads.cross_entropy_nats(hidden, weight, bias if with_bias else None, targets),
        leaves,
        monkeypatch,
        "cross_entropy._ChunkedCrossEntropy",
    )
    nats = heads.cross_entropy_nats(hidden, weight, None, targets).sum()
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(nats + hidden.square().sum(), hidden, create_graph=True)


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("with_bias", [True, False])
def test_the_summed_cross_entropy(with_bias: bool, weighted: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """most: logits at once, three rows of them or all."""
    monkeypatch.setattr(cross_entropy, "CHUNK_ROWS", 3)
    hidden, weight, bias = drawn(10, 6), drawn(7, 6), drawn(7)
    targets, weights = torch.arange(10) % 7, torch.arange(10) % 2.0 if weighted else None
    leaves = [hidden, weight, bias] if with_bias else [hidden, weight]
    plain = F.cross_entropy(F.linear(hidden, weight, bias if with_bias else None), targets, reduction="none")
    expected = (plain if weights is None else plain * weights).sum()
    found = cross_entropy.summed_cross_entropy(hidden, weight, bias if with_bias else None, targets, weights, most)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(0.3 * found, leaves)
    torch.testing.assert_close(gradients, torch.autograd.grad(0.3 * expected, leaves))
    found = cross_entropy.summed_cross_entropy(hidden, weight, bias if with_bias else None, targets, weights, most)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(found + hidden.square().sum(), hidden, create_graph=True)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # which the compiler does
def test_the_summed_cross_entropy_can_be_compiled() -> None:
    """In one piece, though it refuses second derivatives: that is asked while the compiler looks on."""
    hidden, weight, targets = drawn(10, 6), drawn(7, 6), torch.arange(10) % 7

    def nats() -> Tensor:
        return cross_entropy.summed_cross_entropy(hidden, weight, None, targets, None, most=1000)

    found = torch.autograd.grad(torch.compile(nats, backend="aot_eager", fullgraph=True)(), [hidden, weight])
    torch.testing.assert_close(found, torch.autograd.grad(nats(), [hidden, weight]))


@pytest.mark.parametrize("combined", [True, False])
@pytest.mark.parametrize("with_score", [True, False])
def test_the_attentive_scan(combined: bool, with_score: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drive, h, past, state = drawn(2, 7, 5), drawn(2, 5), drawn(2, 3, 5), drawn(5, 5)
    score = [drawn(4, 5), drawn(5, 4).T.detach().requires_grad_(), drawn(4)] if with_score else []
    additive = Additive(*score) if with_score else None
    both(
        lambda: attentive_scan(drive, h, past, state, additive, Rule(4, 0.5, combined))[0],
        [drive, h, past, state, *score],
        monkeypatch,
        "attentive._Scan",
    )


def test_adamw_in_one_pass() -> None:
    found = []
    for enabled in (True, False):
        weights = {"matrix": drawn(4, 3).detach().clone(), "vector": drawn(6).detach().clone()}
        optimizer = Optimizer(weights, OptimizerConfig(learning_rate=0.05, clip=0.5))
        for step in range(12):
            generator = torch.Generator().manual_seed(step)
            for p in weights.values():
                p.grad = torch.randn(p.shape, generator=generator)
            if enabled:
                optimizer.step(0.7)
            else:
                with fast.plain():
                    optimizer.step(0.7)
        found.append({**weights, **optimizer.tensors()})
    assert adamw.fused_adamw is not None, "this torch has no fused kernel to hold the twin against"
    for name, tensor in found[0].items():
        torch.testing.assert_close(found[1][name], tensor, msg=lambda said, name=name: f"{name}: {said}")


@pytest.mark.slow
def test_no_model_waits_for_the_compiler_to_be_imported_and_the_compiler_is_told_all_the_same() -> None:
    """Importing it takes a second. In a process of its own: other tests here may have imported it."""
    script = (
        "import sys, torch, lmlab.models.gpt; from lmlab.layers.fast import triton_here\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "told = torch.compiler.assume_constant_result(lambda: True)\n"
        "assert vars(told) == vars(triton_here.has_copy_engine) != {}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("capability", "speaks", "told"), [((9, 0), True, True), ((9, 0), False, False), ((8, 0), True, False)]
)
def test_kernels_that_fetch_by_the_copy_engine_need_a_gpu_that_has_one_and_a_triton_that_knows_it(
    capability: tuple[int, int], speaks: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older GPU or an older triton takes the plain way instead of failing in the middle of a training."""
    monkeypatch.setattr(triton_here, "HAS_TRITON", True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    monkeypatch.setattr(triton_here.importlib.util, "find_spec", lambda name: object() if speaks else None)
    assert triton_here.has_copy_engine() == told


def pretend(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], version: str) -> None:
    """That there is a GPU of this kind, and a triton of this version."""
    monkeypatch.setattr(triton_here, "HAS_TRITON", True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    monkeypatch.setattr(triton_here.importlib.util, "find_spec", lambda name: object())
    known = ModuleType("triton")
    known.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", known)


@pytest.mark.parametrize(
    ("capability", "version", "told"),
    [
        ((9, 0), "3.6.0", True),
        ((9, 0), "3.9.1+gpu", True),
        ((9, 0), "3.5.1", False),
        ((9, 0), "3.10.0", False),
        ((9, 0), "unknown", False),
        ((10, 0), "3.6.0", False),
        ((8, 0), "3.6.0", False),
    ],
)
def test_kernels_of_several_trades_need_a_gpu_of_their_kind_and_a_gluon_that_is_known(
    capability: tuple[int, int], version: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, capability, version)
    assert triton_here.has_trades() == told
    monkeypatch.setattr(torch.version, "hip", "6.2")  # another maker's, whose GPUs have numbers like these
    assert not triton_here.has_trades()
