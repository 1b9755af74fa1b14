"""Why a text was misclassified: what each word contributes, found by leaving it out, and which words tipped the decision.

Everything that is said is what the model does: a contribution is the difference that removing every occurrence of the word
really makes, and the words that tipped it are removed one after the other until the model says something else. A word that is
removed takes its pairs with it, and its neighbours become a pair. The contribution of a pair is what the model adds because
the two words stand together. Of a model without pairs nothing is said of order: it reads negations as words like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from lmlab.models.families.labelling import TextClassifier
from lmlab.records import JsonRecord
from lmlab.tasks.classification.data import Encoded
from lmlab.tasks.classification.scores import log_odds
from lmlab.text.tokenizers import Tokenizer

NEGATIONS = {"not", "no", "never", "nothing", "nor", "neither", "none", "without", "cannot", "hardly", "barely"}
NEAR_NEUTRAL = 0.1  # between the two likeliest labels
SHOWN = 8  # words with the largest contributions


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What a word does: the log-odds (nats) of the label against the other, less those without the word."""

    word: str
    times: int
    nats: float


@dataclass(frozen=True, kw_only=True)
class PairContribution:
    """What a pair of neighbouring words adds to the log-odds (nats) of the label against the other, beyond its two words."""

    words: str  # with a space between them; of two pairs that the model takes for one, both
    nats: float


@dataclass(frozen=True, kw_only=True)
class Explanation(JsonRecord):
    """One text and why it was taken for what it is not."""

    example: int  # its number in the part
    text: str
    right: str
    predicted: str
    p_right: float
    p_predicted: float
    contributions: tuple[Contribution, ...]  # largest first, for the predicted label against the right one
    tipped_by: tuple[str, ...]  # words without which the model says something else; empty: no few words do it
    then: str | None  # what it says without them
    negations: tuple[str, ...]  # which an average takes for words like any other; of a model that sees order, none
    near_neutral: bool
    words: int
    unknown_words: int
    pairs: tuple[PairContribution, ...] | None = (
        None  # those that add most, largest first; None: the model has no pairs
    )

    @property
    def sentences(self) -> list[str]:
        """The explanation in words."""
        found = []
        if self.tipped_by:
            words = ", ".join(f"“{word}”" for word in self.tipped_by)
            found.append(f"Without {words} it would say {self.then}.")
        else:
            found.append("No few words decide it: removing the strongest ones changes nothing.")
        if self.negations and self.pairs is not None:
            words = ", ".join(f"“{word}”" for word in self.negations)
            found.append(
                f"It holds {words}: the model reads a negation with the words right before and after it alone."
            )
        elif self.negations:
            words = ", ".join(f"“{word}”" for word in self.negations)
            found.append(
                f"It holds {words}: an average weighs them like any other word and cannot see what they negate."
            )
        if self.near_neutral:
            found.append("The two likeliest labels are close: the model all but abstains.")
        if self.unknown_words * 10 > self.words:
            found.append(
                f"{self.unknown_words} of its {self.words} words were never seen in training and count as one."
            )
        return found


def explain(
    model: TextClassifier, tokenizer: Tokenizer, classes: tuple[str, ...], text: str, right: int, example: int = 0
) -> Explanation:
    """Why the model says what it says of this text, against the right label."""
    one = Encoded.of(tokenizer, [text], by_words=model.by_words)
    ids = one.words(0)
    p_K = probabilities(model, [ids])[0]
    order = np.argsort(-p_K, kind="stable")
    predicted = int(order[0])
    other = right if right != predicted else int(order[1])
    kinds, times = np.unique(ids, return_counts=True)
    without_UK = probabilities(model, [ids[ids != kind] for kind in kinds])
    whole = log_odds(p_K[predicted], p_K[other])
    nats = [whole - log_odds(p[predicted], p[other]) for p in without_UK]
    strongest = sorted(range(len(kinds)), key=lambda i: -nats[i])
    tipped, then = _tipping(model, ids, kinds[strongest], predicted)
    words = [tokenizer.piece(int(kind)).strip() for kind in kinds]
    contributions = [Contribution(word=words[i], times=int(times[i]), nats=nats[i]) for i in strongest]
    pairs = _pairs(model, tokenizer, ids, predicted, other)
    sees_all = model.ordered and pairs is None
    unseen = set() if sees_all else {word for word in words if word in NEGATIONS or word.endswith("n't")}
    negations = tuple(sorted(unseen))
    return Explanation(
        example=example,
        text=text,
        right=classes[right],
        predicted=classes[predicted],
        p_right=float(p_K[right]),
        p_predicted=float(p_K[predicted]),
        contributions=tuple(contributions),
        tipped_by=tuple(words[strongest[i]] for i in range(tipped)),
        then=None if then is None else classes[then],
        negations=negations,
        near_neutral=bool(p_K[order[0]] - p_K[order[1]] < NEAR_NEUTRAL),
        words=len(ids),
        pairs=pairs,
        unknown_words=int((ids == tokenizer.unknown_id).sum()) if tokenizer.unknown_id is not None else 0,
    )


def _pairs(
    model: TextClassifier, tokenizer: Tokenizer, ids: np.ndarray, predicted: int, other: int
) -> tuple[PairContribution, ...] | None:
    """What the distinct pairs of a text add: those that speak most for the predicted label, and most against it."""
    found = model.pair_scores(torch.from_numpy(ids.astype(np.int64)))
    if found is None:
        return None
    numbers_M, scores_MK = (tensor.cpu() for tensor in found)
    nats = dict(zip(numbers_M.tolist(), (scores_MK[:, predicted] - scores_MK[:, other]).tolist(), strict=True))
    words: dict[int, dict[str, None]] = {number: {} for number in nats}  # each once, in the order of the text
    for number, pair in zip(numbers_M.tolist(), pairwise(ids.tolist()), strict=True):
        words[number][" ".join(tokenizer.piece(id).strip() for id in pair)] = None
    in_order = sorted(nats, key=lambda number: -nats[number])
    shown = in_order if len(in_order) <= 2 * SHOWN else in_order[:SHOWN] + in_order[-SHOWN:]
    return tuple(PairContribution(words=" or ".join(words[number]), nats=nats[number]) for number in shown)


def _tipping(model: TextClassifier, ids: np.ndarray, strongest: np.ndarray, predicted: int) -> tuple[int, int | None]:
    """How many of the strongest words must go, all occurrences, until the model says something else; 0: more than a few."""
    few = strongest[:SHOWN]
    without = [ids[~np.isin(ids, few[: n + 1])] for n in range(len(few))]
    says = probabilities(model, without).argmax(1)
    for n, label in enumerate(says.tolist()):
        if label != predicted:
            return n + 1, label
    return 0, None


def probabilities(model: TextClassifier, texts: list[np.ndarray]) -> np.ndarray:
    """Of texts given as ids: B×K."""
    starts_B = np.concatenate([[0], np.cumsum([len(ids) for ids in texts], dtype=np.int64)])
    return probabilities_of(model, Encoded(np.concatenate(texts), starts_B, np.zeros(len(texts), np.int64)))


def probabilities_of(model: TextClassifier, texts: Encoded) -> np.ndarray:
    """Of many texts, some at a time: B×K."""
    device = next(model.parameters()).device
    batches = (batch.to(device) for batch in texts.batches(model.at_once))
    return np.concatenate([model.probabilities(b.ids_N, b.starts_B).cpu().numpy() for b in batches])
