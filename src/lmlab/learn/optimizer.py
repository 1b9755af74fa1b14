"""The optimizer: AdamW (or AdaGrad) for vectors, tables and output layers; Muon for the matrices between hidden vectors.

Muon follows the gradient's direction but not its sizes: the momentum matrix M = U Σ Vᵀ is replaced by (nearly) U Vᵀ, so
every direction in which a matrix can change is used equally. For `gpt` it reaches the same loss in markedly fewer steps
than AdamW alone (bench/bench_learning.py measures both on the same data).

State is kept as plain tensors by parameter name, so that a checkpoint is one flat file and a resumed run is bit-identical.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import muon
from lmlab.layers.fast.adamw import fused_adamw
from lmlab.learn.orthogonal import orthogonalize, orthogonalizing_flops
from lmlab.learn.update_interval import assign_update_slots


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Step sizes at the top of the schedule, and the usual constants."""

    adaptive: Literal["adamw", "adagrad"] = "adamw"  # what steps everything that Muon does not
    learning_rate: float = 0.003  # AdamW, AdaGrad
    matrix_learning_rate: float = 0.02  # Muon
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-8
    momentum: float = 0.95  # Muon
    matrix_every: int = (
        1  # steps of Muon from one move of a matrix to its next, which goes as far as those steps together
    )
    iteration_dtype: torch.dtype = torch.float32  # of Muon's iteration: whatever is faster here
    clip: float = 1.0  # of the global gradient norm, for all but Muon, which has no need of it (Pascanu 2013)
    adagrad_epsilon: float = 1e-12  # far below the gradients of rare words, which are means over many examples


@dataclass
class Optimizer:
    """Updates `parameters` in place. `matrices` names those that Muon steps, each seen as `parts` square-ish matrices.

    tables: those of which a step moves the rows that it read, and no others (see `Learner.read_by_row`).
    """

    parameters: Mapping[str, Tensor]
    config: OptimizerConfig
    matrices: Mapping[str, int] = field(default_factory=dict)
    tables: Collection[str] = ()
    steps: int = 0

    def __post_init__(self) -> None:
        unknown = {*self.matrices, *self.tables} - set(self.parameters)
        assert not unknown, f"not parameters: {unknown}"
        costs = flops_of_muon({n: p.shape for n, p in self.parameters.items()}, self.matrices)
        self._slot_of = assign_update_slots(costs, self.config.matrix_every)
        self.slots: dict[str, Tensor] = {}
        for name, p in self.parameters.items():
            if name in self.tables:
                self.slots[f"read.{name}"] = p.new_zeros(len(p))  # the last step that read each row
            elif self.config.adaptive == "adamw" or name in self.matrices:
                self.slots[f"first.{name}"] = torch.zeros_like(p, memory_format=torch.contiguous_format)
            if name not in self.matrices:
                self.slots[f"second.{name}"] = torch.zeros_like(p, memory_format=torch.contiguous_format)

    def step(self, factor: float) -> Tensor:
        """One update with the learning rates times `factor`; returns the gradient norm before clipping (not waited for)."""
        self.steps += 1
        return self.update(factor, self.steps)

    @torch.no_grad()
    def update(self, factor: float | Tensor, steps: int | Tensor) -> Tensor:
        """As `step`, which is the `steps`-th; tensors where the update is recorded once to be replayed many times."""
        grads = {n: p.grad for n, p in self.parameters.items() if p.grad is not None}
        numbers = [grad._values() if grad.is_sparse else grad for grad in grads.values()]
        norms = dict(zip(grads, torch._foreach_norm(numbers), strict=True))
        if clipped := [n for n in grads if n not in self.matrices]:
            excess = (_length(norms[n] for n in clipped) / self.config.clip).clamp(min=1.0)
            for name in self.tables:
                self._by_row(name, grads[name], factor, steps, excess)
            vectors = [n for n in clipped if n not in self.tables]
            if self.config.adaptive == "adagrad":
                self._adagrad(vectors, grads, factor, excess)
            else:
                self._adamw(vectors, grads, factor, steps, excess)
        self._muon([n for n in grads if n in self.matrices], grads, factor, steps)
        return _length(norms.values())

    def _adamw(
        self,
        names: list[str],
        grads: Mapping[str, Tensor],
        factor: float | Tensor,
        steps: int | Tensor,
        divisor: Tensor,
    ) -> None:
        """Loshchilov and Hutter's AdamW of gradients / divisor; only matrices decay."""
        c, rate = self.config, self.config.learning_rate * factor
        for matrices in (True, False):
            chosen = [n for n in names if (self.parameters[n].ndim >= 2) == matrices]
            if not chosen:
                continue
            way = fused_adamw if fast.enabled and fused_adamw is not None else plain_adamw
            way(
                [self.parameters[n] for n in chosen],
                [grads[n] for n in chosen],
                [self.slots[f"first.{n}"] for n in chosen],
                [self.slots[f"second.{n}"] for n in chosen],
                steps=steps,
                rate=rate,
                betas=c.betas,
                epsilon=c.epsilon,
                weight_decay=c.weight_decay if matrices else 0.0,
                divisor=divisor,
            )

    def _adagrad(self, names: list[str], grads: Mapping[str, Tensor], factor: float | Tensor, divisor: Tensor) -> None:
        """Duchi, Hazan and Singer's: each weight's steps shrink with the root of all its squared gradients so far."""
        c, rate = self.config, self.config.learning_rate * factor
        for name in names:
            p, second, grad = self.parameters[name], self.slots[f"second.{name}"], grads[name].div_(divisor)
            second.addcmul_(grad, grad)
            if p.ndim >= 2 and c.weight_decay:
                p.mul_(1 - rate * c.weight_decay)
            _move(p, grad.div_(second.sqrt().add_(c.adagrad_epsilon)), -rate)

    def _by_row(self, name: str, grad: Tensor, factor: float | Tensor, steps: int | Tensor, divisor: Tensor) -> None:
        """AdamW without momentum, or AdaGrad, of the rows in a sparse gradient (each there once); the others wait.

        What time does to a row whose gradient is zero is made up for when it is read again: its squared gradients fade and
        it decays. Momentum would move it in between; where rows are read seldom it does about what larger steps do.
        """
        c, rate, p = self.config, self.config.learning_rate * factor, self.parameters[name]
        read_V, second_VX = self.slots[f"read.{name}"], self.slots[f"second.{name}"]
        if grad.is_sparse:
            rows_R, grad_RX = grad._indices()[0], grad._values() / divisor
        else:
            rows_R, grad_RX = torch.arange(len(p), device=p.device), grad / divisor
        since_R1 = (steps - read_V.index_select(0, rows_R))[:, None]
        second_RX = second_VX.index_select(0, rows_R)
        if c.adaptive == "adagrad":
            size_RX = second_RX.addcmul_(grad_RX, grad_RX).sqrt().add_(c.adagrad_epsilon)
        else:
            second_RX.mul_(c.betas[1] ** since_R1).addcmul_(grad_RX, grad_RX, value=1 - c.betas[1])
            size_RX = (second_RX / (1 - c.betas[1] ** steps)).sqrt_().add_(c.epsilon)
        moved_RX = p.index_select(0, rows_R).mul_((1 - rate * c.weight_decay) ** since_R1)
        _move(moved_RX, grad_RX.div_(size_RX), -rate)
        read_V.index_fill_(0, rows_R, steps)
        second_VX.index_copy_(0, rows_R, second_RX)
        p.index_copy_(0, rows_R, moved_RX)

    def _muon(self, names: list[str], grads: Mapping[str, Tensor], factor: float | Tensor, steps: int | Tensor) -> None:
        """Nesterov momentum, then the nearest orthogonal matrix for those that move in this step; equal shapes go together."""
        c, every = self.config, self.config.matrix_every
        assert every == 1 or isinstance(steps, int), "a step that is recorded is like every other"
        waited = 1 if every == 1 else min(every, int(steps))  # steps since a matrix moved last, or since the first
        rate = c.matrix_learning_rate * waited * factor
        groups: dict[tuple[int, int], list[str]] = {}
        for name in names:
            groups.setdefault(self._shape(name), []).append(name)
        in_rows = all(self.parameters[n].is_contiguous() for n in names)  # as the kernels take them to lie
        if fast.enabled and in_rows and isinstance(rate, Tensor) and rate.is_cuda and muon.has_kernels():
            self._muon_on_a_gpu(groups, grads, rate)
            return
        for (rows, columns), members in groups.items():
            torch._foreach_lerp_(
                [self.slots[f"first.{n}"] for n in members], [grads[n] for n in members], 1 - c.momentum
            )
            moving = [n for n in members if every == 1 or self._slot_of[n] == steps % every]
            if not moving:
                continue
            parameters, found = [self.parameters[n] for n in moving], [grads[n] for n in moving]
            momenta = [self.slots[f"first.{n}"] for n in moving]
            directions = torch.cat([d.view(-1, rows, columns) for d in torch._foreach_lerp(found, momenta, c.momentum)])
            update = orthogonalize(directions, c.iteration_dtype)
            torch._foreach_mul_(parameters, 1 - rate * c.weight_decay)
            for p, piece in zip(parameters, update.split([self.matrices[n] for n in moving]), strict=True):
                _move(p, piece.reshape(p.shape), -rate * _size(rows, columns))

    def _shape(self, name: str) -> tuple[int, int]:
        """Of each of the matrices that a parameter packs."""
        rows, columns = self.parameters[name].shape
        return rows // self.matrices[name], columns

    def _muon_on_a_gpu(
        self, groups: dict[tuple[int, int], list[str]], grads: Mapping[str, Tensor], rate: Tensor
    ) -> None:
        """The same in few passes over memory; tall matrices are laid down, and go with those that are wide."""
        c, alike = self.config, dict[tuple[int, int], list[tuple[int, int]]]()
        for shape in groups:
            alike.setdefault((min(shape), max(shape)), []).append(shape)
        for wide, shapes in alike.items():
            counts = [sum(self.matrices[n] for n in groups[shape]) for shape in shapes]
            directions = torch.empty(sum(counts), *wide, dtype=c.iteration_dtype, device=rate.device)
            for shape, piece in zip(shapes, directions.split(counts), strict=True):
                momenta = [self.slots[f"first.{n}"] for n in groups[shape]]
                muon.nesterov(momenta, [grads[n] for n in groups[shape]], c.momentum, shape, piece)
            update = orthogonalize(directions, c.iteration_dtype)
            for shape, piece in zip(shapes, update.split(counts), strict=True):
                parameters = [self.parameters[n] for n in groups[shape]]
                muon.move(parameters, shape, piece, 1 - rate * c.weight_decay, -rate * _size(*shape))

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold, besides `steps`."""
        return dict(self.slots)

    def load(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Go on from a checkpoint."""
        self.steps = steps
        for name, slot in self.slots.items():
            slot.copy_(tensors[name])


def plain_adamw(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    firsts: Sequence[Tensor],
    seconds: Sequence[Tensor],
    *,
    steps: int | Tensor,
    rate: float | Tensor,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
    divisor: Tensor,
) -> None:
    """One step of AdamW with these moments, all in place."""
    first_sum, second_sum = 1 - betas[0] ** steps, 1 - betas[1] ** steps
    for p, grad, first, second in zip(parameters, grads, firsts, seconds, strict=True):
        grad = grad / divisor
        first.lerp_(grad, 1 - betas[0])
        second.lerp_(grad * grad, 1 - betas[1])
        p.mul_(1 - rate * weight_decay)
        _move(p, first / (second / second_sum).sqrt_().add_(epsilon), -rate / first_sum)


def flops_of_muon(shapes: Mapping[str, Sequence[int]], matrices: Mapping[str, int]) -> dict[str, int]:
    """Operations of one move of each parameter that Muon steps, by name. matrices: how many each packs."""
    return {n: k * orthogonalizing_flops(shapes[n][0] // k, shapes[n][1]) for n, k in matrices.items()}


def _size(rows: int, columns: int) -> float:
    """Of the steps of a matrix of this shape, so that its outputs move by about as much as those of any other."""
    return max(1.0, rows / columns) ** 0.5


def _move(p: Tensor, direction: Tensor, by: float | Tensor) -> None:
    """p += by × direction, in place."""
    if isinstance(by, Tensor):
        p.addcmul_(direction, by.to(p.dtype))
    else:
        p.add_(direction, alpha=by)


def _length(norms: Iterable[Tensor]) -> Tensor:
    """The Euclidean length of several tensors together, from the lengths of each."""
    return torch.stack(list(norms)).float().norm()
