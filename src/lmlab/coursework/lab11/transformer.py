"""Problem 7, first half: positions, and what several heads can do."""

from __future__ import annotations

import math
from itertools import permutations
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import attention, descend, gap, generator, normals, row, seeded, value, zeros
from lmlab.coursework.sheet import put
from lmlab.layers.positions import sinusoidal_table

claim = book("lab11").claim


@claim("7.1a", output="tokens")  # or "average": the mean of the outputs
def _invariant(t: SimpleNamespace) -> Outcome:
    x, orders = normals(61, 4, 5), [list(order) for order in permutations(range(4))]
    y = attention(x, 60)
    read = {"tokens": lambda out: out, "average": lambda out: out.mean(0)}
    outputs = [(order, attention(x[order], 60)) for order in orders]
    unchanged, pooled = (
        max(gap(read[kind](out), read[kind](y)) for _, out in outputs) for kind in (t.output, "average")
    )
    reordered = max(gap(out, y[order]) for order, out in outputs)
    return judged(
        measured(unchanged < 1e-12),
        f"Self-attention without positions on all {len(orders)} orders of 4 random tokens: f(PX) and f(X), read as {t.output}, "
        f"differ by up to {unchanged:.2g}; f(PX) and P f(X) by {reordered:.1e}; the mean over tokens by {pooled:.1e}.",
        because="Only a pooled output is invariant.",
        corrected="Self-attention is permutation-equivariant: f(PX) = P f(X).",
        holds=reordered < 1e-12,
    )


@claim("7.1b", indices="d", corrected="d/2", width=8)
def _dimension_index(t: SimpleNamespace) -> Outcome:
    d, positions = t.width, 20

    def filled(text: str) -> list[int]:
        return [place for i in range(int(value(text, d=d))) for place in (2 * i, 2 * i + 1)]

    table = zeros(positions, d)
    for position in range(positions):
        for i in range(d // 2):
            angle = position / 10_000 ** (2 * i / d)
            table[position, 2 * i], table[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
    said, right, same = filled(t.indices), filled(t.corrected), gap(table.float(), sinusoidal_table(positions, d))
    return judged(
        exact(said == list(range(d))),
        f"d = {d}. With i from 0 to below {t.indices} the formulas fill entries {said[0]}..{said[-1]} of a vector that ends at "
        f"{d - 1}; with i below {t.corrected} entries {right[0]}..{right[-1]}.",
        because=f"The formulas themselves are right: the table differs from the lab's by {same:.0e}.",
        corrected=f"i = 0, ..., {t.corrected} - 1 counts pairs of dimensions (2i, 2i+1); the dimension is 2i or 2i + 1.",
        holds=right == list(range(d)) and same < 1e-6,
    )


def least_error(heads: int) -> float:
    """Least relative error in producing (first token) B + (previous token) C by so many heads whose weights depend on places.

    A head with weights a_1 on the one token and a_2 on the other and the map W misses B by B - a_1 W and C by C - a_2 W; on
    tokens with unit covariance the squared error is |B - Σ a_1 W|² + |C - Σ a_2 W|². The sums over heads are a matrix
    of rank `heads` beside [vec B, vec C], so the least error is what its singular values leave (Eckart and Young).
    """
    b, c = normals(64, 2, 3, 3)
    singular = torch.linalg.svdvals(torch.stack([b.flatten(), c.flatten()]))
    return float(singular[heads:].norm() / singular.norm())


def middle_weight(head_width: int, draws: int = 20_000) -> float:
    """Largest weight that any of many random queries puts on the middle of three keys on a line."""
    line = torch.tensor([[-1.0], [0.1], [1.0]], dtype=torch.float64)
    beside = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)  # what a second coordinate may add
    keys = torch.cat([line, beside], dim=1)[:, :head_width]
    return float(torch.softmax(30 * normals(62, draws, head_width) @ keys.T, dim=1)[:, 1].max())


@claim(
    "7.2a",
    heads=2,
    narrow=1,
    convexity="given q, x, y\ngiven a: fraction\nclaim exp(q * (a * x + (1 - a) * y)) <= exp(q * x) + exp(q * y)",
)
def _several_heads(t: SimpleNamespace) -> Outcome:
    one, several = least_error(1), least_error(t.heads)
    sheet, weights = put(t.convexity), {width: middle_weight(width) for width in (t.narrow, 2)}
    reached = weights[t.narrow] > 0.5
    return conditional(
        exact(several < 1e-9 < one),
        measured(sheet.holds and reached),
        f"Two patterns at once, the first token through one map and the previous token through another: least relative error, "
        f"over all weights that depend on places and all maps, {one:.2f} with one head, {several:.1e} with {t.heads}.",
        f"One pattern that needs width, attending to the middle of three keys on a line: {sheet} So a head of width 1 gives "
        f"the middle key less than the two outer ones together; the most found for width {t.narrow} is "
        f"{weights[t.narrow]:.3f}, for width 2 {weights[2]:.3f}.",
        because="More heads at the same total width are narrower heads, and there one of them does worse than a wide one.",
        precisely="Several heads help where several patterns are needed at once; at a fixed total width each becomes "
        "narrower, and a pattern that needs a wide head is then out of reach.",
    )


class Reader(nn.Module):
    """Queries look at a sentence through two heads and answer with one word: cross-attention and nothing else."""

    def __init__(self, words: int, places: int, width: int = 32) -> None:
        super().__init__()
        self.words, self.places, self.queries = (nn.Embedding(n, width) for n in (words, places, places))
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, x_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Logits for each query, and each head's weights B×H×Q×T."""
        places = torch.arange(x_BT.shape[1])
        memory = self.words(x_BT) + self.places(places)
        asked = self.queries(places).expand(len(x_BT), -1, -1)
        out, weights = self.attend(asked, memory, memory, average_attn_weights=False)
        return self.out(out), weights


LENGTH = 6


def train_reader(steps: int, task: str) -> float:
    """Share of the better head's attention on the right word after training.

    task: "alignment" in a reversed language, or "agreement" with the only noun.
    """
    rng, model = generator(65), seeded(lambda: Reader(words=22, places=LENGTH))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def batch(rows: int) -> tuple[Tensor, Tensor, Tensor]:
        x = torch.from_numpy(rng.integers(0, 20, (rows, LENGTH)))
        if task == "alignment":
            return x, x.flip(1), torch.arange(LENGTH).flip(0).expand(rows, -1)
        subject = torch.from_numpy(rng.integers(0, LENGTH, rows))
        number = torch.from_numpy(rng.integers(20, 22, rows))  # words 20 and 21: the only nouns, singular and plural
        x[torch.arange(rows), subject] = number
        return x, number[:, None].expand(-1, LENGTH), subject[:, None].expand(-1, LENGTH)

    for _ in range(steps):
        x, y, _ = batch(64)
        loss = nn.functional.cross_entropy(model(x)[0].flatten(0, 1), y.reshape(-1))
        descend(optimizer, loss)
    with torch.no_grad():
        x, _, place = batch(500)
        weights = model(x)[1]
        on_target = weights.gather(3, place[:, None, :, None].expand(-1, 2, -1, 1)).mean(dim=(0, 2, 3))
    return float(on_target.max())


@claim("7.2d", steps=300, found=0.5)
def _structure(t: SimpleNamespace) -> Outcome:
    tasks = ("alignment", "agreement")
    before, after = ({task: train_reader(steps, task) for task in tasks} for steps in (0, t.steps))
    return judged(
        measured(min(after.values()) > t.found),
        f"Two small attention models learn invented languages, {t.steps} steps: translating into the reversed order, and "
        f"stating the number of the only noun. Share of a head's weight on the aligned word or the noun (chance 1/{LENGTH}; "
        f"found means above {t.found:g}): "
        + row(f"{task} {before[task]:.2f} before, {after[task]:.2f} after" for task in tasks)
        + ".",
        note="Nothing told the heads where to look. This shows that they can find such relations where predicting needs them; "
        "which head finds what in a large model is a matter of measuring that model.",
    )
