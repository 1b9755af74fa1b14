"""The optimizer: AdamW (or AdaGrad) for vectors, embedding tables and output layers; Muon for the matrices between hidden
vectors.

Muon uses the direction of the gradient but not its singular values: the momentum matrix M = U Σ Vᵀ is replaced by
(approximately) U Vᵀ, so all directions of change have equal size. For `gpt` it reaches the same loss in markedly fewer steps
than AdamW alone (bench/bench_learning.py measures both on the same data).

The state is a dict of plain tensors by parameter name, so a checkpoint is one flat file and a resumed run is bit-identical.
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
    """The hyperparameters of the optimizer. Learning rates are the maximum of the schedule."""

    adaptive: Literal["adamw", "adagrad"] = "adamw"  # method for parameters that Muon does not update
    learning_rate: float = 0.003  # AdamW, AdaGrad
    matrix_learning_rate: float = 0.02  # Muon
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-8
    momentum: float = 0.95  # Muon
    matrix_every: int = 1  # steps between two Muon updates of a matrix; an update is as large as those steps together
    iteration_dtype: torch.dtype = torch.float32  # precision of Muon's iteration: the fastest on this machine
    clip: float = 1.0  # maximum global gradient norm (Pascanu 2013), without Muon's gradients, whose size is not used
    adagrad_epsilon: float = 1e-12  # far below the gradients of rare words, which are means over many examples


@dataclass
class Optimizer:
    """An optimizer that updates `parameters` in place.

    Attributes:
        parameters: the parameters by name.
        config: the hyperparameters.
        matrices: the parameters that Muon updates, each with the number of matrices it packs along its rows.
        tables: the embedding tables of which a step updates only the rows that it read (see `Learner.read_by_row`).
        steps: the number of updates so far.
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
                self.slots[f"read.{name}"] = p.new_zeros(len(p))  # number of the last step that read each row
            elif self.config.adaptive == "adamw" or name in self.matrices:
                self.slots[f"first.{name}"] = torch.zeros_like(p, memory_format=torch.contiguous_format)
            if name not in self.matrices:
                self.slots[f"second.{name}"] = torch.zeros_like(p, memory_format=torch.contiguous_format)

    def step(self, factor: float) -> Tensor:
        """Update all parameters once, with the learning rates times `factor`.

        Returns:
            The gradient norm before clipping, as a tensor, without waiting for the device.
        """
        self.steps += 1
        return self.update(factor, self.steps)

    @torch.no_grad()
    def update(self, factor: float | Tensor, steps: int | Tensor) -> Tensor:
        """Update all parameters as step number `steps`; see `step`.

        Args:
            factor: the factor of the learning rates.
            steps: the step number. Both arguments are tensors in a CUDA graph, which is captured once and replayed.
        """
        grads = {n: p.grad for n, p in self.parameters.items() if p.grad is not None}
        numbers = [grad._values() if grad.is_sparse else grad for grad in grads.values()]
        norms = dict(zip(grads, torch._foreach_norm(numbers), strict=True))
        if clipped := [n for n in grads if n not in self.matrices]:
            excess = (_length(norms[n] for n in clipped) / self.config.clip).clamp(min=1.0)
            for name in self.tables:
                if name not in grads:  # the model does not train it
                    continue
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
        """Apply AdamW (Loshchilov and Hutter) with the gradients divided by `divisor`. Only matrices have weight decay."""
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
        """Apply AdaGrad (Duchi, Hazan and Singer): divide each step by the root of the sum of all squared gradients."""
        c, rate = self.config, self.config.learning_rate * factor
        for name in names:
            p, second, grad = self.parameters[name], self.slots[f"second.{name}"], grads[name].div_(divisor)
            second.addcmul_(grad, grad)
            if p.ndim >= 2 and c.weight_decay:
                p.mul_(1 - rate * c.weight_decay)
            _move(p, grad.div_(second.sqrt().add_(c.adagrad_epsilon)), -rate)

    def _by_row(self, name: str, grad: Tensor, factor: float | Tensor, steps: int | Tensor, divisor: Tensor) -> None:
        """Apply AdamW without momentum, or AdaGrad, to the rows in a sparse gradient, each of which appears once.

        Decay of a row's weights and squared gradients is applied when the row is next read, for all steps since it was last
        read. Momentum is omitted, because it would move rows that are not read. For rarely read rows its effect is about that
        of larger steps.
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
        """Apply Muon: Nesterov momentum, then the nearest orthogonal matrix. Matrices of equal shape are processed together.

        With `matrix_every` above 1, a step updates the momenta of all matrices but moves only those assigned to it.
        """
        c, every = self.config, self.config.matrix_every
        assert every == 1 or isinstance(steps, int), "a step that is recorded is like every other"
        waited = 1 if every == 1 else min(every, int(steps))  # steps since the last update, or since the first step
        rate = c.matrix_learning_rate * waited * factor
        groups: dict[tuple[int, int], list[str]] = {}
        for name in names:
            groups.setdefault(self._shape(name), []).append(name)
        in_rows = all(self.parameters[n].is_contiguous() for n in names)  # the layout that the kernels expect
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
        """Return the shape of each of the matrices that a parameter packs."""
        rows, columns = self.parameters[name].shape
        return rows // self.matrices[name], columns

    def _muon_on_a_gpu(
        self, groups: dict[tuple[int, int], list[str]], grads: Mapping[str, Tensor], rate: Tensor
    ) -> None:
        """Apply Muon by fused kernels with few passes over memory. Tall matrices are transposed and grouped with wide ones."""
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
        """Return the state that a checkpoint must hold besides `steps`."""
        return dict(self.slots)

    def load(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Restore the state from the tensors of a checkpoint."""
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
    """Apply one step of AdamW to parameters and moments in place, in plain torch.

    Args:
        parameters: the parameters.
        grads: their gradients.
        firsts: the first moments.
        seconds: the second moments.
        steps: the step number from 1, for bias correction.
        rate: the learning rate.
        betas: the decay rates of the moments.
        epsilon: added to the root of the second moment.
        weight_decay: the weight decay per unit of learning rate.
        divisor: the gradients are divided by it (gradient clipping).
    """
    first_sum, second_sum = 1 - betas[0] ** steps, 1 - betas[1] ** steps
    for p, grad, first, second in zip(parameters, grads, firsts, seconds, strict=True):
        grad = grad / divisor
        first.lerp_(grad, 1 - betas[0])
        second.lerp_(grad * grad, 1 - betas[1])
        p.mul_(1 - rate * weight_decay)
        _move(p, first / (second / second_sum).sqrt_().add_(epsilon), -rate / first_sum)


def flops_of_muon(shapes: Mapping[str, Sequence[int]], matrices: Mapping[str, int]) -> dict[str, int]:
    """Return the FLOPs of one Muon update of each parameter, by name.

    Args:
        shapes: the shapes of the parameters.
        matrices: the number of matrices that each parameter packs.
    """
    return {n: k * orthogonalizing_flops(shapes[n][0] // k, shapes[n][1]) for n, k in matrices.items()}


def _size(rows: int, columns: int) -> float:
    """Return the factor of Muon's step for a matrix of this shape, so that outputs of all shapes change by similar amounts."""
    return max(1.0, rows / columns) ** 0.5


def _move(p: Tensor, direction: Tensor, by: float | Tensor) -> None:
    """Add `by` times `direction` to `p` in place."""
    if isinstance(by, Tensor):
        p.addcmul_(direction, by.to(p.dtype))
    else:
        p.add_(direction, alpha=by)


def _length(norms: Iterable[Tensor]) -> Tensor:
    """Return the Euclidean norm of several tensors together from the norm of each."""
    return torch.stack(list(norms)).float().norm()
