"""Which arithmetic computes what: plain doubles, or dual arrays where there are derivatives."""

from __future__ import annotations

from typing import Any

from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.decimals import LongOps
from lmlab_derive.numbers.derivatives import DualOps
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.means import Helpers
from lmlab_derive.numbers.quadrature import Leaf
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Node


def arithmetic_for(setting: Setting, *nodes: Node) -> Any:
    """Doubles: dual where there are derivatives."""
    return DualOps(doubles) if any(map(setting.differentiates, nodes)) else doubles()


def doubles() -> FloatOps:
    """Doubles in NumPy that know every way to take a mean."""
    return FloatOps(Helpers(LongOps, _over_many))


def _over_many(node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy) -> tuple[Any, Any, float]:
    """A mean over many numbers at once."""
    return Leaf(node, over, frame.translated(DualOps()), accuracy).mean()
