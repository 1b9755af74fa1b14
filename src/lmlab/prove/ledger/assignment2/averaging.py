"""Section 4: deep averaging networks, built small, and what an average of word vectors can see."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from lmlab.prove.ledger.assignment2.book import BOOK
from lmlab.prove.ledger.claim import Outcome, answered, conditional, refuted
from lmlab.prove.ledger.kit import generator

POSITIVE = "entertaining recommend good liked awesome stunning perfect fun badass enjoyed lovely great".split()
NEGATIVE = "boring disappointment barely unfunny poor nosedived bore tame bad cliche awful dull".split()
NEUTRAL = "the a movie film plot scene actor story this that it was is half example of and with short man year".split()

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
        vectors = self.embed(torch.tensor([self.ids.get(word, 0) for word in words]))
        if self.pooling == "mean":
            return vectors.mean(0)
        weights = torch.softmax(-torch.arange(len(words), dtype=vectors.dtype) / 5, dim=0)
        return weights @ vectors

    def forward(self, reviews: Sequence[Sequence[str]]) -> Tensor:
        """One logit for each review."""
        mean_BD = torch.stack([self.pooled(words) for words in reviews])
        return self.out(torch.relu(self.hidden(mean_BD)))[:, 0]

    @torch.no_grad()
    def logit(self, words: Sequence[str]) -> float:
        """The logit of one review."""
        return float(self([words])[0])


def made_up_reviews(count: int, seed: int) -> list[Review]:
    """Reviews of 12 to 30 words from a tiny grammar in which `not` turns the next opinion round."""
    rng = generator(seed)
    reviews = []
    while len(reviews) < count:
        words, balance = [], 0
        lean = rng.random()
        for _ in range(rng.integers(12, 31)):
            draw = rng.random()
            if draw < 0.65:
                words.append(str(rng.choice(NEUTRAL)))
                continue
            good = rng.random() < lean
            turned = rng.random() < 0.25
            words += ["not"] * turned + [str(rng.choice(POSITIVE if good else NEGATIVE))]
            balance += 1 if good != turned else -1
        if balance:
            reviews.append((words, int(balance > 0)))
    return reviews


def fit(reviews: Sequence[Review], vocabulary: Sequence[str], epochs: int, pooling: str = "mean") -> DeepAverage:
    """Train a network on reviews, the same way every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DeepAverage(vocabulary, pooling)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    labels = torch.tensor([float(label) for _, label in reviews])
    rng = generator(5)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(reviews)), max(1, len(reviews) // 64)):
            loss = nn.functional.binary_cross_entropy_with_logits(model([reviews[i][0] for i in batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.double().eval()  # so that rounding cannot be mistaken for an effect


@lru_cache(maxsize=2)
def trained(pooling: str = "mean") -> DeepAverage:
    """The network trained on made-up reviews."""
    return fit(made_up_reviews(2000, seed=1), POSITIVE + NEGATIVE + NEUTRAL + ["not"], epochs=6, pooling=pooling)


def film_reviews(part: str, count: int) -> list[Review] | None:
    """Real film reviews of the bench corpora, both kinds in turn, or None where they are not at hand."""
    folder = os.environ.get("LMLAB_BENCH_DATA")
    if not folder or not (path := Path(folder, "imdb", f"{part}.tsv.gz")).exists():
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
    while len(left) > 1 and sign * model.logit(left) < 0:
        base = model.logit(left)
        pulls = {word: sign * (model.logit([w for w in left if w != word]) - base) for word in set(left) if len(set(left)) > 1}
        if not pulls or max(pulls.values()) <= 0:
            return []
        worst = max(sorted(pulls), key=lambda word: pulls[word])
        taken.append(worst)
        left = [w for w in left if w != worst]
    return taken


def opinions(words: Sequence[str], turning: bool) -> int:
    """Good opinions less bad ones, with `not` turning the next one round or ignored."""
    total = 0
    for before, word in zip(["", *words], words, strict=False):
        side = (word in POSITIVE) - (word in NEGATIVE)
        total += -side if turning and before == "not" else side
    return total


def rewritten(words: Sequence[str]) -> list[str]:
    """The review with every negated opinion replaced by an opposite word."""
    out: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if before == "not" and word in POSITIVE + NEGATIVE:
            out[-1] = NEGATIVE[POSITIVE.index(word)] if word in POSITIVE else POSITIVE[NEGATIVE.index(word)]
        else:
            out.append(word)
    return out


@BOOK.claim(
    "4e.0",
    where="4 e, line 230",
    says="Sample five misclassified reviews of the best averaging network and explain each error. (The document shows neither the reviews nor the network.)",
    latex=r"f(w_1,\dots,w_n)=g\left(\tfrac1n\sum_i e_{w_i}\right)",
    how="A deep averaging network trained on 2,000 made-up reviews in which 'not' turns the next opinion round; its five most confident errors on 400 new ones. An "
    "explanation counts only if it passes a test: writing each negated opinion as an opposite word must turn the decision right. With the bench "
    "corpora, also film reviews: the words whose removal turns the decision.",
    repair="opposite words",
)
def _five_errors(t: SimpleNamespace) -> Outcome:
    model = trained()
    reviews = made_up_reviews(400, seed=2)
    errors = sorted(((w, label) for w, label in reviews if (model.logit(w) > 0) != bool(label)), key=lambda e: -abs(model.logit(e[0])))
    repair = {"opposite words": rewritten, "none": list}[t.repair]
    right, lines = len(errors) >= 5, []
    for words, label in errors[:5]:
        turned = [f"not {b}" for a, b in zip(words, words[1:], strict=False) if a == "not" and b in POSITIVE + NEGATIVE]
        before, after = model.logit(words), model.logit(repair(words))
        right &= (after > 0) == bool(label)
        lines.append(
            f"{'a good' if label else 'a bad'} review with logit {before:.1f} ({', '.join(turned)}): opinions add up to {opinions(words, turning=True):+d}, without heeding "
            f"'not' to {opinions(words, turning=False):+d}; with opposite words the logit is {after:.1f}"
        )
    return answered(
        right,
        f"Accuracy {100 * (1 - len(errors) / len(reviews)):.0f} %. " + "; ".join(f"({i + 1}) {line}" for i, line in enumerate(lines)) + "." + _film_errors(),
        "The confident errors of an averaging network are opinions under a negation, which an average cannot see: said with an opposite word, each is read right. In "
        "real reviews single words that pull the average to the wrong side explain an error in the same testable way.",
    )


def _film_errors() -> str:
    """Five errors on real film reviews, in one sentence; empty without the corpora."""
    train, test = film_reviews("train", 4000), film_reviews("test", 400)
    if not train or not test:
        return ""
    vocabulary = [w for w, _ in Counter(w for words, _ in train for w in words).most_common(8000)]
    model = fit(train, vocabulary, epochs=2)
    errors = [(w, label) for w, label in test if (model.logit(w) > 0) != bool(label)]
    shown = [f"{', '.join(flipped_by(model, w, label)[:6]) or 'no few words'}" for w, label in sorted(errors, key=lambda e: len(e[0]))[:5]]
    return (
        f" On film reviews (4,000 for training, accuracy {100 * (1 - len(errors) / len(test)):.0f} % on {len(test)}), five errors are turned right by taking out: "
        + "; ".join(shown)
        + "."
    )


@BOOK.claim(
    "4e.1",
    where="4 e, lines 242-244",
    says="The averaging network may have weighted the initial positive phrases more heavily than the later negative ones.",
    latex=r"f(\text{good first, bad last})\ne f(\text{bad first, good last})",
    how="The logit of the review's words with the praise first, with the praise last, and in 200 random orders. It holds if order moves the logit by more than "
    "rounding (10⁻⁹).",
    pooling="mean",
)
def _initial_phrases(t: SimpleNamespace) -> Outcome:
    praise = "this movie was good it was perfect and liked".split()
    blame = "the film was a disappointment it was boring and poor".split()
    model = trained(t.pooling)
    forth, back = model.logit(praise + blame), model.logit(blame + praise)
    rng = generator(3)
    orders = [model.logit([(praise + blame)[i] for i in rng.permutation(len(praise + blame))]) for _ in range(200)]
    spread = max([*orders, forth, back]) - min([*orders, forth, back])
    mean = trained()
    swing = mean.logit(praise) - mean.logit(blame)
    return refuted(
        holds=spread > 1e-9,
        evidence=f"Praise first {forth:.6f}, praise last {back:.6f}, 200 random orders: all within {spread:.1e}. The words matter (praise alone and blame alone differ by "
        f"{swing:.1f}), their places do not: an average forgets them.",
        corrected="An averaging network gives every word the same weight 1/n wherever it stands; only which words occur, and how often, can have misled it.",
        corrected_holds=abs(mean.logit(praise + blame) - mean.logit(blame + praise)) < 1e-9 and swing > 1,
    )


@BOOK.claim(
    "4e.2",
    where="4 e, lines 236-238 and 246-261",
    says="The other errors come from mixed sentiment, from misread phrases such as 'a perfect example', and from 'not half bad'.",
    latex=r"f(\text{not half bad})=f(\text{bad half not})",
    how="On a review of mixed words: whether taking out the words named turns the decision (the explanation by words). Then whether a phrase does anything beyond its "
    "words: the logit of reviews with 'not half bad' and 'short is a perfect example' against the same words scattered.",
    pooling="mean",
)
def _phrases(t: SimpleNamespace) -> Outcome:
    model = trained(t.pooling)
    mixed = "the scene was awesome and stunning the story was tame and the actor a bore".split() + ["perfect"]
    without = [w for w in mixed if w not in ("awesome", "stunning", "perfect")]
    words_explain = model.logit(mixed) > 0 > model.logit(without)
    effects = []
    for phrase in ("not half bad", "short is a perfect example"):
        together = "the movie was good and".split() + phrase.split() + "with a story of the year".split()
        scattered = sorted(together)
        effects.append(abs(model.logit(together) - model.logit(scattered)))
    not_bad, bad = model.logit("the movie is not half bad".split()), model.logit("the movie is half good".split())
    return conditional(
        with_condition=words_explain,
        without_condition=max(effects) > 1e-9,
        evidence=f"Mixed review: logit {model.logit(mixed):.2f}, without 'awesome', 'stunning', 'perfect' {model.logit(without):.2f}: words on both sides explain it. But the phrases "
        f"as phrases do nothing: scattering their words moves the logit by at most {max(effects):.1e}. 'Not half bad' counts as the word 'bad' (logit "
        f"{not_bad:.2f}, with 'half good' {bad:.2f}).",
        corrected="The explanations hold as far as they name words ('perfect', 'bad', 'awesome') and their balance; a phrase or a negation cannot be misread by a "
        "model that never sees which words stand together.",
    )
