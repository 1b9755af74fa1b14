"""Kernels for a GPU against their plain twins, forward and backward."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers import fast, heads
from lmlab.layers.attention import (
    packed,
    projected_self_attention,
    split_heads,
    split_to_learn,
)
from lmlab.layers.blocks import Block, normed, squared_relu_network
from lmlab.layers.composition import Composition
from lmlab.layers.fast import cross_entropy, muon, norms, products, rotation, softmax_kernel
from lmlab.layers.fast.triton_here import HAS_TRITON, has_copy_engine, has_trades
from lmlab.layers.heads import plain_nats, summed_nats
from lmlab.layers.positions import rotary_tables
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.learn.orthogonal import orthogonalize

pytestmark = [
    pytest.mark.skipif(not (torch.cuda.is_available() and HAS_TRITON), reason="needs a GPU and triton"),
    pytest.mark.filterwarnings(
        "ignore:Attempting to run cuBLAS"
    ),  # of torch, when a product is what backward begins with
]


def drawn(*shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(shape, generator=generator) * scale).to(dtype).cuda().requires_grad_()


def apart(found: Tensor, exact: Tensor) -> float:
    """How far, as a share of the exact one's length."""
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


@pytest.mark.parametrize(
    ("places", "width", "hidden"),
    [
        (512, 64, 256),
        (333, 72, 600),
        (1, 8, 8),
        (40_000, 40, 1032),
        (9_999, 520, 2000),
    ],  # less and more than one tile each
)
def test_the_squared_relu_network_is_nearer_to_the_exact_one_than_its_twin(
    places: int, width: int, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_trades():
        pytest.skip("its kernels are for another kind of GPU")
    monkeypatch.setattr(products, "FILLED", 0)
    x, up = drawn(places, width), drawn(hidden, width, scale=width**-0.5)
    down, grad = drawn(width, hidden, scale=hidden**-0.5), drawn(1, places, width)[0].detach()
    assert products.fills_a_gpu(x, up, down)
    leaves = [x, up, down]
    exactly = [leaf.detach().double().requires_grad_() for leaf in leaves]
    exact_out = (exactly[0] @ exactly[1].T).relu().square() @ exactly[2].T
    exact = [exact_out, *torch.autograd.grad(exact_out, exactly, grad.double())]
    distances = []
    for way in ("made", "plain"):
        if way == "plain":
            with fast.plain():
                out = squared_relu_network(x, up, down)
        else:
            out = squared_relu_network(x, up, down)
        distances.append(
            [apart(a, b) for a, b in zip([out, *torch.autograd.grad(out, leaves, grad)], exact, strict=True)]
        )
    for made, plain in zip(*distances, strict=True):
        assert made < 1.1 * plain
        assert made < 0.01
    wrong = x.detach().clone()
    wrong[-1, 0] = torch.nan
    out = squared_relu_network(wrong.requires_grad_(), up, down)
    assert out[-1].isnan().all(), "it was hidden"
    assert not out[:-1].isnan().any()


@pytest.mark.parametrize(
    ("rows", "length", "heads", "width"),
    [(2, 200, 4, 64), (3, 7, 16, 16), (1, 1, 8, 32), (70, 300, 2, 128)],
)
def test_queries_and_keys_that_are_turned_where_they_are_made_are_nearer_to_the_exact_ones(
    rows: int, length: int, heads: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin rounds the product, the tables, and what it turns."""
    if not has_trades():
        pytest.skip("its kernels are for another kind of GPU")
    monkeypatch.setattr(products, "FILLED", 0)
    inputs = heads * width
    x, weight = drawn(rows, length, inputs), drawn(3 * inputs, inputs, scale=inputs**-0.5)
    tables = tuple(table.cuda() for table in rotary_tables(length, width))
    grads = [drawn(i + 1, rows, heads, length, width)[i].detach() for i in range(3)]
    assert rotation.can_turn(x, weight, heads)
    wide = [leaf.detach().double().requires_grad_() for leaf in (x, weight)]

    def with_gradients(parts: tuple[Tensor, ...], leaves: list[Tensor]) -> list[Tensor]:
        given = [grad.to(parts[0].dtype) for grad in grads]
        return [*parts, *torch.autograd.grad(parts, leaves, given)]

    exact = with_gradients(split_heads(packed(*wide, heads), tables), wide)
    made = with_gradients(rotation.turned_heads(x, weight, tables, heads), [x, weight])
    plain = with_gradients(split_heads(packed(x, weight, heads), tables), [x, weight])
    for mine, its, true in zip(made, plain, exact, strict=True):
        assert mine.shape == its.shape
        assert apart(mine, true) < 1.1 * apart(its, true) + 1e-6
        assert apart(mine, true) < 0.01


def attention_written_out(qkv: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
    q, k, v = split_heads(qkv, tuple(table.to(qkv.dtype) for table in tables))
    hidden = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("rows", "length", "heads", "width"), [(2, 192, 4, 64), (70, 320, 8, 32)])
def test_attention_to_a_stream_is_nearer_to_the_exact_one_than_its_twin(
    rows: int, length: int, heads: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_trades():
        pytest.skip("its kernels are for another kind of GPU")
    monkeypatch.setattr(products, "FILLED", 0)
    inputs = heads * width
    x, weight = drawn(rows, length, inputs), drawn(3 * inputs, inputs, scale=2 * inputs**-0.5)
    tables = tuple(table.cuda() for table in rotary_tables(length, width))
    given = drawn(7, rows, length, inputs)[0].detach()
    assert rotation.can_turn(x, weight, heads)
    wide = [leaf.detach().double().requires_grad_() for leaf in (x, weight)]
    exact_out = attention_written_out(packed(*wide, heads), tables)
    exact = [exact_out, *torch.autograd.grad(exact_out, wide, given.double())]
    distances = []
    for plainly in (False, True):
        with fast.plain() if plainly else nullcontext():
            out = projected_self_attention(x, weight, heads, tables)
        found = [out, *torch.autograd.grad(out, [x, weight], given)]
        distances.append([apart(a, b) for a, b in zip(found, exact, strict=True)])
    for mine, plain in zip(*distances, strict=True):
        assert mine < 1.1 * plain
        assert mine < 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(3000, 768), (70, 24), (1, 8), (1500, 4096)])
def test_what_comes_back_by_a_stream_and_its_norm_is_joined(rows: int, width: int, dtype: torch.dtype) -> None:
    """Each held against float64: in bf16 the twin rounds both, and then their sum."""
    x, weight = drawn(rows, width, dtype=dtype), drawn(width, dtype=torch.float32)
    stream, grad = (drawn(2, rows, width, dtype=dtype)[i].detach() for i in range(2))
    wide = [t.detach().double().requires_grad_() for t in (x, weight)]
    exact_normed = F.layer_norm(wide[0], (width,), wide[1])
    exact = [exact_normed, *torch.autograd.grad((wide[0], exact_normed), wide, (stream.double(), grad.double()))]
    distances = []
    for found in (norms.stream_and_normed(x, weight), (x, normed(x, weight, dtype))):
        made = [found[1], *torch.autograd.grad(found, [x, weight], (stream, grad))]
        assert [t.dtype for t in made] == [dtype, dtype, torch.float32]
        distances.append([float((a.detach().double() - b.detach()).norm()) for a, b in zip(made, exact, strict=True)])
    for mine, plain, size in zip(*distances, exact, strict=True):
        assert mine <= 1.1 * plain + 1e-6 * float(size.detach().norm())
    assert torch.equal(norms.stream_and_normed(x, weight)[0], x)


@pytest.mark.parametrize(("heads", "width"), [(12, 64), (3, 24)])
def test_gradients_of_queries_keys_and_values_are_joined_as_torch_joins_them(heads: int, width: int) -> None:
    qkv = drawn(2, 9, 3, heads, width, dtype=torch.float32)
    cos, sin = (table.cuda() for table in rotary_tables(9, width))
    found = []
    for split in (split_heads, split_to_learn):
        parts = split(qkv, (cos, sin))
        weights = [drawn(2, heads, 9, width, dtype=torch.float32).detach() for _ in parts[:2]]
        weights.append(drawn(2, 9, heads, width, dtype=torch.float32).detach().transpose(1, 2))
        found.append([*parts, torch.autograd.grad(parts, qkv, weights)[0]])
    for mine, plain in zip(*found, strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("most", [32, 3])
@pytest.mark.parametrize("shape", [(96, 96), (64, 200), (200, 64)])
def test_muon_steps_as_its_twin_does(shape: tuple[int, int], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """most: of the four matrices in one launch."""
    from lmlab.layers.fast import _muon_triton

    monkeypatch.setattr(_muon_triton, "MOST", most)
    assert muon.has_kernels()
    found = []
    for way in ("made", "plain"):
        parameters = {"one": drawn(*shape, dtype=torch.float32).detach().clone()}
        parameters["three"] = drawn(3 * shape[0], shape[1], dtype=torch.float32).detach().clone()
        optimizer = Optimizer(parameters, OptimizerConfig(), {"one": 1, "three": 3})
        for step in range(3):
            for p in parameters.values():
                p.grad = drawn(*p.shape, dtype=torch.float32).detach() * (step + 1) + p
            factor, count = torch.tensor(0.7, device="cuda"), torch.tensor(step + 1.0, device="cuda")
            with fast.plain() if way == "plain" else nullcontext():
                optimizer.update(factor, count)
        found.append([*parameters.values(), *optimizer.slots.values()])
    for mine, plain in zip(*found, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-4, atol=1e-4)


def test_muon_lays_tall_matrices_down_beside_those_that_are_wide() -> None:
    """All of one size go through the iteration together; each keeps its own momentum and its own size of step."""
    found = []
    for way in ("made", "plain"):
        shapes = {"tall": (256, 64), "wide": (64, 256), "square": (64, 64), "three": (192, 64)}
        parameters = {name: drawn(*shape, dtype=torch.float32).detach().clone() for name, shape in shapes.items()}
        optimizer = Optimizer(parameters, OptimizerConfig(), {"tall": 1, "wide": 1, "square": 1, "three": 3})
        for p in parameters.values():
            p.grad = drawn(*p.shape, dtype=torch.float32).detach()
        with fast.plain() if way == "plain" else nullcontext():
            optimizer.update(torch.tensor(0.7, device="cuda"), torch.tensor(1.0, device="cuda"))
        found.append([*parameters.values(), *optimizer.slots.values()])
    for mine, plain in zip(*found, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 512, 512), (3, 640, 1000), (2, 2048, 512), (1, 768, 3072)])
def test_the_iteration_of_large_matrices_is_its_twin(shape: tuple[int, int, int]) -> None:
    """Both are rounded to bf16 at every step; so each is held against the same iteration in float64."""
    if not has_copy_engine():
        pytest.skip("needs a GPU with a copy engine")
    matrices = drawn(*shape, dtype=torch.bfloat16, scale=1e-4).detach()
    matrices[0] *= 1e3  # each is divided by its own length
    made = orthogonalize(matrices, torch.bfloat16)
    with fast.plain():
        plain, exact = orthogonalize(matrices, torch.bfloat16), orthogonalize(matrices.double(), torch.float64)
    assert (made.shape, made.dtype) == (plain.shape, plain.dtype)
    assert apart(made, exact) < 1.2 * apart(plain, exact) < 0.1
    assert torch.equal(made, orthogonalize(matrices, torch.bfloat16)), "the same bits again"


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("vocab", [7, 1003, 50_304])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_softmax_in_place_is_its_twin(vocab: int, weighted: bool, dtype: torch.dtype) -> None:
    logits = drawn(40, vocab, dtype=dtype, scale=3.0).detach()
    targets = torch.arange(40, device="cuda") * 31 % vocab
    weights = torch.arange(40, device="cuda") % 3.0 if weighted else None
    expected = cross_entropy.residuals(logits.clone(), targets, weights)
    found = softmax_kernel.made_residuals(logits.clone(), targets, weights)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[1], expected[1])
    untouched = logits.clone()
    nats = softmax_kernel.nats_where_they_stand(untouched, targets)
    torch.testing.assert_close(nats, plain_nats(logits, targets), rtol=1e-5, atol=1e-5)
    assert torch.equal(untouched, logits)


@pytest.mark.parametrize("vocab", [7, 9000, 50_304])
def test_the_log_softmax_of_few_rows_is_torchs(vocab: int) -> None:
    from lmlab.layers.fast.row_kernels import log_softmax

    logits = drawn(5, vocab, dtype=torch.float32, scale=3.0).detach()
    torch.testing.assert_close(log_softmax(logits), logits.log_softmax(-1), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the compiler itself imports
def test_a_compiled_block_joins_what_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is called for both norms of the block, and the gradients are those of the block without it."""
    from lmlab.layers.fast import _norm_triton

    torch.manual_seed(0)
    block, x, grad = Block(Composition.of(64, 2, 4, "gelu")).cuda(), drawn(2, 32, 64), drawn(3, 32, 64)[:2].detach()
    launch, calls = _norm_triton.launch, []
    monkeypatch.setattr(_norm_triton, "launch", lambda *given: calls.append(given) or launch(*given))

    def gradients() -> list[Tensor]:
        torch.compiler.reset()
        made = torch.compile(lambda: block(x, None, torch.bfloat16, 0.0), fullgraph=True)()
        return list(torch.autograd.grad(made, [x, *block.parameters()], grad))

    with fast.plain():
        plain = gradients()
    assert not calls
    for mine, its in zip(gradients(), plain, strict=True):
        assert apart(mine, its.double()) < 0.02
    assert len(calls) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_validation_costs_what_its_twin_says(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "PLAIN_ELEMENTS", 70 * 1003)
    hidden, weight = drawn(200, 16, dtype=dtype).detach(), drawn(1003, 16, dtype=dtype).detach()
    targets, keep = torch.arange(200, device="cuda") * 31 % 1003, torch.arange(200, device="cuda") % 3 > 0
    with torch.no_grad():
        found = summed_nats(hidden, weight, None, targets, keep)
        with fast.plain():
            torch.testing.assert_close(found, summed_nats(hidden, weight, None, targets, keep))
