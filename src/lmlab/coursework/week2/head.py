"""E2: the steps of one attention head, and what it computes in which order, on the lab's model."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, exact, ill_posed, judged, measured
from lmlab.coursework.lab import attention
from lmlab.coursework.shared_tools import gap, order_of_a_weighted_mean, row, value, yes
from lmlab.coursework.sheet import confirmed, put

if TYPE_CHECKING:
    from lmlab.models.attention import Attention

claim = book("week2").claim

WORDS = [3, 7, 1, 4, 9]
SIZES = {"V": 20, "d": 6, "h": 5, "k": 4, "v": 3}


def made(N: int) -> Attention:
    """The lab's model that predicts from N - 1 words."""
    return attention(SIZES["V"], SIZES["d"], N, SIZES["h"], SIZES["k"], SIZES["v"])


def head() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """On five words: their embeddings, the scores by the document's formula, and the lab's vector a and weights α."""
    model = made(len(WORDS) + 1)
    with torch.no_grad():
        e_ND = model.embedding_VD[WORDS]
        scores_N = (model.query_KD @ e_ND[-1]) @ (e_ND @ model.key_KD.T).T / SIZES["k"] ** 0.5
        a_BTX, alpha_BTC = model.attend(torch.tensor([WORDS]))
    return e_ND, scores_N, a_BTX[0, -1], alpha_BTC[0, -1]


@claim("E2a", scores="(N-1)**2", corrected="N-1")
def _each_pair(t: SimpleNamespace) -> Outcome:
    lengths = (3, 5, 9)
    found = {n: made(n).attend(torch.zeros(1, n - 1, dtype=torch.long))[1].numel() for n in lengths}
    _, scores_N, _, alpha_N = head()
    the_formula_s = gap(torch.softmax(scores_N, dim=0), alpha_N)
    said = {n: int(value(t.scores, N=n)) for n in lengths}
    return judged(
        measured(found == said),
        f"All scores the lab's model computes for one prediction, beside the {t.scores} claimed: "
        + "; ".join(f"N = {n}: {found[n]}, claimed {said[n]}" for n in lengths)
        + f". They are those of the document's formula: its weights differ by {the_formula_s:.0e}.",
        because="The query is e_(t-1) alone; the pairs of other words are never compared.",
        corrected=f"Step 1 computes the {t.corrected} scores between the last embedding e_{{t-1}} and every embedding e_i.",
        holds=the_formula_s < 1e-6 and all(count == value(t.corrected, N=n) for n, count in found.items()),
    )


@claim("E2b", over="each score")  # or "all scores"
def _softmax_of_scalar(t: SimpleNamespace) -> Outcome:
    _, scores_N, _, alpha_N = head()
    whole = torch.softmax(scores_N, dim=0)
    each = torch.stack([torch.softmax(s[None], dim=0)[0] for s in scores_N])
    literal = {"each score": each, "all scores": whole}[t.over]
    total, off = float(literal.sum()), gap(whole, alpha_N)
    return ill_posed(
        abs(total - 1) > 1e-6,
        f"A softmax over {t.over}: the {len(literal)} weights are {row(map(float, literal), '{:.3g}')}; their sum is "
        f"{total:g}.",
        f"Over all scores they are {row(map(float, whole), '{:.3f}')}, the lab's weights up to {off:.0e}.",
        because="A softmax of a single number is 1, so as written they are no weights.",
        repaired="α_i = exp(s_i)/Σ_j exp(s_j) with s_i = score(e_{t-1}, e_i): the i-th entry of the softmax of all "
        "N - 1 scores.",
        holds=off < 1e-6,
        otherwise=exact(gap(literal, alpha_N) < 1e-6),
    )


@claim(
    "E2c",
    derivation="given e: n, d\ngiven W: v, d\ngiven alpha: n simplex\nlet a = sum(reshape(alpha, n, 1) * (e @ W.T), "
    "axis=0)\nclaim shape(a) == [v]\nclaim a == W @ (alpha @ e)",
    width="v",
)
def _attention_vector(t: SimpleNamespace) -> Outcome:
    e_ND, _, a_X, alpha_N = head()
    value_XD = made(len(WORDS) + 1).value_XD.detach()
    by_hand = torch.stack([weight * (value_XD @ e) for weight, e in zip(alpha_N, e_ND, strict=True)]).sum(0)
    width = int(value(t.width, **SIZES))
    right = gap(by_hand, a_X) < 1e-6 and len(a_X) == width
    return confirmed(
        put(t.derivation),
        right,
        f"The lab's model, d_v = {SIZES['v']}: {len(a_X)} numbers, claimed {width}; differs from the sum by hand by "
        f"{gap(by_hand, a_X):.0e}.",
    )


@claim("E2d", moved=4)  # how many of the five words are re-ordered, from the left
def _order(t: SimpleNamespace) -> Outcome:
    change = order_of_a_weighted_mean()
    model = made(len(WORDS) + 1)

    def moved_by(order: list[int]) -> float:
        after, before = (model.advance(torch.tensor([words]), model.begin(1)[1])[0] for words in (order, WORDS))
        return gap(after, before)

    orders = [[*order, *WORDS[t.moved :]] for order in permutations(WORDS[: t.moved])]
    worst, last = max(map(moved_by, orders)), moved_by([*WORDS[:-2], WORDS[-1], WORDS[-2]])
    return judged(
        exact(change == 0 and worst < 1e-5),
        f"Exchange of two words, symbolically: the weighted sum changes by {change}; exchanges generate all orders.",
        f"The lab's model, all {len(orders)} orders of the first {t.moved} of {len(WORDS)} words: log-probabilities move "
        f"by at most {worst:.1e}; exchanging the last word with the one before it: {last:.2f}. Unnoticed: "
        f"{yes(worst < 1e-5)}.",
    )
