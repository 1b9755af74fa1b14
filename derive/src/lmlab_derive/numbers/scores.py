"""Derivatives as formulas, those of means by their parameters too: so that a mean, whose error is bounded, has the last word.

A mean E[f] moves with a parameter because f does and because the density p does: its derivative is
E[df + f * d log p], the score function; f may then bend and jump in what is random, where dual arrays would lose the jumps.
"""

from __future__ import annotations

from dataclasses import replace

from lmlab_derive.distributions import log_density
from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.limits import NoExactValue
from lmlab_derive.numbers.expectations import elementwise_in
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.slopes import slope
from lmlab_derive.small_formulas import ZERO, minus, plus, power, times
from lmlab_derive.tree import Compare, Derivative, Expectation, Name, Node, rebuilt


def without_derivatives(node: Node, setting: Setting) -> Node:
    """The expression with every derivative by a scalar written out; `NoExactValue` where that is not possible."""
    if isinstance(node, Derivative):
        found = operand = without_derivatives(node.operand, setting)
        for name in node.by:
            if setting.shapes.names.get(name) != ():
                raise NoExactValue
            found = slope(found, name, setting, lambda mean, name: mean_slope(mean, name, setting))
        whole = setting.shape(node)
        return found if setting.shape(found) == whole else plus(times(ZERO, operand), found)
    if isinstance(node, Name) and node.name in setting.lets:
        inner = without_derivatives(setting.lets[node.name].value, setting)
        return node if inner is setting.lets[node.name].value else inner
    return rebuilt(node, tuple(without_derivatives(child, setting) for child in node.children()))


def moves_means(node: Derivative, setting: Setting) -> bool:
    """Whether a derivative is taken of means that depend on what it is taken by."""
    means = [inner for inner in setting.opened(node.operand) if isinstance(inner, Expectation)]
    return any(set(node.by) & setting.depends(mean) for mean in means)


def mean_slope(node: Expectation, name: str, setting: Setting) -> Node:
    """The derivative of a mean by a scalar; `NoExactValue` where the score function does not give it."""
    if node.kind == "Var":
        mean, square = replace(node, kind="E"), replace(node, operand=power(node.operand, 2), kind="E")
        twice = times(plus(mean, mean), mean_slope(mean, name, setting))
        return minus(mean_slope(square, name, setting), twice)
    inside, over = node.operand, setting.random_names(node.operand) - set(node.fixed)
    if setting.random_names(Name(name)) & over:
        raise NoExactValue  # it is averaged itself
    if any(_jumps(part) and name in setting.depends(part) for part in setting.opened(inside)):
        raise NoExactValue  # where the jump is depends on the parameter: what jumps counts as well
    parts = [inside, *(part for random in over for part in setting.family(random)[1].nodes)]
    arrays = any(setting.givens[random].shape for random in over)
    if arrays and not all(elementwise_in(part, over, setting) for part in parts):
        raise NoExactValue  # the scores of all entries would count for each
    moved = slope(inside, name, setting, lambda mean, name: mean_slope(mean, name, setting))
    for random in sorted(over):
        score = _score(random, name, setting)
        moved = moved if score == ZERO else plus(moved, times(inside, score))
    return replace(node, operand=moved) if setting.random_names(moved) - set(node.fixed) else moved


def _score(random: str, name: str, setting: Setting) -> Node:
    """d log p / d name at the value of a random given."""
    family, kind = setting.family(random)
    if not any(name in setting.depends(part) for part in kind.nodes):
        return ZERO
    log = log_density(kind, Name(random))
    if log is None or family.name == "uniform" or setting.covaries(random):  # a uniform one moves where it ends
        raise NoExactValue
    return slope(log, name, setting, lambda mean, name: mean_slope(mean, name, setting))


def _jumps(node: Node) -> bool:
    return isinstance(node, Compare) or kink_of(node) is Kink.JUMP
