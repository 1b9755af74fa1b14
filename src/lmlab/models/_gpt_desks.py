"""The desk that a `gpt` wrote at last stays with it on a GPU: the next texts find rounded weights and a recorded step there.

Recording a step takes as long as some twenty steps do. What is kept is one desk a model, as long as the model lives, and only
while no state works at it is it given away again.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, NamedTuple, final

from lmlab.layers.fast.many_rows import ManyRows

if TYPE_CHECKING:
    import torch
    from torch import nn

    from lmlab.layers.fast.one_row import Weights


@final
class Lease:
    """The states that work at a desk hold it; with the last of them it ends."""


class _Kept(NamedTuple):
    desk: ManyRows
    lease: weakref.ref[Lease]
    weights: tuple[tuple[int, int], ...]

    @property
    def free(self) -> bool:
        return self.lease() is None


_KEPT: weakref.WeakKeyDictionary[nn.Module, _Kept] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()


def lent_desk(model: nn.Module, weights: Weights, rows: int, dtype: torch.dtype) -> tuple[ManyRows, Lease]:
    """A desk for so many rows, the one the model has if it is free, fits, and its weights are still these."""
    lease = Lease()
    if not _worth_keeping(weights):
        return ManyRows(weights, rows, dtype), lease
    with _LOCK:
        kept, now = _KEPT.get(model), _versions(model)
        if kept is not None and kept.free and now and kept.weights == now:
            desk = kept.desk
            if (desk.rows, desk.dtype) == (rows, dtype):
                desk.clear()
                _KEPT[model] = _Kept(desk, weakref.ref(lease), now)
                return desk, lease
        if kept is not None and kept.free:
            del _KEPT[model], kept  # before the memory of another is asked for
            kept = None
        desk = ManyRows(weights, rows, dtype)
        if kept is None and now:
            _KEPT[model] = _Kept(desk, weakref.ref(lease), now)
    return desk, lease


def _worth_keeping(weights: Weights) -> bool:
    """Where steps are recorded."""
    return weights.norm_D.is_cuda


def _versions(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """Where the weights lie and how often they were written to; nothing if torch does not count that."""
    weights = list(model.parameters())
    if any(weight.is_inference() for weight in weights):
        return ()
    return tuple((weight.data_ptr(), weight._version) for weight in weights)
