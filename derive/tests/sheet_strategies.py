"""Random sheets for fuzzing: mostly well-formed, some absurd, some broken character by character."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

NAMES = ["x", "y", "W", "A", "b", "h", "J", "p", "q"]
SIZES = ["n", "m", "d", "1", "2", "3", "n+m", "2*n", "n*m", "64", "n-1"]
ABSURD_SIZES = ["1000000", "999999999999999999999", "0", "-3", "n**9", "1e9", "64*n*m*d*n", "x"]
KINDS = [
    *["", "", "", " positive", " onehot", " simplex", " unit", " symmetric", " orthogonal", " integer", " fraction"],
    *[" nonzero", " permutation", " normal(0, 1)", " normal(x, 2)", " uniform{1, 2}", " bernoulli(1/3)"],
    *[" rademacher", " uniform(0, 1)", " finite{0: 1/2, 1: 1/2}", " positive integer", " normal(0)", " onehot(p)"],
]
UNARY = [
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "sigmoid",
    "tanh",
    "relu",
    "softmax",
    "logsumexp",
    "sum",
    "mean",
    "max",
    "norm",
    "trace",
    "det",
    "inv",
    "diag",
    "abs",
    "var",
    "std",
    "prod",
    "vec",
    "shape",
    "cumsum",
    "softplus",
    "log_softmax",
    "min",
    "erf",
    "tan",
    "sinh",
    "square",
    "sign",
    "transpose",
    "silu",
    "log1p",
    "expm1",
    "floor",
    "round",
    "tril",
    "log2",
    "gelu",
    "expand_dims",
]
BINARY = [" + ", " - ", " * ", " / ", " @ ", "**"]
PAIRS = ["outer", "kron", "concat", "maximum", "minimum", "dot", "jacobian", "grad", "hessian"]
NUMBERS = ["0", "1", "2", "3", "1/2", "0.5", "1e-5", "-1", "64", "1e15", "100000000000000"]
ABSURD_NUMBERS = ["1e400", "9**9**9**9", "10**1000000", "9" * 60, "2**64**64", "1e-400", "0**-1"]


def atoms() -> st.SearchStrategy[str]:
    derivative = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(lambda ab: f"d{ab[0]}/d{ab[1]}")
    second = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(lambda ab: f"d2{ab[0]}/d{ab[1]}2")
    build = st.sampled_from(
        ["ones(n)", "eye(n)", "zeros(n, m)", "eye(3)", "ones(64, 64)", "pi", "n", "m", "eye(n*m)", "arange(n)"]
    )
    return st.one_of(st.sampled_from(NAMES), st.sampled_from(NUMBERS), derivative, second, build)


AXES = ["", "", ", axis=0", ", axis=1", ", axis=-1, keepdims=True", ", axis=7", ", keepdims=True"]
FORMS = [  # of each, one; {0}, {1} and {2} are formulas again
    [f"{{0}}{sign}{{1}}" for sign in BINARY],
    [f"{function}({{0}}{axis})" for function in UNARY for axis in AXES],
    [f"{function}({{0}}, {{1}})" for function in PAIRS],
    ["({0}).T"],
    ["-({0})"],
    ["E[{0}]"],
    ["Var[{0}]"],
    ["({0})[0]"],
    ["({0})[:, None]"],
    ["({0})[i]"],
    ["sum(i=1..n, ({0})[i])"],
    ["prod(j, ({0})[i, j])"],
    ["P[{0} > 0]"],
    ["E[{0} | x > 1]"],
    ["f({0}) + f'({0})"],
    ["|{0}|"],
    [r"\frac{{{0}}}{{2}}"],
    [r"\sqrt{{{0}}}^{{2}}"],
    [r"\sum_{{i=1}}^n {0}_i"],
    ["σ({0})² · Σ_i {0}_i"],
    ["KL({0}, {1}) + H({0})"],
    ["{0} {1}"],
    ["({0})^({1})"],
    ["({0}).sum(axis=0)"],
    ["({0}).mT"],
    ["swapaxes({0}, 0, 1)"],
    ["clip({0}, -1, 1)"],
    ["({0})[0:n, 1:2]"],
    ["d({0})/dx"],
    ["({0} > {1})"],
    ["[{0}, {1}]"],
    ["where({0}, {1}, {2})"],
    [f"reshape({{0}}, {rows}, {columns})" for rows in SIZES for columns in SIZES],
]
LEAF = st.one_of(atoms(), st.sampled_from([*NUMBERS, *ABSURD_NUMBERS]))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """A formula that need not fit. Drawn form by form: hypothesis takes seconds over a strategy that holds all of them."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(LEAF)
    form = draw(st.sampled_from(draw(st.sampled_from(FORMS))))
    return form.format(*(draw(expressions(depth - 1)) for i in range(3) if f"{{{i}}}" in form))


def statements() -> st.SearchStrategy[str]:
    formula = expressions()
    shape = st.lists(st.one_of(st.sampled_from(SIZES), st.sampled_from(SIZES + ABSURD_SIZES)), max_size=3).map(
        ", ".join
    )
    given = st.tuples(st.sampled_from(NAMES), shape, st.sampled_from(KINDS)).map(
        lambda t: f"given {t[0]}: {t[1]}{t[2]}"
    )
    let = st.tuples(st.sampled_from(NAMES), formula).map(lambda t: f"let {t[0]} = {t[1]}")
    relation = st.sampled_from([" == ", " = ", " <= ", " >= ", " < ", " > "])
    where = st.sampled_from(["", "", "", " where x > 0", " where a: n normal(0, 1)", " where t = x + 1", " where"])
    claim = st.tuples(formula, relation, formula, where).map(lambda t: "claim " + "".join(t))
    derive = st.lists(formula, min_size=1, max_size=4).map(lambda steps: "derive " + "\n  = ".join(steps))
    own = formula.map(lambda t: f"let f(x) = {t}")
    rows = formula.map(lambda t: f"let h[0] = {t}\nlet h[t] = h[t-1] + x[t]")
    other = st.sampled_from(["given f: function", "assume x > 0", "assume x < y, y != 0", "let q[i] = x[i]**2"])
    return st.one_of(given, given, let, claim, claim, derive, own, rows, other, st.text(max_size=30))


SETTING = """given s
given t: positive
given x: n
given y: n onehot
given p: n simplex
given b: m
given A: n, n
given S: n, n symmetric
given W: n, m
given e: n normal(0, 1)
given u: uniform{1, 2, 3}
given g: gamma(t, 2)
given k: poisson(t)
given c: exponential(1)
given d: n dirichlet(p)
given v: n normal(x, eye(n) + outer(x, x))
let f(w) = w**2 + sin(w)
let h = tanh(W.T @ x + b)
let z = S @ x * t
let J = sum(h**2) + x @ z"""
LEAVES = {
    "": ["s", "t", "J", "1", "2", "0.5", "n", "m", "pi", "u", "g", "k", "c", "f(s)", "f'(g)", "H(p)", "2s", "P[c > t]"],
    "n": ["d", "v", "x", "y", "p", "z", "e", "dJ/dx", "dJ/dz", "ones(n)", "zeros(n)"],
    "m": ["b", "h", "dJ/dh", "dJ/db"],
    "nn": ["A", "S", "eye(n)", "d2J/dx2", "jacobian(z, x)"],
    "nm": ["W", "dJ/dW", "ones(n, m)"],
    "mn": ["W.T", "jacobian(h, x)"],
}
SMOOTH = [
    "exp",
    "sin",
    "cos",
    "sigmoid",
    "tanh",
    "relu",
    "abs",
    "softplus",
    "square",
    "sqrt",
    "log",
    "sign",
    "erf",
    "silu",
]


@st.composite
def fitting(draw: st.DrawFn, shape: str, depth: int) -> str:
    """A formula of a given shape whose parts fit together: "" is a scalar, "nm" a matrix of n rows and m columns."""
    if depth <= 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(LEAVES[shape]))

    def part(inner: str) -> str:
        return draw(fitting(inner, depth - 1))

    choices = ["sign", "function", "pair", "scaled", "power", "compare", "average", "where", "difference"]
    if shape == "":
        choices += ["reduce", "dot", "trace", "det", "norm", "entry", "indexed", "event", "bars"]
    elif len(shape) == 1:
        choices += ["softmax", "row", "matvec", "diagonal", "gradient", "concat", "list"]
    else:
        choices += ["matmul", "outer", "transpose", "rows", "inverse", "spread", "jacobian", "kron"]
    match draw(st.sampled_from(choices)):
        case "sign":
            return f"-({part(shape)})"
        case "function":
            return f"{draw(st.sampled_from(SMOOTH))}({part(shape)})"
        case "pair":
            return f"({part(shape)}) {draw(st.sampled_from(['+', '-', '*', '/']))} ({part(shape)})"
        case "scaled":
            return f"({part('')}) {draw(st.sampled_from(['*', '+']))} ({part(shape)})"
        case "power":
            return f"({part(shape)})**{draw(st.sampled_from(['2', '3', '-1', '(1/2)', '64', '0']))}"
        case "compare":
            return f"(({part(shape)}) {draw(st.sampled_from(['>', '<=', '==']))} {part('')})"
        case "average":
            return f"{draw(st.sampled_from(['E', 'Var']))}[{part(shape)}]"
        case "where":
            return f"where({part(shape)}, {part(shape)}, {part('')})"
        case "difference":
            inner = part(shape)
            return f"({inner}) - ({inner})"
        case "reduce":
            inner = draw(st.sampled_from(["n", "m", "nn", "nm", "mn"]))
            function = draw(st.sampled_from(["sum", "mean", "max", "min", "logsumexp", "prod", "var", "std"]))
            return f"{function}({part(inner)})"
        case "dot":
            return f"({part('n')}) @ ({part('n')})"
        case "trace":
            return f"trace({part('nn')})"
        case "det":
            return f"det({part('nn')})"
        case "norm":
            return f"norm({part(draw(st.sampled_from(['n', 'nm'])))})"
        case "entry":
            return f"({part('n')})[0]"
        case "indexed":
            return f"sum(i=1..n, ({part('n')})[i] * ({part('nm')})[i, 0])"
        case "event":
            return f"P[{part('')} > {part('')}]"
        case "bars":
            return f"|{part('')}|^2"
        case "softmax":
            return f"{draw(st.sampled_from(['softmax', 'log_softmax', 'cumsum']))}({part(shape)})"
        case "row":
            return f"sum({part('nm' if shape == 'm' else 'mn')}, axis=0)"
        case "matvec":
            return f"({part('nn' if shape == 'n' else 'mn')}) @ ({part('n')})"
        case "diagonal":
            return f"diag({part('nn')})" if shape == "n" else f"({part('n')}) @ ({part('nm')})"
        case "gradient":
            return f"d({part('')})/d{'x' if shape == 'n' else 'b'}"
        case "concat":
            return f"concat({part(shape)}, {part(shape)})[0:{shape}]"
        case "list":
            return f"[{part(shape)}, {part(shape)}][1]"
        case "matmul":
            middle = draw(st.sampled_from([k for k in "nm" if shape[0] + k in LEAVES and k + shape[1] in LEAVES]))
            return f"({part(shape[0] + middle)}) @ ({part(middle + shape[1])})"
        case "outer":
            return f"outer({part(shape[0])}, {part(shape[1])})"
        case "transpose":
            return f"({part(shape[::-1])}).T"
        case "rows":
            axis = draw(st.sampled_from(["0", "1"]))
            return f"softmax({part(shape)}, axis={axis}) - mean({part(shape)}, axis={axis}, keepdims=True)"
        case "inverse":
            return f"inv({part('nn')} + eye(n))" if shape == "nn" else f"maximum({part(shape)}, {part('')})"
        case "spread":
            return f"diag({part('n')})" if shape == "nn" else f"({part(shape)}) * ({part(shape[1])})"
        case "jacobian":
            return f"jacobian({part(shape[0])}, {'x' if shape[1] == 'n' else 'b'})"
    return f"kron({part(shape)}, [[1]])"


@st.composite
def fitting_sheets(draw: st.DrawFn) -> str:
    """A sheet whose claims pass the shape check, so that the checker has to work on them."""
    claims = []
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(st.sampled_from(list(LEAVES)))
        left = draw(fitting(shape, 3))
        right = draw(st.one_of(fitting(shape, 2), st.just(f"({left}) * 1"), st.just(f"-({left})"), st.just("0")))
        claims.append(f"claim {left} {draw(st.sampled_from(['==', '==', '==', '<=', '>']))} {right}")
    return "\n".join([SETTING, *claims])


STATEMENTS = statements()
HEAD = [
    "given x: n",
    "given y: n onehot",
    "given W: n, m",
    "given A: n, n",
    "given b: m",
    "let h = tanh(x)",
    "let J = x @ A @ x",
]
SCRATCHES = [
    "",
    "(",
    ")",
    "[",
    "=",
    "**",
    "\n",
    " ",
    "d",
    "/",
    "#",
    "\x00",
    "é",
    "∞",
    ".T",
    "^",
    "_i",
    "\\",
    "|",
    "..",
    "~",
    "²",
    "Σ",
    "[i]",
    "{",
    "}",
    "'",
]


@st.composite
def sheets(draw: st.DrawFn) -> str:
    """A sheet whose first lines define what the rest is likely to use, sometimes scratched afterwards."""
    keep = draw(st.lists(st.sampled_from(HEAD), unique=True, max_size=7))
    text = "\n".join(keep + draw(st.lists(STATEMENTS, min_size=1, max_size=4)))
    for _ in range(draw(st.integers(0, 3)) if draw(st.booleans()) else 0):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        cut = draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(SCRATCHES)) + text[at + cut :]
    return text


def the_same_every_time(examples: int) -> settings:
    """So many examples, drawn without luck and without a clock: a test that fails once fails again."""
    health = list(HealthCheck)
    return settings(max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=health)
