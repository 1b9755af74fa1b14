"""Every record of a function: complete, its derivative right, its ways of computing agree, and it can be read back."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from lmlab_derive.functions import FUNCTIONS, NAMES, OTHER_NAMES, WRITTEN_OUT, Along, Entrywise, Kink, Reduction
from lmlab_derive.functions.record import Function
from lmlab_derive.limits import Deadline, NoExactValue
from lmlab_derive.numbers import duals
from lmlab_derive.numbers.decimals import LongOps
from lmlab_derive.numbers.derivatives import DualOps
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.evaluate import Ops
from lmlab_derive.numbers.fractions import FractionOps
from lmlab_derive.numbers.points import Point, make_frame
from lmlab_derive.numbers.sides import KINK
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.shapes.setting import Setting, build
from lmlab_derive.shared.mathml import to_mathml
from lmlab_derive.sheets.check import check_text
from lmlab_derive.small_formulas import number, power, times
from lmlab_derive.text import to_text
from lmlab_derive.to_latex import to_latex
from lmlab_derive.tree import Call, Name, Node

ENTRYWISE = [f for f in FUNCTIONS.values() if isinstance(f, Entrywise)]
ALONG_AXES = [f for f in FUNCTIONS.values() if isinstance(f, Reduction | Along)]
ARGUMENTS = {  # of the functions that do not take one array
    "outer": "v, w", "kron": "A, S", "dot": "A, w", "maximum": "A, B", "minimum": "A, B", "where": "A > 0, A, B",
    "concat": "A, B", "reshape": "A, 4, 3", "swapaxes": "A, 0, 1", "ones": "3, 2", "zeros": "3, 2", "eye": "3",
    "trace": "S", "det": "S", "inv": "S", "diag": "v", "expand_dims": "v", "clip": "A, 0, 1", "matmul": "A, w",
    "arange": "4", "logdet": "S @ S.T", "stack": "v, v", "factorial": "4", "binom": "6, 2", "comb": "6, 2",
}  # fmt: skip


def setting_of(formula: str) -> Setting:
    givens = "given A: 3, 4 positive\ngiven B: 3, 4\ngiven S: 3, 3\ngiven v: 3\ngiven w: 4\ngiven x: 6\n"
    (entry,) = parse(f"{givens}let t = {formula}\nclaim t == t").entries
    assert isinstance(entry, ScopedClaim), entry
    return build(entry.scope)


def values_at(formula: str, ops: Ops, raw: dict[str, np.ndarray]) -> np.ndarray:
    setting = setting_of(formula)
    frame = make_frame(setting, Point({}, raw), ops, Deadline(60))
    value = frame.evaluate(setting.lets["t"].value)
    assert tuple(value.shape) == tuple(axis.value({}) for axis in setting.shapes.names["t"])
    return np.asarray(value, dtype=float)


def example(name: str) -> str:
    return f"{name}({ARGUMENTS.get(name, 'A')})"


def raw_point(seed: int) -> dict[str, np.ndarray]:
    """Quarters, so that fractions stay short; away from whole numbers and halves, where functions have kinks."""
    rng = np.random.default_rng(seed)
    shapes = {"A": (3, 4), "B": (3, 4), "S": (3, 3), "v": (3,), "w": (4,), "x": (6,)}
    raw = {
        name: rng.integers(-7, 8, shape) / 2 + 0.25 + rng.integers(0, 99, shape) / 1024
        for name, shape in shapes.items()
    }
    return raw | {"A": np.abs(raw["A"])}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) | set(WRITTEN_OUT)))
def test_every_arithmetic_computes_the_same(name: str) -> None:
    raw = raw_point(3)
    want = values_at(example(name), FloatOps(), raw)
    assert np.isfinite(want).all()
    for ops in (DualOps(), LongOps(40), FractionOps()):
        try:
            got = values_at(example(name), ops, raw)
        except NoExactValue:
            assert isinstance(ops, FractionOps)
            continue
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13, err_msg=type(ops).__name__)


def assert_differentiated(formula: str, by: str) -> None:
    """Dual arrays against central differences in 120 digits, which share nothing with them."""
    with mpmath.workdps(120):
        want = values_at(f"d({formula})/d{by}", LongOps(120), raw_point(4))
    got = values_at(f"d({formula})/d{by}", DualOps(), raw_point(4))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) | set(WRITTEN_OUT)))
def test_every_function_is_differentiated(name: str) -> None:
    for by in sorted(set(re.findall(r"\b[ABSvw]\b", example(name)))):
        assert_differentiated(f"sum(({example(name)})**2)", by)


@pytest.mark.parametrize(
    "formula",
    [
        *("prod(v)", "max(v)**3", "logsumexp(v)", "norm(v)", "sum(cumsum(v)**3)", "sum(maximum(v, v**2 / 3)**2)"),
        *("det(S + outer(v, v))", "sum(inv(S + outer(v, v)))", "sum((v**2)**v)", "sum(v / (20 + v @ v))", "var(v)**2"),
        *("sum(softmax(v)**2)", "sum(digamma(v**2)**2)", "sum(where(v > 0, v**3, exp(v)))", "(S @ v) @ sin(S.T @ v)"),
        "d(sum(v**5) * (v @ v))/dv @ v",
    ],
)
def test_a_derivative_is_differentiated_again(formula: str) -> None:
    assert_differentiated(f"sum((d({formula})/dv)**2)", "v")


@pytest.mark.parametrize("ufunc", [np.multiply, np.true_divide, np.matmul, np.power, np.maximum])
def test_a_planted_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch, ufunc: np.ufunc) -> None:
    right = duals._RULES[ufunc]

    def wrong(left: object, right_side: object) -> object:
        return right(left, duals.value_of(right_side))

    formula = {np.multiply: "v * v", np.true_divide: "2 / v", np.matmul: "v @ v", np.power: "2**v"}
    monkeypatch.setitem(duals._RULES, ufunc, wrong)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_differentiated(f"sum({formula.get(ufunc, 'maximum(-9 + 0 * v, v)')})", "v")


@pytest.mark.parametrize("function", ENTRYWISE, ids=lambda f: f.name)
def test_the_slope_agrees_with_differences(function: Entrywise) -> None:
    assert function.slope is not None
    shift = 5.0 if function.lowest >= 0 else 1.0 if function.lowest > -math.inf else 0.0  # where it is defined
    u = np.linspace(-3.9, 3.7, 12) + shift * (function.lowest > -math.inf)
    u = u[u > max(function.lowest, -9.0) + 0.05]
    assert (np.abs(function.kink_distance(np, u)) > KINK).all() or function.kink is Kink.NONE
    raw = np.resize(u, 6)
    written = to_text(function.slope(Call(function.name, (Name("x"),)), Name("x")))
    by_record = values_at(f"{written} + 0 * x", FloatOps(), raw_point(0) | {"x": raw})
    with mpmath.workdps(50):
        step = mpmath.mpf(10) ** -15
        for x, slope in zip(raw, by_record, strict=True):
            up, down = (function.computed("long", mpmath, mpmath.mpf(x) + sign * step) for sign in (1, -1))
            assert abs(float((up - down) / (2 * step)) - slope) < 1e-12 * max(1.0, abs(slope))


@pytest.mark.parametrize("function", ENTRYWISE, ids=lambda f: f.name)
def test_what_proofs_take_from_a_record_holds(function: Entrywise) -> None:
    x, value = Name("x"), Call(function.name, (Name("x"),))
    formulas: dict[str, Node] = {}
    if function.means is not None:
        formulas[f"{function.name}(x)"] = function.means(x)
    if function.by_exp is not None:
        formulas[f"{function.name}(1 * x)"] = function.by_exp(x)
    if function.mirror is not None:
        formulas[f"{function.name}(-x)"] = function.mirror(value, x)
    raw = raw_point(5) | {"x": np.array([0.3, 0.7, 1.1, 1.9, 2.6, 3.4])}
    for formula, other in formulas.items():
        left, right = values_at(formula, FloatOps(), raw), values_at(to_text(other), FloatOps(), raw)
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13, err_msg=to_text(other))
    if function.at_zero is not None:
        assert function.computed("long", mpmath, mpmath.mpf(0)) == function.at_zero
    if function.positive:
        assert (function.computed("numpy", np, np.linspace(-5, 5, 11)) > 0).all()


@pytest.mark.parametrize("function", ENTRYWISE, ids=lambda f: f.name)
def test_a_kink_is_where_the_record_says(function: Entrywise) -> None:
    """Just beside the nearest kink the function bends or jumps; a smooth one has no other slope on either side of 0."""
    near = {"sqrt": 0.0, "relu": 0.0, "abs": 0.0, "sign": 0.0, "floor": 1.0, "ceil": 1.0, "round": 0.5}.get(
        function.name
    )
    assert (near is not None) == (function.kink is not Kink.NONE)
    if near is not None:
        assert float(function.kink_distance(np, np.asarray(near))) == 0.0
    if function.kink is Kink.JUMP:
        assert near is not None
        up, down = (function.computed("long", mpmath, mpmath.mpf(near + d)) for d in (1e-9, -1e-9))
        assert abs(up - down) >= 1


@pytest.mark.parametrize("function", ALONG_AXES, ids=lambda f: f.name)
@pytest.mark.parametrize("axis", ["0", "1", "-1"])
def test_functions_along_axes_agree_for_every_axis(function: Function, axis: str) -> None:
    options = ["", ", keepdims=True"] if function.takes_keepdims else [""]
    for option in options:
        formula = f"{function.name}(A, axis={axis}{option})"
        want = values_at(formula, FloatOps(), raw_point(1))
        for ops in (DualOps(), LongOps(40)):
            np.testing.assert_allclose(values_at(formula, ops, raw_point(1)), want, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_written_and_read_back(name: str) -> None:
    node = setting_of(example(name)).lets["t"].value
    assert isinstance(node, Call)
    assert node.function == name
    assert setting_of(to_text(node)).lets["t"].value == node
    assert to_mathml(to_latex(node)).startswith("<math")


def test_records_are_complete_and_their_names_are_free() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert set(function.confused_with) <= set(FUNCTIONS) - {name}
        assert function.arguments is None or function.arguments >= 1
        assert not function.takes_keepdims or function.takes_axis
        assert not (isinstance(function, Entrywise) and function.slope is None), name
    assert not set(OTHER_NAMES) & (NAMES | set(WRITTEN_OUT))
    assert len(OTHER_NAMES) == sum(len(function.aliases) for function in FUNCTIONS.values())
    assert all(alias in OTHER_NAMES for function in FUNCTIONS.values() for alias in function.aliases)


@pytest.mark.parametrize("alias", sorted(OTHER_NAMES))
def test_other_spellings_mean_the_same(alias: str) -> None:
    name = OTHER_NAMES[alias]
    arguments = example(name).partition("(")[2]
    assert setting_of(f"{alias}({arguments}").lets["t"].value == setting_of(example(name)).lets["t"].value


def test_a_new_function_is_its_record_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding `cube` to the records is enough for it to be read, shaped, computed, differentiated, proved and written."""
    from lmlab_derive import functions
    from lmlab_derive.read import expressions

    def third(library: object, x: object) -> object:
        return x * x * x  # type: ignore[operator]

    cube = Entrywise("cube", numpy=third, long=third, exact=third, slope=_cube_slope, means=lambda u: power(u, 3))
    monkeypatch.setitem(FUNCTIONS, "cube", cube)
    monkeypatch.setattr(expressions, "NAMES", functions.NAMES | {"cube"})
    sheet = "given x: n\nlet J = sum(cube(x))\nclaim dJ/dx == 3 * x**2\nclaim cube(1/3) == 1/27\nclaim dJ/dx == x"
    right, exact, wrong = check_text(sheet).claims
    assert (right.verdict, exact.verdict, wrong.verdict) == ("proved", "proved", "refuted")
    assert Fraction(1, 27) == third(None, Fraction(1, 3))


def _cube_slope(v: Node, u: Node) -> Node:
    return times(number(3), power(u, 2))
