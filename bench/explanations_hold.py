"""Hold explanations of a classifier against the classifier: texts are written again without what they name, and classified."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

import lmlab
from lmlab.learn.run import Run
from lmlab.models.dan import DAN
from lmlab.models.families.word_counts import hashed_pairs
from lmlab.tasks.classification.data import Encoded, words_of
from lmlab.tasks.classification.misclassified import Explanation, explain
from lmlab.tasks.classification.scores import log_odds
from lmlab.text.labelled import Labelled

CLAIMS = 4  # contributions of an example that are tried: the largest and the smallest
NEAR = 1e-3  # nats: the rounding of float32 in a sum of hundreds of scores


def share_that_holds(run: Run, number: int) -> dict[str, tuple[float, int]]:
    """Return, for each kind of claim, the share that is true and how many there were.

    Args:
        run: a trained `dan`, whose test part is explained.
        number: how many examples, spread over the part.
    """
    table = Labelled.from_spec(run.record.inputs.corpus)
    part, model = table.parts["test"], run.saved
    assert isinstance(model, DAN)
    held: dict[str, list[bool]] = {"words": [], "what tipped it": [], "pairs": []}
    for i in np.linspace(0, len(part) - 1, number).astype(int).tolist():
        one = explain(model.eval(), run.tokenizer, table.classes, part.texts[i], int(part.labels_B[i]), i)
        for kind, of_one in _claims(run, model, table.classes, one).items():
            held[kind] += of_one
    return {kind: (float(np.mean(true)), len(true)) for kind, true in held.items() if true}


def _claims(run: Run, model: DAN, classes: Sequence[str], one: Explanation) -> dict[str, list[bool]]:
    words = words_of(one.text).split()
    ids = Encoded.of(run.tokenizer, [one.text]).words(0)
    assert len(words) == len(ids)
    names = np.array([run.tokenizer.piece(int(id)).strip() for id in ids])
    predicted = classes.index(one.predicted)
    p_K = _p(run, [" ".join(words)])[0]
    likeliest = np.argsort(-p_K, kind="stable")
    other = int(likeliest[1]) if one.right == one.predicted else classes.index(one.right)

    def odds(p_K: np.ndarray) -> float:
        return log_odds(float(p_K[predicted]), float(p_K[other]))

    def without(removed: Sequence[str]) -> str:
        return " ".join(word for word, name in zip(words, names.tolist(), strict=True) if name not in removed)

    ends = [*one.contributions[: CLAIMS // 2], *one.contributions[-CLAIMS // 2 :]]
    rewritten = [(c, without([c.word])) for c in ends if without([c.word])]
    p_CK = _p(run, [text for _, text in rewritten])
    found = {"words": [abs(odds(p_K) - odds(p) - c.nats) < NEAR for (c, _), p in zip(rewritten, p_CK, strict=True)]}
    if one.tipped_by and (text := without(one.tipped_by)):
        found["what tipped it"] = [lmlab.classify(run, text, device="cpu")[0].label == one.then]
    pairs = one.pairs or ()
    found["pairs"] = [
        abs(odds(p_K) - odds(_without_pair(model, ids, pair.words.split(" or "), names)) - pair.nats) < NEAR
        for pair in [*pairs[: CLAIMS // 2], *pairs[-CLAIMS // 2 :]]
    ]
    return found


def _p(run: Run, texts: list[str]) -> np.ndarray:
    """Return the probabilities of texts that are read from the beginning: B×K."""
    labelled = lmlab.classify(run, texts, device="cpu")
    return np.array([list(label.p.values()) for label in labelled])


def _without_pair(model: DAN, ids: np.ndarray, pairs: list[str], names: np.ndarray) -> np.ndarray:
    """Return the probabilities of a text under the model with the weights of a pair set to zero."""
    neighbours = [" ".join(two) for two in pairwise(names.tolist())]
    at = neighbours.index(pairs[0])
    number, _ = hashed_pairs(ids[at : at + 2], np.array([0, 2]), int(model.config.buckets or 0))
    with torch.no_grad():
        kept = model.pairs_PK[number].clone()
        model.pairs_PK[number] = 0
        p_1K = model.probabilities(torch.from_numpy(ids.astype(np.int64)), torch.tensor([0]))
        model.pairs_PK[number] = kept
    return p_1K[0].double().numpy()
