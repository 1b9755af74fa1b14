"""How a training step is taken: forward, backward, clipping and update.

Asked for kernel by kernel, a step of a small model on a GPU is mostly waiting for the next kernel to be asked for. So there the
whole step is recorded once for each shape of batch and replayed from then on (`Captured`); a large model's loss is compiled
first, which joins what lies between the products into few passes over memory. Everywhere else the plain way serves (`Eager`).

A replayed step is a function of the same things as any other (weights, the optimizer's state, batch, seed, share of the
budget), and recording leaves no trace in them: a run resumed in the way it began ends with the same bits.
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
from lmlab.learn.gradients import forget_gradients, join_rows, nothing_of, sum_over_processes, summed_loss
from lmlab.learn.micro_batches import MicroBatch
from lmlab.learn.optimizer import Optimizer
from lmlab.learn.world import ALONE, World

AHEAD = 4  # steps that may be asked for before the first of them is done: the GPU never waits, and the clock stays true
MOST_SHAPES = 8  # of batches: each has a recording of its own, with memory of its own
WARM_STEPS = 2  # before a recording: kernels are loaded and find their memory
UNTIMED_STEPS, TIMED_STEPS = 4, 16  # replays of a recorded step and of a compiled one, of which the faster is kept
COMPILING_FROM_S = 120.0  # budgets in which compiled steps are tried: compiling takes about a quarter of that

FASTEST_ATTENTION = [  # in this order; the first is made to measure, in a second or two, which compiling hides
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]

LossOf = Callable[[Learner, Any, Any], tuple[Loss, Any]]  # (model, piece of a batch, carry) to (loss, carry)


class CannotRecord(Exception):
    """The step does something that can only be asked for when it is reached, such as looking at a number."""


@contextmanager
def _fastest_attention() -> Iterator[None]:
    """Attention in our order; in torch's own where torch cannot set one.

    torch 2.11 forgets one of its ways when an order was set and taken back, and then refuses to set another in that process.
    """
    with ExitStack() as stack:
        with suppress(ValueError):
            stack.enter_context(sdpa_kernel(FASTEST_ATTENTION, set_priority=True))
        yield


class Steps(ABC):
    """Takes training steps with one model and its optimizer."""

    name: str  # eager, captured or compiled

    def __init__(
        self, model: Learner, loss_of: LossOf, optimizer: Optimizer, device: torch.device, world: World = ALONE
    ) -> None:
        self.model, self.loss_of, self.optimizer, self.device, self.world = model, loss_of, optimizer, device, world
        self._under_way: deque[torch.cuda.Event] = deque()
        self.norm = torch.zeros((), device=device)

    @abstractmethod
    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """Take one step.

        Args:
            micro_batches: Those of this process.
            count: Of what the micro-batches of all processes predict: the sum of their losses is divided by it once.
            factor: What the learning rates are multiplied by.

        Returns:
            What the micro-batches of all processes cost before the step, and what each of this process carries on.

        Raises:
            CannotRecord: Nothing has changed, and `plainer` is the way to go on.
        """

    @abstractmethod
    def rehearse(self, piece: Any) -> None:
        """Take a step to no effect, so that kernels are chosen and recorded before the first step that counts.

        Raises:
            CannotRecord: `plainer` is the way to go on.
        """

    def plainer(self) -> Steps:
        """The same steps, taken in a way that asks less of the model."""
        return Eager(self.model, self.loss_of, self.optimizer, self.device, self.world)

    def _keep_pace(self) -> None:
        """Wait until no more than a few steps are under way."""
        if self.device.type != "cuda":
            return
        event = torch.cuda.Event()
        event.record()
        self._under_way.append(event)
        if len(self._under_way) > AHEAD:
            self._under_way.popleft().synchronize()


class Eager(Steps):
    """Every kernel is asked for in every step."""

    name = "eager"

    def rehearse(self, piece: Any) -> None:
        """Forward and backward."""
        seed_dropout(0, self.device)
        loss, _ = self.loss_of(self.model, piece, None)
        loss.mean.backward()
        forget_gradients(self.optimizer.parameters.values())

    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """One step."""
        parameters, losses, carries = self.optimizer.parameters.values(), [], []
        for micro_batch in micro_batches:
            seed_dropout(micro_batch.seed, self.device)
            loss, carry = self.loss_of(self.model, micro_batch.piece, micro_batch.carry)
            loss = loss if micro_batch.counts else nothing_of(loss)
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
    """A step is recorded once for each shape of batch, and replayed. CUDA only."""

    def __init__(
        self,
        model: Learner,
        loss_of: LossOf,
        optimizer: Optimizer,
        device: torch.device,
        world: World = ALONE,
        compiled: bool = False,
    ) -> None:
        super().__init__(model, loss_of, optimizer, device, world)
        self.compiled, self.name = compiled, "compiled" if compiled else "captured"
        self._loss_of = torch.compile(loss_of, dynamic=False) if compiled else loss_of
        self._factor, self._per_thing = torch.ones((), device=device), torch.ones((), device=device)
        self._count = torch.zeros((), device=device)  # of steps, where the recorded update finds it
        self._recordings: dict[Any, _Recording] = {}

    def take(self, micro_batches: Sequence[MicroBatch], count: int, factor: float) -> tuple[Loss, list[Any]]:
        """One step."""
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
        """Record the step for pieces of this shape."""
        self._recordings[shapes((piece, None))] = self._record(piece, None)

    def replay_ms(self, piece: Any) -> float:
        """Milliseconds of a recorded step for pieces of this shape, replayed to no effect."""
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

    def plainer(self) -> Steps:
        """Recorded but not compiled, or not recorded."""
        if not self.compiled:
            return super().plainer()
        return Captured(self.model, self.loss_of, self.optimizer, self.device, self.world)

    def _record(self, piece: Any, carry: Any) -> _Recording:
        """Take some steps to no effect, then one that is recorded."""
        inputs = mapped((piece, carry), lambda t: t.to(self.device, copy=True))
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        spare = generator.clone_state()  # a recording that fails leaves the generator's own in a state of no use
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
        """Put weights and the optimizer's state back afterwards."""
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
        return found, mapped(carry, torch.clone)  # it may be a view of the piece, where the next piece will stand


@dataclasses.dataclass(frozen=True)
class _Recording:
    """A step that can be taken again: what it reads, and where it leaves what it found."""

    graph: torch.cuda.CUDAGraph
    inputs: Any
    loss: Loss
    carry: Any


def seed_dropout(seed: int, device: torch.device) -> None:
    """Seed the generator that dropout draws from on this device, and no other.

    torch.manual_seed would also queue a call for every kind of device that has not been used yet, with the stack it was
    called from written out as text: a millisecond and some memory for each step.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def mapped(structure: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same tuples and records with every tensor changed."""
    if isinstance(structure, Tensor):
        return change(structure)
    if isinstance(structure, tuple | list):
        return tuple(mapped(part, change) for part in structure)
    if dataclasses.is_dataclass(structure) and not isinstance(structure, type):
        parts = {f.name: mapped(getattr(structure, f.name), change) for f in dataclasses.fields(structure)}
        return dataclasses.replace(structure, **parts)
    return structure


def tensors(structure: Any) -> Iterator[Tensor]:
    """All tensors of tuples and records, always in the same order."""
    found: list[Tensor] = []
    mapped(structure, lambda t: found.append(t) or t)  # type: ignore[func-returns-value]
    return iter(found)


def shapes(structure: Any) -> Any:
    """What structures that can be given to the same recording have in common."""
    if isinstance(structure, Tensor):
        return tuple(structure.shape), structure.dtype
    if isinstance(structure, tuple | list):
        return tuple(shapes(part) for part in structure)
    if dataclasses.is_dataclass(structure):
        return tuple(shapes(getattr(structure, f.name)) for f in dataclasses.fields(structure))
    return None


def steps_for(
    way: str, model: Learner, loss_of: LossOf, optimizer: Optimizer, device: torch.device, world: World = ALONE
) -> Steps:
    """Take steps in the way with this name: eager, captured or compiled."""
    if way == "eager":
        return Eager(model, loss_of, optimizer, device, world)
    return Captured(model, loss_of, optimizer, device, world, compiled=way == "compiled")


def compiled_if_faster(recorded: Captured, piece: Any) -> Captured:
    """Return steps of the compiled loss where they are faster than these recorded steps, else these.

    Both are replayed to no effect.

    Args:
        recorded: steps that are recorded for the shape of `piece`.
        piece: of a batch; all pieces have its shape.
    """
    of_model = recorded.model, recorded.loss_of, recorded.optimizer, recorded.device, recorded.world
    compiled = Captured(*of_model, compiled=True)
    try:
        compiled.rehearse(piece)
    except CannotRecord:
        return recorded
    return compiled if compiled.replay_ms(piece) < recorded.replay_ms(piece) else recorded
