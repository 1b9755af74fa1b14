"""A model in a separate process, so that third-party code sees nothing but the data it is sent.

The process is forked from one that has read no text. It gives up files and the network, then loads the class. It receives
its weights once, then tokens, and answers with numbers: its answers are never executed or unpickled.
Messages are a JSON header and arrays in raw bytes. Shapes: B rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.config import Mistake, in_one_line, make
from lmlab.hardware.c_kernels import SWITCH
from lmlab.hardware.choice import choose_device
from lmlab.hardware.openmp import set_threads
from lmlab.hardware.sandbox import close_files_and_network
from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.measure.score import device_of, evaluating
from lmlab.measure.walk import Copies
from lmlab.models.registry import model_class

NUMBERS = {"<f4": np.float32, "<i8": np.int64, "|u1": np.uint8}  # types of the arrays in a message
FREED = 64  # states that are deleted together


@dataclass(frozen=True, kw_only=True)
class Description:
    """Everything needed to load a model. tensors: the content of a safetensors file."""

    kind: str
    config: Mapping[str, Any]
    vocab_size: int
    tensors: bytes
    device: str


@final
class Channel:
    """Sends and receives messages over a socket."""

    def __init__(self, end: socket.socket) -> None:
        self._stream = end.makefile("rwb")
        end.close()

    def send(self, header: Mapping[str, Any], *arrays: np.ndarray) -> None:
        """Send a header and arrays."""
        arrays = tuple(map(np.ascontiguousarray, arrays))
        about = json.dumps([header, [[array.dtype.str, array.shape] for array in arrays]]).encode()
        self._stream.write(struct.pack("<Q", len(about)) + about)
        for array in arrays:
            self._stream.write(array.reshape(-1).view(np.uint8).data if array.size else b"")
        self._stream.flush()

    def receive(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Receive the next message.

        Raises:
            EOFError: the other side closed the socket.
        """
        (size,) = struct.unpack("<Q", self._bytes(8))
        header, shapes = json.loads(self._bytes(size))
        arrays = []
        for dtype, shape in shapes:
            empty = np.empty(shape, dtype=NUMBERS[dtype])
            arrays.append(np.frombuffer(self._bytes(empty.nbytes), dtype=empty.dtype).reshape(shape).copy())
        return header, arrays

    def close(self) -> None:
        """Close the socket, upon which the other process ends."""
        self._stream.close()

    def _bytes(self, size: int) -> bytes:
        found = self._stream.read(size)
        if len(found) < size:
            raise EOFError
        return bytes(found)


# --- this side: what asks ---


class ModelProcess:
    """A process with a model and copies of it.

    Call `start` before the calling process loads third-party code.
    """

    def __init__(self, channel: Channel, about: Description, pid: int) -> None:
        self._channel, self._about, self._pid = channel, about, pid
        self._free: list[int] = []
        self.closed = ""  # description of what the process has no access to

    @classmethod
    def start(cls, about: Description, here: Path) -> Self:
        """Fork the process. It loads the model at the first request. here: an empty folder."""
        ours, its = socket.socketpair()
        if (pid := os.fork()) == 0:
            ours.close()
            os.setsid()  # so that its child processes can be ended with it
            _answer(its)
        its.close()
        process = cls(Channel(ours), about, pid)
        header = {"paths": sys.path, "threads": torch.get_num_threads(), "kind": about.kind, "config": about.config}
        header |= {"vocab_size": about.vocab_size, "device": about.device, "here": str(here)}
        process._channel.send(header, np.frombuffer(about.tensors, dtype=np.uint8))
        process.closed = str(process.answer()[0]["closed"])
        return process

    def ask(self, what: str, *arrays: np.ndarray, **header: Any) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Send a request and return the answer.

        Raises:
            Mistake: the model's code fails.
        """
        free, self._free = (self._free, []) if len(self._free) >= FREED else ([], self._free)
        self._channel.send({"do": what, "free": free, **header}, *arrays)
        return self.answer()

    def answer(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Receive the next answer.

        Raises:
            Mistake: the model's code failed or its process ended.
        """
        try:
            header, arrays = self._channel.receive()
        except (EOFError, OSError, ValueError, KeyError, TypeError, struct.error):
            raise Mistake(
                f"the process of {self._about.kind} ended while it was measured", code="model-process-ended"
            ) from None
        if "error" in header:
            raise Mistake(
                f"{self._about.kind} failed while it was measured: {str(header['error'])[:200]}", code="model-failed"
            )
        return header, arrays

    def free(self, state: int) -> None:
        """Mark a state that will not be advanced again, so that the process can delete it."""
        self._free.append(state)

    def stop(self) -> None:
        """End the process and its children, and wait until it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        with suppress(OSError):
            self._channel.close()

    def new(self, way: str = "new") -> ModelProxy | None:
        """Make a copy of the model that has processed no token; None if it has no weights to change.

        way: "new", or "shaken" for a copy whose weights differ in their last bit.
        """
        header, _ = self.ask(way)
        return None if header["model"] is None else ModelProxy(self, header)


class ModelProxy(LanguageModel):
    """A language model that runs in another process."""

    name = "model in another process"
    Config = Description

    def __init__(self, process: ModelProcess, header: Mapping[str, Any]) -> None:
        self._process, self._model = process, int(header["model"])
        self.config, self.vocab_size = replace(process._about, tensors=b""), process._about.vocab_size
        window, stride = header["policy"]
        self.policy = ContextPolicy(window=window, stride=stride)

    def score(self, tokens_BT: Tensor) -> Tensor:
        """Return the nats of each token, B×T."""
        return self._numbers("score", tokens_BT.shape, tokens_BT.numpy())[0]

    def score_documents(self, tokens: Tensor, starts: Tensor) -> Tensor:
        """Return the nats of each token of short documents that are concatenated."""
        return self._numbers("score_documents", tokens.shape, tokens.numpy(), starts.numpy())[0]

    def begin(self, rows: int) -> tuple[Tensor, State]:
        """Return the log-probabilities of the first token, B×V, and the initial state."""
        return self._numbers("begin", (rows, self.vocab_size), rows=rows)

    def advance(self, tokens_BT: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the log-probabilities after these tokens, B×V, and the new state.

        The process receives these tokens only.
        """
        assert isinstance(state, StateProxy)
        state.spend()
        shape = (len(tokens_BT), self.vocab_size)
        return self._numbers("advance", shape, tokens_BT.numpy(), state=state.number)

    def _numbers(self, what: str, shape: Sequence[int], *arrays: np.ndarray, **more: Any) -> tuple[Tensor, State]:
        header, found = self._process.ask(what, *arrays, model=self._model, **more)
        if len(found) != 1 or found[0].shape != tuple(shape) or found[0].dtype != np.float32:
            raise Mistake(
                f"{self._process._about.kind} answered {what} with other numbers than were asked for",
                code="model-answered-other-numbers",
            )
        return torch.from_numpy(found[0]), StateProxy(self._process, int(header.get("state", -1)))

    def tensors(self) -> dict[str, Tensor]:
        """Return the trained tensors."""
        from safetensors.torch import load

        return load(self._process._about.tensors)

    @classmethod
    def from_tensors(cls, config: Any, vocab_size: int, tensors: Mapping[str, Tensor]) -> Self:
        """Not supported: the other process constructs its models."""
        raise NotImplementedError


class StateProxy(State):
    """A handle of the state of a model in another process."""

    def __init__(self, process: ModelProcess, number: int) -> None:
        super().__init__()
        self._process, self.number = process, number

    def __del__(self) -> None:
        if not self._spent and self.number >= 0:
            self._process.free(self.number)

    def select(self, rows_B: Tensor) -> State:
        """Not supported: evaluation copies no states."""
        raise NotImplementedError


class Turn(IntEnum):
    """The three processes of a model, in the order in which they may run its code."""

    WALKER = 0
    SCORER = 1
    CHECKER = 2


@final
class InTurns:
    """Three processes of one model, each of which ends before the next loads the model's code.

    Two processes that ran at once could exchange what they received, by locks or by the load of the machine.
    """

    def __init__(self, about: Description, here: Path) -> None:
        self.about = about
        self._processes = [ModelProcess.start(about, here) for _ in Turn]
        self.turn, self.closed = Turn.WALKER, self._processes[0].closed

    def take(self, turn: Turn) -> ModelProcess:
        """Return the process of a turn, after ending those of earlier turns."""
        while self.turn < turn:
            self._processes[self.turn].stop()
            self.turn = Turn(self.turn + 1)
        assert self.turn == turn, "a process that has ended is asked"
        return self._processes[turn]

    def end(self) -> None:
        """End the remaining processes."""
        for process in self._processes[self.turn :]:
            process.stop()


@final
class Scorer(ModelProxy):
    """The model that scores the text. Its process loads the model at the first request."""

    def __init__(self, turns: InTurns, policy: ContextPolicy) -> None:
        self._turns, self._begun = turns, False
        self.config, self.vocab_size, self.policy = replace(turns.about, tensors=b""), turns.about.vocab_size, policy

    def _numbers(self, what: str, shape: Sequence[int], *arrays: np.ndarray, **more: Any) -> tuple[Tensor, State]:
        if not self._begun:
            self._process = self._turns.take(Turn.SCORER)
            self._model, self._begun = int(self._process.ask("new")[0]["model"]), True
        return super()._numbers(what, shape, *arrays, **more)


@final
class CopiesApart:
    """Copies of a model in separate processes for the certificate: one process before scoring, and one after it."""

    def __init__(self, turns: InTurns) -> None:
        self._turns, self.way = turns, "in a process of its own"
        closed = turns.closed or "nothing, for this system offers no such thing,"
        self.apart: str | None = (
            f"copies answered in a process that ended before the text was scored, with {closed} closed to it"
        )

    def new(self) -> LanguageModel:
        """Return a copy that has processed no token."""
        made = self._process().new()
        assert made is not None
        return made

    def shaken(self) -> LanguageModel | None:
        """Return a copy whose weights differ in their last bit; None if the model has no weights to change."""
        return self._process().new("shaken")

    def _process(self) -> ModelProcess:
        return self._turns.take(Turn.WALKER if self._turns.turn == Turn.WALKER else Turn.CHECKER)


# --- the other side: what answers ---


def _answer(end: socket.socket) -> None:
    """Answer requests until the other side closes the socket, then end this process."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _keep_only(end.fileno())
        channel = Channel(end)
        header, (content,) = channel.receive()
        sys.path[:] = [path for path in header["paths"] if path]
        os.environ[SWITCH] = "off"  # no compiler is accessible here
        set_threads(int(header["threads"]))
        # by its name, since a search for a GPU initializes CUDA, which must happen after the fork
        cuda = header["device"] != "cpu" and torch.cuda.is_available()
        os.chdir(header["here"])
        channel.send({"closed": close_files_and_network(sys.path, cuda=cuda)})
        _Served(header, content.tobytes()).until_the_end(channel)
    except (EOFError, BrokenPipeError):
        pass
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def _keep_only(kept: int) -> None:
    """Close every file but one: the parent has other files and sockets open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 4096)


@final
class _Served:
    """The model, its copies, and their states, in the process that answers requests."""

    def __init__(self, header: Mapping[str, Any], content: bytes) -> None:
        self.header, self.content = header, content
        self.copies: Copies | None = None
        self.models: list[LanguageModel] = []
        self.states: dict[int, State] = {}
        self.next = 0

    def until_the_end(self, channel: Channel) -> None:
        while True:
            header, arrays = channel.receive()
            try:
                said, found = self.do(header, arrays)
            except Exception as error:
                said, found = {"error": in_one_line(error)}, []
            channel.send(said, *found)

    def do(self, header: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> tuple[dict[str, Any], list[np.ndarray]]:
        for state in header["free"]:
            self.states.pop(state, None)
        what = header["do"]
        if what in ("new", "shaken"):
            return self._made(what), []
        model = self.models[header["model"]]
        tensors = [torch.from_numpy(array).to(device_of(model)) for array in arrays]
        with evaluating(model), torch.no_grad():
            if what == "score":
                return {}, [_plain(model.score(*tensors))]
            if what == "score_documents":
                return {}, [_plain(model.score_documents(*tensors))]
            if what == "begin":
                logp_BV, state = model.begin(header["rows"])
            else:
                logp_BV, state = model.advance(*tensors, self.states.pop(header["state"]))
        self.next += 1
        self.states[self.next] = state
        return {"state": self.next}, [_plain(logp_BV)]

    def _made(self, what: str) -> dict[str, Any]:
        if self.copies is None:
            self.copies = Copies(self._loaded())
        made = self.copies.new() if what == "new" else self.copies.shaken()
        if made is None:
            return {"model": None}
        self.models.append(made)
        return {"model": len(self.models) - 1, "policy": [made.policy.window, made.policy.stride]}

    def _loaded(self) -> LanguageModel:
        from safetensors.torch import load

        cls = model_class(self.header["kind"])
        settings: Any = make(cls.Config, self.header["config"], cls.name)
        model: LanguageModel = cls.from_tensors(settings, self.header["vocab_size"], load(self.content))
        device = choose_device(self.header["device"])
        return model.to(device).eval() if isinstance(model, nn.Module) else model


def _plain(numbers: Tensor) -> np.ndarray:
    return numbers.float().cpu().numpy()
