"""The tokens of some steps of a batch on their way from the device to the requests.

Shapes: T steps, B rows, V vocabulary, K alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

import torch

from lmlab.engine.choosing import likeliest_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.choosing import Rows
    from lmlab.engine.request import Request

Top = tuple[tuple[int, float], ...]


class Chosen(NamedTuple):
    """The tokens that one step chose for the rows, and the distributions it chose from."""

    rows: Rows
    ids_B: Tensor
    logp_BV: Tensor
    top: tuple[Tensor, Tensor] | None  # ids and log-probabilities, B×K

    @classmethod
    def of(cls, rows: Rows, ids_B: Tensor, logp_BV: Tensor) -> Chosen:
        """Return the step with the alternatives that its requests asked for."""
        return cls(rows, ids_B, logp_BV, likeliest_tokens(logp_BV, rows))


class Added(NamedTuple):
    """What some steps chose for one request."""

    request: Request
    ids: list[int]
    logprobs: list[float]
    top: list[Top]


@final
class InTransit:
    """Tokens that are being copied from the device."""

    def __init__(self, steps: Sequence[Chosen]) -> None:
        self._steps = steps
        self._copied: torch.cuda.Event | None = None
        self._ids: list[Any]
        self._logprobs: list[Any]
        self._top: list[Any] = [None] * len(steps)
        device = steps[0].ids_B.device
        if device.type == "cpu" and len(steps) == 1:  # asking NumPy takes less time
            (step,) = steps
            ids, logp_BV = step.ids_B.tolist(), step.logp_BV.numpy()
            self._ids, self._logprobs = [ids], [[float(logp_BV[row, id]) for row, id in enumerate(ids)]]
            self._top = [step.top]
            return
        self._ids = _sent_together([step.ids_B for step in steps])
        self._logprobs = _sent_together([step.logp_BV.gather(1, step.ids_B[:, None])[:, 0] for step in steps])
        self._top = [None if step.top is None else tuple(map(_sent, step.top)) for step in steps]
        if device.type == "cuda":
            self._copied = torch.cuda.Event()
            self._copied.record()

    def arrived(self) -> Iterator[Added]:
        """Wait for the tokens; yields those of each request."""
        if self._copied is not None:
            self._copied.synchronize()
        found: dict[Request, Added] = {}
        for step, ids, logprobs, top in zip(self._steps, self._ids, self._logprobs, self._top, strict=True):
            tops = [] if top is None else _pairs(*top)
            for row, (request, id, logprob) in enumerate(zip(step.rows, _listed(ids), _listed(logprobs), strict=True)):
                if request is None:
                    continue
                added = found.get(request)
                if added is None:
                    added = found[request] = Added(request, [], [], [])
                added.ids.append(id)
                added.logprobs.append(logprob)
                if request.logprobs:
                    added.top.append(tops[row][: request.logprobs])
        yield from found.values()


def _sent_together(of_steps: list[Tensor]) -> list[Any]:
    """One copy for all steps, where they have equally many rows."""
    if len({len(x_B) for x_B in of_steps}) > 1:
        return [_sent(x_B) for x_B in of_steps]
    return list(_sent(torch.stack(of_steps)))


def _sent(x: Tensor) -> Tensor:
    return x.to("cpu", non_blocking=x.is_cuda)


def _listed(values: Tensor | list[Any]) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()


def _pairs(ids_BK: Tensor, values_BK: Tensor) -> list[Top]:
    return [tuple(zip(*each, strict=True)) for each in zip(ids_BK.tolist(), values_BK.tolist(), strict=True)]
