"""Problem 7, first half: positions, and what several heads can do."""

from __future__ import annotations

import math
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.layers.positions import sinusoidal_table
from lmlab.ledger.claim import Outcome, conditional, refuted, supported
from lmlab.ledger.kit import gap, generator, normals, value
from lmlab.ledger.lab11.book import BOOK


def self_attention(x_ND: Tensor, seed: int = 60) -> Tensor:
    """One head of self-attention with fixed random weights, no positions."""
    d = x_ND.shape[1]
    wq, wk, wv = normals(seed, 3, d, d) / d**0.5
    return torch.softmax(x_ND @ wq @ (x_ND @ wk).T / d**0.5, dim=1) @ x_ND @ wv


@BOOK.claim(
    "7.1a",
    where="Problem 7.1, line 534",
    says="Self-attention is permutation-invariant.",
    latex=r"f(PX)=f(X)",
    how="All 24 orders of 4 random tokens through self-attention without positions: whether the output stays the "
    "same, and whether it is re-ordered like the input.",
    output="tokens",  # or "average": the mean of the outputs
)
def _invariant(t: SimpleNamespace) -> Outcome:
    x = normals(61, 4, 5)
    y = self_attention(x)
    read = {"tokens": lambda out: out, "average": lambda out: out.mean(0)}[t.output]
    orders = [list(order) for order in permutations(range(4))]
    unchanged = max(gap(read(self_attention(x[order])), read(y)) for order in orders)
    reordered = max(gap(self_attention(x[order]), y[order]) for order in orders)
    pooled = max(gap(self_attention(x[order]).mean(0), y.mean(0)) for order in orders)
    return refuted(
        holds=unchanged < 1e-12,
        evidence=f"Largest difference of f(PX) from f(X): {unchanged:.2f}; from P f(X): {reordered:.1e}. Only a "
        f"pooled output, such as the mean over tokens, is invariant ({pooled:.1e}).",
        corrected="Self-attention is permutation-equivariant: f(PX) = P f(X).",
        corrected_holds=reordered < 1e-12,
    )


@BOOK.claim(
    "7.1b",
    where="Problem 7.1, lines 542-550",
    says="PE(pos, 2i) = sin(pos/10000^(2i/d)), PE(pos, 2i+1) = cos of the same, where i is the dimension index.",
    latex=r"PE_{(pos,2i)}=\sin\frac{pos}{10000^{2i/d}},\quad PE_{(pos,2i+1)}=\cos\frac{pos}{10000^{2i/d}}",
    how="The entries that the two formulas fill for d = 8 when i runs over the dimensions 0..d-1, and when it runs "
    "over pairs 0..d/2-1; the filled table against the lab's own.",
    indices="d",
    corrected="d/2",
)
def _dimension_index(t: SimpleNamespace) -> Outcome:
    d = 8

    def filled(text: str) -> list[int]:
        return [place for i in range(int(value(text, d=d))) for place in (2 * i, 2 * i + 1)]

    def table() -> Tensor:
        pe = torch.zeros(20, d, dtype=torch.float64)
        for position in range(20):
            for i in range(d // 2):
                angle = position / 10_000 ** (2 * i / d)
                pe[position, 2 * i], pe[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
        return pe

    said, right = filled(t.indices), filled(t.corrected)
    same = gap(table().float(), sinusoidal_table(20, d))
    return refuted(
        holds=said == list(range(d)),
        evidence=f"With i = 0..d-1 the formulas fill entries up to {max(said)} of a vector that ends at {d - 1}; "
        f"with i = 0..d/2-1 they fill {right[0]}..{right[-1]}, each once. The formulas themselves are right: the "
        f"table differs from the lab's by {same:.0e}.",
        corrected="i = 0, ..., d/2 - 1 counts pairs of dimensions (2i, 2i+1); the dimension is 2i or 2i + 1.",
        corrected_holds=right == list(range(d)) and same < 1e-6,
    )


def middle_weight(head_width: int, draws: int = 20_000) -> float:
    """Largest weight that any query puts on the middle of three keys: the best over all random queries, keys as given."""
    keys = torch.tensor([[-1.0], [0.1], [1.0]], dtype=torch.float64)
    if head_width == 2:
        keys = torch.cat([keys, torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)], dim=1)
    queries = 30 * normals(62, draws, head_width)
    return float(torch.softmax(queries @ keys.T, dim=1)[:, 1].max())


@BOOK.claim(
    "7.2a",
    where="Problem 7.2, lines 558-562",
    says="Several heads attend to several patterns at once, which gives a better representation.",
    latex=r"Y=\sum_hA_hXW_h",
    how="Two targets at equal total width. (1) Every token needs the sum of the first token and of the one before "
    "it, each through its own map: the least error of one head against two exact heads. (2) Attending to the middle "
    "of three keys on a line: the largest weight a head of width 1 can give it, against a head of width 2.",
    heads=2,
)
def _several_heads(t: SimpleNamespace) -> Outcome:
    one, several = two_patterns(1), two_patterns(t.heads)
    narrow, wide = middle_weight(1), middle_weight(2)
    return conditional(
        with_condition=several < 1e-9 < one,
        without_condition=several < 1e-9 < one and narrow > 0.9,
        evidence=f"Two patterns at once: relative error {several:.1e} with {t.heads} heads, {one:.2f} with the best "
        "single mixture (one map would have to be proportional to both). One pattern that needs width: heads of "
        f"width 1 give the middle key at most {narrow:.3f} (convexity of exp keeps it below one half), a single "
        f"head of width 2 gives {wide:.3f}. More heads at the same total width are narrower heads.",
        corrected="Several heads help where several patterns are needed at once; at a fixed total width each becomes "
        "narrower, and a pattern that needs a wide head is then out of reach.",
    )


def two_patterns(heads: int) -> float:
    """Least relative error in producing (first token) B + (previous token) C by attention with so many heads.

    One head mixes with a single A and one map: Y = A X W. For a fixed A the best W is a least-squares problem; A is
    searched over mixtures of the two patterns. Two heads use each pattern with its own map.
    """
    n, d = 8, 3
    x = normals(63, 40, n, d)
    first, previous = torch.zeros(n, n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
    first[:, 0] = 1.0
    previous[torch.arange(n), (torch.arange(n) - 1).clamp(min=0)] = 1.0
    b, c = normals(64, 2, d, d)
    target = (first @ x @ b + previous @ x @ c).reshape(-1, d)
    errors = []
    for share in np.linspace(0, 1, 51):
        mixed = [first, previous] if heads > 1 else [share * first + (1 - share) * previous]
        inputs = torch.cat([a @ x for a in mixed], dim=2).reshape(-1, d * len(mixed))
        solution = torch.linalg.lstsq(inputs, target).solution
        errors.append(float((inputs @ solution - target).norm() / target.norm()))
    return min(errors)


class Reader(nn.Module):
    """Queries look at a sentence through two heads and answer with one word: cross-attention and nothing else."""

    def __init__(self, words: int, places: int, width: int = 32) -> None:
        super().__init__()
        self.words, self.places, self.queries = (
            nn.Embedding(words, width),
            nn.Embedding(places, width),
            nn.Embedding(places, width),
        )
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, x_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Logits for each query, and each head's weights B×H×Q×T."""
        places = torch.arange(x_BT.shape[1])
        memory = self.words(x_BT) + self.places(places)
        asked = self.queries(places).expand(len(x_BT), -1, -1)
        out, weights = self.attend(asked, memory, memory, average_attn_weights=False)
        return self.out(out), weights


def train_reader(steps: int, task: str) -> float:
    """Share of the better head's attention on the right word after training.

    task: "alignment" in a reversed language, or "agreement" with the only noun.
    """
    rng = generator(65)
    length = 6
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Reader(words=22, places=length)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def batch(rows: int) -> tuple[Tensor, Tensor, Tensor]:
        x = torch.from_numpy(rng.integers(0, 20, (rows, length)))
        if task == "alignment":
            return x, x.flip(1), torch.arange(length).flip(0).expand(rows, -1)
        subject = torch.from_numpy(rng.integers(0, length, rows))
        number = torch.from_numpy(rng.integers(20, 22, rows))  # words 20 and 21: the only nouns, singular and plural
        x[torch.arange(rows), subject] = number
        return x, number[:, None].expand(-1, length), subject[:, None].expand(-1, length)

    for _ in range(steps):
        x, y, _ = batch(64)
        loss = nn.functional.cross_entropy(model(x)[0].flatten(0, 1), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, _, place = batch(500)
        weights = model(x)[1]
        on_target = weights.gather(3, place[:, None, :, None].expand(-1, 2, -1, 1)).mean(dim=(0, 2, 3))
    return float(on_target.max())


@BOOK.claim(
    "7.2d",
    where="Problem 7.2, lines 567-569",
    says="Heads find structure: syntactic relations, references, alignments in translation.",
    latex=r"\alpha_{\text{verb},\text{subject}}\approx1,\quad\alpha_{\text{target},\text{source}}\approx1",
    how="Two small attention models trained on invented languages: translating into the reversed order, and stating "
    "the number of the only noun in a sentence. Share of a head's weight on the aligned word, or on the noun, "
    "before and after training (chance: 1/6); found means above one half.",
    steps=300,
)
def _structure(t: SimpleNamespace) -> Outcome:
    before = {task: train_reader(0, task) for task in ("alignment", "agreement")}
    after = {task: train_reader(t.steps, task) for task in before}
    return supported(
        min(after.values()) > 0.5,
        "; ".join(
            f"{task}: {before[task]:.2f} of the weight before training, {after[task]:.2f} after" for task in after
        )
        + ". Nothing told the heads where to look. This shows that they can find such relations where predicting "
        "needs them; which head finds what in a large model is a matter of measuring that model.",
    )
