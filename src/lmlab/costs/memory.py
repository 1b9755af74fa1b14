"""Memory of a training step: predicted by a step that is only pretended, and measured by a real one.

The prediction runs the very code of a step, forward, backward and update, on tensors that have a size and no contents, and adds
up what is alive at each moment: nothing is assumed of a model, and what a kernel keeps for its backward pass is seen.
The measurement asks the allocator: on a GPU torch's own peak, on a CPU every request that torch makes, as its profiler
records them. Both count what torch asked for. What the process holds beside that (the program itself, what a C library keeps
for later) is not the model's; `bench/bench_memory.py` shows it too.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from lmlab.formulas import Shape
from lmlab.interface import NeuralLanguageModel, Windows
from lmlab.layers import fast
from lmlab.layers.fast.attention import causal_mask
from lmlab.learn.optimizer import Optimizer, OptimizerConfig

MKLDNN, CUDNN = torch.ops.aten.mkldnn_rnn_layer.default, torch.ops.aten._cudnn_rnn.default
MKLDNN_BACK = torch.ops.aten.mkldnn_rnn_layer_backward.default
CUDNN_BATCH_FIRST = 10  # where among its arguments
KEPT_FROM = 3  # of what these return: the outputs and the two states come before


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


@dataclass(frozen=True, kw_only=True)
class StepMemory:
    """Bytes of a training step. The peak is less than the sum: activations go while gradients come."""

    weights: int
    optimizer: int  # its moments
    gradients: int
    activations: int  # alive after the forward pass, kept for the backward pass
    logits: int  # the largest block of them
    peak: int

    def to_json(self) -> dict[str, int]:
        """As JSON can hold it."""
        return asdict(self)


def predict(step: Step) -> StepMemory:
    """What a step will need, without taking it."""
    with _pretending():
        model, optimizer, batch = step.ready()
        alive = _Alive(step.vocab_size)
        held = [*model.parameters(), *model.buffers(), *optimizer.slots.values(), batch.tokens_BT]
        for tensor in held:
            alive.see(tensor)
        before = alive.bytes
        with alive:
            loss = model.loss(batch)
            activations = alive.bytes - before
            loss.mean.backward()
            optimizer.step(1.0)
        weights = sum(_bytes(p) for p in model.parameters())
        learned = sum(_bytes(p) for p in model.parameters() if p.requires_grad)
        moments = sum(_bytes(slot) for slot in optimizer.slots.values())
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
    held = [*model.parameters(), *model.buffers(), *optimizer.slots.values(), batch.tokens_BT]
    before = sum({t.untyped_storage().data_ptr(): _bytes(t) for t in held}.values())

    def once() -> None:
        model.loss(batch).mean.backward()
        optimizer.step(1.0)
        for p in model.parameters():
            p.grad = None

    once()
    with _peak_requests(torch.device(step.device)) as requests:
        once()
    return before + requests[0]


def remembered(step: Step) -> int:
    """Bytes that the model remembers of one row after reading the tokens of this shape while it writes."""
    with _pretending(), fast.plain():
        model = step.model(step.config, step.vocab_size).eval()
        _, state = model.begin(1)
        _, state = model.advance(torch.zeros(1, max(1, step.shape.tokens - 1), dtype=torch.long), state)
        found = {
            t.untyped_storage()._cdata: _bytes(t) for t in tree_leaves(list(vars(state).values())) if _is_tensor(t)
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


def _whole_recurrence(func: Any, args: Sequence[Any], out: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What a fused recurrence returns, with what it keeps for its backward pass, of which torch's own pretending knows nothing.

    How much that is only the library knows. It grows evenly with the steps, so the library is asked at two short lengths.
    """
    time = 0 if func is MKLDNN or not args[CUDNN_BATCH_FIRST] else 1
    steps = args[0].shape[time]

    def kept(length: int) -> list[int]:
        with unset_fake_temporarily(), torch.enable_grad():  # without gradients it would keep nothing
            found = func(
                *tree_map_only(Tensor, partial(_real, length=length, time=time, sequences=args[:1]), list(args))
            )
        return [0 if tensor is None else _bytes(tensor) for tensor in found[KEPT_FROM:]]

    sizes = [two + (four - two) * (steps - 2) // 2 for two, four in zip(kept(2), kept(4), strict=True)]
    return *out[:KEPT_FROM], *(torch.empty(size, dtype=torch.uint8, device=out[0].device) for size in sizes)


def _scratch(func: Any, args: Sequence[Any]) -> int:
    """Bytes that the backward pass of a fused recurrence on a CPU takes and gives back by itself, found likewise."""
    steps = args[0].shape[0]
    sequences = [tensor for tensor in args if _is_tensor(tensor) and tensor.ndim == 3]

    def taken(length: int) -> int:
        with unset_fake_temporarily():
            real = tree_map_only(Tensor, partial(_real, length=length, time=0, sequences=sequences), list(args[:-1]))
            reverse, mode, width, layers, biases, train, both_ways, sizes, batch_first = args[13:22]
            again = (reverse, sizes, mode, width, layers, biases, both_ways, batch_first, train)
            with torch.enable_grad():
                workspace = MKLDNN(*real[:7], *again)[KEPT_FROM]  # as large as this length wants it
            with _peak_requests(torch.device("cpu")) as requests:
                out = func(*real, workspace)
        return requests[0] - sum(map(_bytes, filter(_is_tensor, tree_leaves(out))))

    two, four = taken(2), taken(4)
    return two + (four - two) * (steps - 2) // 2


def _real(tensor: Tensor, length: int, time: int, sequences: Sequence[Tensor]) -> Tensor:
    """Zeros as large as this tensor, or where it is one of the sequences, as it would be at another length."""
    shape = list(tensor.shape)
    if any(tensor is sequence for sequence in sequences):
        shape[time] = length
    return torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)


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
        out = self._all_different(*args) if func is torch.ops.aten._unique2.default else func(*args, **(kwargs or {}))
        if func in (MKLDNN, CUDNN):
            out = _whole_recurrence(func, args, out)
        scratch = _scratch(func, args) if func is MKLDNN_BACK else 0
        for tensor in filter(_is_tensor, tree_leaves(out)):
            self.see(tensor)
        self.peak = max(self.peak, self.bytes + scratch)
        for tensor in filter(_is_tensor, tree_leaves(out)):
            if tensor.ndim == 2 and tensor.shape[1] == self.vocab_size:
                self.logits = max(self.logits, tensor.nbytes)
        return out

    @staticmethod
    def _all_different(ids_N: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
        """What `unique` would find at most."""
        return torch.empty_like(ids_N).flatten(), torch.empty_like(ids_N), torch.empty_like(ids_N).flatten()


@contextmanager
def _peak_requests(device: torch.device) -> Iterator[list[int]]:
    """While the block runs: the most bytes that were requested and not given back yet, as the one entry of the list."""
    found = [0]
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield found
        torch.cuda.synchronize()
        found[0] = torch.cuda.max_memory_allocated() - before
        return
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would announce itself on stderr
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        yield found
    results: Any = profiler.profiler
    requests = [event for event in results.kineto_results.events() if event.name() == "[memory]"]
    now = 0
    for event in sorted(requests, key=lambda event: event.start_ns()):
        now += event.nbytes()
        found[0] = max(found[0], now)


def _is_tensor(leaf: object) -> bool:
    return isinstance(leaf, Tensor)


def _bytes(tensor: Tensor) -> int:
    return tensor.untyped_storage().nbytes()
