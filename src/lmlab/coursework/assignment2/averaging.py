"""Section 4: deep averaging networks, and what an average of word vectors can see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace

from lmlab.coursework.assignment2.deepaverage import (
    NEGATIVE,
    POSITIVE,
    film_reviews,
    fit,
    flipped_by,
    made_up_reviews,
    trained,
)
from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, answered, conditional, exact, judged
from lmlab.coursework.shared_tools import generator, row

claim = book("assignment2").claim

ROUNDING = 1e-9
OPPOSITE = dict(zip(POSITIVE + NEGATIVE, NEGATIVE + POSITIVE, strict=True))


def opinions(words: Sequence[str], turning: bool) -> int:
    """Good opinions less bad ones, with `not` turning the next one round or ignored."""
    total = 0
    for before, word in zip(["", *words], words, strict=False):
        side = (word in POSITIVE) - (word in NEGATIVE)
        total += -side if turning and before == "not" else side
    return total


def negated(words: Sequence[str]) -> list[str]:
    """The opinions of a review that stand after `not`."""
    return [b for a, b in pairwise(words) if a == "not" and b in OPPOSITE]


def rewritten(words: Sequence[str]) -> list[str]:
    """The review with every negated opinion replaced by an opposite word."""
    out: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if before == "not" and word in OPPOSITE:
            out[-1] = OPPOSITE[word]
        else:
            out.append(word)
    return out


EXPLANATIONS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "negated opinions as opposite words": rewritten,
    "the order of the words turned round": lambda words: [*reversed(words)],
    "the word 'not' taken out": lambda words: [word for word in words if word != "not"],
    "nothing": list,
}


@claim("4e.0", explanation="negated opinions as opposite words", wanted=5)
def _five_errors(t: SimpleNamespace) -> Outcome:
    model, reviews = trained(), made_up_reviews(400, seed=2)
    errors = sorted(
        ((w, label) for w, label in reviews if (model.logit(w) > 0) != bool(label)),
        key=lambda e: -abs(model.logit(e[0])),
    )
    worst = errors[: t.wanted]
    mended = {
        name: sum((model.logit(change(words)) > 0) == bool(label) for words, label in worst)
        for name, change in EXPLANATIONS.items()
    }
    others = max(count for name, count in mended.items() if name != t.explanation)
    lines = [
        f"({i}) {'a good' if label else 'a bad'} review with logit {model.logit(words):.1f} (not {row(negated(words))}): "
        f"opinions add up to {opinions(words, turning=True):+d}, without heeding 'not' to "
        f"{opinions(words, turning=False):+d}; with opposite words the logit is {model.logit(rewritten(words)):.1f}."
        for i, (words, label) in enumerate(worst, 1)
    ]
    return answered(
        len(worst) == t.wanted == mended[t.explanation] > others,
        f"Reviews of an invented language in which 'not' turns an opinion round; accuracy "
        f"{100 * (1 - len(errors) / len(reviews)):.0f} % on {len(reviews)} new ones. The {t.wanted} most confident errors:",
        *lines,
        f"An explanation is a change that turns the decision right. Of {t.wanted}, so many are turned right by: "
        + "; ".join(f"{name} {count}" for name, count in mended.items())
        + ".",
        _film_errors(t.wanted),
        answer="The confident errors of an averaging network are opinions under a negation, which an average cannot see: "
        "said with an opposite word, each is read right. In real reviews single words that pull the average to the "
        "wrong side explain an error in the same testable way.",
    )


def _film_errors(wanted: int) -> str:
    """Errors on real film reviews, in one sentence; empty without the corpora."""
    train, test = film_reviews("train", 4000), film_reviews("test", 400)
    if not train or not test:
        return ""
    vocabulary = [w for w, _ in Counter(w for words, _ in train for w in words).most_common(8000)]
    model = fit(train, vocabulary, epochs=2)
    errors = sorted(((w, label) for w, label in test if (model.logit(w) > 0) != bool(label)), key=lambda e: len(e[0]))
    shown = [row(flipped_by(model, w, label)[:6]) or "no few words" for w, label in errors[:wanted]]
    return (
        f"On film reviews ({len(train):,} for training, accuracy {100 * (1 - len(errors) / len(test)):.0f} % on "
        f"{len(test)}), {wanted} errors are turned right by taking out: " + "; ".join(shown) + "."
    )


PRAISE = "this movie was good it was perfect and liked"
BLAME = "the film was a disappointment it was boring and poor"


@claim("4e.1", pooling="mean", orders=200)
def _initial_phrases(t: SimpleNamespace) -> Outcome:
    model, mean, rng = trained(t.pooling), trained(), generator(3)
    praise, blame = PRAISE.split(), BLAME.split()
    words = praise + blame
    forth, back = model.logit(words), model.logit(blame + praise)
    logits = [forth, back] + [model.logit([words[i] for i in rng.permutation(len(words))]) for _ in range(t.orders)]
    spread, swing = max(logits) - min(logits), mean.logit(praise) - mean.logit(blame)
    return judged(
        exact(spread > ROUNDING),
        f"Praise first {forth:.6f}, praise last {back:.6f}, {t.orders} random orders: all within {spread:.1e}; more than "
        f"rounding means more than {ROUNDING:.0e}. Praise alone and blame alone differ by {swing:.1f}.",
        because="The words matter, their places do not: an average forgets them.",
        corrected="An averaging network gives every word the same weight 1/n wherever it stands; only which words "
        "occur, and how often, can have misled it.",
        holds=abs(mean.logit(words) - mean.logit(blame + praise)) < ROUNDING and swing > 1,
    )


MIXED = "the scene was awesome and stunning the story was tame and the actor a bore perfect"


@claim("4e.2", pooling="mean", named=("awesome", "stunning", "perfect"))
def _phrases(t: SimpleNamespace) -> Outcome:
    model = trained(t.pooling)
    mixed, without = model.logit(MIXED.split()), model.logit([w for w in MIXED.split() if w not in t.named])
    effects = []
    for phrase in ("not half bad", "short is a perfect example"):
        together = ["the", "movie", "was", "good", "and", *phrase.split(), "with", "a", "story", "of", "the", "year"]
        effects.append(abs(model.logit(together) - model.logit(sorted(together))))
    bad, good = (model.logit(text.split()) for text in ("the movie is not half bad", "the movie is half good"))
    return conditional(
        exact(mixed > 0 > without),
        exact(max(effects) > ROUNDING),
        f"Mixed review: logit {mixed:.2f}, without {row(t.named)} {without:.2f}: words on both sides explain it: "
        f"{mixed > 0 > without}.",
        f"Scattering the words of a phrase moves the logit by at most {max(effects):.1e}. 'Not half bad' has logit "
        f"{bad:.2f}, 'half good' {good:.2f}.",
        because="The phrases as phrases do nothing: 'not half bad' counts as the word 'bad'.",
        precisely="The explanations hold as far as they name words ('perfect', 'bad', 'awesome') and their balance; "
        "a phrase or a negation cannot be misread by a model that never sees which words stand together.",
    )
