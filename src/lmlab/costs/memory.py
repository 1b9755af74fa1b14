"""Memory of a training step: predicted by a step that is only pretended, and measured by a real one.

The prediction runs the very code of a step, forward, backward and update, on tensors that have a size and no contents, and adds
up what is alive at each moment: nothing is assumed of a model, and what a kernel keeps for its backward pass is seen.
The measurement asks the allocator: on a GPU torch's own peak, on a CPU every request that torch makes, as its profiler
records them. Both count what torch asked for. What the process holds beside that (the program itself, what a C library keeps
for later) is not the model's. `bench/bench_plans.py` holds one against the other.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lmlab.costs.recurrences import FUSED, pretended
from lmlab.costs.requests import bytes_of, is_tensor, peak_requests
from lmlab.formulas import Shape
from lmlab.interface import NeuralLanguageModel, Windows
from lmlab.layers import fast
from lmlab.layers.fast.attention import causal_mask
from lmlab.learn.optimizer import Optimizer, OptimizerConfig
from lmlab.records import JsonRecord


@dataclass(frozen=True, kw_only=True)
class Step:
    """A training step to look at."""

    model: type[NeuralLanguageModel]
    config: Any
    vocab_size: int
    shape: Shape
    device: str = "cpu"
    dtype: torch.dtype = torch.float32  # of products
    muon: bool = True  # for the matrices between hidden vectors

    def ready(self) -> tuple[NeuralLanguageModel, Optimizer, Windows]:
        """A fresh model in training, its optimizer, and a batch."""
        with torch.device(self.device):
            model = self.model(self.config, self.vocab_size).train()
        model.compute_dtype = self.dtype
        matrices = model.hidden_matrices() if self.muon else {}
        optimizer = Optimizer(dict(model.named_parameters()), OptimizerConfig(iteration_dtype=self.dtype), matrices)
        tokens_BT = torch.zeros(self.shape.rows, self.shape.tokens, dtype=torch.long, device=self.device)
        return model, optimizer, Windows(tokens_BT)


def take(model: NeuralLanguageModel, optimizer: Optimizer, batch: Windows) -> None:
    """One step, after which no gradient is left."""
    model.loss(batch).mean.backward()
    optimizer.step(1.0)
    for p in model.parameters():
        p.grad = None


@dataclass(frozen=True, kw_only=True)
class StepMemory(JsonRecord):
    """Bytes of a training step. The peak is less than the sum: activations go while gradients come."""

    weights: int
    optimizer: int  # its moments
    gradients: int
    activations: int  # alive after the forward pass, kept for the backward pass
    logits: int  # the largest block of them
    peak: int


def predict(step: Step) -> StepMemory:
    """What a step will need, without taking it."""
    with _pretending():
        model, optimizer, batch = step.ready()
        alive = _Alive(step.vocab_size)
        held = _held(model, optimizer, batch)
        for tensor in held:
            alive.see(tensor)
        before = alive.bytes
        with alive:
            loss = model.loss(batch)
            activations = alive.bytes - before
            loss.mean.backward()
            optimizer.step(1.0)
        weights = sum(bytes_of(p) for p in model.parameters())
        learned = sum(bytes_of(p) for p in model.parameters() if p.requires_grad)
        moments = sum(bytes_of(slot) for slot in optimizer.slots.values())
    return StepMemory(
        weights=weights,
        optimizer=moments,
        gradients=learned,
        activations=activations,
        logits=alive.logits,
        peak=alive.peak,
    )


def measure(step: Step) -> int:
    """The peak, in bytes, of a real step (the second: the first also finds memory that it keeps)."""
    with torch.random.fork_rng(devices=[]):
        model, optimizer, batch = step.ready()
    held = _held(model, optimizer, batch)
    before = sum({t.untyped_storage().data_ptr(): bytes_of(t) for t in held}.values())
    take(model, optimizer, batch)
    with peak_requests(torch.device(step.device)) as requests:
        take(model, optimizer, batch)
    return before + requests[0]


def _held(model: NeuralLanguageModel, optimizer: Optimizer, batch: Windows) -> list[Tensor]:
    """What is there before a step."""
    return [*model.parameters(), *model.buffers(), *optimizer.slots.values(), batch.tokens_BT]


def remembered(step: Step) -> int:
    """Bytes that the model remembers of one row after reading the tokens of this shape while it writes."""
    with _pretending(), fast.plain():
        model = step.model(step.config, step.vocab_size).eval()
        _, state = model.begin(1)
        _, state = model.advance(torch.zeros(1, max(1, step.shape.tokens - 1), dtype=torch.long), state)
        found = {
            t.untyped_storage()._cdata: bytes_of(t) for t in tree_leaves(list(vars(state).values())) if is_tensor(t)
        }
    return sum(found.values())


@contextmanager
def _pretending() -> Iterator[None]:
    """Tensors have a size and no contents; what is made meanwhile must not be found by a real step later."""
    causal_mask.cache_clear()
    try:
        with FakeTensorMode(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        causal_mask.cache_clear()


class _Alive(TorchDispatchMode):
    """Bytes of all storages that are alive, and the most there ever were."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.vocab_size, self.bytes, self.peak, self.logits = vocab_size, 0, 0, 0
        self._known: dict[int, int] = {}

    def see(self, tensor: Tensor) -> None:
        """A tensor that is there."""
        storage = tensor.untyped_storage()
        name = storage._cdata
        if name not in self._known:
            self._known[name] = storage.nbytes()
            self.bytes += storage.nbytes()
            self.peak = max(self.peak, self.bytes)
            weakref.finalize(storage, self._gone, name)

    def _gone(self, name: int) -> None:
        self.bytes -= self._known.pop(name)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return True  # the one question that a step asks of its numbers: whether all positions weigh the same
        scratch = 0
        if func in FUSED:
            call = pretended(func, args)
            out, scratch = call.out, call.scratch
        elif func is torch.ops.aten._unique2.default:
            out = self._all_different(*args)
        else:
            out = func(*args, **(kwargs or {}))
        for tensor in filter(is_tensor, tree_leaves(out)):
            self.see(tensor)
        self.peak = max(self.peak, self.bytes + scratch)
        for tensor in filter(is_tensor, tree_leaves(out)):
            if tensor.ndim == 2 and tensor.shape[1] == self.vocab_size:
                self.logits = max(self.logits, tensor.nbytes)
        return out

    @staticmethod
    def _all_different(ids_N: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
        """What `unique` would find at most."""
        return torch.empty_like(ids_N).flatten(), torch.empty_like(ids_N), torch.empty_like(ids_N).flatten()
