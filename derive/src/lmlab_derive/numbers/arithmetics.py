"""Which arithmetic computes what: NumPy, and torch, which is slow to import, only where it must be."""

from __future__ import annotations

from typing import Any

from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.decimals import LongOps
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.means import Helpers
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Node


def arithmetic_for(setting: Setting, *nodes: Node) -> Any:
    """Doubles: with autograd where there are derivatives."""
    if any(map(setting.differentiates, nodes)):
        from lmlab_derive.numbers.autograd import TorchOps

        return TorchOps(doubles)
    return doubles()


def doubles() -> FloatOps:
    """Doubles in NumPy that know every way to take a mean."""
    return FloatOps(Helpers(LongOps, _by_torch))


def _by_torch(node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy) -> tuple[Any, Any, float]:
    """A mean over many numbers at once."""
    from lmlab_derive.numbers.autograd import TorchOps
    from lmlab_derive.numbers.quadrature import Leaf

    value, error, size = Leaf(node, over, frame.translated(TorchOps()), accuracy).mean()
    return value.numpy(), error, size
