"""A deep averaging network, built small, and reviews to try it on: made up by a tiny grammar, or real ones where at hand."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.coursework.lab import bench_file
from lmlab.coursework.shared_tools import descend, generator, seeded

WORDS = {
    "positive": "entertaining recommend good liked awesome stunning perfect fun badass enjoyed lovely great",
    "negative": "boring disappointment barely unfunny poor nosedived bore tame bad cliche awful dull",
    "neutral": "the a movie film plot scene actor story this that it was is half example of and with short man year",
}
POSITIVE, NEGATIVE, NEUTRAL = (words.split() for words in WORDS.values())

Review = tuple[list[str], int]  # words, and 1 for a good review


class DeepAverage(nn.Module):
    """A deep averaging network: the mean of the word vectors, one hidden layer, one logit (positive: a good review).

    `pooling="decaying"` weighs early words more; it exists to show what a model would need in order to see an order.
    """

    def __init__(self, words: Sequence[str], pooling: str = "mean", width: int = 32) -> None:
        super().__init__()
        self.ids = {word: i + 1 for i, word in enumerate(words)}
        self.pooling = pooling
        self.embed = nn.Embedding(len(words) + 1, width)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def pooled(self, words: Sequence[str]) -> Tensor:
        """The average of the word vectors."""
        vectors: Tensor = self.embed(torch.tensor([self.ids.get(word, 0) for word in words]))
        if self.pooling == "mean":
            return vectors.mean(0)
        weights = torch.softmax(-torch.arange(len(words), dtype=vectors.dtype) / 5, dim=0)
        return weights @ vectors

    def forward(self, reviews: Sequence[Sequence[str]]) -> Tensor:
        """One logit for each review."""
        mean_BD = torch.stack([self.pooled(words) for words in reviews])
        logits: Tensor = self.out(torch.relu(self.hidden(mean_BD)))[:, 0]
        return logits

    @torch.no_grad()
    def logit(self, words: Sequence[str]) -> float:
        """The logit of one review."""
        return float(self([words])[0])


def made_up_reviews(count: int, seed: int) -> list[Review]:
    """Reviews of 12 to 30 words from a tiny grammar in which `not` turns the next opinion round."""
    rng = generator(seed)
    reviews: list[Review] = []
    while len(reviews) < count:
        words: list[str] = []
        balance, lean = 0, rng.random()
        for _ in range(rng.integers(12, 31)):
            if rng.random() < 0.65:
                words.append(str(rng.choice(NEUTRAL)))
                continue
            good, turned = rng.random() < lean, rng.random() < 0.25
            words += ["not"] * turned + [str(rng.choice(POSITIVE if good else NEGATIVE))]
            balance += 1 if good != turned else -1
        if balance:
            reviews.append((words, int(balance > 0)))
    return reviews


def fit(reviews: Sequence[Review], vocabulary: Sequence[str], epochs: int, pooling: str = "mean") -> DeepAverage:
    """Train a network on reviews, the same way every time."""
    model: DeepAverage = seeded(lambda: DeepAverage(vocabulary, pooling))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    labels = torch.tensor([float(label) for _, label in reviews])
    rng = generator(5)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(reviews)), max(1, len(reviews) // 64)):
            loss = nn.functional.binary_cross_entropy_with_logits(model([reviews[i][0] for i in batch]), labels[batch])
            descend(optimizer, loss)
    return model.double().eval()  # so that rounding cannot be mistaken for an effect


@cache
def trained(pooling: str = "mean") -> DeepAverage:
    """The network trained on made-up reviews."""
    return fit(made_up_reviews(2000, seed=1), [*POSITIVE, *NEGATIVE, *NEUTRAL, "not"], epochs=6, pooling=pooling)


def film_reviews(part: str, count: int) -> list[Review] | None:
    """Real film reviews of the bench corpora, both kinds in turn, or None where they are not at hand."""
    path = bench_file("imdb", f"{part}.tsv.gz")
    if path is None:
        return None
    by_label: dict[str, list[list[str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for label, text in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            found = by_label.setdefault(label, [])
            if len(found) < count // 2:
                found.append(re.findall(r"[a-z']+", text.lower())[:300])
    good = max(by_label, key=lambda label: label in ("1", "pos", "positive"))
    return [(words, int(label == good)) for label, texts in by_label.items() for words in texts if words]


def flipped_by(model: DeepAverage, words: Sequence[str], label: int) -> list[str]:
    """The fewest words whose removal, the most misleading first, turns a wrong decision right. Empty: none do."""
    left, taken = list(words), []
    sign = 1 if label else -1
    while len(set(left)) > 1 and sign * model.logit(left) < 0:
        base = model.logit(left)
        pulls = {word: sign * (model.logit([w for w in left if w != word]) - base) for word in sorted(set(left))}
        worst = max(pulls, key=lambda word: pulls[word])
        if pulls[worst] <= 0:
            return []
        taken.append(worst)
        left = [w for w in left if w != worst]
    return taken
