"""Stepping modes: how a training step (forward, backward, clipping and update) is executed.

Launched kernel by kernel, a step of a small model on a GPU mostly waits for launches. So on a GPU the whole step is captured
as a CUDA graph for each shape of batch and then replayed (`Captured`). The loss of a large model is compiled first, which
fuses the operations between matrix products. All other steps are eager (`Eager`).

A replayed step is a function of the same inputs as an eager one: weights, optimizer state, batch, seed and share of the
budget. Capturing does not change them, so a run resumed in its mode is bit-identical.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from lmlab.interface import Learner, Loss
from lmlab.learn.gradients import forget_gradients, join_rows, sum_over_processes, summed_loss, zero_loss
from lmlab.learn.micro_batches import MicroBatch
from lmlab.learn.optimizer import Optimizer
from lmlab.learn.world import SINGLE_PROCESS, World

AHEAD = 4  # maximum queued steps: the GPU never idles, and the clock stays accurate
MOST_SHAPES = 8  # of batches: each has its own graph and memory
WARM_STEPS = 2  # before a capture: they load kernels and allocate memory
UNTIMED_STEPS, TIMED_STEPS = 4, 16  # replays of a captured and of a compiled step, of which the faster is kept
COMPILING_FROM_S = 120.0  # minimum budget for trying compiled steps; compiling takes about a quarter of it

FASTEST_ATTENTION = [  # by priority; the first is built for each shape in 1 to 2 s, negligible beside compiling
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]

LossOf = Callable[[Learner, Any, Any], tuple[Loss, Any]]  # (model, piece of a batch, carry) to (loss, carry)


class CannotRecord(Exception):
    """The error that a step cannot be captured as a CUDA graph, for example because it reads a value back from the GPU."""


@contextmanager
def _fastest_attention() -> Iterator[None]:
    """Set torch's priority of attention backends to `FASTEST_ATTENTION`, if torch can set one.

    Torch 2.11 loses a backend when a priority is set and reset, and then refuses to set another in that process.
    """
    with ExitStack() as stack:
        with suppress(ValueError):
            stack.enter_context(sdpa_kernel(FASTEST_ATTENTION, set_priority=True))
        yield


class Steps(ABC):
    """A stepping mode: takes training steps with one model and its optimizer."""

    name: str  # eager, captured or compiled

    def __init__(
        self, model: Learner, loss_of: LossOf, optimizer: Optimizer, device: torch.device, world: World = SINGLE_PROCESS
    ) -> None:
        self.model, self.loss_of, self.optimizer, self.device, self.world = model, loss_of, optimizer, device, world
        self._under_way: deque[torch.cuda.Event] = deque()
        self.norm = torch.zeros((), device=device)

    @abstractmethod
    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """Take one training step.

        Args:
            micro_batches: the micro-batches of this process.
            count: the number of items that the micro-batches of all processes predict. The sum of their losses is divided by
                it once.
            factor: the factor of the learning rates.

        Returns:
            The loss of all processes before the step, and the states that the micro-batches of this process carry on.

        Raises:
            CannotRecord: the step cannot be captured. Nothing has changed; continue with `fallback`.
        """

    @abstractmethod
    def rehearse(self, piece: Any) -> None:
        """Take a step without effect, so that kernels are selected and captured before training starts.

        Raises:
            CannotRecord: the step cannot be captured; continue with `fallback`.
        """

    def fallback(self) -> Steps:
        """Return these steps in eager mode, for models that cannot be captured."""
        return Eager(self.model, self.loss_of, self.optimizer, self.device, self.world)

    def _keep_pace(self) -> None:
        """Wait until at most `AHEAD` steps are queued on the GPU."""
        if self.device.type != "cuda":
            return
        event = torch.cuda.Event()
        event.record()
        self._under_way.append(event)
        if len(self._under_way) > AHEAD:
            self._under_way.popleft().synchronize()


class Eager(Steps):
    """The stepping mode without CUDA graphs: every step launches every kernel."""

    name = "eager"

    def rehearse(self, piece: Any) -> None:
        """Run the forward and backward pass without an update."""
        seed_dropout(0, self.device)
        loss, _ = self.loss_of(self.model, piece, None)
        loss.mean.backward()
        forget_gradients(self.optimizer.parameters.values())

    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """Take one training step."""
        parameters, losses, carries = self.optimizer.parameters.values(), [], []
        for micro_batch in micro_batches:
            seed_dropout(micro_batch.seed, self.device)
            loss, carry = self.loss_of(self.model, micro_batch.piece, micro_batch.carry)
            loss = loss if micro_batch.counts else zero_loss(loss)
            (loss.total / count).backward()
            losses.append(loss)
            carries.append(carry)
        whole = summed_loss(losses, count)
        if len(micro_batches) > 1:
            join_rows(parameters)
        if self.world.size > 1:
            sum_over_processes(parameters, whole, self.world)
        self.norm = self.optimizer.step(factor)
        forget_gradients(parameters)
        self._keep_pace()
        return whole, carries


class Captured(Steps):
    """The stepping mode that captures a step as a CUDA graph for each shape of batch and replays it. CUDA only."""

    def __init__(
        self,
        model: Learner,
        loss_of: LossOf,
        optimizer: Optimizer,
        device: torch.device,
        world: World = SINGLE_PROCESS,
        compiled: bool = False,
    ) -> None:
        super().__init__(model, loss_of, optimizer, device, world)
        self.compiled, self.name = compiled, "compiled" if compiled else "captured"
        self._loss_of = torch.compile(loss_of, dynamic=False) if compiled else loss_of
        self._factor, self._per_thing = torch.ones((), device=device), torch.ones((), device=device)
        self._count = torch.zeros((), device=device)  # number of steps, as an input of the captured update
        self._recordings: dict[Any, _Recording] = {}

    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """Copy the batch into the graph's inputs and replay the step. A new shape is captured first."""
        if len(micro_batches) > 1 or self.world.size > 1:
            raise CannotRecord("its batches are cut into micro-batches")
        (micro_batch,) = micro_batches
        piece, carry = micro_batch.piece, micro_batch.carry
        shape = shapes((piece, carry))
        recording = self._recordings.get(shape)
        if recording is None:
            if len(self._recordings) >= MOST_SHAPES:
                raise CannotRecord("its batches come in too many shapes")
            recording = self._recordings[shape] = self._record(piece, carry)
        for kept, given in zip(tensors(recording.inputs), tensors((piece, carry)), strict=True):
            kept.copy_(given, non_blocking=True)
        self._factor.fill_(factor)
        self._per_thing.fill_(1.0 / count)
        self._count.fill_(float(self.optimizer.steps))
        seed_dropout(micro_batch.seed, self.device)
        recording.graph.replay()
        self.optimizer.steps += 1
        self._keep_pace()
        return dataclasses.replace(recording.loss, count=count), [recording.carry]

    def rehearse(self, piece: Any) -> None:
        """Capture the step for pieces of this shape."""
        self._recordings[shapes((piece, None))] = self._record(piece, None)

    def replay_ms(self, piece: Any) -> float:
        """Return the milliseconds of a captured step for pieces of this shape, replayed without effect."""
        graph = self._recordings[shapes((piece, None))].graph
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self._to_no_effect():
            for step in range(UNTIMED_STEPS + TIMED_STEPS):
                if step == UNTIMED_STEPS:
                    began.record()
                graph.replay()
            ended.record()
            ended.synchronize()
        return began.elapsed_time(ended) / TIMED_STEPS

    def fallback(self) -> Steps:
        """Return captured steps without compilation if these are compiled, else eager steps."""
        if not self.compiled:
            return super().fallback()
        return Captured(self.model, self.loss_of, self.optimizer, self.device, self.world)

    def _record(self, piece: Any, carry: Any) -> _Recording:
        """Capture a step for this shape after some warm-up steps, all without effect."""
        inputs = mapped((piece, carry), lambda t: t.to(self.device, copy=True))
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        spare = generator.clone_state()  # a failed capture leaves the generator's state unusable
        graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        attention = _fastest_attention() if self.compiled else nullcontext()
        with self._to_no_effect():
            try:
                side.wait_stream(torch.cuda.current_stream())
                with attention, torch.cuda.stream(side):
                    for _ in range(WARM_STEPS):
                        self._step(*inputs)
                torch.cuda.current_stream().wait_stream(side)
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    loss, carried = self._step(*inputs)
            except RuntimeError as error:
                generator.graphsafe_set_state(spare)
                forget_gradients(self.optimizer.parameters.values())
                cause = error.__context__ or error
                raise CannotRecord(str(cause).split("\n")[0] or type(cause).__name__) from error
        return _Recording(graph, inputs, loss, carried)

    @contextmanager
    def _to_no_effect(self) -> Iterator[None]:
        """Restore the weights and the optimizer's state afterwards."""
        changing = [*self.optimizer.parameters.values(), *self.optimizer.slots.values()]
        before = [t.detach().clone() for t in changing]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(changing, before, strict=True):
                    tensor.copy_(value)

    def _step(self, piece: Any, carry: Any) -> tuple[Loss, Any]:
        loss, carry = self._loss_of(self.model, piece, carry)
        (loss.total * self._per_thing).backward()
        self._count += 1
        self.norm = self.optimizer.update(self._factor, self._count)
        forget_gradients(self.optimizer.parameters.values())
        found = Loss(total=loss.total.detach(), count=0, parts={n: p.detach() for n, p in loss.parts.items()})
        return found, mapped(carry, torch.clone)  # it may be a view of the input, which the next piece overwrites


@dataclasses.dataclass(frozen=True)
class _Recording:
    """A captured step: its graph, its input tensors and its output tensors."""

    graph: torch.cuda.CUDAGraph
    inputs: Any
    loss: Loss
    carry: Any


def seed_dropout(seed: int, device: torch.device) -> None:
    """Seed the generator of this device only, from which dropout draws.

    torch.manual_seed would also queue a call for every unused kind of device, with its stack trace as text. That costs a
    millisecond and some memory per step.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def mapped(structure: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the same nested tuples and dataclasses with every tensor changed by `change`."""
    if isinstance(structure, Tensor):
        return change(structure)
    if isinstance(structure, tuple | list):
        return tuple(mapped(part, change) for part in structure)
    if dataclasses.is_dataclass(structure) and not isinstance(structure, type):
        parts = {f.name: mapped(getattr(structure, f.name), change) for f in dataclasses.fields(structure)}
        return dataclasses.replace(structure, **parts)
    return structure


def tensors(structure: Any) -> Iterator[Tensor]:
    """Return all tensors of nested tuples and dataclasses, always in the same order."""
    found: list[Tensor] = []
    mapped(structure, lambda t: found.append(t) or t)  # type: ignore[func-returns-value]
    return iter(found)


def shapes(structure: Any) -> Any:
    """Return the shapes and dtypes of all tensors in nested tuples and dataclasses, as a key of captured steps."""
    if isinstance(structure, Tensor):
        return tuple(structure.shape), structure.dtype
    if isinstance(structure, tuple | list):
        return tuple(shapes(part) for part in structure)
    if dataclasses.is_dataclass(structure):
        return tuple(shapes(getattr(structure, f.name)) for f in dataclasses.fields(structure))
    return None


def steps_for(
    way: str, model: Learner, loss_of: LossOf, optimizer: Optimizer, device: torch.device, world: World = SINGLE_PROCESS
) -> Steps:
    """Return the stepping mode with this name: eager, captured or compiled."""
    if way == "eager":
        return Eager(model, loss_of, optimizer, device, world)
    return Captured(model, loss_of, optimizer, device, world, compiled=way == "compiled")


def compiled_if_faster(recorded: Captured, piece: Any) -> Captured:
    """Return compiled steps if they are faster than these captured steps, else these. Both are replayed without effect.

    Args:
        recorded: steps that are captured for the shape of `piece`.
        piece: a piece of a batch; all pieces have its shape.
    """
    of_model = recorded.model, recorded.loss_of, recorded.optimizer, recorded.device, recorded.world
    compiled = Captured(*of_model, compiled=True)
    try:
        compiled.rehearse(piece)
    except CannotRecord:
        return recorded
    return compiled if compiled.replay_ms(piece) < recorded.replay_ms(piece) else recorded
