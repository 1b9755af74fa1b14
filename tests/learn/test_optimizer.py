"""The optimizer against torch's own."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lmlab.learn.optimizer import Optimizer, OptimizerConfig


def _twins(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    mine = torch.randn(shape, requires_grad=True)
    return mine, mine.detach().clone().requires_grad_()


def _step_alike(
    mine: torch.Tensor, theirs: torch.Tensor, optimizer: Optimizer, reference: torch.optim.Optimizer
) -> None:
    """Twenty steps on the same targets, which leave both with the same numbers each time."""
    for step in range(20):
        target = torch.randn(7, 5, generator=torch.Generator().manual_seed(step))
        for p in (mine, theirs):
            p.grad = None
            ((p - target) ** 3).abs().sum().backward()
        optimizer.step(1.0)
        reference.step()
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-5)


def test_adamw_steps_as_torch_does() -> None:
    mine, theirs = _twins((7, 5))
    config = OptimizerConfig(learning_rate=0.01, weight_decay=0.1, clip=1e9)
    optimizer = Optimizer({"p": mine}, config)
    reference = torch.optim.AdamW([theirs], lr=0.01, betas=config.betas, eps=config.epsilon, weight_decay=0.1)
    _step_alike(mine, theirs, optimizer, reference)


def test_adagrad_steps_as_torch_does_and_keeps_one_slot() -> None:
    mine, theirs = _twins((7, 5))
    config = OptimizerConfig(adaptive="adagrad", learning_rate=0.1, weight_decay=0.0, clip=1e9)
    optimizer = Optimizer({"p": mine}, config)
    reference = torch.optim.Adagrad([theirs], lr=0.1, eps=config.adagrad_epsilon)
    _step_alike(mine, theirs, optimizer, reference)
    assert list(optimizer.slots) == ["second.p"]


@pytest.mark.parametrize("adaptive", ["adamw", "adagrad"])
def test_rows_that_wait_are_where_they_would_be_had_every_row_been_stepped(
    adaptive: Literal["adamw", "adagrad"],
) -> None:
    """Two rows of seven a step, at last all of them: sparse gradients against the same gradients with their zeros."""
    waiting, stepped = _twins((7, 5))
    config = OptimizerConfig(adaptive=adaptive, learning_rate=0.05, weight_decay=0.3, clip=1.0)
    one, other = (Optimizer({"p": p}, config, tables=("p",)) for p in (waiting, stepped))
    draw = torch.Generator().manual_seed(0)
    for step in range(12):
        rows = torch.arange(7) if step == 11 else torch.randperm(7, generator=draw)[:2].sort().values
        wanted = torch.randn(len(rows), 5, generator=draw) * (3.0 if step % 2 else 0.1)
        for p, sparse in ((waiting, True), (stepped, False)):
            p.grad = None
            (torch.nn.functional.embedding(rows, p, sparse=sparse) * wanted).sum().backward()
            assert p.grad.is_sparse == sparse
        torch.testing.assert_close(one.step(1.0), other.step(1.0))
        torch.testing.assert_close(waiting[rows], stepped[rows], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(waiting, stepped, atol=1e-6, rtol=1e-5)
    assert sorted(one.slots) == ["read.p", "second.p"]


def test_stepping_by_row_is_adamw_without_momentum_where_every_row_is_read() -> None:
    mine, theirs = _twins((7, 5))
    config = OptimizerConfig(learning_rate=0.01, weight_decay=0.1, clip=1e9)
    optimizer = Optimizer({"p": mine}, config, tables=("p",))
    reference = torch.optim.AdamW([theirs], lr=0.01, betas=(0.0, config.betas[1]), eps=config.epsilon, weight_decay=0.1)
    _step_alike(mine, theirs, optimizer, reference)


def test_clipping_shrinks_a_long_gradient_to_the_limit_and_leaves_a_short_one() -> None:
    for size, expected in ((100.0, 1.0), (0.5, 0.5)):
        p = torch.zeros(4, requires_grad=True)
        p.grad = torch.tensor([size, 0.0, 0.0, 0.0])
        norm = Optimizer({"p": p}, OptimizerConfig(clip=1.0)).step(1.0)
        assert float(norm) == pytest.approx(size)
        assert float(p.grad.norm()) == pytest.approx(expected, rel=1e-5)


def test_packed_matrices_are_stepped_one_by_one() -> None:
    """Queries, keys and values in one tensor get the update that three separate matrices would get."""
    torch.manual_seed(3)
    packed = torch.randn(12, 4, requires_grad=True)
    parts = [packed[i : i + 4].detach().clone().requires_grad_() for i in (0, 4, 8)]
    grad = torch.randn(12, 4)
    packed.grad = grad.clone()
    for i, p in enumerate(parts):
        p.grad = grad[4 * i : 4 * i + 4].clone()
    Optimizer({"p": packed}, OptimizerConfig(), {"p": 3}).step(1.0)
    Optimizer({str(i): p for i, p in enumerate(parts)}, OptimizerConfig(), {str(i): 1 for i in range(3)}).step(1.0)
    torch.testing.assert_close(packed, torch.cat(parts), atol=1e-3, rtol=1e-2)  # bf16 inside


@pytest.mark.parametrize(("turned", "by_kernels"), [(False, True), (True, False)])
def test_kernels_of_a_gpu_are_given_only_matrices_that_lie_row_by_row(
    turned: bool, by_kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would take the numbers of others for those of a place. The GPU is imagined: whether it is asked needs none."""
    taken: list[object] = []
    monkeypatch.setattr("lmlab.layers.fast.muon.has_kernels", lambda: True)
    monkeypatch.setattr(Optimizer, "_muon_on_a_gpu", lambda *given: taken.append(given))
    with FakeTensorMode():
        p = torch.empty(64, 32, device="cuda").T if turned else torch.empty(64, 32, device="cuda")
        p.grad = torch.empty_like(p)
        optimizer = Optimizer({"p": p}, OptimizerConfig(), {"p": 1})
        optimizer.update(torch.empty((), device="cuda"), torch.empty((), device="cuda"))
    assert bool(taken) == by_kernels


def test_in_turns_each_matrix_moves_as_far_as_it_would_have_in_all_its_steps_together() -> None:
    """Under gradients that stay as they are the direction does, too: then nothing is lost by waiting."""
    begun = {name: torch.randn(8, 8) for name in "abcd"}
    grads = {name: torch.randn(8, 8) for name in "abcd"}

    def after(steps: int, every: int) -> dict[str, torch.Tensor]:
        weights = {name: p.clone().requires_grad_() for name, p in begun.items()}
        config = OptimizerConfig(matrix_every=every, weight_decay=0.0)
        optimizer = Optimizer(weights, config, dict.fromkeys(weights, 1))
        for _ in range(steps):
            for name, p in weights.items():
                p.grad = grads[name].clone()
            optimizer.step(1.0)
        return {name: p.detach() for name, p in weights.items()}

    in_turns = after(6, 3)
    for name, last in {"a": 6, "b": 4, "c": 5, "d": 6}.items():  # the step at which it moved last
        torch.testing.assert_close(in_turns[name], after(last, 1)[name], atol=1e-4, rtol=1e-4)
    moved = [sum(not torch.equal(p, begun[name]) for name, p in after(steps, 3).items()) for steps in (1, 2, 3)]
    assert moved == [1, 2, 4], "four in three turns"
    first = {name: p for name, p in after(1, 3).items() if not torch.equal(p, begun[name])}
    for name, p in first.items():  # it has waited for one step, and not for three
        torch.testing.assert_close(p, after(1, 1)[name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("every", [1, 3])
def test_an_optimizer_goes_on_exactly_from_its_saved_state(every: int) -> None:
    def run(break_at: int | None) -> torch.Tensor:
        torch.manual_seed(0)
        tensors = {"m": torch.randn(8, 8, requires_grad=True), "v": torch.randn(8, requires_grad=True)}
        optimizer = Optimizer(tensors, OptimizerConfig(matrix_every=every), {"m": 1})
        for step in range(6):
            if step == break_at:
                saved = {name: t.clone() for name, t in optimizer.tensors().items()}
                optimizer = Optimizer(tensors, OptimizerConfig(matrix_every=every), {"m": 1})
                optimizer.load(saved, step)
            for p in tensors.values():
                p.grad = torch.sin(p.detach() * (step + 1))
            optimizer.step(0.5)
        return torch.cat([p.detach().flatten() for p in tensors.values()])

    assert torch.equal(run(None), run(3))
