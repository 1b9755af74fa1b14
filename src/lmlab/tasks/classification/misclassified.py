"""Why a text was misclassified: what each word contributes, found by leaving it out, and which words tipped the decision.

Everything that is said is what the model does: a contribution is the difference that removing every occurrence of the word
really makes, and the words that tipped it are removed one after the other until the model says something else. Nothing is said
of order; where a text holds negations it is said of a model that averages that it reads them as words like others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

    @property
    def sentences(self) -> list[str]:
        """The explanation in words."""
        found = []
        if self.tipped_by:
            words = ", ".join(f"“{word}”" for word in self.tipped_by)
            found.append(f"Without {words} it would say {self.then}.")
        else:
            found.append("No few words decide it: removing the strongest ones changes nothing.")
        if self.negations:
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
    unseen = set() if model.ordered else {word for word in words if word in NEGATIONS or word.endswith("n't")}
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
        unknown_words=int((ids == tokenizer.unknown_id).sum()) if tokenizer.unknown_id is not None else 0,
    )


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
