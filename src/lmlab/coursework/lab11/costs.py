"""Problem 7, second half: what attention costs, counted by running it, and what a second target language adds."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import formula, gap, letter, letters, row, seeded, value, yes

claim = book("lab11").claim

# M, N, k: three of each settle a polynomial of degree two
SIZES = tuple(product((3, 40, 128), (5, 64, 96), (4, 16, 32)))
ENCODER, DECODER, CROSS = ("M", "M"), ("N", "N"), ("N", "M")  # whose queries, and whose keys and values


def attention(queries: Tensor, memory: Tensor) -> Tensor:
    """Single-head attention with its four projections; queries from one sequence, keys and values from another."""
    k = queries.shape[1]
    wq, wk, wv, wo = (torch.empty(k, k, device=queries.device) for _ in range(4))
    scores = (queries @ wq) @ (memory @ wk).T
    return torch.softmax(scores / k**0.5, dim=1) @ (memory @ wv) @ wo


def operations(n: int, m: int, k: int) -> int:
    """Multiplications and additions of attention from n queries to m tokens, counted while it runs without memory."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        attention(torch.empty(n, k), torch.empty(m, k))
    return int(counter.get_total_flops())


def counted(text: str, kind: tuple[str, str]) -> bool:
    """Whether a formula gives exactly the operations counted, on the grid of sizes."""
    for m, n, k in SIZES:
        queries, memory = ({"M": m, "N": n}[length] for length in kind)
        if operations(queries, memory, k) != value(text, M=m, N=n, k=k):
            return False
    return True


def same_order(count: str, bound: str) -> tuple[sympy.Expr, sympy.Expr] | None:
    """Constants a, b > 0 with a·bound ≤ count ≤ b·bound for all sizes, from the coefficients; None if the terms differ."""
    left, right = (sympy.Poly(sympy.expand(formula(text)), *letters("M N k")).as_dict() for text in (count, bound))
    if set(left) != set(right) or min([*left.values(), *right.values()]) <= 0:
        return None
    ratios = [left[term] / right[term] for term in left]
    return min(ratios), max(ratios)


def order_of(kind: tuple[str, str], t: SimpleNamespace) -> tuple[bool, str]:
    """Whether the bound is the order of the counted cost, and the evidence."""
    fits, constants = counted(t.count, kind), same_order(t.count, t.bound)
    between = (
        f"{constants[0]}·({t.bound}) ≤ count ≤ {constants[1]}·({t.bound}) for all sizes"
        if constants
        else f"no constants keep the count between multiples of {t.bound}, which has other terms"
    )
    return fits and constants is not None, (
        f"Operations of attention with its four projections, counted while it runs at {len(SIZES)} sizes, equal {t.count}: "
        f"{yes(fits)}; {between}."
    )


@claim("7.3a.1", bound="M**2*k + M*k**2", count="8*M*k**2 + 4*M**2*k")
def _encoder(t: SimpleNamespace) -> Outcome:
    right, evidence = order_of(ENCODER, t)
    return judged(exact(right), evidence)


@claim("7.3b.1", bound="N*k**2 + M*k**2 + M*N*k", count="4*N*k**2 + 4*M*k**2 + 4*M*N*k")
def _cross(t: SimpleNamespace) -> Outcome:
    right, evidence = order_of(CROSS, t)
    return judged(exact(right), evidence)


def within(bound: str, kept: str, longer: str, times: int) -> tuple[bool, sympy.Expr, sympy.Expr]:
    """Whether bound ≤ times·kept wherever these lengths are at least k: the quotient, and what is left to `times`.

    A length of at least k is k + s with s ≥ 0; the rest must be seen to be non-negative symbolically.
    """
    quotient = sympy.expand(formula(bound) / formula(kept))
    beyond = {letter(name): letter("k") + sympy.Symbol(f"s_{name}", nonnegative=True) for name in longer}
    rest = sympy.factor(sympy.together(times - quotient.subs(beyond)))
    return bool(rest.is_nonnegative), quotient, rest


def shortened(t: SimpleNamespace, kind: tuple[str, str], examples: dict[str, tuple[int, int, int]]) -> Outcome:
    """A bound from which terms are dropped under the document's own condition, that these lengths exceed k."""
    right, evidence = order_of(kind, t)
    holds, quotient, rest = within(t.bound, t.kept, t.longer, t.times)
    elsewhere = {
        name: float(quotient.subs(dict(zip(letters("M N k"), at, strict=True)))) for name, at in examples.items()
    }
    return judged(
        exact(right and holds),
        evidence,
        f"({t.bound})/({t.kept}) = {quotient}. With {row(t.longer)} at least k, {t.times} less the quotient is {rest}, which "
        f"is never negative: {yes(holds)}.",
        note="The document names its condition, and under it the bound stands. Whether that is typical is another matter: "
        + "; ".join(f"{name}: {ratio:.1f}" for name, ratio in elsewhere.items())
        + "; as k grows the quotient has no bound.",
    )


@claim("7.3a.2", bound="M**2*k + M*k**2", count="8*M*k**2 + 4*M**2*k", kept="M**2*k", longer="M", times=2)
def _encoder_short(t: SimpleNamespace) -> Outcome:
    published = {
        "a sentence of 25 words with k = 512": (25, 1, 512),
        "BERT-Large (512, 1024)": (512, 1, 1024),
        "GPT-3 (2048, 12288)": (2048, 1, 12288),
    }
    return shortened(t, ENCODER, published)


@claim(
    "7.3b.2",
    bound="N*k**2 + M*k**2 + M*N*k",
    count="4*N*k**2 + 4*M*k**2 + 4*M*N*k",
    kept="M*N*k",
    longer="MN",
    times=3,
)
def _cross_short(t: SimpleNamespace) -> Outcome:
    short = {"M = N = 25 with k = 512": (25, 25, 512), "M = 100,000 but N = 10": (100_000, 10, 512)}
    return shortened(t, CROSS, short)


@claim("7.3c", bound="N**2*k + N*k**2", count="8*N*k**2 + 4*N**2*k", kept="N**2*k")
def _decoder(t: SimpleNamespace) -> Outcome:
    right, evidence = order_of(DECODER, t)
    limit = sympy.limit(formula(t.bound) / formula(t.kept), letter("N"), sympy.oo)
    return judged(
        exact(right and limit.is_finite is True and limit.is_positive is True),
        evidence,
        f"({t.bound})/({t.kept}) tends to {limit} as N grows with k fixed.",
        note="The sentence names its condition, a large N. The mask halves the pairs, a constant.",
    )


@claim("7.4a", part="encoder")
def _independent(t: SimpleNamespace) -> Outcome:
    def made() -> tuple[nn.Transformer, Tensor, Tensor, Tensor]:
        model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True).eval()
        return model, torch.randn(1, 5, 16), torch.randn(1, 4, 16), torch.randn(1, 4, 16)

    model, source, one, other = seeded(made)
    seen: list[Tensor] = []
    hook = getattr(model, t.part).register_forward_hook(lambda module, inputs, output: seen.append(output))
    one.requires_grad_()
    model(source, one)
    model(source, other)
    hook.remove()
    apart = gap(seen[0].detach(), seen[1].detach())
    path = torch.autograd.grad(seen[0].sum(), one, allow_unused=True)[0]
    return judged(
        exact(apart == 0.0 and path is None),
        f"torch's encoder-decoder Transformer on two targets: the {t.part}'s outputs differ by {apart:g}; a gradient path from "
        f"the target to them exists: {yes(path is not None)}.",
        note="(In training, the decoder's error does reach the encoder's weights.)",
    )


@claim("7.4b", kept="N**2 + M*N", full="12*N*k**2 + 4*M*k**2 + 4*N**2*k + 4*M*N*k + 16*N*k**2", width=64, hundreds=512)
def _second_language(t: SimpleNamespace) -> Outcome:
    m, n, k = letters("M N k")
    fits = all(
        operations(N, N, K) + operations(N, M, K) + 2 * (2 * N * K * 4 * K) == value(t.full, M=M, N=N, k=K)
        for M, N, K in SIZES
    )  # the MLP: two products of N×k by k×4k
    full, kept = formula(t.full), formula(t.kept)
    ratio = sympy.lambdify((m, n), (full / kept).subs(k, t.width))
    ratios = [float(ratio(a, b)) for a in (1, 10, 1000, 10**6) for b in (1, 10, 1000, 10**6)]
    at = {m: 25, n: 25, k: t.hundreds}
    wide, in_pairs = float((full / (k * kept)).subs(at)), float((4 * k * kept / full).subs(at))
    return conditional(
        exact(fits and min(ratios) >= t.width and max(ratios) <= 2 * float(ratio(1, 1))),
        measured(wide <= 16),
        f"A decoder layer (attention to itself and to the encoder, an MLP four times as wide), counted while it runs, costs "
        f"{t.full}: {yes(fits)}. k = {t.width} held fixed, divided by {t.kept}: between {min(ratios):,.0f} and "
        f"{max(ratios):,.0f} at lengths from 1 to a million.",
        f"Against ({t.kept})·k with N = M = 25, k = {t.hundreds} the quotient is {wide:.0f}; products between tokens are "
        f"{100 * in_pairs:.0f} % of the work.",
        because="The rest is products with k × k matrices, which the answer leaves out.",
        precisely="With k held fixed the extra cost is O(N² + MN), the encoder's output being reused; as a statement "
        "with k it is O(N²k + MNk + Nk² + Mk²), of which the last two dominate for sentences.",
    )


@claim("7.4c", cost="M*N")
def _bilinear(t: SimpleNamespace) -> Outcome:
    m, n = letters("M N")
    cost = formula(t.cost)

    def scores(queries: int, memory: int) -> int:
        with FlopCounterMode(display=False) as counter, torch.device("meta"):
            torch.empty(queries, 16) @ torch.empty(memory, 16).T
        return int(counter.get_total_flops())

    said = [
        sympy.simplify(cost.subs(longer, simultaneous=True) / cost)
        for longer in ({m: 2 * m}, {n: 2 * n}, {m: 2 * m, n: 2 * n})
    ]
    base = scores(10, 40)
    found = [sympy.Rational(scores(*sizes), base) for sizes in ((20, 40), (10, 80), (20, 80))]
    return judged(
        exact(said == found and said[:2] == [2, 2]),
        f"Doubling M alone, N alone and both multiplies {t.cost} by {row(said)}; the score matrix, counted while it "
        f"runs, by {row(found)}.",
        note="It is linear in each length with the other held fixed; sentences twice as long on both sides cost four times "
        "as much.",
    )
